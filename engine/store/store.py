"""The door to the database: opening it, its schema, short transactions, and its errors as sentences."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, inspect, select
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError, OperationalError
from sqlalchemy.orm import Session

from engine.errors import InputError, MissingError, StorageError
from engine.store.defaults import Defaults
from engine.store.queue import Jobs
from engine.store.ratings import Ratings
from engine.store.repositories import Comparisons, Corpora, PhraseSets, Plugins, Projects, Workers
from engine.store.sheets import Sheets
from engine.store.tables import SCHEMA_VERSION, Base, SchemaVersion
from engine.store.tags import Tags
from engine.store.tokens import Tokens
from engine.store.usage import Usages

__all__ = ["Store"]

BUSY_SECONDS = 15


class Store:
    """All that is remembered, behind one repository a noun. Safe to share between threads; open one a process.

    `url` is an SQLAlchemy URL (`sqlite:////home/me/tailor.db`, `postgresql://…`). The schema is made when missing.
    Raises InputError for a bad URL, a file that is no database, or a schema newer than this program; MissingError
    when the database's driver is not installed; StorageError when the database cannot be reached or written.
    """

    def __init__(self, url: str) -> None:
        self.url = _parse(url)
        self.place = self.url.render_as_string(hide_password=True)
        self._engine = self._open()
        # SQLite: a writer takes its lock at BEGIN and so waits in the queue; were it to begin as a reader, a change
        # by someone else in between would make it fail at once, whatever the busy timeout.
        self._writer = self._engine.execution_options(tailor_write=True)
        self._create()
        self._stamp = self._look()
        self.projects = Projects(self)
        self.corpora = Corpora(self)
        self.phrase_sets = PhraseSets(self)
        self.jobs = Jobs(self)
        self.plugins = Plugins(self)
        self.comparisons = Comparisons(self)
        self.sheets = Sheets(self)
        self.workers = Workers(self)
        self.defaults = Defaults(self)
        self.ratings = Ratings(self)
        self.tags = Tags(self)
        self.tokens = Tokens(self)
        self.usage = Usages(self)

    def read(self) -> contextlib.AbstractContextManager[Session]:
        """A short transaction that reads."""
        return self._session(self._engine)

    def write(self) -> contextlib.AbstractContextManager[Session]:
        """A short transaction that writes: committed at the end of the block, undone on an exception."""
        return self._session(self._writer)

    def lost(self) -> bool:
        """Whether the file of an SQLite store was removed or replaced since it was opened: what is written goes nowhere."""
        return self._stamp != self._look()

    def close(self) -> None:
        """Give the connections back. The store can still be used; it then opens new ones."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _session(self, engine: Engine) -> Iterator[Session]:
        with self._sentences(), Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    def _open(self) -> Engine:
        if self.url.get_backend_name() == "sqlite" and self.url.database:
            try:
                Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StorageError(f"The folder for {self.place} cannot be made: {error.strerror}.") from error
        try:
            engine = create_engine(self.url, pool_pre_ping=self.url.get_backend_name() != "sqlite")
        except NoSuchModuleError:
            raise InputError(f"{self.place} is no database that Tailor MT knows: use sqlite or postgresql.") from None
        except ModuleNotFoundError as error:
            raise MissingError(
                f"The driver for {self.place} is not installed ({error.name}): pip install 'tailor-mt[postgres]'."
            ) from None
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _look(self) -> tuple[int, int] | None:
        if self._engine.dialect.name != "sqlite" or not self.url.database:
            return None
        try:
            found = Path(self.url.database).stat()
        except OSError:
            return (0, 0)
        return found.st_dev, found.st_ino

    def _create(self) -> None:
        with self._sentences():
            with self._engine.connect() as connection:
                known = set(inspect(connection).get_table_names())
            fresh = SchemaVersion.__tablename__ not in known
            if fresh:
                with self._writer.begin() as connection:
                    Base.metadata.create_all(connection)
                    if connection.scalar(select(SchemaVersion.version)) is None:
                        connection.execute(SchemaVersion.__table__.insert().values(version=SCHEMA_VERSION))  # type: ignore[attr-defined]
            with self._engine.connect() as connection:
                found = connection.scalar(select(SchemaVersion.version))
        if found is None or found > SCHEMA_VERSION:
            raise InputError(
                f"The store at {self.place} was made by a newer Tailor MT (schema {found}, this program knows up to "
                f"{SCHEMA_VERSION}). Update Tailor MT, or set TAILORMT_HOME to another folder."
            )
        if not fresh and Base.metadata.tables.keys() - known:  # tables that came later; those of old are as they were
            with self._sentences(), self._writer.begin() as connection:
                Base.metadata.create_all(connection)

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        """The database's errors in words for a user."""
        try:
            yield
        except IntegrityError as error:
            if "foreign key" in str(error.orig).lower():
                raise InputError(
                    "What this belongs to is no longer there: it was deleted in the meantime. Reload and try again."
                ) from error
            raise
        except DatabaseError as error:
            words = str(error.orig).lower()
            if "not a database" in words or "malformed" in words:
                raise InputError(
                    f"The store at {self.place} is damaged or no database. Move it away or restore a backup."
                ) from error
            if "locked" in words or "busy" in words:
                raise StorageError(
                    f"The store at {self.place} has been busy for more than {BUSY_SECONDS} s: another program holds it."
                ) from error
            if "full" in words or "space" in words:
                raise StorageError(f"The disk is full: {self.place} could not be written. Free some space.") from error
            if "readonly" in words or "unable to open" in words:
                raise StorageError(f"The store at {self.place} cannot be opened or written: {error.orig}.") from error
            if error.connection_invalidated or "connection" in words:
                raise StorageError(f"The database at {self.place} cannot be reached: {error.orig}.") from error
            if isinstance(error, OperationalError):
                raise StorageError(f"The store at {self.place} cannot be used: {error.orig}.") from error
            raise


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError(
            "The store's address (database_url) is no SQLAlchemy URL, such as sqlite:////data/tailor.db."
        ) from None
    # The extra `postgres` brings psycopg 3; SQLAlchemy's default for the bare name is psycopg 2.
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed


def _prepare_sqlite(connection: sqlite3.Connection, record: Any) -> None:
    connection.isolation_level = None  # transactions begin in _begin_sqlite, not behind our back
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    # Only the first opening changes the file; that change does not heed the busy timeout.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("tailor_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
