"""Texts of several lines: split into units that are translated separately, and joined again in the same layout.

layout = PlainTextLayout(["One. Two.\\n\\n  Three."])
layout.units                             # units with the texts "One. Two." and "Three."
layout.join(results)                     # ["一。二。\\n\\n  三。"]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.core.flagged import flagged
from engine.corpora.formats.documents.model import Result, Unit
from engine.corpora.formats.tagged_text import text_of

SPLITS = ("1", "0", "nonewlines")
LINE = re.compile(r"(\r\n|[\n\r\u2028\u2029\x0b\x0c\x85])")


class PlainTextLayout:
    """Plain texts, as units and back; white space around lines is preserved.

    `split` is as in DeepL's API: "1" at line breaks and sentence ends, "nonewlines" only at sentence ends, "0" only at line breaks.
    """

    def __init__(self, texts: Sequence[str], split: str = "1") -> None:
        self.units: list[Unit] = []
        self._parts: list[list[str | int]] = []  # per text: unchanged strings and indices of units
        for text in texts:
            parts: list[str | int] = []
            for index, line in enumerate([text] if split == "nonewlines" else LINE.split(text)):
                body = line.strip()
                if index % 2 or not body:
                    parts.append(line)
                    continue
                start = line.index(body)
                parts += [line[:start], len(self.units), line[start + len(body) :]]
                self.units.append(Unit([" ".join(body.split())], whole=split == "0"))
            self._parts.append(parts)

    def join(self, results: Sequence[Result]) -> list[str]:
        """The texts, with the results in place of the units. Raises ValueError if their numbers differ."""
        if len(results) != len(self.units):
            raise ValueError(f"{len(results)} results for {len(self.units)} units")
        return [
            flagged(
                "".join(part if isinstance(part, str) else text_of(results[part].parts) for part in parts),
                [results[part].flag for part in parts if isinstance(part, int)],
            )
            for parts in self._parts
        ]
