"""Neighbours of a sentence by IDF similarity of whole sentences or their n-grams (paper 3, sections 2.1.1, 2.1.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.memory.idf import Idf, IdfIndex
from engine.memory.ngrams import WIDTHS, all_ngrams, reduced_ngrams


@dataclass(frozen=True)
class Neighbour:
    """A retrieved sentence."""

    sentence: int  # its index in the set
    score: float  # similarity (equation 1) of the sentences or n-grams; or a negative distance
    width: int = 0  # of the matching n-gram; 0: the whole sentence
    start: int = 0  # position of that n-gram in the query sentence


class IdfSentences:
    """Whole sentences by the similarity of their word sets."""

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        self.idf = Idf(sentences)
        begins = np.cumsum(self.idf.lengths) - self.idf.lengths
        self.index = IdfIndex(self.idf.weights, self.idf.tokens, begins, self.idf.lengths, np.arange(len(sentences)))

    def neighbours(self, sentence: Sequence[str], top_k: int, blocked: Iterable[int] = ()) -> list[Neighbour]:
        """The `top_k` most similar sentences, best first, without those in `blocked`."""
        shut = np.zeros(len(self.index), dtype=bool)
        shut[list(blocked)] = True
        result, scores = self.index.nearest(self.idf.numbers(sentence), top_k, shut)
        total = self.idf.total(sentence)
        return [Neighbour(int(i), float(score) - total) for i, score in zip(result, scores, strict=True)]


class IdfNgrams:
    """Sentences by their n-grams: for each n-gram of a sentence, the sentence with the most similar n-gram of that width."""

    def __init__(self, sentences: Sequence[Sequence[str]], widths: Sequence[int] = WIDTHS) -> None:
        self.idf = Idf(sentences)
        self.size = len(sentences)
        self.indexes: dict[int, IdfIndex] = {}
        for width in sorted(set(widths)):
            owners, begins, sizes = all_ngrams(self.idf.lengths, width)
            self.indexes[width] = IdfIndex(self.idf.weights, self.idf.tokens, begins, sizes, owners)

    def __len__(self) -> int:
        """The number of n-grams of all widths."""
        return sum(map(len, self.indexes.values()))

    def hits(self, sentence: Sequence[str], blocked: Iterable[int] = ()) -> Iterator[Neighbour]:
        """One neighbour per n-gram: the sentence of the nearest n-gram, skipping sentences that are blocked or already found.

        Of equally near n-grams the first in the set is taken (the paper: any), so that results are reproducible.
        """
        shut = np.zeros(self.size, dtype=bool)
        shut[list(blocked)] = True
        for width, index in self.indexes.items():
            for number, gram in enumerate(reduced_ngrams(sentence, width)):
                result, scores = index.nearest(self.idf.numbers(gram), 1, shut)
                if not len(result):
                    continue
                owner, total = int(index.owners[result[0]]), self.idf.total(gram)
                shut[owner] = True
                yield Neighbour(owner, float(scores[0]) - total, width, number * max(1, width // 2))

    def neighbours(self, sentence: Sequence[str], top_k: int | None, blocked: Iterable[int] = ()) -> list[Neighbour]:
        """The neighbours of all n-grams, limited to the `top_k` with the greatest similarity.

        Exact matches of rare words come first; a matching full stop weighs as little as a full stop does.
        """
        return chosen(self.hits(sentence, blocked), top_k)


def chosen(hits: Iterable[Neighbour], top_k: int | None) -> list[Neighbour]:
    """The `top_k` best hits, best first; of equal ones the wider n-gram, then the earlier one."""
    return sorted(hits, key=lambda hit: (-hit.score, -hit.width, hit.start))[:top_k]
