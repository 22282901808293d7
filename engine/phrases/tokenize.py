"""The smallest units of a sentence if no parser defines its words: words, characters, or pieces of the base."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from engine.core.languages import unspaced
from engine.phrases.token_spans import Offsets, is_punctuation, punctuation_class

Clauses = list[list[Offsets]]
Pieces = Callable[[str], list[str]]


def clauses_of(sentence: str, language: str, pieces: Pieces | None = None) -> Clauses:
    """The units of a sentence as character offsets, clause by clause, without punctuation."""
    cut = _piece_offsets(sentence, pieces) if pieces is not None and unspaced(language) else None
    return _group(sentence, units_of(sentence, language) if cut is None else cut)


def units_of(text: str, language: str) -> list[Offsets]:
    """The words of a text, or its characters in languages without spaces, as character offsets, without punctuation."""
    pattern = _characters() if unspaced(language) else _words()
    return [match.span() for match in pattern.finditer(text)]


@cache
def _words() -> re.Pattern[str]:
    """A run without spaces and punctuation, except for inner apostrophes, hyphens and full stops; 1,000 is one run."""
    plain = rf"[^\s{punctuation_class()}]"
    return re.compile(rf"{plain}+(?:(?:['’\-‐·_.]|(?<=\d)[,:](?=\d)){plain}+)*")


@cache
def _characters() -> re.Pattern[str]:
    """A whole Latin, Cyrillic or Greek word or number, else one character with its combining marks."""
    letter = r"[0-9A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff０-９Ａ-Ｚａ-ｚ]"
    marks = "\u0300-\u036f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u3099\u309a\ufe00-\ufe0f"
    marks += "\u102b-\u103e\u17b4-\u17d3\u0f71-\u0f84\u0f90-\u0fbc"
    return re.compile(rf"{letter}+(?:(?:['’\-.]|(?<=\d)[,:](?=\d)){letter}+)*|[^\s{punctuation_class()}][{marks}]*")


def _group(sentence: str, units: list[Offsets]) -> Clauses:
    """Group units into clauses: a new clause begins where anything but spaces separates two units."""
    clauses: Clauses = []
    end = -1
    for unit in units:
        if clauses and (unit[0] == end or sentence[end : unit[0]].isspace()):
            clauses[-1].append(unit)
        else:
            clauses.append([unit])
        end = unit[1]
    return clauses


def _piece_offsets(sentence: str, pieces: Pieces) -> list[Offsets] | None:
    """SentencePiece pieces aligned with the sentence; None if normalisation changed it too much.

    The tokenizer normalises (NFKC: "，" becomes ","), so both sides are compared character by character after NFKC.
    """
    normalised: list[str] = []
    source: list[int] = []
    for index, character in enumerate(sentence):
        for plain in unicodedata.normalize("NFKC", character):
            if not plain.isspace():
                normalised.append(plain)
                source.append(index)
    results: list[Offsets] = []
    position = 0
    for piece in pieces(sentence):
        body = [c for c in unicodedata.normalize("NFKC", piece.replace("▁", "")) if not c.isspace()]
        if normalised[position : position + len(body)] != body:
            return None
        if body:
            _cut_at_punctuation(sentence, source[position], source[position + len(body) - 1] + 1, results)
        position += len(body)
    return results if position == len(normalised) else None


def _cut_at_punctuation(sentence: str, start: int, end: int, offsets: list[Offsets]) -> None:
    if offsets:
        start = max(start, offsets[-1][1])  # a character that normalisation split over two pieces
    while start < end:
        stop = start
        while stop < end and not is_punctuation(sentence[stop]):
            stop += 1
        if stop > start:
            offsets.append((start, stop))
        start = stop + 1
