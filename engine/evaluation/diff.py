"""The differences between a customized translation and the base's, in readable runs."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence

from engine.corpora.language import base_language

Op = tuple[str, str, str]

BY_CHARACTER = ("zh", "ja", "th", "lo", "km", "my")
WORK = 4_000_000  # maximum number of token pairs compared; longer texts differ as a whole


def word_diff(vanilla: str, customized: str, language: str) -> list[Op]:
    """The differences as (op, a, b), where op is equal, replace, delete or insert.

    All `a` joined are exactly `vanilla`, all `b` joined are exactly `customized`. Words are compared in languages with spaces,
    characters in Chinese, Japanese, Thai, Lao, Khmer and Burmese. An equal run between two changes counts as changed if it is one
    character or contains no word, so that runs stay readable.
    """
    wide = base_language(language) in BY_CHARACTER
    left, right = _tokens(vanilla, wide), _tokens(customized, wide)
    ops: list[Op] = []
    for op, a, b in _opcodes(left, right):
        _append(ops, (op, a, b))
    return _readable(ops, wide)


def tokens(text: str, language: str) -> list[str]:
    """The units of comparison: words, spaces and signs, or characters in scripts without spaces. Joined, they are the text."""
    return _tokens(text, base_language(language) in BY_CHARACTER)


def _tokens(text: str, wide: bool) -> list[str]:
    """Words, runs of spaces and single signs; in `wide` scripts single characters, with Latin words and numbers whole."""
    tokens: list[str] = []
    last = ""
    for i, c in enumerate(text):
        kind = _kind(c, wide)
        inside = c in "'’-" and last == "word" and i + 1 < len(text) and _kind(text[i + 1], wide) == "word"
        if inside:
            kind = "word"
        if tokens and (kind == "mark" or (kind == last and kind in ("word", "space"))):
            tokens[-1] += c
        else:
            tokens.append(c)
            last = kind
    return tokens


def _kind(c: str, wide: bool) -> str:
    if c.isspace():
        return "space"
    if unicodedata.category(c).startswith("M") or c in "\u200c\u200d":
        return "mark"  # belongs to the character before it
    if c.isalnum() and not (wide and c >= "\u0e00"):
        return "word"
    return "sign"


def _opcodes(left: Sequence[str], right: Sequence[str]) -> list[Op]:
    shared = min(len(left), len(right))
    head = next((i for i in range(shared) if left[i] != right[i]), shared)
    tail = next((i for i in range(shared - head) if left[-1 - i] != right[-1 - i]), shared - head)
    middle, other = left[head : len(left) - tail], right[head : len(right) - tail]
    same = "".join(left[:head])
    ops: list[Op] = [("equal", same, same)]
    if len(middle) * len(other) > WORK:
        ops.append(("replace", "".join(middle), "".join(other)))
    else:
        matcher = difflib.SequenceMatcher(None, middle, other, autojunk=False)
        for op, a, b, c, d in matcher.get_opcodes():
            ops.append((op, "".join(middle[a:b]), "".join(other[c:d])))
    same = "".join(left[len(left) - tail :])
    return [*ops, ("equal", same, same)]


def _append(ops: list[Op], item: Op) -> None:
    """Append a run, merged with the last one if both are equal or both are changes."""
    op, a, b = item
    if not a and not b:
        return
    if ops and (ops[-1][0] == "equal") == (op == "equal"):
        _, before, other = ops.pop()
        a, b = before + a, other + b
    if op != "equal":
        op = "replace" if a and b else "delete" if a else "insert"
    ops.append((op, a, b))


def _readable(ops: Sequence[Op], wide: bool) -> list[Op]:
    merged: list[Op] = []
    for i, (op, a, b) in enumerate(ops):
        between = op == "equal" and 0 < i < len(ops) - 1
        scrap = len(a) <= 1 if wide else not any(c.isalnum() for c in a)
        _append(merged, ("replace", a, b) if between and scrap else (op, a, b))
    return [("equal", a, b) if a == b else (op, a, b) for op, a, b in merged]
