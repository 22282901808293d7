"""The schema of a store and its upgrades: the Alembic revisions in `migrations/versions`, applied in order.

Revisions are numbered from `0001`. The store records the current one twice: in Alembic's table, and in `schema_version`.
Program versions that predate Alembic read the latter and refuse a store that is too new for them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, insert, inspect, select, text
from sqlalchemy.engine import Engine

from engine.errors import InputError, StorageError
from engine.store.database import file_of, redacted_url
from engine.store.tables import SchemaVersion

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

MIGRATIONS = Path(__file__).resolve().parent / "migrations"
ADOPTED = 1  # the schema of stores that predate Alembic
LOCK = 0x7A11_03_3D  # PostgreSQL advisory lock held during schema changes

_one_at_a_time = threading.Lock()  # alembic's `op` is global to the process


@dataclass(frozen=True)
class Standing:
    """The state of a store's schema: `version` is 0 if there is none, `revised` False if it predates Alembic."""

    version: int
    revised: bool

    @property
    def current(self) -> bool:
        return self.revised and self.version == newest()


def newest() -> int:
    """The schema version of this program: the number of the last revision, read from the file names without Alembic."""
    return max(int(file.name[:4]) for file in (MIGRATIONS / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


def standing(connection: Connection) -> Standing:
    """The schema state of the store."""
    table_names = set(inspect(connection).get_table_names())
    version = 0
    if SchemaVersion.__tablename__ in table_names:
        version = connection.scalar(select(SchemaVersion.version)) or 0
    if "alembic_version" not in table_names:
        return Standing(version, False)
    revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return Standing(version, revision is not None)


def check(standing: Standing, address: str) -> None:
    """Raises InputError if the store was created by a newer program."""
    if standing.version > newest():
        raise InputError(
            "The store at {place} was made by a newer Tailor MT (schema {version}, this program knows up to "
            "{newest}). Update Tailor MT, or set TAILORMT_HOME to another folder.",
            place=address, version=standing.version, newest=newest(),
        )  # fmt: skip


def pending(standing: Standing) -> list[tuple[str, str]]:
    """(revision, description) of the revisions still to be applied, in order."""
    scripts = list(_scripts().walk_revisions())[::-1]
    first = standing.version if standing.revised else 0
    return [(script.revision, (script.doc or "").splitlines()[0]) for script in scripts if int(script.revision) > first]


def upgrade(engine: Engine) -> Path | None:
    """Create or upgrade the schema in one exclusive transaction.

    Before a revision changes existing tables, an SQLite file is copied to the same folder; returns the path of the copy.
    Raises InputError if the store was created by a newer program, StorageError if the copy cannot be written; the store is
    then unchanged.
    """
    with _one_at_a_time, _alone(engine) as connection:
        result = standing(connection)
        check(result, redacted_url(engine.url))
        if result.current:
            return None
        selected = None
        file = file_of(engine.url)
        if file is not None and result.version and newest() > ADOPTED:
            first = max(ADOPTED, result.version) + 1
            selected = _keep_copy(file, file.with_name(f"{file.name}.before-{first:04d}"))
        _run(connection)
        connection.execute(delete(SchemaVersion))
        connection.execute(insert(SchemaVersion).values(version=newest()))
        return selected


def _run(connection: Connection) -> None:
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    scripts = _scripts()

    def steps(revision: Any, context: MigrationContext) -> Any:
        return scripts._upgrade_revs("head", revision)

    context = MigrationContext.configure(connection, opts={"fn": steps, "transactional_ddl": True})
    with Operations.context(context):
        context.run_migrations()


def _scripts() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(MIGRATIONS))


@contextlib.contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction for schema changes; other processes that request one wait."""
    with engine.connect().execution_options(tailor_write=True) as connection:
        if engine.dialect.name != "sqlite":
            with connection.begin():
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
                yield connection
            return
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        # Recreating a table must not cascade to the rows that reference it.
        driver.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                before = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
                yield connection
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
                if broken is not None and not before:
                    raise InputError(
                        "The store at {url} was not brought up to date: rows of {table} would have lost their "
                        "{parents}. Nothing was changed; please report this.",
                        url=redacted_url(engine.url), table=broken[0], parents=broken[2],
                    )  # fmt: skip
        finally:
            driver.execute("PRAGMA foreign_keys = ON")


def _keep_copy(file: Path, copy: Path) -> Path:
    """Write a consistent copy of the store, even while other processes read it."""
    unfinished = copy.with_name(copy.name + ".part")
    try:
        unfinished.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(file)) as source, contextlib.closing(sqlite3.connect(unfinished)) as target:
            source.backup(target)
        os.replace(unfinished, copy)
    except (OSError, sqlite3.Error) as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise StorageError(
            "The store at {file} has to be brought up to date, and the copy that is kept before could not be "
            "written to {copy}: {error}. Free some space and start again; nothing was changed.",
            file=file, copy=copy, error=error,
        ) from error  # fmt: skip
    return copy
