"""Approximate attention over a large memory: the best k rows of a FAISS graph exactly, all others by clusters.

Exact attention is softmax(q Kᵀ) M: two products with all N rows. Here a graph (HNSW over inner products) finds the k rows with
the largest products. Of the n_c other rows of a cluster c, only their number, the mean of their keys and the mean of their rows
count:

    R = (Σ over the best i of exp(q k_i) m_i + Σ over clusters c of n_c exp(q k̄_c) m̄_c) / Z

The means exclude a cluster's members among the best, so nothing counts twice and all weights sum to 1. If attention is sharp,
the best rows hold nearly all of its weight. If it is flat, the clusters supply the weight that the best rows miss: on phrases
of the bundled samples, k = 32 left out 86 to 93 % of the weight at cross-attention (docs/performance.md).
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from engine.memory.hnsw_index import graph_and_clusters

NEVER = -1.0e9


class ApproximateAttention:
    """Built once from keys (N, d), with all score scaling included, and memory rows (N, d); on the CPU, in float32.

    `path` is where graph and clusters are cached (engine/memory/hnsw_index.py).
    """

    def __init__(self, keys: Tensor, memory: Tensor, k: int, breadth: int, path: Path | None = None) -> None:
        keys = keys.detach().float().contiguous()  # (N, d)
        count, d = keys.shape
        self.k, self.breadth = min(k, count), max(k, breadth)
        # The mean adds the same to every product with a query, so the order does not depend on it. With it, cross-attention
        # keys are similar and nearly equally long, and the graph reaches few of them (docs/performance.md).
        self.mean = keys.mean(0)  # (d,)
        self.index, self.cluster = graph_and_clusters(keys - self.mean, path)  # (N,)
        self.index.hnsw.efSearch = self.breadth
        clusters = int(self.cluster.max()) + 1
        self.counts = torch.bincount(self.cluster, minlength=clusters).float()  # (C,)
        sizes = self.counts.clamp(min=1)[:, None]  # (C, 1)
        self.key_sums = torch.zeros(clusters, d).index_add_(0, self.cluster, keys)  # (C, d)
        rows = memory.detach().float()  # (N, d)
        self.row_means = torch.zeros(clusters, d).index_add_(0, self.cluster, rows) / sizes  # (C, d)

    def best(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and rows (R, k) of the largest products with queries (R, d); a row that is not found has the score NEVER."""
        result = self.index.search(queries.contiguous().numpy(), self.k)
        scores, rows = (torch.from_numpy(part) for part in result)  # (R, k), (R, k)
        scores = scores + (queries @ self.mean)[:, None]  # (R, k)
        missing = rows < 0  # (R, k)
        return scores.masked_fill(missing, NEVER), rows.masked_fill(missing, 0)

    def read(self, queries: Tensor, memory: Tensor) -> Tensor:
        """An approximation of softmax(q Kᵀ) M for queries (..., d): (..., d) in the type of `memory` (N, d)."""
        flat = queries.detach().reshape(-1, queries.shape[-1]).float()  # (R, d)
        scores, rows = self.best(flat)  # (R, k), (R, k)
        owners = self.cluster[rows]  # (R, k)
        valid = (scores > NEVER).to(scores.dtype)  # (R, k)
        sums = flat @ self.key_sums.T  # (R, C) of the scores of all members
        sums.scatter_add_(1, owners, -scores * valid)
        remaining = self.counts.repeat(len(flat), 1).scatter_add_(1, owners, -valid)  # (R, C) members that are not among the best
        nonempty = remaining > 0.5  # (R, C)
        safe = remaining.clamp(min=1)  # (R, C)
        rest_scores = (sums / safe + safe.log()).masked_fill_(~nonempty, NEVER)  # (R, C) log of n_c exp(mean score)
        total = torch.maximum(scores.amax(1, keepdim=True), rest_scores.amax(1, keepdim=True))  # (R, 1)
        of_best, of_rest = (scores - total).exp_(), rest_scores.sub_(total).exp_()  # (R, k), (R, C)
        z = of_best.sum(1, keepdim=True) + of_rest.sum(1, keepdim=True)  # (R, 1)
        # The mean of a cluster's remaining rows is (n m̄ - its members among the best) / remaining.
        share = of_rest / safe  # (R, C)
        weights = (of_best - share.gather(1, owners) * valid) / z  # (R, k)
        read = (share * self.counts / z) @ self.row_means  # (R, d)
        read = read + torch.bmm(weights[:, None], memory[rows].float())[:, 0]  # (R, d)
        return read.reshape(queries.shape).to(memory.dtype)
