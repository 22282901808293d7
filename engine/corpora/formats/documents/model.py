"""What a document is to the rest of the program: units of text with tags, in order, and the way back to a file."""

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
    """The words of a list that is written as a text."""
    return frozenset(text.split())


class DocumentError(InputError):
    """A document that cannot be read or rebuilt."""


@dataclass(frozen=True)
class DocumentOptions(Options):
    """Documents: what is translated in a file, and what is left as it is."""

    retranslate: bool = option(
        False, "Translate again what a PO or XLIFF file has translations for; else they are kept."
    )
    review: bool = option(
        False,
        "PO files: mark every translation as fuzzy, not only the doubtful ones. In XLIFF all are marked for review.",
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
    """One piece of text that is translated on its own: a paragraph, an entry, a caption.

    Tags that are `alone` are of three sorts: those in `words` stand for a word and go through the translation in its
    sentence, those in `breaks` end a sentence and stay between its neighbours, all others are put back by alignment.
    """

    parts: TaggedText
    location: str = ""  # for messages: "line 12", "paragraph 4"
    words: frozenset[int] = frozenset()
    breaks: frozenset[int] = frozenset()
    placeholders: tuple[str, ...] = ("plain",)  # which kinds of placeholders its text may hold
    markup: bool = True  # tags may be written in the text itself, as <b>
    shortcut: str = ""  # the mark before the letter of a keyboard shortcut, & or _, where the text may have one
    keep_lines: bool = False  # a line break in the text ends a sentence and stays
    keep_tabs: bool = False  # so does a tab
    whole: bool = False  # one sentence, whatever stands in it

    @property
    def text(self) -> str:
        return text_of(self.parts)


@dataclass(frozen=True)
class Result:
    """The translation of a unit; `doubt` says in sentences why a person should look at it (a message), empty where nothing is
    odd; `flag` is the worst of its sentences' (engine.decoding.guard).
    """

    parts: TaggedText
    doubt: str = ""
    flag: str = ""


def together(*doubts: str) -> str:
    """Sentences as one message, each once, without the empty ones; empty where all are."""
    first, *others = dict.fromkeys(doubt for doubt in doubts if doubt) or [""]
    result = first
    for other in others:
        result = Message("{first} {second}", first=result, second=other)
    return result


@dataclass(frozen=True)
class Context:
    """What a reader has to know: the name of the file for messages, the languages, the settings."""

    name: str
    source: str
    target: str
    options: DocumentOptions = DocumentOptions()


class Document(ABC):
    """A document that was read. `units` are what is to be translated, `skipped` counts what is not, by reason."""

    title: ClassVar[str]  # "Word document"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.units: list[Unit] = []
        self.skipped: Counter[str] = Counter()

    @classmethod
    @abstractmethod
    def read(cls, path: Path, context: Context) -> Self:
        """Read a file whose size was checked. Raises DocumentError."""

    def checked(self, results: Sequence[Result]) -> list[Result]:
        """The results of all units, with doubts that only the document knows of."""
        return list(results)

    @abstractmethod
    def build(self, results: Sequence[Result | None]) -> bytes:
        """The document with a result for each unit; with None for a unit, that one stays as it was. Called once."""


def changed(places: Iterable[P], units: Sequence[Unit], results: Sequence[Result | None]) -> list[tuple[P, TaggedText]]:
    """The places of the units whose results say something new, with what these say."""
    return [
        (place, result.parts)
        for place, unit, result in zip(places, units, results, strict=True)
        if result is not None and result.parts != unit.parts
    ]


class PackedDocument(Document):
    """A document in an archive of parts, of which those that change are written anew into a copy of the file."""

    def __init__(self, path: Path, context: Context) -> None:
        super().__init__(context)
        self.path = path

    @classmethod
    def read(cls, path: Path, context: Context) -> Self:
        return cls(path, context)
