"""The occurrences of phrases in texts, all of them in one pass; the same rule for the user's sentences and for general text.

A phrase occurs where its words (characters in languages without spaces) follow each other, whatever their case and the
punctuation between them. That is more than what a parser counts, which sees only whole constituents; so both sides of a
comparison have to be counted here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from engine.core.progress import Progress
from engine.phrases.tokenize import units_of

EVERY = 500  # sentences between two looks at the progress


def phrase_key(text: str) -> str:
    """What phrases have in common that count as one: neither upper and lower case nor runs of spaces tell them apart."""
    return " ".join(text.casefold().split())


class Finder:
    """Looks for many phrases at once."""

    def __init__(self, phrases: Sequence[str], language: str) -> None:
        self.language = language
        self.size = len(phrases)
        self._indices: dict[str, list[int]] = {}
        self._beginnings: set[str] = set()
        for index, phrase in enumerate(phrases):
            units = self.units(phrase)
            whole = " ".join(units)
            if whole:
                self._indices.setdefault(whole, []).append(index)
                self._beginnings.update(itertools.accumulate(units, "{} {}".format))

    def units(self, text: str) -> list[str]:
        """The words, or characters, of a text without their case."""
        return [text[start:end].casefold() for start, end in units_of(text, self.language)]

    def find(self, text: str) -> Iterable[int]:
        """The places, in the list of phrases, of those that occur, once for each time; phrases of one key all."""
        return self._find(self.units(text))

    def _find(self, units: Sequence[str]) -> Iterable[int]:
        beginnings, indices = self._beginnings, self._indices
        for first, unit in enumerate(units):
            seen, after = unit, first + 1
            while seen in beginnings:
                if seen in indices:
                    yield from indices[seen]
                if after == len(units):
                    break
                seen = f"{seen} {units[after]}"
                after += 1

    def any(self, text: str) -> bool:
        """Whether one of them occurs."""
        return next(iter(self.find(text)), None) is not None

    def count(self, texts: Iterable[str], progress: Progress | None = None) -> tuple[np.ndarray, int]:
        """How often each phrase occurs in the texts (phrases,), and how many words the texts have. Raises Cancelled."""
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
