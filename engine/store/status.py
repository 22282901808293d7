"""Inspecting a store without changing it, and upgrading its schema manually."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import func, inspect, select, text
from sqlalchemy import table as named

from engine.store import schema
from engine.store.database import file_of, open_engine, parse, redacted_url, sentences

HIDDEN = ("alembic_version", "schema_version", "sqlite_sequence")


def status(url: str) -> dict[str, Any]:
    """{store, schema, newest, current, pending: [{revision, about}], rows: {table: count}, bytes, copies}.

    A missing SQLite file is not created. Raises InputError if the store was created by a newer program; otherwise like
    `Store`.
    """
    position = parse(url)
    file = file_of(position)
    result: dict[str, Any] = {
        "store": redacted_url(position), "schema": 0, "newest": schema.newest(), "current": False, "pending": [], "rows": {},
        "bytes": 0, "copies": [],
    }  # fmt: skip
    stands = schema.Standing(0, False)
    if file is None or file.exists():
        engine = open_engine(position)
        with sentences(result["store"]), engine.connect() as connection:
            stands = schema.standing(connection)
            schema.check(stands, result["store"])
            names = sorted(set(inspect(connection).get_table_names()) - set(HIDDEN))
            result["rows"] = {name: connection.scalar(select(func.count()).select_from(named(name))) or 0 for name in names}
            if file is None and engine.dialect.name == "postgresql":
                result["bytes"] = connection.scalar(text("SELECT pg_database_size(current_database())"))
        engine.dispose()
    if file is not None and file.exists():
        result["bytes"] = file.stat().st_size
        result["copies"] = sorted(str(copy) for copy in file.parent.glob(f"{file.name}.before-*[0-9]"))
    result |= {"schema": stands.version, "current": stands.current}
    result["pending"] = [{"revision": number, "about": description} for number, description in schema.pending(stands)]
    return result


def bring_up(url: str) -> tuple[int, int, Path | None]:
    """Upgrade a store; returns its schema version before and after, and the path of the copy made before, if any."""
    position = parse(url)
    engine = open_engine(position)
    try:
        with sentences(redacted_url(position)):
            with engine.connect() as connection:
                before = schema.standing(connection)
            selected = schema.upgrade(engine)
            return before.version, schema.newest(), selected
    finally:
        engine.dispose()
