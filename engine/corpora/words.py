"""The positions of words in a text of any language."""

from __future__ import annotations

import re
from functools import cache

Span = tuple[int, int]  # character offsets, the end excluded


@cache
def _words() -> re.Pattern[str]:
    """Matches a number or a word in a script with spaces between words, or one character with its marks in any other script."""
    unspaced = r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
    letter = rf"[^\W{unspaced}]"
    marks = (
        r"[\u0300-\u036f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
        r"\ufe00-\ufe0f\u200d]"
    )
    return re.compile(rf"{letter}+(?:(?:['’\-‐·.]|(?<=\d)[,:](?=\d)){letter}+)*|\S{marks}*")


def word_spans(text: str) -> list[Span]:
    """Spans of the words and single punctuation marks of a text in any language, in order; they cover all but white space."""
    return [match.span() for match in _words().finditer(text)]
