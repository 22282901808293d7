"""What all formats write, whether it comes from the store or from the command line."""

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

# What XML 1.0 cannot hold, and spreadsheets refuse.
UNPRINTABLE = re.compile("[^\\t\\n\\r\\u0020-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


@dataclass(frozen=True)
class Content:
    """A comparison to be written: `systems` as a sheet holds them, the base alone first; `lines` can be gone through again
    and again.
    """

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
        """The system whose texts are the translation, where a format holds but one: the first plugin, else the base."""
        return min(1, len(self.systems) - 1)

    def label(self, system: int) -> str:
        """A system's name with its strength, where that is not the usual, and whether terms are enforced."""
        one = self.systems[system]
        strength = float(one.get("strength", 1.0))
        dial = "" if strength == 1.0 or not system else f", strength {strength:g}"
        return str(one["name"]) + dial + (", terminology enforced" if one.get("enforced") else "")


def content_of(store: Store, comparison_id: int) -> Content:
    """Of a comparison in the store. Raises InputError when there is none."""
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
    """What was noticed of each translation of a line; empty where nothing is odd."""
    return [noticed(line.source, text) for text in line.texts]


def remarks(content: Content, line: ComparisonLineRow) -> str:
    """The same in words, with the systems' names."""
    noted = [(content.label(i), FLAGS[flag]) for i, flag in enumerate(flags_of(line)) if flag]
    return " ".join(f"{name}: {why}" for name, why in noted)


def printable(text: str | None) -> str:
    """The text without what XML and spreadsheets cannot hold."""
    return UNPRINTABLE.sub("", text or "")
