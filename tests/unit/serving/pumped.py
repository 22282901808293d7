"""Texts that are made to be slow for one regular expression, from its own parse tree.

For each repeat of a pattern: what leads to it, then what it repeats (or that and what follows, or what leads to it) again
and again, then something that the rest of the pattern does not fit.
"""

from __future__ import annotations

import re
import re._constants as codes
import re._parser as parser
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
MANY = 50  # a repeat of more is pumped
CHARACTERS = "a1 -_.\n<\"'=&{/字"
MEMBERS = 3  # of a set that is repeated; one is taken elsewhere
AFTER = ("", "\x01", '"', "\n\x01")
CATEGORIES = {"DIGIT": str.isdigit, "SPACE": str.isspace, "WORD": lambda char: char.isalnum() or char == "_"}


class Pump(NamedTuple):
    before: str
    unit: str
    after: str

    def text(self, length: int) -> str:
        return self.before + (self.unit * (length // len(self.unit) + 1))[:length] + self.after


def pumps(pattern: re.Pattern[Any]) -> list[Pump]:
    """All the texts to try, each once."""
    result = dict.fromkeys(_of(list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)), ""))
    return [Pump(before, unit, after) for before, unit in result for after in AFTER]


def _of(items: Sequence[tuple[Any, Any]], before: str) -> Iterator[tuple[str, str]]:
    for index, (code, value) in enumerate(items):
        lead = before + example(items[:index])
        if code in REPEATS:
            if value[1] > MANY:
                yield from _pumped(list(value[2]), lead, example(items[index + 1 :]))
            yield from _of(list(value[2]), lead)
        for part in parts(code, value):
            yield from _of(list(part), lead)


def _pumped(body: Sequence[tuple[Any, Any]], lead: str, rest: str) -> Iterator[tuple[str, str]]:
    for unit in examples(body):
        yield lead, unit
        yield lead, f"{unit} "
        yield from [("", lead + unit), (lead, lead)] if lead else []
        yield from [(lead, rest), (lead, rest[0]), (lead, unit + rest), (lead, unit * 30 + rest[:-1])] if rest else []


def parts(code: Any, value: Any) -> Sequence[Any]:
    """The patterns inside one part of a pattern, other than what a repeat repeats."""
    if code is codes.SUBPATTERN:
        return [value[-1]]
    if code is codes.BRANCH:
        return list(value[1])
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    return [value] if code is codes.ATOMIC_GROUP else []


def examples(items: Sequence[tuple[Any, Any]]) -> list[str]:
    """Texts that one repetition matches: of a set several members, of alternatives all."""
    if len(items) == 1:
        code, value = items[0]
        if code is codes.IN:
            return members(value)[:MEMBERS]
        inside = parts(code, value)
        if inside:
            return [text for part in inside for text in examples(list(part))]
    text = example(items)
    return [text] if text else []


def example(items: Sequence[tuple[Any, Any]]) -> str:
    """A short text that these parts of a pattern match; what they look behind and ahead for is left out."""
    return "".join(_example(code, value) for code, value in items)


def _example(code: Any, value: Any) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return members(value)[0]
    if code in REPEATS:
        return example(value[2]) * int(value[0])
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return ""
    return next((example(part) for part in parts(code, value)), "")


def members(items: Sequence[tuple[Any, Any]]) -> list[str]:
    """Characters of a set: those of CHARACTERS, or else one of its own."""
    negated = items[0][0] is codes.NEGATE
    matches = [char for char in CHARACTERS if any(_holds(char, *item) for item in items) != negated]
    own_chars = [chr(value if code is codes.LITERAL else value[0]) for code, value in items if code in (codes.LITERAL, codes.RANGE)]
    return matches or ["é" if negated else own_chars[0]]


def _holds(character: str, code: Any, value: Any) -> bool:
    if code is codes.LITERAL:
        return ord(character) == value
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if code is codes.CATEGORY:
        name = str(value)
        return bool(CATEGORIES[name.rsplit("_", 1)[-1]](character)) != ("NOT" in name)
    return False
