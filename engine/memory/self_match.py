"""Finding the sentences of a retrieval set that are near-identical to a given sentence.

In training a sentence must not retrieve itself: a model that can look up its answer learns to look up nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.corpora.near_duplicates import groups, key


class OwnText:
    """Groups of near-identical sentences of a set, by either side; see `engine.corpora.near_duplicates`."""

    def __init__(self, targets: Sequence[str], sources: Sequence[str] = ()) -> None:
        self.numbers = groups(targets, [source or None for source in sources])
        self.members: dict[int, list[int]] = {}
        self.by_key: dict[str, set[int]] = {}
        for i, number in enumerate(self.numbers):
            self.members.setdefault(number, []).append(i)
        for texts in (targets, sources):
            for number, text in zip(self.numbers, texts, strict=False):
                if text:
                    self.by_key.setdefault(key(text), set()).add(number)

    def of(self, *texts: str) -> set[int]:
        """Indices of all sentences of the set that are near-identical to one with any of these texts on either side."""
        groups = {number for text in texts if text for number in self.by_key.get(key(text), ())}
        return {i for number in groups for i in self.members[number]}
