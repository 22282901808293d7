"""Comparisons as a sheet with one row per sentence, so that tens of thousands can be paged, sorted and filled incrementally.

A comparison without a sheet (an older one, or one from the REST interface) gets one from its rows when it is first opened.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, ForeignKey, Index, func, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from engine.core.flagged import flag_of, flagged
from engine.core.json_object import Json
from engine.errors import InputError, NotFoundError
from engine.store import tables
from engine.store.records import System

ORDERS = ("place", "difference", "better", "worse")
MIRRORED = 500  # lines also stored in the comparison's own row, for readers that do not use sheets
PART = 1000  # lines in one transaction


class ComparisonSheet(tables.Base):
    __tablename__ = "comparison_sheet"

    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparison.id", ondelete="CASCADE"), primary_key=True)
    file: Mapped[str] = mapped_column(default="")
    lines: Mapped[int] = mapped_column(default=0)
    references: Mapped[int] = mapped_column(default=0)
    systems: Mapped[list[System]] = mapped_column(tables.JSON, default=list)
    figures: Mapped[Json] = mapped_column(default=dict)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"))
    kept: Mapped[bool] = mapped_column(default=False)
    revision: Mapped[int] = mapped_column(default=0)


class ComparisonLine(tables.Base):
    __tablename__ = "comparison_line"
    __table_args__ = (
        Index("ix_comparison_line_done", "comparison_id", "done", "place"),
        Index("ix_comparison_line_difference", "comparison_id", "difference"),
        Index("ix_comparison_line_change", "comparison_id", "change"),
    )

    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparison.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # from 0
    source: Mapped[str]
    reference: Mapped[str | None]
    texts: Mapped[list[Any]] = mapped_column(tables.JSON, default=list)
    scores: Mapped[list[Any]] = mapped_column(tables.JSON, default=list)
    flags: Mapped[list[Any] | None] = mapped_column(tables.JSON)  # of the decoding guard, one per text; None if all are empty
    done: Mapped[bool] = mapped_column(default=False)
    difference: Mapped[float | None]
    change: Mapped[float | None]


@dataclass(frozen=True)
class ComparisonRecord:
    """A comparison of the base with up to three plugins."""

    comparison_id: int
    project_id: int
    title: str
    created: datetime.datetime
    file: str
    lines: int
    references: int
    systems: list[System]
    figures: Json
    job_id: int | None
    kept: bool  # it no longer changes, since its address was shared
    revision: int  # grows with each change of the systems


@dataclass(frozen=True)
class ComparisonLineRow:
    """A sentence with one entry of `texts` and `scores` per system, None if missing.

    `texts` carry the flags of the decoding guard; `scores` (0 to 100) need a reference. `difference` (0 to 1) is that of the
    plugin that differs most from the base; `change` is the largest change in score.
    """

    place: int
    source: str
    reference: str | None
    texts: list[str | None]
    scores: list[float | None]
    difference: float | None
    change: float | None

    @property
    def flags(self) -> list[str]:
        """One flag per text, empty if the text is not flagged."""
        return [flag_of(text) for text in self.texts]


class ComparisonTables(tables.StorePart):
    """Every method is one short transaction, except `create` and `lines`, which work in parts."""

    def create(
        self,
        project_id: int,
        title: str,
        lines: Sequence[tuple[str, str | None]],
        systems: Sequence[System],
        *,
        file: str = "",
        texts: Mapping[int, Sequence[str | None]] | None = None,
    ) -> ComparisonRecord:
        """A new comparison; `texts` are existing translations by system index. Raises InputError if there are no lines."""
        if not lines:
            raise InputError("There is no sentence to compare. Enter at least one.")
        comparison = self._store.comparisons.create(project_id, title, [])
        columns = [list(column) for column in (texts or {}).values()]
        system_indices = list(texts or {})
        for begin in range(0, len(lines), PART):
            with self._store.write() as session:
                for index, (source, reference) in enumerate(lines[begin : begin + PART], begin):
                    row: list[str | None] = [None] * len(systems)
                    for system, column in zip(system_indices, columns, strict=True):
                        row[system] = column[index]
                    session.add(
                        ComparisonLine(
                            comparison_id=comparison.id, place=index, source=source, reference=reference or None,
                            texts=row, flags=flags_of(row), scores=[None] * len(systems), done=None not in row,
                        )
                    )  # fmt: skip
        with self._store.write() as session:
            session.add(
                ComparisonSheet(
                    comparison_id=comparison.id,
                    file=file,
                    lines=len(lines),
                    references=sum(bool(reference) for _, reference in lines),
                    systems=[entry.copy() for entry in systems],
                )
            )
        return self.get(comparison.id)

    def get(self, comparison_id: int) -> ComparisonRecord:
        """The sheet of a comparison, created from its rows if missing. Raises InputError if there is no such comparison."""
        with self._store.read() as session:
            result = self._row(session, comparison_id)
        if result is not None:
            return result
        comparison = self._store.comparisons.get(comparison_id)
        systems, lines = from_rows(comparison.rows)
        with self._store.write() as session:
            if self._row(session, comparison_id) is None:
                session.add(ComparisonSheet(comparison_id=comparison_id, lines=len(lines), systems=systems, kept=False))
                session.add_all(ComparisonLine(comparison_id=comparison_id, **line) for line in lines)
                session.flush()
            again = self._row(session, comparison_id)
        assert again is not None
        return again

    def titles(self, project_id: int, limit: int = 100) -> list[tuple[int, str, datetime.datetime]]:
        """(id, title, creation time) of the newest comparisons, without their sentences."""
        table = tables.Comparison
        query = (
            select(table.id, table.title, table.created)
            .where(table.project_id == project_id)
            .order_by(table.id.desc())
            .limit(limit)
        )
        with self._store.read() as session:
            return [(row.id, row.title, row.created) for row in session.execute(query)]

    def count(self, comparison_id: int) -> tuple[int, int]:
        """(number of fully translated lines, number of those that a plugin changed)."""
        line = ComparisonLine
        query = select(func.count(), func.count().filter(line.difference > 0)).where(line.comparison_id == comparison_id, line.done)
        with self._store.read() as session:
            done, different = session.execute(query).one()
            return int(done), int(different)

    def page(self, comparison_id: int, order: str = "place", offset: int = 0, limit: int = 25) -> list[ComparisonLineRow]:
        """Lines in one of the ORDERS: as given, most different first, largest gain or largest loss in score first."""
        line = ComparisonLine
        by: tuple[Any, ...] = {
            "difference": (line.difference.desc().nulls_last(), line.place),
            "better": (line.change.desc().nulls_last(), line.place),
            "worse": (line.change.asc().nulls_last(), line.place),
        }.get(order, (line.place,))
        return self._lines(comparison_id, by, offset=offset, limit=limit)

    def line(self, comparison_id: int, index: int) -> ComparisonLineRow:
        """One line. Raises InputError if there is none."""
        with self._store.read() as session:
            record = session.get(ComparisonLine, (comparison_id, index))
            if record is None:
                raise InputError("The comparison has no sentence {place}. Reload the page.", place=index + 1)
            return out(record)

    def lines(self, comparison_id: int) -> Iterator[ComparisonLineRow]:
        """All lines in order."""
        after = -1  # by position, since the database reads all rows before an offset
        while part := self._lines(comparison_id, (ComparisonLine.place,), ComparisonLine.place > after):
            yield from part
            after = part[-1].place

    def pending(self, comparison_id: int, limit: int) -> list[ComparisonLineRow]:
        """The first lines that lack a translation."""
        return self._lines(comparison_id, (ComparisonLine.place,), ComparisonLine.done.is_(False), limit=limit)

    def fill(self, comparison_id: int, revision: int, lines: Sequence[ComparisonLineRow]) -> bool:
        """Store these lines; returns False, without writing, if the systems of the sheet have changed since `revision`."""
        with self._store.write() as session:
            sheet = session.get(ComparisonSheet, comparison_id)
            if sheet is None or sheet.revision != revision:
                return False
            for line in lines:
                record = session.get(ComparisonLine, (comparison_id, line.place))
                if record is not None:
                    record.texts, record.scores = list(line.texts), list(line.scores)
                    record.flags = flags_of(line.texts)
                    record.done = None not in line.texts
                    record.difference, record.change = line.difference, line.change
            return True

    def rescored(self, comparison_id: int, lines: Sequence[ComparisonLineRow]) -> None:
        """Store scores and change of these lines."""
        if not lines:
            return  # an update without parameters would affect all rows
        rows = [
            {"comparison_id": comparison_id, "place": line.place, "scores": line.scores, "change": line.change} for line in lines
        ]
        with self._store.write() as session:
            session.execute(update(ComparisonLine), rows)

    def set_strength(self, comparison_id: int, system: int, strength: float) -> ComparisonRecord:
        """Change a plugin's strength; discards its translations, its scores and the figures of the comparison."""
        with self._store.write() as session:
            sheet = self._sheet(session, comparison_id)
            systems = [entry.copy() for entry in sheet.systems]
            systems[system]["strength"] = strength
            sheet.systems, sheet.figures = systems, {}
            sheet.revision += 1
            chosen = select(ComparisonLine).where(ComparisonLine.comparison_id == comparison_id)
            for record in session.scalars(chosen):
                texts, scores = list(record.texts), list(record.scores or [None] * len(record.texts))
                texts[system] = scores[system] = None
                record.texts, record.scores, record.done = texts, scores, False
                if record.flags:
                    record.flags = [*record.flags[:system], "", *record.flags[system + 1 :]]
        return self.get(comparison_id)

    def update(self, comparison_id: int, *, title: str = "", **changes: Any) -> ComparisonRecord:
        """Change title, figures, job_id or kept. Raises TypeError for other fields."""
        if set(changes) - {"figures", "job_id", "kept"}:
            raise TypeError(f"of a comparison's sheet {', '.join(changes)} cannot be changed")
        with self._store.write() as session:
            sheet = self._sheet(session, comparison_id)
            for name, value in changes.items():
                setattr(sheet, name, value)
            if title.strip():
                comparison = session.get(tables.Comparison, comparison_id)
                assert comparison is not None
                comparison.title = title.strip()[:120]
        return self.get(comparison_id)

    def mirror(self, comparison_id: int) -> None:
        """Copy the first lines to the comparison's own row."""
        sheet = self.get(comparison_id)
        lines = self._lines(comparison_id, (ComparisonLine.place,), limit=MIRRORED)
        self._store.comparisons.update(comparison_id, rows=[to_row(sheet.systems, line) for line in lines])

    def _lines(self, comparison_id: int, order: tuple[Any, ...], *where: ColumnElement[bool], offset: int = 0,
               limit: int = PART) -> list[ComparisonLineRow]:  # fmt: skip
        query = select(ComparisonLine).where(ComparisonLine.comparison_id == comparison_id, *where)
        with self._store.read() as session:
            return [out(record) for record in session.scalars(query.order_by(*order).offset(offset).limit(limit))]

    def _sheet(self, session: Session, comparison_id: int) -> ComparisonSheet:
        result = session.get(ComparisonSheet, comparison_id)
        if result is None:
            raise NotFoundError("There is no comparison {comparison_id}: it may have been deleted.", comparison_id=comparison_id)
        return result

    def _row(self, session: Session, comparison_id: int) -> ComparisonRecord | None:
        sheet = session.get(ComparisonSheet, comparison_id)
        if sheet is None:
            return None
        table = tables.Comparison
        query = select(table.project_id, table.title, table.created).where(table.id == comparison_id)
        project_id, title, created = session.execute(query).one()
        return ComparisonRecord(
            comparison_id, project_id, title, created, systems=[entry.copy() for entry in sheet.systems],
            figures=dict(sheet.figures),
            **{name: getattr(sheet, name) for name in ("file", "lines", "references", "job_id", "kept", "revision")},
        )  # fmt: skip


def out(record: ComparisonLine) -> ComparisonLineRow:
    flags = record.flags or [""] * len(record.texts)
    texts = [None if text is None else flagged(text, [flag]) for text, flag in zip(record.texts, flags, strict=True)]
    scores = list(record.scores or [])
    return ComparisonLineRow(
        record.place, record.source, record.reference, texts, scores + [None] * (len(texts) - len(scores)),
        record.difference, record.change,
    )  # fmt: skip


def flags_of(texts: Sequence[str | None]) -> list[str] | None:
    flags = [flag_of(text) for text in texts]
    return flags if any(flags) else None


def from_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[list[System], list[dict[str, object]]]:
    """Systems and lines from the rows of a comparison without a sheet: the base and at most one plugin."""
    first = rows[0] if rows else {}
    systems: list[System] = [{"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0}]
    keys = ["vanilla"]
    if first.get("plugin") or first.get("plugin_id"):
        keys.append("customized")
        systems.append(
            {
                "name": str(first.get("plugin") or "plugin"),
                "plugin_id": first.get("plugin_id"),
                "method": str(first.get("method", "")),
                "strength": float(first.get("strength", 1.0)),
            }
        )
    if enforced := str(first.get("enforced", "")):
        systems = [{**entry, "enforced": enforced} for entry in systems]
    lines: list[dict[str, object]] = []
    for index, row in enumerate(rows):
        texts = [None if row.get(key) is None else str(row[key]) for key in keys]
        done = None not in texts
        lines.append(
            {
                "place": index,
                "source": str(row.get("source", "")),
                "reference": row.get("reference"),
                "texts": texts,
                "flags": [dict(row.get("flags") or {}).get(key, "") for key in keys] if row.get("flags") else None,
                "scores": [None] * len(keys),
                "done": done,
                "difference": float(len(set(texts)) > 1) if done else None,
            }
        )
    return systems, lines


def to_row(systems: Sequence[System], line: ComparisonLineRow) -> Json:
    """A line in the format of the comparison's own row: the base and the first plugin, further plugins under `others`."""
    row: Json = {"source": line.source, "vanilla": line.texts[0], "customized": None}
    if line.reference is not None:
        row["reference"] = line.reference
    if any(line.flags):
        row["flags"] = {name: flag for name, flag in zip(("vanilla", "customized"), line.flags, strict=False) if flag}
    plugins = [
        {"plugin_id": entry["plugin_id"], "plugin": entry["name"], "method": entry["method"], "strength": entry["strength"]}
        for entry in systems[1:]
    ]
    if plugins:
        row |= {"customized": line.texts[1], **plugins[0]}
    if enforced := systems[0].get("enforced"):
        row["enforced"] = enforced
    if len(plugins) > 1:
        row["others"] = [{**plugin, "customized": text} for plugin, text in zip(plugins[1:], line.texts[2:], strict=True)]
    return row
