"""The occurrences of phrases in texts, found in one pass; the same rule for the user's sentences and for general text.

A phrase occurs where its words (characters in languages without spaces) follow each other, regardless of case and of
punctuation between them. A parser counts fewer, since it only finds whole constituents. Both sides of a comparison must
therefore be counted here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from engine.core.progress import Progress
from engine.phrases.tokenize import units_of

EVERY = 500  # sentences between two progress checks


def phrase_key(text: str) -> str:
    """The key by which phrases are identified: it ignores case and runs of spaces."""
    return " ".join(text.casefold().split())


class Finder:
    """Searches for many phrases at once."""

    def __init__(self, phrases: Sequence[str], language: str) -> None:
        self.language = language
        self.size = len(phrases)
        self._indices: dict[str, list[int]] = {}
        self._beginnings: set[str] = set()
        for index, phrase in enumerate(phrases):
            units = self.units(phrase)
            key = " ".join(units)
            if key:
                self._indices.setdefault(key, []).append(index)
                self._beginnings.update(itertools.accumulate(units, "{} {}".format))

    def units(self, text: str) -> list[str]:
        """The words, or characters, of a text, case-folded."""
        return [text[start:end].casefold() for start, end in units_of(text, self.language)]

    def find(self, text: str) -> Iterable[int]:
        """The indices of the phrases that occur, once per occurrence; all phrases with the same key are reported."""
        return self._find(self.units(text))

    def _find(self, units: Sequence[str]) -> Iterable[int]:
        beginnings, indices = self._beginnings, self._indices
        for first, unit in enumerate(units):
            key, after = unit, first + 1
            while key in beginnings:
                if key in indices:
                    yield from indices[key]
                if after == len(units):
                    break
                key = f"{key} {units[after]}"
                after += 1

    def any(self, text: str) -> bool:
        """Whether any of the phrases occurs."""
        return next(iter(self.find(text)), None) is not None

    def count(self, texts: Iterable[str], progress: Progress | None = None) -> tuple[np.ndarray, int]:
        """The number of occurrences of each phrase (phrases,) and the number of words in the texts. Raises Cancelled."""
        counts = np.zeros(self.size, dtype=np.int64)
        total = 0
        for number, text in enumerate(texts):
            if progress is not None and number % EVERY == 0:
                progress.check()
            units = self.units(text)
            total += len(units)
            for position in self._find(units):
                counts[position] += 1
        return counts, total
