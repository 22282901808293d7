"""Texts of several lines and sentences, cut into what a sentence model translates, and put together in the same layout.

layout = Layout(["One. Two.\\n\\n  Three."], "en", "zh")
layout.pieces                      # ["One.", "Two.", "Three."]
layout.join(["一。", "二。", "三。"])  # ["一。二。\\n\\n  三。"]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.languages import unspaced

__all__ = ["SPLITS", "Layout"]

SPLITS = ("1", "0", "nonewlines")
LINE = re.compile(r"(\r\n|[\n\r\u2028\u2029\x0b\x0c\x85])")


class Layout:
    """`split` says where texts are cut, in DeepL's words: "1" at line breaks and sentence ends, "nonewlines" at sentence ends
    alone, "0" at line breaks alone. Blank space around a line stays as it is.
    """

    def __init__(self, texts: Sequence[str], source: str, target: str, split: str = "1") -> None:
        self.pieces: list[str] = []
        self._space = "" if unspaced(target) else " "
        self._parts: list[list[str | tuple[int, int]]] = []  # of each text: what stays, and (first, last + 1) of pieces
        for text in texts:
            parts: list[str | tuple[int, int]] = []
            for place, line in enumerate([text] if split == "nonewlines" else LINE.split(text)):
                if place % 2:
                    parts.append(line)
                    continue
                body = line.strip()
                if not body:
                    parts.append(line)
                    continue
                start = line.index(body)
                parts += [line[:start], self._add(body, source, split), line[start + len(body) :]]
            self._parts.append(parts)

    def _add(self, body: str, source: str, split: str) -> tuple[int, int]:
        from engine.corpora.sentences import split_sentences

        first = len(self.pieces)
        clean = " ".join(body.split())
        self.pieces += [clean] if split == "0" else split_sentences(clean, source)
        return first, len(self.pieces)

    def join(self, translations: Sequence[str]) -> list[str]:
        """The texts, with the translations in the places of the pieces."""
        if len(translations) != len(self.pieces):
            raise ValueError(f"{len(translations)} translations for {len(self.pieces)} pieces")
        return [
            "".join(
                part if isinstance(part, str) else self._space.join(filter(None, translations[part[0] : part[1]]))
                for part in parts
            )
            for parts in self._parts
        ]
