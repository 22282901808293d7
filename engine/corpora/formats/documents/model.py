"""The interface of documents to the rest of the program: a sequence of units of tagged text, and the way back to a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from engine.core.options import Options, option
from engine.corpora.formats.tagged_text import TaggedText, text_of
from engine.errors import InputError
from engine.messages import Message

P = TypeVar("P")


def names(text: str) -> frozenset[str]:
    """The words of a space-separated list."""
    return frozenset(text.split())


class DocumentError(InputError):
    """A document that cannot be read or rebuilt."""


@dataclass(frozen=True)
class DocumentOptions(Options):
    """Documents: what is translated in a file, and what is left as it is."""

    retranslate: bool = option(False, "Translate again what a PO or XLIFF file has translations for; else they are kept.")
    review: bool = option(
        False, "PO files: mark every translation as fuzzy, not only the doubtful ones. In XLIFF all are marked for review."
    )
    wrapped: str = option(
        "auto",
        "A text file whose lines are broken at a fixed width: join them to paragraphs and break them again.",
        choices=("auto", "yes", "no"),
    )
    subtitle_width: int = option(
        42, "Longest line of a subtitle in columns; a Chinese or Japanese character takes two.", low=10, high=400
    )
    attributes: bool = option(True, "Translate texts in HTML attributes: alt, title, placeholder, descriptions.")


@dataclass(frozen=True)
class Unit:
    """One piece of text that is translated separately: a paragraph, an entry, a caption.

    Standalone tags are of three kinds: those in `words` represent a word and pass through the translation of their sentence,
    those in `breaks` end a sentence and stay between its neighbours, and all others are put back by alignment.
    """

    parts: TaggedText
    location: str = ""  # for messages: "line 12", "paragraph 4"
    words: frozenset[int] = frozenset()
    breaks: frozenset[int] = frozenset()
    placeholders: tuple[str, ...] = ("plain",)  # the kinds of placeholders that its text may contain
    markup: bool = True  # the text itself may contain tags such as <b>
    shortcut: str = ""  # the mark before the letter of a keyboard shortcut, & or _, if the text may have one
    keep_lines: bool = False  # line breaks in the text end a sentence and are preserved
    keep_tabs: bool = False  # likewise for tabs
    whole: bool = False  # the text is one sentence, whatever it contains

    @property
    def text(self) -> str:
        return text_of(self.parts)


@dataclass(frozen=True)
class Result:
    """A unit's translation, why a person should check it (a message or ""), and its worst flag (engine.decoding.guard)."""

    parts: TaggedText
    doubt: str = ""
    flag: str = ""


def together(*doubts: str) -> str:
    """The messages joined to one, without duplicates and empty ones."""
    first, *others = dict.fromkeys(doubt for doubt in doubts if doubt) or [""]
    result = first
    for other in others:
        result = Message("{first} {second}", first=result, second=other)
    return result


@dataclass(frozen=True)
class Context:
    """The parameters of a reader: the file's name for messages, the languages, the options."""

    name: str
    source: str
    target: str
    options: DocumentOptions = DocumentOptions()


class Document(ABC):
    """A document that has been read: `units` are to be translated; `skipped` counts untranslated texts by reason."""

    title: ClassVar[str]  # "Word document"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.units: list[Unit] = []
        self.skipped: Counter[str] = Counter()

    @classmethod
    @abstractmethod
    def read(cls, path: Path, context: Context) -> Self:
        """Read a file whose size has been checked. Raises DocumentError."""

    def checked(self, results: Sequence[Result]) -> list[Result]:
        """The results of all units, with doubts added that depend on the document."""
        return list(results)

    @abstractmethod
    def build(self, results: Sequence[Result | None]) -> bytes:
        """The document with the units' results written into it; a unit whose result is None is left unchanged. Called once."""


def changed(places: Iterable[P], units: Sequence[Unit], results: Sequence[Result | None]) -> list[tuple[P, TaggedText]]:
    """(place, new parts) of the units whose results differ from their texts."""
    return [
        (place, result.parts)
        for place, unit, result in zip(places, units, results, strict=True)
        if result is not None and result.parts != unit.parts
    ]


class PackedDocument(Document):
    """A document in an archive of parts; changed parts are written into a copy of the file."""

    def __init__(self, path: Path, context: Context) -> None:
        super().__init__(context)
        self.path = path

    @classmethod
    def read(cls, path: Path, context: Context) -> Self:
        return cls(path, context)
