"""The networks of the translation memory (paper 2, section 3.3).

    α_ij = exp(h_tᵀ W_m z_ij + β f(x, z_i)) / Σ over all tokens of all retrieved sentences      (equation 2)
    c_t  = W_c Σ α_ij z_ij                        h_t + c_t replaces h_t
    λ_t  = g(h_t, c_t)                            p(w) = (1 - λ_t) p_v(w) + λ_t Σ_{z_ij = w} α_ij

h_t is the decoder's last state, z_ij the memory encoder's state of token j of sentence i. The untrained memory does not change
the base, since W_c and a trained scalar that multiplies λ_t are initialised to zero (decision 0002).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.base import BaseModel
from engine.corpora.types import SentencePair
from engine.memory.self_match import OwnText
from engine.memory.vector_index import VectorIndex
from engine.methods.interface import Artefacts
from engine.methods.modules import own_precision
from engine.methods.transformer import Inputs, PackedSentences, make_layers, padded
from engine.methods.translation_memory.config import TranslationMemoryConfig
from engine.methods.translation_memory.encoders import DualEncoder
from engine.methods.translation_memory.index import Refresher

SPEED = 20.0  # as in the memory adapter: a single scalar must move faster than a weight of a matrix
MOST = 1 - 1e-6  # maximum of λ, so that words that cannot be copied keep a probability


@dataclass
class Retrieved:
    """The memory of one batch of B sentences, and its attention in the last decoder pass."""

    states: Tensor  # (B, K, d), z
    ids: Tensor  # (B, K), the tokens
    relevance: Tensor  # (B, K), f(x, z_i) of each token's sentence
    owners: Tensor  # (B, K), the index of each token's sentence
    layout: PackedSentences
    target_mask: Tensor | None = None  # (B, T), in training: the positions at which logits are computed
    alpha: Tensor | None = None  # (R, T, K)
    copying: Tensor | None = None  # (R, T, 1), λ


class TranslationMemoryModule(nn.Module):
    """Dual encoder, memory encoder, and attention used for both states and copying. The memory is not part of the weights."""

    def __init__(self, base: BaseModel, config: TranslationMemoryConfig) -> None:
        super().__init__()
        d, own_start = base.d_model, config.init == "base"
        self.config = config
        self.retriever = DualEncoder(base, config)
        self.retriever.requires_grad_(config.retriever != "fixed")
        if config.retriever == "fixed_target":
            self.retriever.target.requires_grad_(False)
        self.memory_layers = make_layers(
            base, "decoder", config.memory_layers, cross=False, dropout=config.dropout, copied=False, post_norm=False
        )
        self.match = nn.Linear(d, d, bias=False)  # W_m
        self.read = nn.Linear(d, d, bias=False)  # W_c
        self.beta = nn.Parameter(torch.ones(()))
        self.gate_hidden, self.gate_out = nn.Linear(2 * d, d), nn.Linear(d, 1)
        self.copy_scale = nn.Parameter(torch.zeros(()))
        self._inputs = (Inputs(base, "decoder"),)  # a tuple, so that nothing of the base is registered
        nn.init.zeros_(self.read.weight)
        if own_start:
            # A memory token is then scored as the base would score it as the next word: h times its embedding.
            for layer in self.memory_layers:
                layer.quiet()  # type: ignore[operator]
            scale = float(getattr(self._inputs[0].embedding, "embed_scale", self._inputs[0].scale))
            with torch.no_grad():
                self.match.weight.copy_(torch.eye(d) / scale)
        else:
            nn.init.xavier_uniform_(self.match.weight, gain=1 / math.sqrt(d))
        self.pairs: Sequence[SentencePair] = ()
        self.rows: list[list[int]] = []  # the sentences' words as ids
        self.index: VectorIndex | None = None  # with the current weights; None in training
        self.refresher: Refresher | None = None
        self.new_refresher: Callable[[], Refresher] | None = None
        self.artefacts: Artefacts | None = None  # for the bundle; training adds the vectors
        self.workspace: Path | None = None  # only in training
        self.own: OwnText | None = None  # created at the first training batch
        self.where: tuple[int, Any] = (0, torch.device("cpu"))  # the base's padding id and device
        self.retrieved: Retrieved | None = None
        self.exchanged: Callable[[Sequence[int], Tensor], Tensor] | None = None  # replaces the states in ablations

    @property
    def size(self) -> int:
        """The number of dimensions of a sentence's vector."""
        return int(self.retriever.target.project.weight.shape[0])

    def train(self, mode: bool = True) -> TranslationMemoryModule:
        """Set the mode; training mode discards the index, since training changes the vectors."""
        if mode:
            self.index = None
        super().train(mode)
        return self

    def encode_memory(self, rows: list[list[int]], pad: int, device: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Ids (U, L), mask (U, L) and states (U, L, d) of sentences that are encoded independently.

        A token's state is its embedding plus the change made by the layers. Positions are input to the layers but not part of it.
        """
        ids, mask = padded(rows, pad, device)  # (U, L), (U, L)
        kind = self.match.weight.dtype
        entering = self._inputs[0](ids).to(kind)  # (U, L, d)
        states = entering
        for layer in self.memory_layers:
            states = layer(states, mask)  # (U, L, d)
        return ids, mask, self._inputs[0].tokens(ids).to(kind) + (states - entering)  # (U, L), (U, L), (U, L, d)

    def remember(
        self, numbers: list[list[int]], x: Tensor, recompute: bool, vectors: Any, pad: int, target_mask: Tensor | None
    ) -> None:
        """Encode the sentences retrieved for each of B sentences with vectors x (B, v). If `recompute`, E_tgt computes their
        vectors, so that it gets a gradient; otherwise they are taken from the index.
        """
        self.retrieved = None
        owners = [row for row, result in enumerate(numbers) for _ in result]  # (E,)
        entries = [number for result in numbers for number in result]  # (E,)
        if not entries:
            return
        unique = list(dict.fromkeys(entries))  # U sentences
        where = torch.tensor([unique.index(entry) for entry in entries], device=x.device)  # (E,)
        ids, mask, states = self.encode_memory([self.rows[i] for i in unique], pad, x.device)
        if self.exchanged is not None:
            states = self.exchanged(unique, states)  # (U, L, d)
        if recompute:
            z = self.retriever.target(ids, mask)  # (U, v)
        else:
            z = torch.from_numpy(vectors[unique]).to(x)  # (U, v)
        relevance = (x[torch.tensor(owners, device=x.device)] * z[where]).sum(-1)  # (E,), f
        layout = PackedSentences(mask[where], owners, len(numbers))
        token_relevance = relevance[:, None].expand_as(layout.from_mask)  # (E, L)
        which = torch.tensor(entries, device=x.device)[:, None].expand_as(layout.from_mask)  # (E, L)
        self.retrieved = Retrieved(
            layout.put(states[where]), layout.put(ids[where]), layout.put(token_relevance), layout.put(which), layout, target_mask
        )

    def attend(self, h: Tensor, strength: float = 1.0) -> Tensor:
        """h_t + c_t for the decoder's states (R, T, d), with R a multiple of B. Stores α and λ for the output layer."""
        result = self.retrieved
        assert result is not None
        kind = h.dtype
        if own_precision(h, self.match.weight):
            h = h.to(self.match.weight.dtype)  # (R, T, d)
        b, shape = len(result.states), h.shape
        query = h.reshape(b, -1, shape[-1])  # (B, n T, d)
        keys = self.match(result.states)  # (B, K, d)
        scores = query @ keys.transpose(1, 2)  # (B, n T, K)
        scores = scores.float() + self.beta.float() * result.relevance.float()[:, None]  # (B, n T, K)
        alpha = scores.masked_fill(~result.layout.mask[:, None], float("-inf")).softmax(-1)  # (B, n T, K)
        c = self.read(alpha.to(result.states.dtype) @ result.states) * result.layout.any  # (B, n T, d)
        result.alpha = alpha.reshape(*shape[:-1], -1)  # (R, T, K)
        gate = torch.sigmoid(self.gate_out(F.relu(self.gate_hidden(torch.cat([query, c], -1)))))  # (B, n T, 1)
        copying = self.copy_share() * gate.float() * result.layout.any * strength  # (B, n T, 1)
        result.copying = copying.clamp(max=MOST).reshape(*shape[:-1], 1)  # (R, T, 1)
        return (h + strength * c.reshape(shape)).to(kind)  # (R, T, d)

    def copy_share(self) -> Tensor:
        """The factor of λ: the trained scalar clamped to [0, 1]. The gradient is passed through the clamp, since the initial value
        is at a bound, where learning would otherwise stop.
        """
        s = SPEED * self.copy_scale.float()  # ()
        return s + (s.clamp(0, 1) - s).detach()  # ()

    def copy_from_memory(self, logits: Tensor, bias: Tensor | None) -> Tensor:
        """Logits (R, T, V), or (M, V) at the positions of `target_mask`, whose softmax after adding `bias` is the mixture."""
        result = self.retrieved
        if result is None or result.alpha is None or result.copying is None or not self.config.copy:
            return logits
        alpha, copying, ids = result.alpha, result.copying, result.ids  # (R, T, K), (R, T, 1), (B, K)
        beams = len(alpha) // len(ids)
        ids = ids.repeat_interleave(beams, 0)[:, None].expand_as(alpha)  # (R, T, K)
        if logits.dim() == 2:
            if result.target_mask is None or result.target_mask.shape != alpha.shape[:2]:
                return logits
            mask = result.target_mask  # (B, T)
            alpha, copying, ids = alpha[mask], copying[mask], ids[mask]  # (M, K), (M, 1), (M, K)
        return mixture(logits, bias, alpha, copying, ids)  # (R, T, V) or (M, V)


def mixture(logits: Tensor, bias: Tensor | None, alpha: Tensor, copying: Tensor, ids: Tensor) -> Tensor:
    """Logits (..., V) with log((1 - λ) + λ p_copy / p_v) added, so that their softmax is (1 - λ) p_v + λ p_copy.

    α (..., K) over tokens `ids` (..., K), λ (..., 1). p_v is the softmax of the logits plus the base's bias. The caller adds the
    bias to the result. For λ = 0, the logits do not change.
    """
    logits = logits.float()  # (..., V)
    log_p = (logits if bias is None else logits + bias).log_softmax(-1)  # (..., V)
    copied = torch.zeros_like(log_p).scatter_add(-1, ids, alpha)  # (..., V), p_copy
    ratio = copied * torch.exp(-log_p.clamp(min=-80))  # (..., V)
    return logits + torch.log((1 - copying) + copying * ratio)  # (..., V)
