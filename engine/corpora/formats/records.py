"""What every reader gives, whatever the format: records and skipped lines, one after the other, in bounded memory."""

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
    """One line or row that gives no text, and why. `record` is what it gives when the user wants it all the same."""

    line: int
    reason: str
    text: str
    record: Record | None = None


@dataclass(frozen=True)
class Request:
    """The input of a reader: the project's languages (bare codes) and the limits."""

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

    `notes` say how the file was understood, `warnings` what the user should look at; both are sentences. `unit` is what
    `line` of a record counts: "line", "paragraph" or "page". `stated_languages` counts texts by the languages that the file states;
    `hint` says, when nothing of the file fits, what is in it instead.
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
