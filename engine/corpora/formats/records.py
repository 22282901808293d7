"""The output of every reader, whatever the format: a stream of records and skipped lines in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """One line or row: its text in the target language and, in a bilingual file, its source."""

    line: int
    text: str
    source: str | None = None
    domain: str = ""


@dataclass(frozen=True)
class SkippedLine:
    """One line or row that is skipped, and why. `record` is used if the user keeps it nevertheless."""

    line: int
    reason: str
    text: str
    record: Record | None = None


@dataclass(frozen=True)
class Request:
    """The parameters of a reader: the project's language codes and the reading options."""

    language: str
    source_language: str | None = None
    max_line_chars: int = 10_000
    join_wrapped_lines: bool = True

    @property
    def languages(self) -> tuple[str, ...]:
        return (self.language, self.source_language) if self.source_language else (self.language,)


@dataclass
class Reading:
    """A file being read: `lines` and `position` grow while `items` is consumed.

    `notes` state how the file was interpreted, `warnings` what the user should check; both are sentences. `unit` is what a
    record's `line` counts: "line", "paragraph" or "page". `stated_languages` counts texts by the language that the file
    states; `hint` states, if nothing in the file fits, what it contains instead.
    """

    encoding: str
    items: Iterator[Record | SkippedLine]
    lines: Callable[[], int]
    position: Callable[[], int]  # bytes read so far
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unit: str = "line"
    stated_languages: Mapping[str, int] = field(default_factory=dict)
    hint: Callable[[], str] = lambda: ""


Reader = Callable[[Path, Request], Reading]
