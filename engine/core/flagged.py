"""Translations with a flag: strings that carry a warning about the translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from engine.messages import mark

FLAGS = {
    "repetition": mark("The translation repeats itself: check it."),
    "length": mark("The translation is much longer than its source."),
    "repetition-repaired": mark("The model repeated itself; the sentence was translated again under constraints: check it."),
    "length-repaired": mark("The output was too long; the sentence was translated again under constraints: check it."),
}


class Flagged(str):
    """A translation that needs review: a string with a `flag` of FLAGS.

    New strings made from it do not carry the flag unless it is set on them.
    """

    flag: str

    def __new__(cls, text: str, flag: str) -> Flagged:
        instance = super().__new__(cls, text)
        instance.flag = flag
        return instance

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # copies, and what goes to other processes
        return str(self), self.flag


def flag_of(text: object) -> str:
    """The flag of a translation; empty if there is none."""
    return getattr(text, "flag", "")


def flagged(text: str, flags: Sequence[str]) -> str:
    """The text with the most severe of these flags; unchanged if all are empty."""
    present = [flag for flag in FLAGS if flag in flags]
    return Flagged(text, present[0]) if present else text


class FlaggedLine(TypedDict):
    """A flagged translation's line, its flag and an explanation."""

    line: int  # from 1
    flag: str
    why: str


def flags_of(translations: Sequence[str]) -> list[FlaggedLine]:
    """The flagged translations."""
    flags = [(line, flag) for line, text in enumerate(translations, 1) if (flag := flag_of(text))]
    return [{"line": line, "flag": flag, "why": FLAGS[flag]} for line, flag in flags]


def packed(text: str) -> str | list[str]:
    """A translation as JSON can represent it, including its flag if any."""
    return [str(text), flag_of(text)] if flag_of(text) else text


def unpacked(value: str | list[str]) -> str:
    """Decode the result of `packed`, or a plain text. Unknown flags are dropped."""
    return value if isinstance(value, str) else flagged(value[0], value[1:])
