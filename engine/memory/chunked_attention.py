"""softmax(Q Mᵀ) M over a constant memory, for training: only the queries get a gradient, and no attention weights are kept.

Autograd keeps the weights (R, N) of every reader of both passes until the backward pass: gigabytes at 40,000 phrases. Here they
are recomputed in blocks of queries, as in FlashAttention (Dao et al., 2022, section 3.1). With weights P, output O and its
gradient G,

    dQ = (P ∘ (G Mᵀ - rowsum(G ∘ O))) M
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from engine.base.onednn import PackedLinear, is_faster

BLOCK = 1 << 23  # weights held at once


class PackedMemory:
    """A constant memory M (N, d) and its two products, x Mᵀ and w M, packed for oneDNN where that is faster."""

    def __init__(self, memory: Tensor) -> None:
        quick = memory.dtype == torch.float32 and memory.device.type == "cpu" and len(memory) > 0 and is_faster()
        self.count = len(memory)
        self.score: Callable[[Tensor], Tensor] = PackedLinear(memory) if quick else lambda x: x @ memory.T  # (R, d): (R, N)
        self.gather: Callable[[Tensor], Tensor] = PackedLinear(memory.T) if quick else lambda w: w @ memory  # (R, N): (R, d)


class Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, rows: PackedMemory) -> Tensor:  # type: ignore[override]
        read = torch.cat([rows.gather(torch.softmax(rows.score(part), -1)) for part in split(queries, rows)])  # (R, d)
        ctx.rows = rows
        ctx.save_for_backward(queries, read)
        return read

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        queries, read = ctx.saved_tensors
        rows, parts = ctx.rows, []
        gradient = gradient.to(queries.dtype).contiguous()  # (R, d)
        common = (gradient * read).sum(-1, keepdim=True)  # (R, 1)
        for query, grad, mean in zip(split(queries, rows), split(gradient, rows), split(common, rows), strict=True):
            weights = torch.softmax(rows.score(query), -1)  # (r, N)
            parts.append(rows.gather(weights.mul_(rows.score(grad).sub_(mean))))  # (r, d)
        return torch.cat(parts), None


def split(queries: Tensor, rows: PackedMemory) -> tuple[Tensor, ...]:
    """Blocks of queries (R, ...) whose weights fit into the limit BLOCK."""
    return queries.split(max(16, BLOCK // max(1, rows.count)))


def attend(queries: Tensor, rows: PackedMemory) -> Tensor:
    """The attention output (..., d) of queries (..., d), with all scaling included, over the memory."""
    flat = queries.reshape(-1, queries.shape[-1]).contiguous()  # (R, d)
    result: Tensor = Attend.apply(flat, rows)
    return result.view(queries.shape)
