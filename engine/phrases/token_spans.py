"""Text and positions: which characters are punctuation, where tokens are in a sentence, and how a phrase's edges are trimmed.

Positions are character offsets into the sentence, so that a phrase is always the user's exact text, with or without spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

Offsets = tuple[int, int]  # start and end character
Span = tuple[int, int, str]  # first token, token after the last, label

# Unicode classifies these as punctuation, but they are read aloud: a phrase may begin or end with them ("50 %", "#1").
SPOKEN = frozenset("%‰&@#§/\\*％＆＠＃＊／")
# Quotes and strokes that Unicode classifies as symbols.
UNSPOKEN = frozenset("`´^~|<>¨｜～＜＞｀＾")
# Opening and closing; German and some other languages close with English opening quotes and reverse the angle quotes.
PAIRS = tuple(zip("([{“‘«‹「『（［｛【〔〖《〈〘〚„‚„»›", ")]}”’»›」』）］｝】〕〗》〉〙〛“‘”«‹", strict=True))
OPENERS = frozenset(opener for opener, _ in PAIRS)
STRAIGHT = frozenset("\"'＂＇")
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
LAST_MARK = 0x20000  # the planes above contain ideographs and tags, no punctuation
LONGEST_PART = 1000  # characters; a parser's memory grows with the square of the length


def _is_mark(character: str) -> bool:
    if character in UNSPOKEN:
        return True
    return character not in SPOKEN and unicodedata.category(character).startswith("P")


@cache
def is_punctuation(token: str) -> bool:
    """Whether a token consists of punctuation only (or is empty)."""
    return all(_is_mark(character) or character.isspace() for character in token)


@cache
def punctuation_class() -> str:
    """The content of a regular expression's [...] that matches every punctuation character."""
    return "".join(re.escape(chr(code)) for code in range(LAST_MARK) if _is_mark(chr(code)))


def align(tokens: Sequence[str], text: str, start: int = 0) -> list[Offsets] | None:
    """The offsets of a tree's tokens in the text they were made from, or None if they do not fit it.

    Spaces inside the text are skipped; treebank spellings of brackets and quotes (-LRB-, ``, '') match the real ones.
    """
    results: list[Offsets] = []
    for token in tokens:
        for form in (token, BRACKETS.get(token, token), '"' if token in ("``", "''") else token, token.replace("\\/", "/")):
            position = start
            while position < len(text) and text[position].isspace():
                position += 1
            first = position
            for character in form:
                if character.isspace():
                    continue
                while position < len(text) and text[position].isspace():
                    position += 1
                if position >= len(text) or text[position] != character:
                    break
                position += 1
            else:
                break
        else:
            return None
        results.append((first, position))
        start = position
    return results


def trim(tokens: Sequence[str], first: int, last: int) -> Offsets:
    """Trim punctuation at both ends of tokens[first:last], but never one half of a pair of brackets or quotes.

    "the king ," becomes "the king", "( a cat )" becomes "a cat", and "he said ( twice )" is unchanged, as is punctuation inside.
    """
    while first < last:
        head, tail = tokens[first], tokens[last - 1]
        if last - first > 1 and _partner(tokens, first, last, first) == last - 1:
            first, last = first + 1, last - 1
        elif is_punctuation(tail) and _partner(tokens, first, last, last - 1) is None:
            last -= 1
        elif is_punctuation(head) and _partner(tokens, first, last, first) is None:
            first += 1
        else:
            break
    return first, last


def _partner(tokens: Sequence[str], first: int, last: int, position: int) -> int | None:
    """The index in [first, last) of the token that closes or opens the bracket or quote at `position`, if any."""
    mark = BRACKETS.get(tokens[position], tokens[position])
    if mark in STRAIGHT or mark in ("``", "''"):
        same = ("``", "''") if mark in ("``", "''") else (mark,)
        indices = [index for index in range(first, last) if tokens[index] in same]
        if len(indices) % 2:
            return None
        index = indices.index(position)
        return indices[index + 1 if index % 2 == 0 else index - 1]
    for opener, closer in PAIRS:
        if mark == opener:
            result = _matching(tokens, range(position, last), opener, closer)
        elif mark == closer:
            result = _matching(tokens, range(position, first - 1, -1), closer, opener)
        else:
            continue
        if result is not None:
            return result
    return None


def _matching(tokens: Sequence[str], indices: range, mark: str, mate: str) -> int | None:
    depth = 0
    for index in indices:
        form = BRACKETS.get(tokens[index], tokens[index])
        depth += (form == mark) - (form == mate)
        if depth == 0:
            return index
    return None


def clean_spans(spans: Iterable[Span], tokens: Sequence[str], *, shortest: int, longest: int) -> Iterator[Span]:
    """Trim edges, drop spans that are only punctuation, too short or too long, and yield each span once, with its first label.

    `spans` are ordered parents first, so a chain of constituents over the same tokens keeps its topmost label.
    """
    seen: set[Offsets] = set()
    for first, last, label in spans:
        edges = trim(tokens, first, last)
        if shortest <= edges[1] - edges[0] <= longest and edges not in seen:
            seen.add(edges)
            yield *edges, label


def parts(text: str, limit: int = LONGEST_PART) -> Iterator[Offsets]:
    """Split a very long text into stretches of at most `limit` characters, after punctuation or at a space if possible.

    Ordinary sentences are returned whole, without surrounding spaces.
    """
    start = 0
    while start < len(text):
        end = min(len(text), start + limit)
        if end < len(text):
            window = range(end - 1, start + limit // 2, -1)
            stops = (index for index in window if _is_mark(text[index]) and text[index] not in OPENERS)
            spaces = (index for index in window if text[index].isspace())
            end = 1 + next(stops, next(spaces, end - 1))
        first, last = start, end
        while first < last and text[first].isspace():
            first += 1
        while last > first and text[last - 1].isspace():
            last -= 1
        if first < last:
            yield first, last
        start = end
