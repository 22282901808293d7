"""What an import kept, what it skipped, and why: every line is accounted for.

For each file and in total, segments = kept + skipped (duplicates are one of the reasons). Some kept segments are also
"noticed": kept as they are, but with a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import CorpusError
from engine.messages import mark

DUPLICATE = mark("duplicate")
EXCLUDED = mark("excluded by you")
LEFT_OUT = mark("more than are used")
EXAMPLES = 5  # shown per file and reason
EXCERPT = 80  # characters of an example


def excerpt(text: str) -> str:
    """The start of a skipped line for display: one line of at most 80 printable characters."""
    # Only a bounded head is processed: a line can be megabytes long.
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * EXCERPT])
    line = " ".join(line.split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"


# The keys of the report, in the order in which they are written.
WRITTEN = (
    "language", "source_language", "lines", "segments", "kept", "skipped", "noticed", "languages", "domains", "lengths", "decided",
    "warnings", "files",
)  # fmt: skip


@dataclass
class FileReport:
    """The report on one file: `lines` as in an editor (or paragraphs or pages, see `unit`), `segments` after sentence splitting.

    `found` counts texts by the language that the file states; `error` is why the file could not be read, or not to its end."""

    name: str
    encoding: str = ""
    lines: int = 0
    segments: int = 0
    kept: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    noticed: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unit: str = "line"
    found: dict[str, int] = field(default_factory=dict)
    error: str = ""

    def keep(self) -> None:
        self.segments += 1
        self.kept += 1

    def skip(self, reason: str, line: int, text: str) -> None:
        """Count one skipped segment; the first few per reason are stored as examples."""
        self.segments += 1
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self._remember(reason, line, excerpt(text))

    def leave_out(self, line: int, text: str) -> None:
        """Turn a kept sentence into a skipped one, because there are more sentences than are used."""
        self.kept -= 1
        self.skipped[LEFT_OUT] = self.skipped.get(LEFT_OUT, 0) + 1
        self._remember(LEFT_OUT, line, excerpt(text))

    def notice(self, reason: str, line: int, text: str, note: str = "") -> None:
        """Count one imported sentence with a warning; `note` is added to its excerpt."""
        self.noticed[reason] = self.noticed.get(reason, 0) + 1
        self._remember(reason, line, excerpt(text) + note)

    def _remember(self, reason: str, line: int, text: str) -> None:
        examples = self.examples.setdefault(reason, [])
        if len(examples) < EXAMPLES:
            examples.append((line, text))

    def reasons(self) -> str:
        """`too long: 3, empty: 1`, most frequent first."""
        ordered = sorted(self.skipped.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{reason}: {count:,}" for reason, count in ordered)

    def to_mapping(self) -> dict[str, object]:
        examples = {reason: [list(item) for item in items] for reason, items in self.examples.items()}
        return vars(self) | {"examples": examples}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> FileReport:
        return cls(
            name=str(values["name"]),
            encoding=str(values["encoding"]),
            lines=int(values["lines"]),
            segments=int(values["segments"]),
            kept=int(values["kept"]),
            skipped={str(reason): int(count) for reason, count in values["skipped"].items()},
            noticed={str(reason): int(count) for reason, count in values.get("noticed", {}).items()},
            examples={
                str(reason): [(int(line), str(text)) for line, text in items] for reason, items in values["examples"].items()
            },
            notes=[_sentence(note) for note in values["notes"]],
            unit=str(values.get("unit", "line")),
            found={str(code): int(count) for code, count in values.get("found", {}).items()},
            error=_sentence(values.get("error", "")),
        )


@dataclass
class ImportReport:
    """The report on a whole import: `languages` are shares of a sample (0 to 1, most frequent first).

    `domains` counts kept sentences by label, in the order of the files (empty without labels), `lengths` by length in
    characters. `decided` is the key of the user's decisions that were applied."""

    language: str
    source_language: str | None = None
    files: list[FileReport] = field(default_factory=list)
    languages: dict[str, float] = field(default_factory=dict)
    domains: dict[str, int] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    decided: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def all_warnings(self) -> list[str]:
        """The warnings, followed by the errors of files that could not be read to their end."""
        return [*self.warnings, *(file.error for file in self.files if file.error)]

    @property
    def lines(self) -> int:
        return sum(file.lines for file in self.files)

    @property
    def segments(self) -> int:
        return sum(file.segments for file in self.files)

    @property
    def kept(self) -> int:
        return sum(file.kept for file in self.files)

    @property
    def skipped(self) -> dict[str, int]:
        """Reasons with their counts over all files, most frequent first."""
        return _total(file.skipped for file in self.files)

    @property
    def noticed(self) -> dict[str, int]:
        """The warnings about imported sentences, with counts over all files, most frequent first."""
        return _total(file.noticed for file in self.files)

    def to_mapping(self) -> dict[str, object]:
        """The report as a JSON-serialisable mapping."""
        lengths = {str(length): count for length, count in self.lengths.items()}
        files = [file.to_mapping() for file in self.files]
        return {name: getattr(self, name) for name in WRITTEN} | {"lengths": lengths, "files": files}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ImportReport:
        """Build from the result of `to_mapping`. Raises CorpusError if a value is missing or of the wrong type."""
        try:
            source = values["source_language"]
            return cls(
                language=str(values["language"]),
                source_language=None if source is None else str(source),
                files=[FileReport.from_mapping(file) for file in values["files"]],
                languages={str(code): float(share) for code, share in values["languages"].items()},
                domains={str(label): int(count) for label, count in values.get("domains", {}).items()},
                lengths={int(length): int(count) for length, count in values.get("lengths", {}).items()},
                decided=str(values.get("decided", "")),
                warnings=[_sentence(warning) for warning in values["warnings"]],
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CorpusError(
                "The import report is damaged ({name}: {error}); import the samples again.", name=type(error).__name__, error=error
            ) from None


def _sentence(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for mapping in counts:
        total.update(mapping)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
