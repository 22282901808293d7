"""The networks of the n-gram memory (paper 3, section 2.2).

    retrieved source X^i ── layers, attending to the encoding of X ──┐
    retrieved target Y^i ── layers, attending to ────────────────────┘ ── concatenated over all pairs: the memory

    c^s  the base's cross-attention to X        c^m  the same over the memory
    g = σ(W_gs c^s + W_gm c^m)                  c = g c^s + (1 - g) c^m

As in decision 0002, the mixture is c = c^s + s (1 - g)(c^m - c^s) with a trained scalar s initialised to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from engine.base import BaseModel
from engine.core.metrics import MEMORY_READS
from engine.corpora.types import SentencePair
from engine.methods.modules import in_precision_of
from engine.methods.ngram_memory.config import NgramMemoryConfig
from engine.methods.ngram_memory.retriever import Retriever
from engine.methods.transformer import Attention, Inputs, PackedSentences, make_layers, padded

# Adam moves every weight by about the learning rate; the scalar that scales a whole network must move faster.
SPEED = 20.0


@dataclass
class Retrieved:
    """The memory of one batch of B sentences."""

    memory: Tensor  # (B, K, d), the concatenated states of the retrieved translations
    mask: Tensor  # (B, K), true at tokens, and at the first position of a row without tokens, as attention needs one
    any: Tensor  # (B, 1, 1), 1 if any pair was retrieved, else 0
    owners: Tensor  # (B, K), the index of each token's pair
    layout: PackedSentences
    projected: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # keys and values by decoder layer


class GatedAttention(nn.Module):
    """Gated multi-source attention of one decoder layer (equations 2 and 3)."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(d, heads)
        self.gate_source = nn.Linear(d, 1, bias=False)
        self.gate_memory = nn.Linear(d, 1, bias=False)
        self.scale = nn.Parameter(torch.zeros(()))
        self.recorded: dict[str, Tensor] | None = None  # filled while reads are being recorded

    def forward(self, anchor: Tensor, query: Tensor, retrieved: Retrieved, layer: int, strength: float = 1.0) -> Tensor:
        """c for c^s = anchor and queries (R, T, d). R is a multiple of the rows in `retrieved`, with a sentence's beams adjacent.

        In training over a half-precision base, it is computed in the precision of the module.
        """
        MEMORY_READS.inc(query.shape[0] * query.shape[1])
        mix = partial(self.mix, retrieved=retrieved, layer=layer, strength=strength)
        return in_precision_of(self.scale, mix, anchor, query)  # (R, T, d)

    def mix(self, anchor: Tensor, query: Tensor, retrieved: Retrieved, layer: int, strength: float) -> Tensor:
        shape, rows = anchor.shape, len(retrieved.memory)
        c_s, query = anchor.reshape(rows, -1, shape[-1]), query.reshape(rows, -1, shape[-1])  # (B, n T, d), (B, n T, d)
        if layer not in retrieved.projected:
            retrieved.projected[layer] = self.attention.project(retrieved.memory)
        keys, values = retrieved.projected[layer]  # (B, H, K, d/H), (B, H, K, d/H)
        c_m = self.attention.read(query, keys, values, retrieved.mask)  # (B, n T, d)
        gate = torch.sigmoid(self.gate_source(c_s) + self.gate_memory(c_m))  # (B, n T, 1)
        read_weight = SPEED * self.scale * (1 - gate) * retrieved.any  # (B, n T, 1)
        if self.recorded is not None:
            self.recorded["weights"] = self.attention.weights(query, keys, retrieved.mask).mean(1)  # (B, n T, K)
            self.recorded["gate"] = 1 - read_weight
        return (c_s + strength * read_weight * (c_m - c_s)).reshape(shape)  # (R, T, d)


class NgramMemoryModule(nn.Module):
    """Encoders of retrieved pairs and the gated attention of each decoder layer. The retrieval set is not part of the weights."""

    def __init__(self, base: BaseModel, config: NgramMemoryConfig) -> None:
        super().__init__()
        self.config = config
        copied = config.init == "base"
        if config.memory == "source_target":
            self.source = make_layers(base, "encoder", config.layers, cross=True, dropout=config.dropout, copied=copied)
            # The target layers' attention expects normalised states, but the output of a pre-norm layer is not normalised.
            post_norm = base.model.config.model_type == "marian"
            self.source_norm = nn.Identity() if post_norm else nn.LayerNorm(base.d_model)
        self.target = make_layers(
            base, "decoder", config.layers, cross=config.memory != "alone", dropout=config.dropout, copied=copied
        )
        self.norm = nn.LayerNorm(base.d_model)
        heads = int(base.model.config.decoder_attention_heads)
        self.layers = nn.ModuleDict({str(i): GatedAttention(base.d_model, heads) for i in range(len(base.decoder_layers))})
        if copied and base.precision != "int8":
            for i, gated in self.layers.items():
                theirs = base.decoder_layers[int(i)].encoder_attn.state_dict()
                gated.attention.load_state_dict({key: weight.float() for key, weight in theirs.items()})  # type: ignore[union-attr, operator]
        self._inputs = (Inputs(base, "encoder"), Inputs(base, "decoder"))  # a tuple, so that neither is registered
        self.pairs: Sequence[SentencePair] = ()
        self.retriever: Retriever | None = None
        self.retrieved: Retrieved | None = None
        self.exchanged: Callable[[Sequence[int], Tensor], Tensor] | None = None  # replaces the states in ablations
        self._ids: dict[int, tuple[list[int], list[int]]] = {}

    def gates(self) -> list[tuple[int, GatedAttention]]:
        """(decoder layer, its gated attention), from the bottom up."""
        return [(int(layer), gated) for layer, gated in self.layers.items()]  # type: ignore[misc]

    def set_pairs(self, pairs: Sequence[SentencePair], retriever: Any) -> None:
        """Replace the retrieval set."""
        self.pairs, self.retriever, self.retrieved, self._ids = pairs, retriever, None, {}

    def token_ids(self, base: BaseModel, numbers: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        """Source and target ids of pairs of the retrieval set, truncated to `max_tokens`."""
        new = [i for i in dict.fromkeys(numbers) if i not in self._ids]
        limit = min(self.config.max_tokens, base.max_tokens)
        sources = base.encode([self.pairs[i].source for i in new])
        targets = base.encode_target([self.pairs[i].target for i in new])
        for i, source, target in zip(new, sources, targets, strict=True):
            self._ids[i] = source[:limit], target[:limit]
        return [self._ids[i] for i in numbers]

    def remember(self, base: BaseModel, rows: list[list[int]], encoded: Tensor, mask: Tensor) -> None:
        """Encode the pairs retrieved for each of B sentences, given the sentences' frozen encodings (B, S, d) with mask (B, S)."""
        owners = [row for row, numbers in enumerate(rows) for _ in numbers]  # (E,)
        entries = [number for numbers in rows for number in numbers]  # (E,)
        dtype = self.norm.weight.dtype
        if not entries:
            self.retrieved = None
            return
        ids = self.token_ids(base, entries)
        where = torch.tensor(owners, device=encoded.device)  # (E,)
        other, other_mask = encoded[where].to(dtype), mask[where].bool()  # (E, S, d), (E, S)
        if self.config.memory == "source_target":
            tokens, source_mask = padded([source for source, _ in ids], base.pad, base.device)  # (E, L), (E, L)
            states = self._inputs[0](tokens).to(dtype)  # (E, L, d)
            for layer in self.source:
                states = layer(states, source_mask, other, other_mask)  # (E, L, d)
            other, other_mask = self.source_norm(states), source_mask  # (E, L, d), (E, L)
        tokens, target_mask = padded([target for _, target in ids], base.pad, base.device)  # (E, L'), (E, L')
        states = self._inputs[1](tokens).to(dtype)  # (E, L', d)
        for layer in self.target:
            if self.config.memory == "alone":
                states = layer(states, target_mask)  # (E, L', d)
            else:
                states = layer(states, target_mask, other, other_mask)  # (E, L', d)
        states = self.norm(states)  # (E, L', d)
        if self.exchanged is not None:
            states = self.exchanged(entries, states)  # (E, L', d)
        layout = PackedSentences(target_mask, owners, len(rows))
        numbers = torch.tensor(entries, device=encoded.device)[:, None].expand_as(target_mask)  # (E, L')
        self.retrieved = Retrieved(layout.put(states), layout.mask, layout.any.to(dtype), layout.put(numbers), layout)
