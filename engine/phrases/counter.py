"""Counting: the same phrase from many sentences becomes one, in an order that never changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.phrases.types import Phrase


class Collector:
    """Merges phrases that differ only in upper and lower case or in spaces, and keeps the most frequent form and label."""

    def __init__(self) -> None:
        # (text, label, length) -> [count, places, plausible by itself, first sentence]
        self._seen: dict[tuple[str, str, int], list[Any]] = {}

    def add(self, text: str, length: int, label: str, sentence: int, *, weight: int = 1, sound: bool = True) -> None:
        """One occurrence in `sentence` (an index), which itself occurs `weight` times."""
        row = self._seen.get((text, label, length))
        if row is None:
            self._seen[text, label, length] = [weight, 1, sound, sentence]
        else:
            row[0] += weight
            row[1] += 1
            row[2] = row[2] or sound

    def phrases(self, *, min_count: int = 1) -> list[Phrase]:
        """All phrases that occur often enough and are plausible or found in two places; sorted by length, count, text."""
        return sorted(self._merged(min_count), key=lambda phrase: (phrase.length, -phrase.count, phrase.text))

    def _merged(self, min_count: int) -> Iterator[Phrase]:
        groups: dict[str, list[tuple[str, str, int]]] = {}
        for key in self._seen:
            groups.setdefault(" ".join(key[0].casefold().split()), []).append(key)
        for keys in groups.values():
            rows = [self._seen[key] for key in keys]
            count = sum(row[0] for row in rows)
            plausible = any(row[2] for row in rows) or sum(row[1] for row in rows) >= 2
            if count < min_count or not plausible:
                continue
            forms: dict[str, list[int]] = {}
            labels: dict[str, int] = {}
            lengths: dict[int, int] = {}
            for (text, label, length), row in zip(keys, rows, strict=True):
                form = forms.setdefault(text, [0, row[3]])
                form[0] += row[0]
                form[1] = min(form[1], row[3])
                labels[label] = labels.get(label, 0) + row[0]
                lengths[length] = lengths.get(length, 0) + row[0]
            text = min(forms, key=lambda form: (-forms[form][0], form))
            label = min(labels, key=lambda name: (-labels[name], name))
            length = min(lengths, key=lambda size: (-lengths[size], size))
            yield Phrase(text=text, length=length, count=count, label=label, example=forms[text][1])
