"""An index of vectors for search by inner product or squared distance, based on FAISS.

A small set is searched exactly. A large one uses the paper's index, `IVF1024_HNSW32,SQ8`: cells of an inverted file, found
through a graph, with codes of 8 bits per number (paper 2, section 4.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import MissingError

Vectors = NDArray[np.float32]

LARGE = 100_000  # number of vectors from which the search is approximate
TRAINED_ON = 64  # training vectors per cell


def factory(size: int) -> str:
    """The FAISS description of the index for this number of vectors."""
    return "Flat" if size < LARGE else "IVF1024_HNSW32,SQ8"


class VectorIndex:
    """Vectors (N, d) with nearest-neighbour search; deterministic."""

    def __init__(self, vectors: Vectors, metric: str = "dot", *, depth: int = 64) -> None:
        """Create the index. Raises MissingError if a large set needs FAISS and it is not installed.

        `metric` is "dot" (largest first) or "l2" (smallest squared distance first); `depth` is the number of cells searched in
        a large set.
        """
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self.metric, self.depth = metric, depth
        self.kind = factory(len(vectors))
        self._index: Any = None
        if not len(vectors):
            return
        try:
            import faiss
        except ImportError:
            if self.kind != "Flat":
                raise MissingError(
                    "An index of {count:,} vectors needs FAISS. Install it: pip install 'tailor-mt[cpu]'.", count=len(vectors)
                ) from None
            return
        measure = faiss.METRIC_INNER_PRODUCT if metric == "dot" else faiss.METRIC_L2
        self._index = faiss.index_factory(self.vectors.shape[1], self.kind, measure)
        if self.kind != "Flat":
            cells = 1024 * TRAINED_ON
            step = max(1, len(vectors) // cells)
            self._index.train(np.ascontiguousarray(self.vectors[::step][:cells]))
            faiss.extract_index_ivf(self._index).nprobe = depth
        self._index.add(self.vectors)

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: Vectors, top_k: int) -> tuple[NDArray[np.int64], Vectors]:
        """Indices and scores (Q, k) of the nearest k = min(top_k, N) per query, best first; -1 if a large index finds fewer."""
        queries, top_k = np.ascontiguousarray(queries, dtype=np.float32), min(top_k, len(self))
        if not top_k or not len(queries):
            return np.zeros((len(queries), 0), dtype=np.int64), np.zeros((len(queries), 0), dtype=np.float32)
        if self._index is not None:
            scores, numbers = self._index.search(queries, top_k)
            return numbers, scores
        scores = queries @ self.vectors.T  # (Q, N)
        if self.metric == "l2":
            squares = np.square(self.vectors).sum(1) - 2 * scores + np.square(queries).sum(1)[:, None]  # (Q, N)
            order = np.argsort(squares, axis=1, kind="stable")[:, :top_k]  # (Q, k)
            return order, np.take_along_axis(squares, order, 1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]  # (Q, k)
        return order, np.take_along_axis(scores, order, 1)

    def search_unblocked(self, query: Vectors, top_k: int, blocked: Any, owners: Any = None) -> list[tuple[int, float]]:
        """Index and score of the `top_k` nearest vectors to a query (d,) that are not blocked.

        `blocked` holds sentences; `owners[number]` is a vector's sentence (by default the number itself).
        """
        reach = top_k + 8
        while True:
            numbers, scores = self.search(query[None], reach)
            results = [
                (int(number), float(score))
                for number, score in zip(numbers[0], scores[0], strict=True)
                if number >= 0 and (int(number) if owners is None else int(owners[number])) not in blocked
            ]
            if len(results) >= top_k or reach >= len(self) or numbers[0, -1] < 0:
                return results[:top_k]
            reach *= 4
