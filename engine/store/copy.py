"""Copying all rows of a store, with their ids, into an empty store of the same or another database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table, func, insert, make_url, select, text

from engine.core.progress import Progress
from engine.errors import InputError
from engine.store.database import sentences
from engine.store.store import Store
from engine.store.tables import Base, SchemaVersion

PART = 1000  # rows in one statement


def copy_store(source_url: str, target_url: str, *, live: bool = False, progress: Progress | None = None) -> dict[str, int]:
    """Copy all rows of a store into a new or empty one; returns {table: number of rows}.

    The source is read as a consistent snapshot and the target is written atomically. `live`: copy even while a worker serves
    the source, for a backup; for a move, nothing may change meanwhile. Raises InputError if the target is in memory or holds
    rows, a worker serves the source, or source and target are the same; otherwise like `Store`.
    """
    progress = progress or Progress()
    if make_url(target_url).drivername.startswith("sqlite") and make_url(target_url).database in (None, "", ":memory:"):
        raise InputError("A store in memory is gone when the program ends. Give --to the address of a file or a server.")
    source, target = Store(source_url), Store(target_url)
    if source.url == target.url:
        raise InputError("A store cannot be copied to itself. Choose another address with --to.")
    if not live and (workers := source.workers.list(within=20)):
        raise InputError(
            "A worker serves {place} on {host}. Stop the studio and all workers first, so that nothing changes while it is copied.",
            place=source.address,
            host=workers[0].host,
        )
    tables = [table for table in Base.metadata.sorted_tables if table is not SchemaVersion.__table__]
    level = {} if source.url.get_backend_name() == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    counts: dict[str, int] = {}
    progress.begin("copying")
    try:
        with (
            sentences(source.address),
            source._engine.connect().execution_options(**level) as origin,
            sentences(target.address),
            target._writer.begin() as goal,
        ):
            _refuse_rows(goal, tables, target.address)
            total = sum(origin.scalar(select(func.count()).select_from(table)) or 0 for table in tables)
            for table in tables:
                counts[table.name] = _copy(origin, goal, table, progress, sum(counts.values()), total)
            _numbers(origin, goal, tables)
    finally:
        source.close()
        target.close()
    return counts


def _refuse_rows(goal: Connection, tables: list[Table], address: str) -> None:
    for table in tables:
        if goal.execute(select(table).limit(1)).first() is not None:
            raise InputError(
                "The store at {place} already contains rows ({table}). Specify an empty database with --to.",
                place=address,
                table=table.name,
            )


def _copy(origin: Connection, goal: Connection, table: Table, progress: Progress, before: int, total: int) -> int:
    count = 0
    # In the order of the ids, since a row may reference an earlier row of the same table.
    query = select(table).order_by(*table.primary_key.columns)
    rows = origin.execute(query, execution_options={"yield_per": PART})
    for part in rows.mappings().partitions():
        goal.execute(insert(table), [_clean(row) for row in part])
        count += len(part)
        progress.advance(before + count, max(1, total), table.name)
    return count


def _clean(row: Mapping[Any, Any]) -> dict[str, object]:
    """Replace NUL characters in text, which PostgreSQL cannot store."""
    return {str(name): value.replace("\0", "\ufffd") if isinstance(value, str) else value for name, value in row.items()}


def _numbers(origin: Connection, goal: Connection, tables: list[Table]) -> None:
    """Set the id sequences so that no id of the source is reused, not even those of deleted rows."""
    for table in tables:
        column = table.autoincrement_column
        if column is None or column.name != "id":
            continue
        last = max(_last(origin, table), goal.scalar(select(func.max(column))) or 0)
        if last == 0:
            continue
        if goal.dialect.name == "sqlite":
            goal.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
            goal.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), {"name": table.name, "last": last})
        else:
            goal.execute(text("SELECT setval(pg_get_serial_sequence(:name, 'id'), :last)"), {"name": table.name, "last": last})


def _last(origin: Connection, table: Table) -> int:
    if origin.dialect.name == "sqlite":
        result = origin.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
    else:
        result = origin.scalar(
            text("SELECT pg_sequence_last_value(pg_get_serial_sequence(:name, 'id')::regclass)"), {"name": table.name}
        )
    return int(result or 0)
