"""Inverse document frequency, and an inverted index over sets of tokens that finds the most similar ones.

    f_t = log(|C| / n_t)                                     |C| sentences, n_t of them with the token t
    sim(X, X') = 2 Σ_{X ∩ X'} f - Σ_{X ∪ X'} f               (paper 3, equation 1)

With I the sum over the shared tokens and S that over a set, Σ_{X ∪ X'} f = S(X) + S(X') - I, so sim = 3 I - S(X) - S(X'). The
index holds for each token the sets that contain it. A query processes its tokens from the rarest on. A set not met so far
shares at most the remaining tokens, with sum R, and then 3 I - S(X') <= 2 I <= 2 R. As soon as the k-th best score is above 2
R, no new set can be among the k best, and the long lists of frequent words are only searched for the existing candidates. The
result is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LONG = 2048  # list length from which the search checks whether it can end


class Idf:
    """Words of a set of sentences as numbers, with their weights f."""

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        self.ids: dict[str, int] = {}
        ids = self.ids
        flat = [ids.setdefault(word, len(ids)) for sentence in sentences for word in sentence]
        self.tokens: Ints = np.array(flat, dtype=np.int64)  # all sentences, concatenated
        self.lengths: Ints = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        owners = np.repeat(np.arange(len(sentences)), self.lengths)
        pairs = np.unique(owners * max(1, len(ids)) + self.tokens)  # each (sentence, token) once
        counts = np.bincount(pairs % max(1, len(ids)), minlength=len(ids))
        self.weights: Floats = np.log(max(1, len(sentences)) / np.maximum(1, counts))
        self.unknown = float(np.log(max(1, len(sentences))))  # the weight of an unknown word, as if one sentence had it

    def numbers(self, words: Iterable[str]) -> Ints:
        """Numbers of words, -1 for unknown ones."""
        return np.array([self.ids.get(word, -1) for word in words], dtype=np.int64)

    def total(self, words: Iterable[str]) -> float:
        """S: the sum of f over the set of the words."""
        return sum(float(self.weights[i]) if (i := self.ids.get(w, -1)) >= 0 else self.unknown for w in set(words))


class IdfIndex:
    """Sets of tokens (sentences or parts of them), retrieved by their similarity to another set."""

    def __init__(self, weights: Floats, tokens: Ints, begins: Ints, sizes: Ints, owners: Ints) -> None:
        """`tokens[begins[i] : begins[i] + sizes[i]]` are the tokens of set i, which belongs to sentence `owners[i]`."""
        self.weights, self.owners = weights, owners
        documents, members = distinct(tokens, begins, sizes, len(weights))
        order = np.argsort(members, kind="stable")
        self.lists = documents[order].astype(np.int32)  # the sets of token 0, of token 1, …, each in order
        ends = np.cumsum(np.bincount(members, minlength=len(weights)))
        self.begins = np.concatenate([[0], ends])
        sums = np.bincount(documents, weights=weights[members], minlength=len(owners))
        self.sums: Floats = sums.astype(np.float64)  # S of each set

    def __len__(self) -> int:
        return len(self.owners)

    def list_of(self, token: int) -> NDArray[np.int32]:
        return self.lists[self.begins[token] : self.begins[token + 1]]

    def nearest(self, query: Ints, top_k: int = 1, blocked: NDArray[np.bool_] | None = None) -> tuple[Ints, Floats]:
        """The `top_k` sets most similar to the query's token set, best first, and 3 I - S(X') of each.

        That is the similarity without the query's constant sum. Sets that share no weight and those of `blocked` sentences are
        excluded; ties are in order.
        """
        query = np.unique(query[query >= 0])
        query = query[self.weights[query] > 0]
        query = query[np.argsort(-self.weights[query], kind="stable")]
        f = self.weights[query]  # (Q,)
        remaining = np.append(np.cumsum(f[::-1])[::-1], 0.0)  # (Q + 1,), R before each token
        shared = np.zeros(len(self.owners))  # I so far
        parts: list[NDArray[np.int32]] = []
        candidate_count, used = 0, len(query)
        for index, token in enumerate(query):
            postings = self.list_of(int(token))
            if len(postings) > LONG and candidate_count >= top_k:
                worst = self._kth(np.concatenate(parts), shared, top_k, blocked)
                if worst > 2 * remaining[index]:
                    used = index
                    break
            new = postings[shared[postings] == 0]
            shared[postings] += f[index]
            if len(new):
                parts.append(new)
                candidate_count += len(new)
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        result = np.concatenate(parts)
        if blocked is not None:
            result = result[~blocked[self.owners[result]]]
        scores = 3 * shared[result] - self.sums[result]
        if used < len(query) and len(result):
            result, scores = self._complete(result, scores, query[used:], f[used:], remaining[used], top_k)
        if len(result) > top_k:
            bound = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
            selected = scores >= bound
            result, scores = result[selected], scores[selected]
        order = np.lexsort((result, -scores))[:top_k]
        return result[order].astype(np.int64), scores[order]

    def _kth(self, candidates: NDArray[np.int32], shared: Floats, top_k: int, blocked: NDArray[np.bool_] | None) -> float:
        """A lower bound of the `top_k`-th best score from the tokens processed so far."""
        if blocked is not None:
            candidates = candidates[~blocked[self.owners[candidates]]]
        if len(candidates) < top_k:
            return float("-inf")
        scores = 3 * shared[candidates] - self.sums[candidates]
        return float(np.partition(scores, len(scores) - top_k)[len(scores) - top_k])

    def _complete(
        self, candidates: NDArray[np.int32], scores: Floats, tokens: Ints, f: Floats, remaining: float, top_k: int
    ) -> tuple[NDArray[np.int32], Floats]:
        """Add the candidates' shares of the tokens whose lists were skipped, for those that can still be best."""
        if len(candidates) > top_k:
            bound = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
            able = scores + 3 * remaining >= bound - 1e-9
            candidates, scores = candidates[able], scores[able]
        for token, weight in zip(tokens, f, strict=True):
            postings = self.list_of(int(token))
            positions = np.minimum(np.searchsorted(postings, candidates), len(postings) - 1)
            scores = scores + 3 * weight * (postings[positions] == candidates)
        return candidates, scores


def distinct(tokens: Ints, begins: Ints, sizes: Ints, vocabulary: int) -> tuple[Ints, Ints]:
    """(set, token) pairs without duplicates, ordered by set.

    Sets of equal size are sorted as one matrix, which avoids a loop over sets.
    """
    documents, members = [], []
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)  # (R,)
        if not size:
            continue
        matrix = np.sort(tokens[begins[rows][:, None] + np.arange(size)], axis=1)  # (R, size)
        first = np.ones_like(matrix, dtype=bool)
        first[:, 1:] = matrix[:, 1:] != matrix[:, :-1]
        documents.append(np.repeat(rows, first.sum(1)))
        members.append(matrix[first])
    if not documents:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    flat, flat_members = np.concatenate(documents), np.concatenate(members)
    order = np.argsort(flat, kind="stable")
    return flat[order], flat_members[order]
