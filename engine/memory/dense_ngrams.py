"""Sentence retrieval by n-gram vectors (paper 3, section 2.1.3).

An n-gram's vector is the mean of the frozen encoder's states over its subwords; the distance is L2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.decoding.translate import length_batches
from engine.memory.neighbours import Neighbour, chosen
from engine.memory.ngrams import WIDTHS, all_ngrams, starts
from engine.memory.vector_index import VectorIndex

Vectors = NDArray[np.float32]


def gram_vectors(states: Vectors, width: int) -> Vectors:
    """Means (G, d) of a sentence's states (T, d) over its reduced set of n-grams."""
    sums = np.concatenate([np.zeros((1, states.shape[1])), np.cumsum(states, axis=0, dtype=np.float64)])  # (T + 1, d)
    first = np.array(starts(len(states), width), dtype=np.int64)  # (G,)
    last = np.minimum(first + width, len(states))  # (G,)
    return ((sums[last] - sums[first]) / np.maximum(1, last - first)[:, None]).astype(np.float32)  # (G, d)


def content(base: BaseModel, ids: Sequence[int], states: torch.Tensor) -> Vectors:
    """The states (T, d) of a sentence's subwords, from its encoder states (S, d), without special tokens."""
    selected = [i for i, token in enumerate(ids) if token not in base.special_ids]
    return states[selected].float().cpu().numpy()


def set_vectors(
    base: BaseModel, sources: Sequence[str], widths: Sequence[int], progress: Progress | None = None
) -> tuple[dict[int, Vectors], NDArray[np.int64]]:
    """Vectors of all n-grams of all sentences, by width, and each sentence's number of subwords. No plugin is attached."""
    progress = progress or Progress()
    with base.lock:
        rows = [ids[: base.max_tokens] for ids in base.encode(list(sources))]
    result: dict[int, list[Vectors]] = {width: [np.zeros((0, base.d_model), np.float32)] * len(rows) for width in widths}
    lengths = np.zeros(len(rows), dtype=np.int64)
    done = 0
    with base.using(None), torch.inference_mode():
        for batch in length_batches([len(row) for row in rows], 4096):
            progress.advance(done, len(rows))
            inputs = base.pad_batch([rows[i] for i in batch])  # (B, S)
            states = base.encoder_states(inputs)  # (B, S, d)
            for k, i in enumerate(batch):
                content_states = content(base, rows[i], states[k])  # (T, d)
                lengths[i] = len(content_states)
                for width in widths:
                    result[width][i] = gram_vectors(content_states, width)
            done += len(batch)
    progress.advance(len(rows), len(rows))
    empty = np.zeros((0, base.d_model), np.float32)
    return {width: np.concatenate(parts) if parts else empty for width, parts in result.items()}, lengths


class DenseNgrams:
    """Sentences by the L2 distance of n-gram vectors."""

    def __init__(
        self, vectors: dict[int, Vectors], lengths: NDArray[np.int64], *, depth: int = 64, widths: Sequence[int] = WIDTHS
    ) -> None:
        self.indexes: dict[int, tuple[VectorIndex, Any]] = {}
        for width in sorted(set(widths)):
            owners, _, _ = all_ngrams(lengths, width)
            self.indexes[width] = VectorIndex(vectors[width], "l2", depth=depth), owners

    def hits(self, states: Vectors, blocked: Iterable[int] = ()) -> Iterator[Neighbour]:
        """One neighbour per n-gram of a sentence with states (T, d), as in `IdfNgrams.hits`; a score is the negative distance."""
        shut = set(blocked)
        for width, (index, owners) in self.indexes.items():
            for start, vector in zip(starts(len(states), width), gram_vectors(states, width), strict=True):
                for number, distance in index.search_unblocked(vector, 1, shut, owners):
                    owner = int(owners[number])
                    shut.add(owner)
                    yield Neighbour(owner, -distance, width, start)

    def neighbours(self, states: Vectors, top_k: int | None, blocked: Iterable[int] = ()) -> list[Neighbour]:
        return chosen(self.hits(states, blocked), top_k)
