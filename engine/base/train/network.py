"""The Marian model to be trained, and its loss over packed rows.

The layers are transformers' own. Two things are ours: positions that start anew with each packed sentence, and a loss
that can score a sample of the vocabulary in place of all of it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.base.train.options import SIZES, BaseTrainingOptions
from engine.base.train.packing import Packed
from engine.base.train.vocabulary import EOS, Vocabulary
from engine.errors import ModelError

__all__ = ["Candidates", "PackedLoss", "choose_candidates", "initial_model", "trained_names"]


def initial_model(vocabulary: Vocabulary, options: BaseTrainingOptions, start: Path | None, eager: bool) -> Any:
    """A fresh MarianMTModel, or the one in `start`, in float32. Raises ModelError when that one has another shape."""
    from transformers import MarianConfig, MarianMTModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    attention = "eager" if eager else "sdpa"
    if start is not None:
        model = MarianMTModel.from_pretrained(start, dtype=torch.float32, attn_implementation=attention)
        if model.config.vocab_size != vocabulary.size:
            raise ModelError(
                f"The model in {start} has {model.config.vocab_size} words, its vocabulary {vocabulary.size}."
            )
        model.config.dropout = options.dropout
        for module in model.modules():
            if hasattr(module, "dropout") and isinstance(module.dropout, float) and not hasattr(module, "k_proj"):
                module.dropout = options.dropout
        return model
    size = SIZES[options.size]
    heads = max(1, size.d_model // 64)
    config = MarianConfig(
        vocab_size=vocabulary.size,
        d_model=size.d_model,
        encoder_layers=size.encoder_layers,
        decoder_layers=size.decoder_layers,
        encoder_ffn_dim=4 * size.d_model,
        decoder_ffn_dim=4 * size.d_model,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        dropout=options.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        max_position_embeddings=512,
        pad_token_id=vocabulary.pad,
        eos_token_id=EOS,
        bos_token_id=EOS,
        forced_eos_token_id=EOS,
        decoder_start_token_id=vocabulary.pad,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        attn_implementation=attention,
    )
    model = MarianMTModel(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 2 and "shared" not in name and "embed" not in name:
                nn.init.xavier_uniform_(weight)
        model.model.shared.weight.normal_(0, size.d_model**-0.5)
        model.model.shared.weight[vocabulary.pad].zero_()
    model.tie_weights()
    return model


def trained_names(model: Any) -> list[str]:
    """Names of the weights that are trained: all but the sinusoids."""
    return [name for name, _ in model.named_parameters() if "embed_positions" not in name]


class Positions(nn.Module):
    """Stands in for Marian's sinusoidal positions: each token's place is given, since several sentences share a row."""

    table: Tensor  # (P, d)

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table.detach().clone(), persistent=False)
        self.position: Tensor | None = None  # (B, L), set before each pass

    def forward(self, shape: Any, past: int = 0, position_ids: Tensor | None = None) -> Tensor:
        assert self.position is not None
        return functional.embedding(self.position, self.table)  # (B, L, d)


class Embedding(nn.Module):
    """Stands in for the embeddings of encoder and decoder: a float32 table, since gradients of frequent words are long sums,
    and vectors in the arithmetic's precision.
    """

    def __init__(self, table: nn.Parameter, kind: torch.dtype) -> None:
        super().__init__()
        self.weight = table
        self.kind = kind

    def forward(self, words: Tensor) -> Tensor:
        return functional.embedding(words, self.weight).to(self.kind)  # (B, L, d)


class Candidates:
    """Words scored in a batch: the batch's own and random others (sampled softmax, Jean et al. 2015).

    `correction` is the logarithm of how many words each candidate stands for, added to its logit, so that the sum over
    candidates estimates the sum over the vocabulary.
    """

    def __init__(self, words: Tensor, correction: Tensor, places: Tensor) -> None:
        self.words = words  # (K,)
        self.correction = correction  # (K,)
        self.places = places  # (B, L) labels as places in `words`


def choose_candidates(labels: Tensor, vocabulary: int, number: int, seed: tuple[int, ...]) -> Candidates | None:
    """The candidates of a batch, or None when all words are to be scored."""
    if not number:
        return None
    own = np.unique(labels.numpy())
    number = max(number, len(own) + 64)
    if number >= vocabulary:
        return None
    random = np.random.default_rng(seed)
    others = np.setdiff1d(np.arange(vocabulary), own, assume_unique=True)
    drawn = random.choice(others, number - len(own), replace=False)
    words = np.concatenate([own, drawn])
    correction = np.zeros(number, dtype=np.float32)
    correction[len(own) :] = math.log(len(others) / len(drawn))
    place = np.zeros(vocabulary, dtype=np.int64)
    place[own] = np.arange(len(own))
    return Candidates(torch.from_numpy(words), torch.from_numpy(correction), torch.from_numpy(place[labels.numpy()]))


class PackedLoss(nn.Module):
    """Cross-entropy of a Marian model over packed rows."""

    def __init__(self, model: Any, label_smoothing: float, kind: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self.kind = kind
        self.smoothing = label_smoothing
        core = model.model
        core.encoder.embed_positions = Positions(core.encoder.embed_positions.weight.to(kind))
        core.decoder.embed_positions = Positions(core.decoder.embed_positions.weight.to(kind))
        core.encoder.embed_tokens = core.decoder.embed_tokens = Embedding(core.shared.weight, kind)
        for weight in model.parameters():
            if weight is not core.shared.weight:
                weight.data = weight.data.to(kind)

    def mask(self, queries: Tensor, keys: Tensor, causal: bool) -> Tensor:
        """Which key each query may see, as the model's attention wants it (B, 1, Q, K); padding sees padding."""
        seen = queries[:, :, None] == keys[:, None, :]  # (B, Q, K)
        if causal:
            seen = seen & torch.ones(seen.shape[1:], dtype=torch.bool, device=seen.device).tril()  # (B, Q, K)
        seen = seen[:, None]  # (B, 1, Q, K)
        if self.model.config._attn_implementation == "sdpa":
            return seen
        hidden = torch.zeros(seen.shape, dtype=self.kind, device=seen.device)  # (B, 1, Q, K)
        return hidden.masked_fill_(~seen, torch.finfo(self.kind).min)  # (B, 1, Q, K)

    def forward(self, batch: Packed, candidates: Candidates | None, smooth: bool = True) -> Tensor:
        """Mean loss a target token, in nats."""
        core = self.model.model
        core.encoder.embed_positions.position = batch.source_position
        core.decoder.embed_positions.position = batch.target_position
        encoded = core.encoder(
            input_ids=batch.source,
            attention_mask=self.mask(batch.source_segment, batch.source_segment, False),
        ).last_hidden_state  # (B, L, d)
        hidden = core.decoder(
            input_ids=batch.inputs,
            attention_mask=self.mask(batch.target_segment, batch.target_segment, True),
            encoder_hidden_states=encoded,
            encoder_attention_mask=self.mask(batch.target_segment, batch.source_segment, False),
            use_cache=False,
        ).last_hidden_state  # (B, L, d)
        real = batch.target_segment.view(-1) > 0  # (B*L,)
        flat = hidden.view(-1, hidden.shape[-1])  # (B*L, d)
        if candidates is None:
            logits = flat @ core.shared.weight.to(self.kind).T  # (B*L, V)
            labels = batch.labels.view(-1)  # (B*L,)
        else:
            bias = candidates.correction.to(flat.dtype)  # (K,)
            words = core.shared.weight[candidates.words].to(self.kind)  # (K, d)
            logits = torch.addmm(bias, flat, words.T)  # (B*L, K)
            labels = candidates.places.view(-1)  # (B*L,)
        labels = labels.masked_fill(~real, -100)  # (B*L,)
        return functional.cross_entropy(
            logits, labels, label_smoothing=self.smoothing if smooth else 0.0, reduction="mean"
        )
