"""The Marian model to be trained, and its loss over packed rows.

The weights are those of transformers' Marian. The forward and backward passes are implemented in `blocks`: positions restart
with each packed sentence, and the loss can score a sample of the vocabulary instead of all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.builders.bases.blocks import SampledCrossEntropy, attention_block, feed_forward_block
from engine.builders.bases.grow import grow_encoder
from engine.builders.bases.options import BaseTrainingOptions
from engine.builders.bases.packing import Packed
from engine.builders.bases.vocabulary import EOS, Vocabulary
from engine.errors import ModelError


def initial_model(vocabulary: Vocabulary, options: BaseTrainingOptions, start: Path | None) -> Any:
    """A new MarianMTModel, or the one in `start`, grown if the options ask for it, in float32.

    Raises ModelError if the model in `start` has another vocabulary, OptionError if it cannot be grown to the size requested.
    """
    from transformers import MarianConfig, MarianMTModel

    if start is not None:
        model = load_model(start)
        if model.config.vocab_size != vocabulary.size:
            raise ModelError(f"The model in {start} has {model.config.vocab_size} words, its vocabulary {vocabulary.size}.")
        model.config.dropout = options.dropout
        return grow_encoder(model, options.encoder_layers, options.encoder_ffn)
    size = options.shape()
    heads = max(1, size.d_model // 64)
    config = MarianConfig(
        vocab_size=vocabulary.size,
        d_model=size.d_model,
        encoder_layers=size.encoder_layers,
        decoder_layers=size.decoder_layers,
        encoder_ffn_dim=size.encoder_ffn or 4 * size.d_model,
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


def load_model(folder: Path) -> Any:
    """The MarianMTModel in `folder`, in float32."""
    from transformers import MarianMTModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    return MarianMTModel.from_pretrained(folder, dtype=torch.float32)


def trained_names(model: Any) -> list[str]:
    """Names of the trained weights: all except the sinusoidal positions."""
    return [name for name, _ in model.named_parameters() if "embed_positions" not in name]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Words scored in a batch: the words in its labels and a random sample of the others (sampled softmax, Jean et al. 2015).

    `correction`, the logarithm of the number of words that a candidate represents, is added to its logit, so that the sum
    over the candidates estimates the sum over the vocabulary.
    """

    words: Tensor  # (K,)
    correction: Tensor  # (K,)
    labels: Tensor  # (B, L) labels as indices into `words`


def choose_candidates(labels: Tensor, vocabulary: int, number: int, seed: tuple[int, ...]) -> Candidates | None:
    """The candidates of a batch, or None if all words are to be scored."""
    if not number:
        return None
    target_words = np.unique(labels.numpy())
    number = max(number, len(target_words) + 64)
    if number >= vocabulary:
        return None
    random = np.random.default_rng(seed)
    other_words = np.setdiff1d(np.arange(vocabulary), target_words, assume_unique=True)
    sampled = random.choice(other_words, number - len(target_words), replace=False)
    words = np.concatenate([target_words, sampled])
    correction = np.zeros(number, dtype=np.float32)
    correction[len(target_words) :] = math.log(len(other_words) / len(sampled))
    position = np.zeros(vocabulary, dtype=np.int64)
    position[target_words] = np.arange(len(target_words))
    return Candidates(torch.from_numpy(words), torch.from_numpy(correction), torch.from_numpy(position[labels.numpy()]))


class PackedLoss(nn.Module):
    """Cross-entropy of a Marian model over packed rows.

    The model's weights are cast to `kind` in place, except for the embedding table: gradients of frequent words are long
    sums, which need float32.
    """

    positions: Tensor  # (P, d)

    def __init__(self, model: Any, label_smoothing: float, kind: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self.kind = kind
        self.smoothing = label_smoothing
        core = model.model
        self.register_buffer("positions", core.encoder.embed_positions.weight.detach().to(kind), persistent=False)
        for weight in model.parameters():
            if weight is not core.shared.weight:
                weight.data = weight.data.to(kind)

    def mask(self, queries: Tensor, keys: Tensor, causal: bool) -> Tensor:
        """The mask added to the scores (B, 1, Q, K): 0 within a sentence (or the padding), the lowest number elsewhere."""
        visible = queries[:, :, None] == keys[:, None, :]  # (B, Q, K)
        if causal:
            visible = visible & torch.ones(visible.shape[1:], dtype=torch.bool, device=visible.device).tril()  # (B, Q, K)
        hidden = torch.zeros(visible.shape, dtype=self.kind, device=visible.device)  # (B, Q, K)
        return hidden.masked_fill_(~visible, torch.finfo(self.kind).min)[:, None]  # (B, 1, Q, K)

    def embed(self, words: Tensor, position: Tensor, dropout: float) -> Tensor:
        """Scaled embeddings plus the sinusoids of each token's position in its sentence (B*L, d)."""
        table = self.model.model.shared.weight  # (V, d)
        vectors = functional.embedding(words.view(-1), table).to(self.kind) * self.model.config.d_model**0.5  # (B*L, d)
        return functional.dropout(vectors + functional.embedding(position.view(-1), self.positions), dropout)  # (B*L, d)

    def hidden(self, batch: Packed) -> Tensor:
        """The last hidden states of the decoder (B*L, d)."""
        core = self.model.model
        dropout = self.model.config.dropout if self.training else 0.0
        encoded = self.embed(batch.source, batch.source_position, dropout)  # (B*L, d)
        mask = self.mask(batch.source_segment, batch.source_segment, False)
        for layer in core.encoder.layers:
            encoded = attention_block(encoded, None, mask, layer.self_attn, layer.self_attn_layer_norm, dropout)
            encoded = feed_forward_block(encoded, layer, dropout)
        states = self.embed(batch.inputs, batch.target_position, dropout)  # (B*L, d)
        mask = self.mask(batch.target_segment, batch.target_segment, True)
        cross = self.mask(batch.target_segment, batch.source_segment, False)
        for layer in core.decoder.layers:
            states = attention_block(states, None, mask, layer.self_attn, layer.self_attn_layer_norm, dropout)
            states = attention_block(states, encoded, cross, layer.encoder_attn, layer.encoder_attn_layer_norm, dropout)
            states = feed_forward_block(states, layer, dropout)
        return states

    def forward(self, batch: Packed, candidates: Candidates | None, smooth: bool = True) -> Tensor:
        """Mean loss per target token, in nats."""
        table = self.model.model.shared.weight  # (V, d)
        real = (batch.target_segment.view(-1) > 0).nonzero()[:, 0]  # (n,)
        states = self.hidden(batch).index_select(0, real)  # (n, d)
        if candidates is None:
            words, labels, correction = table, batch.labels, table.new_zeros(len(table))
        else:
            words, labels, correction = table[candidates.words], candidates.labels, candidates.correction
        return SampledCrossEntropy.apply(
            states, words.to(self.kind), correction.to(self.kind), labels.view(-1)[real], self.smoothing if smooth else 0.0
        )
