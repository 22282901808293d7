"""The content that all formats export, from the store or the command line."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.core.flagged import FLAGS
from engine.decoding.guard import noticed

if TYPE_CHECKING:
    from engine.store import Store
    from engine.store.comparisons import ComparisonLineRow

# Characters that XML 1.0 does not allow and spreadsheets reject.
UNPRINTABLE = re.compile("[^\\t\\n\\r\\u0020-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


@dataclass(frozen=True)
class Content:
    """A comparison to export: `systems` as in a sheet, the base alone first; each call of `lines` starts from the beginning."""

    title: str
    source: str
    target: str
    base: str
    created: datetime.datetime
    systems: Sequence[Mapping[str, Any]]
    figures: Mapping[str, Any]
    lines: Callable[[], Iterator[ComparisonLineRow]]
    count: int
    references: int = 0

    @property
    def chosen(self) -> int:
        """The system whose texts are the translation in formats with only one: the first plugin, else the base."""
        return min(1, len(self.systems) - 1)

    def label(self, system: int) -> str:
        """A system's name with its strength, if it is not 1, and whether terms are enforced."""
        entry = self.systems[system]
        strength = float(entry.get("strength", 1.0))
        dial = "" if strength == 1.0 or not system else f", strength {strength:g}"
        return str(entry["name"]) + dial + (", terminology enforced" if entry.get("enforced") else "")


def content_of(store: Store, comparison_id: int) -> Content:
    """The content of a comparison in the store. Raises InputError if there is none."""
    sheet = store.sheets.get(comparison_id)
    project = store.projects.get(sheet.project_id)
    return Content(
        title=sheet.title,
        source=project.source,
        target=project.target,
        base=project.base.rstrip("/").rsplit("/", 1)[-1],
        created=sheet.created,
        systems=sheet.systems,
        figures=sheet.figures,
        lines=lambda: store.sheets.lines(comparison_id),
        count=sheet.lines,
        references=sheet.references,
    )


def flags_of(line: ComparisonLineRow) -> list[str]:
    """The flag of each translation of a line; empty if nothing is odd."""
    return [noticed(line.source, text) for text in line.texts]


def remarks(content: Content, line: ComparisonLineRow) -> str:
    """The flags in words, with the systems' names."""
    noted = [(content.label(i), FLAGS[flag]) for i, flag in enumerate(flags_of(line)) if flag]
    return " ".join(f"{name}: {why}" for name, why in noted)


def printable(text: str | None) -> str:
    """The text without characters that XML and spreadsheets reject."""
    return UNPRINTABLE.sub("", text or "")
