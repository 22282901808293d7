"""The memory-augmented adapter's network (paper 1, section 4.3).

                 anchor A ────────────────┐
                                          ├─ gate ── output O
    query Q ── softmax(Q Wq Wkᵀ Kᵀ / T) V Wv = R ┘
                    K = V = memory

A MemoryReader does this at one position. A MemoryAdapterModule has two per decoder layer: at self-attention (target memory,
A = Q = S(i)) and at cross-attention (source memory, A = C(i), Q = L1(i)), before residual and layer norm.

The memory is constant, so training needs no product of size N x d x d: Wq Wkᵀ is applied to the query, and Wv to the reading.
After training, `prepare_for_inference` projects keys and values once, so that a step costs only the two products with them. For a
large memory it builds an index instead (engine/memory/approximate_attention.py).
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.base.onednn import PackedLinear, is_faster
from engine.core.metrics import MEMORY_READS
from engine.memory import Memory
from engine.memory.approximate_attention import ApproximateAttention
from engine.memory.chunked_attention import PackedMemory, attend
from engine.memory.faiss_search import has_faiss
from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.methods.memory_adapter.layered import LayeredReaders
from engine.methods.modules import in_precision_of

# Adam moves every weight by about the learning rate; the scalar that scales a whole reader must move faster.
SPEED = 20.0
EXACT = 50_000  # maximum phrases of a layer for which `search="auto"` reads all of them


class MemoryReader(nn.Module):
    """Reads a memory (N, d) at one position and mixes the reading with the anchor (equations 4 and 5).

    With `start="identity"` the mixture is O = A + s (1 - λ)(R - A), with a trained scalar s initialised to 0. This is the paper's
    equation with the gate λ' = 1 - s (1 - λ), which equation 5 could not initialise to 1 with finite weights.
    """

    memory: Tensor
    keys: Tensor | None
    values: Tensor | None

    def __init__(self, d: int, config: MemoryAdapterConfig) -> None:
        super().__init__()
        self.query = nn.Linear(d, d, bias=config.bias)
        self.key = nn.Linear(d, d, bias=config.bias)
        self.value = nn.Linear(d, d, bias=config.bias)
        for linear in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(linear.weight, gain=1 / math.sqrt(2))
        self.gate_hidden = nn.Linear(2 * d, d, bias=config.bias) if config.gate else None
        self.gate_out = nn.Linear(d, 1, bias=config.bias) if config.gate else None
        self.scale = nn.Parameter(torch.zeros(())) if config.start == "identity" else None
        self.inverse_temperature = 1 / config.temperature / (math.sqrt(d) if config.scale_query else 1.0)
        self.register_buffer("memory", torch.zeros(0, d), persistent=False)
        self.register_buffer("keys", None, persistent=False)
        self.register_buffer("values", None, persistent=False)
        self.dropped: Tensor | bool = False  # True: the whole memory is dropped; a bool tensor (N,): single items
        self.search, self.top_k, self.breadth = config.search, config.top_k, config.search_breadth
        self.nearest: ApproximateAttention | None = None  # replaces keys and values
        self.graph_path: Path | None = None  # cache path of the index in `nearest`
        self.laid: PackedReader | None = None  # keys and values packed for fast products
        self.rows: tuple[Tensor, PackedMemory] | None = None  # the memory and its products for training
        self.recorded: dict[str, Tensor] | None = None  # filled while reads are being recorded

    def project(self) -> None:
        """Compute keys K Wk and values V Wv, or an index of the keys; valid until the weights change.

        Raises MissingError if an index is requested and faiss is not installed.
        """
        self.forget_projection()
        self.rows = None
        with torch.no_grad():
            keys = self.memory @ self.key.weight.T  # (N, d); a key bias shifts all scores of a query alike
            if self.by_index():
                self.nearest = ApproximateAttention(
                    keys * self.inverse_temperature, self.memory, self.top_k, self.breadth, self.graph_path
                )
            else:
                self.keys, self.values = keys, self.value(self.memory)  # (N, d), (N, d)

    def by_index(self) -> bool:
        """Whether an index selects the likeliest rows: never on a GPU, where reading all rows is faster than a search."""
        if self.search == "exact" or self.memory.device.type != "cpu" or not len(self.memory):
            return False
        return self.search == "top_k" or (len(self.memory) > EXACT and has_faiss())

    def forget_projection(self) -> None:
        self.keys = self.values = self.nearest = self.laid = None

    def constant(self, memory: Tensor) -> PackedMemory:
        """The memory's products for training; cached for the whole memory, but not for a part of it."""
        if memory is not self.memory:
            return PackedMemory(memory)
        if self.rows is None or self.rows[0] is not memory:
            self.rows = (memory, PackedMemory(memory))
        return self.rows[1]

    def laid_out(self, query: Tensor) -> PackedReader | None:
        """Packed keys, values and gate for products with these queries, created on first use; None if packing does not pay.

        They replace `keys` and `values`.
        """
        if torch.is_grad_enabled() or query.dtype != torch.float32 or query.device.type != "cpu" or not is_faster():
            return None
        if self.laid is None and self.keys is not None and self.values is not None:
            self.laid = PackedReader(self, self.keys, self.values)
            self.keys = self.values = None
        return self.laid

    def read(self, query: Tensor) -> Tensor:
        """R of equation 4 for queries (..., d); zeros if the memory is empty or dropped."""
        if not len(self.memory) or self.dropped is True:
            return torch.zeros_like(query)  # (..., d)
        laid = self.laid_out(query)
        if laid is not None:
            weights = torch.softmax(laid.scores(query), dim=-1)  # (..., N)
            if self.recorded is not None:
                self.recorded["weights"] = weights
            return laid.values(weights)  # (..., d)
        q = self.query(query)  # (..., d)
        if self.nearest is not None and self.recorded is None and self.dropped is False:
            return self.value(self.nearest.read(q, self.memory))  # (..., d)
        if self.keys is not None and self.values is not None:
            weights = torch.softmax(q @ self.keys.T * self.inverse_temperature, dim=-1)  # (..., N)
            read = weights @ self.values  # (..., d)
        else:
            memory = self.memory[~self.dropped] if isinstance(self.dropped, Tensor) else self.memory  # (N, d)
            if not len(memory):
                return torch.zeros_like(query)  # (..., d)
            if self.recorded is None and torch.is_grad_enabled() and q.dtype == self.key.weight.dtype == memory.dtype:
                return self.value(attend((q @ self.key.weight) * self.inverse_temperature, self.constant(memory)))  # (..., d)
            scores = (q @ self.key.weight) @ memory.T  # (..., N)
            weights = torch.softmax(scores * self.inverse_temperature, dim=-1).to(scores.dtype)  # (..., N)
            read = self.value(weights @ memory)  # (..., d)
        if self.recorded is not None:
            self.recorded["weights"] = weights
        return read

    def forward(self, anchor: Tensor, query: Tensor, strength: float = 1.0) -> Tensor:
        """O of equation 5 for anchor and query (B, T, d); `strength` scales the change O - A.

        In training over a half-precision base, it is computed in the precision of the reader.
        """
        MEMORY_READS.inc(query.shape[0] * query.shape[1])
        mix = partial(self.mix, strength=strength)
        return in_precision_of(self.query.weight, mix, anchor, query)  # (B, T, d)

    def mix(self, anchor: Tensor, query: Tensor, strength: float) -> Tensor:
        read = self.read(query)  # (B, T, d)
        if self.laid is not None and self.recorded is None and not torch.is_grad_enabled():
            return self.laid.mix(anchor, read, strength)  # (B, T, d)
        if self.gate_hidden is not None and self.gate_out is not None:
            mixed = F.relu(self.gate_hidden(torch.cat([anchor, read], dim=-1)))  # (B, T, d)
            read_weight = torch.sigmoid(-self.gate_out(mixed))  # (B, T, 1), 1 - λ
        else:
            read_weight = torch.ones_like(anchor[..., :1])  # (B, T, 1)
        if self.scale is not None:
            read_weight = SPEED * self.scale * read_weight  # (B, T, 1)
        if self.recorded is not None:
            self.recorded["gate"] = 1 - read_weight
        return anchor + strength * read_weight * (read - anchor)  # (B, T, d)


class PackedReader:
    """A reader's constant products. Wq and the temperature are merged into the keys: Q Wq (K Wk)ᵀ = Q (K Wk Wqᵀ)ᵀ."""

    def __init__(self, reader: MemoryReader, keys: Tensor, values: Tensor) -> None:
        with torch.no_grad():
            keys = keys * reader.inverse_temperature  # (N, d)
            bias = None if reader.query.bias is None else keys @ reader.query.bias  # (N,)
            self.scores = PackedLinear(keys @ reader.query.weight, bias)
            self.values = PackedLinear(values.T)
            self.share = 1.0 if reader.scale is None else SPEED * float(reader.scale)
            hidden, out = reader.gate_hidden, reader.gate_out
            self.gate = None if hidden is None else PackedLinear(hidden.weight, hidden.bias, "relu")
            self.out = None if out is None else -out.weight  # (1, d)
            self.out_bias = None if out is None or out.bias is None else -out.bias  # (1,)

    def mix(self, anchor: Tensor, read: Tensor, strength: float) -> Tensor:
        """A + s (1 - λ)(R - A), as in `MemoryReader.mix`, in fewer operations."""
        if self.gate is None or self.out is None:
            return anchor.lerp(read, strength * self.share)  # (B, T, d)
        hidden = self.gate(torch.cat([anchor, read], dim=-1))  # (B, T, d)
        read_weight = F.linear(hidden, self.out, self.out_bias).sigmoid_().mul_(strength * self.share)  # (B, T, 1)
        return anchor.lerp(read, read_weight)  # (B, T, d)


class MemoryAdapterModule(LayeredReaders):
    """Readers of global retrieval, each of which reads the whole memory of its layer."""

    def __init__(self, d: int, layers: int, config: MemoryAdapterConfig) -> None:
        super().__init__(config, range(layers) if config.layers is None else config.layers, lambda: MemoryReader(d, config))
        self.phrase_file: Path | None = None  # the phrases in the memory's order, for attributions

    def set_memory(self, memory: Memory) -> None:
        """Give every reader its layer's memory: target rows at self-attention, source rows at cross-attention."""
        for layer, attention, reader in self.readers():
            rows = memory.target(layer) if attention == "self_attn" else memory.source(layer)  # (N, d)
            reader.memory = rows.to(reader.query.weight)  # (N, d)
            reader.forget_projection()

    def keep_graphs(self, folder: Path | None) -> None:
        """Cache the indexes of large memories in the plugin's unpacked folder, so that reopening it is fast; None: no cache."""
        for layer, attention, reader in self.readers():
            reader.graph_path = folder / "graphs" / f"{layer}-{attention}" if folder else None

    def project(self) -> None:
        for _, _, reader in self.readers():
            reader.project()

    def train(self, mode: bool = True) -> MemoryAdapterModule:
        """Set the mode; training mode discards the projections, which the next update would make stale."""
        if mode:
            for _, _, reader in self.readers():
                reader.forget_projection()
        super().train(mode)
        return self

    def drop(self) -> bool:
        if self.config.dropout_unit != "item":
            return super().drop()
        for _, _, reader in self.readers():
            reader.dropped = torch.rand(len(reader.memory), device=reader.memory.device) < self.config.memory_dropout  # (N,)
        return any(bool(reader.dropped.any()) for _, _, reader in self.readers())
