"""An n-gram model with modified Kneser-Ney smoothing (Chen and Goodman, 1998), as sorted tables searched with numpy.

Level k contains the n-grams of k+1 tokens. An n-gram's key is `row * (size + 1) + token`, with its last token and the row, on the
level below, of the n-gram without it, so that one search in a sorted array finds the rows for all positions of all sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNKNOWN, END = 0, 1  # tokens in every vocabulary; the start token is `size`
BLOCK = 200_000  # tokens scored at once


@dataclass(eq=False)
class Ngrams:
    """`size` tokens, without the start token; per level keys, natural log-probabilities and log backoff weights."""

    size: int
    keys: list[np.ndarray]  # (N_k,) int64, sorted
    chances: list[np.ndarray]  # (N_k,) float32
    weights: list[np.ndarray]  # (N_k,) float32
    unknown: float  # log-probability of a token missing from the first level

    @property
    def order(self) -> int:
        return len(self.keys)

    @classmethod
    def count(cls, sentences: Sequence[Sequence[int]], size: int, order: int) -> Ngrams:
        """Count token ids below `size`, without start and end, in at least one sentence. The model's order is lower than `order` if
        no sentence is that long.
        """
        flat, depth = joined(sentences, size)  # (P,), (P,)
        base = size + 1
        rows: list[np.ndarray] = []  # per level (P,): the row of the n-gram that ends here, -1 where it would start too early
        keys: list[np.ndarray] = []
        first: list[np.ndarray] = []  # per level (N,): a position of each n-gram
        counts: list[np.ndarray] = []  # per level (N,)
        for k in range(order):
            key, valid = flat, np.ones(len(flat), bool)
            if k:
                before = np.concatenate([[-1], rows[-1][:-1]])  # (P,)
                valid = (depth > k) & (before >= 0)
                key = before * base + flat
            if not valid.any():  # all sentences are shorter than this level's n-grams
                break
            result, at, back, times = np.unique(key[valid], return_index=True, return_inverse=True, return_counts=True)
            row = np.full(len(flat), -1, np.int64)
            row[valid] = back
            rows.append(row)
            keys.append(result)
            first.append(np.flatnonzero(valid)[at])
            counts.append(times.astype(float))
        levels = len(keys)
        for k in range(levels - 1):  # below the top, the count of an n-gram is the number of different tokens before it
            followers = np.bincount(rows[k][first[k + 1]], minlength=len(keys[k])).astype(float)
            counts[k] = np.where((depth[first[k]] == k + 1) & (k > 0), counts[k], followers)
        return cls._smoothed(size, keys, counts, [rows[k][first[k + 1]] for k in range(levels - 1)])

    @classmethod
    def _smoothed(cls, size: int, keys: list[np.ndarray], counts: list[np.ndarray], suffixes: list[np.ndarray]) -> Ngrams:
        """Interpolated probabilities; `suffixes` are the rows, one level below, of the n-grams without their first token."""
        chances: list[np.ndarray] = []
        weights = [np.ones(len(level)) for level in keys]
        unknown = 0.0
        for k, (level, count) in enumerate(zip(keys, counts, strict=True)):
            discount = discounts(count)[np.minimum(count, 3).astype(int)]  # (N,)
            if k == 0:
                count = np.where(level == size, 0.0, count)  # noqa: PLW2901 - the start is never predicted
                discount = np.where(level == size, 0.0, discount)
                total = max(count.sum(), 1.0)
                unknown = float(discount.sum() / total / size)
                chances.append((count - discount) / total + unknown)
                continue
            context = level // (size + 1)  # (N,) rows of the level below
            total = np.bincount(context, count, minlength=len(keys[k - 1]))
            spare = np.bincount(context, discount, minlength=len(keys[k - 1]))
            weights[k - 1] = np.where(total > 0, spare / np.maximum(total, 1e-9), 1.0)
            chances.append((count - discount) / total[context] + weights[k - 1][context] * chances[-1][suffixes[k - 1]])
        tiny = 1e-30
        return cls(
            size,
            keys,
            [np.log(np.maximum(level, tiny)).astype(np.float32) for level in chances],
            [np.log(np.maximum(level, tiny)).astype(np.float32) for level in weights],
            float(np.log(max(unknown, tiny))),
        )

    def surprise(self, sentences: Sequence[Sequence[int]]) -> list[float]:
        """The negative log-probability of each sentence including its end, in nats."""
        results: list[float] = []
        part: list[Sequence[int]] = []
        for sentence in sentences:
            part.append(sentence)
            if sum(map(len, part)) > BLOCK:
                results, part = results + self._surprise(part), []
        return results + (self._surprise(part) if part else [])

    def _surprise(self, sentences: Sequence[Sequence[int]]) -> list[float]:
        flat, depth = joined(sentences, self.size)  # (P,), (P,)
        value = np.full(len(flat), self.unknown)  # (P,)
        passed = np.zeros(len(flat))  # (P,) log-weights of backing off from longer contexts
        row = np.full(len(flat), -1, np.int64)
        for k in range(self.order):
            valid, key = np.ones(len(flat), bool), flat
            if k:
                before = np.concatenate([[-1], row[:-1]])
                valid = (depth > k) & (before >= 0)
                key = before * (self.size + 1) + flat
                passed += np.where(valid, self.weights[k - 1][np.maximum(before, 0)], 0.0)
            position = np.minimum(np.searchsorted(self.keys[k], key), len(self.keys[k]) - 1)
            valid &= self.keys[k][position] == key
            value[valid] = self.chances[k][position[valid]]
            passed[valid] = 0.0
            row = np.where(valid, position, -1)
        value = np.where(flat == self.size, 0.0, value + passed)
        owner = np.cumsum(flat == self.size) - 1
        return (-np.bincount(owner, value, minlength=len(sentences))).tolist()


def joined(sentences: Sequence[Sequence[int]], start: int) -> tuple[np.ndarray, np.ndarray]:
    """All sentences as one row of tokens, each between start and end; and each token's position in its sentence, from 1."""
    flat = np.array([token for sentence in sentences for token in (start, *sentence, END)], np.int64)
    indices = np.arange(len(flat))
    begin = np.maximum.accumulate(np.where(flat == start, indices, 0))
    return flat, indices - begin + 1


def discounts(counts: np.ndarray) -> np.ndarray:
    """Discounts of n-grams seen 0, 1, 2, and 3 times or more, from their numbers (Chen and Goodman, 1998, equation 26), or fixed
    values if there are too few.
    """
    frequencies = [float((counts == times).sum()) for times in (1, 2, 3, 4)]
    if min(frequencies[:3]) > 0:
        share = frequencies[0] / (frequencies[0] + 2 * frequencies[1])
        results = [0.0, *(n - (n + 1) * share * frequencies[n] / frequencies[n - 1] for n in (1, 2, 3))]
        if all(0 <= value <= n for n, value in enumerate(results)):
            return np.array(results)
    return np.array([0.0, 0.5, 1.0, 1.5])
