"""Connecting to the database, SQLite or PostgreSQL, and reporting its errors in sentences for users."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    IntegrityError,
    NoSuchModuleError,
    OperationalError,
    TimeoutError,
)

from engine.errors import InputError, MissingError, StorageError, first_line

BUSY_SECONDS = 15
AWAY = ("57P01", "57P02", "57P03", "08000", "08003", "08006")  # PostgreSQL: shut down, crashed, starting, connection lost


def parse(url: str) -> URL:
    """Parse the address of a store. Raises InputError if it is invalid."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError(
            "The store's address (database_url) is not an SQLAlchemy URL, such as sqlite:////data/tailor.db."
        ) from None
    # The extra `postgres` installs psycopg 3; SQLAlchemy's default for the bare name is psycopg 2.
    plain = parsed.drivername in ("postgresql", "postgres")
    return parsed.set(drivername="postgresql+psycopg") if plain else parsed


def redacted_url(url: URL) -> str:
    """The address without its password."""
    return url.render_as_string(hide_password=True)


def file_of(url: URL) -> Path | None:
    """The file of an SQLite store; None for an in-memory store and for other databases."""
    result = url.database if url.get_backend_name() == "sqlite" else None
    return Path(result) if result and result != ":memory:" else None


def open_engine(url: URL) -> Engine:
    """Create an engine without connecting yet. Raises InputError, MissingError or StorageError, like `Store`."""
    address, file = redacted_url(url), file_of(url)
    if file is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                "The folder for {place} cannot be made: {strerror}.", place=address, strerror=error.strerror
            ) from error
    try:
        engine = create_engine(url, **_engine_options(url))
    except NoSuchModuleError:
        raise InputError("{place} is not a database that Tailor MT supports: use sqlite or postgresql.", place=address) from None
    except ModuleNotFoundError as error:
        raise MissingError(
            "The driver for {place} is not installed ({error}): pip install 'tailor-mt[postgres]'.", place=address, error=error.name
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "connect", _prepare_postgresql)
    return engine


def _engine_options(url: URL) -> dict[str, Any]:
    # Enough connections for concurrent threads: transactions are short but may wait for the write lock.
    pool = {"pool_size": 5, "max_overflow": 25, "pool_timeout": BUSY_SECONDS}
    if url.get_backend_name() == "sqlite":
        return pool if file_of(url) else {}
    # Connections are checked before use, since the server may have been restarted.
    connect_args = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
    return {**pool, "pool_pre_ping": True, "connect_args": connect_args}


def writing(engine: Engine) -> Engine:
    """The same connections for write transactions.

    On SQLite, a writer takes its lock at BEGIN and so waits in the queue. If it began as a reader, a concurrent change
    would make it fail at once, regardless of the busy timeout.
    """
    return engine.execution_options(tailor_write=True)


def unreachable(error: BaseException | None) -> bool:
    """Whether the error means that the server is down, shutting down or still starting."""
    if not isinstance(error, OperationalError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or (state is None and "connection" in str(error.orig)) or state in AWAY


@contextlib.contextmanager
def sentences(address: str) -> Iterator[None]:
    """Convert database errors to messages for users; `address` is the store's address without its password.

    Raises InputError for values that the database cannot hold or if it is damaged, otherwise StorageError.
    """
    try:
        yield
    except IntegrityError as error:
        if "foreign key" in str(error.orig).lower():
            raise InputError("The item that this belongs to was deleted in the meantime. Reload and try again.") from error
        raise
    except (OverflowError, UnicodeEncodeError) as error:  # an integer beyond 64 bits, an unpaired surrogate
        raise InputError("A number is too large, or a text contains an invalid character.") from error
    except TimeoutError as error:  # SQLAlchemy's: all connections of this process are in use
        raise StorageError(
            "The store at {place} is receiving more requests than it can answer. Try again.", place=address
        ) from error
    except DataError as error:
        raise InputError(
            "The store at {place} cannot hold a value: {first_line}.", place=address, first_line=first_line(error.orig)
        ) from error
    except DatabaseError as error:
        words = str(error.orig).lower()
        if "not a database" in words or "malformed" in words:
            raise InputError(
                "The store at {place} is damaged or no database. Move it away or restore a backup.", place=address
            ) from error
        if "locked" in words or "busy" in words or "lock timeout" in words:
            raise StorageError(
                "The store at {place} has been busy for more than {busy_seconds} s: another program is using it.",
                place=address,
                busy_seconds=BUSY_SECONDS,
            ) from error
        if "full" in words or "no space" in words or ("disk i/o error" in words and _no_room(address)):
            raise StorageError("The disk is full: {place} could not be written. Free some space.", place=address) from error
        if "readonly" in words or "unable to open" in words:
            raise StorageError(
                "The store at {place} cannot be opened or written: {orig}.", place=address, orig=error.orig
            ) from error
        if error.connection_invalidated or "connection" in words:
            raise StorageError(
                "The database at {place} cannot be reached: {first_line}.", place=address, first_line=first_line(error.orig)
            ) from error
        if isinstance(error, OperationalError):
            raise StorageError(
                "The store at {place} cannot be used: {first_line}.", place=address, first_line=first_line(error.orig)
            ) from error
        raise


def _no_room(address: str) -> bool:
    """Whether the disk of an SQLite store is full. SQLite reports "disk I/O error" if its shared memory cannot grow."""
    try:
        return shutil.disk_usage(Path(address).parent).free < 1 << 20
    except OSError:
        return False


def _prepare_sqlite(connection: sqlite3.Connection, record: Any) -> None:
    connection.isolation_level = None  # transactions begin only in _begin_sqlite
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    # Changes the file the first time it is opened; this change ignores the busy timeout.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _prepare_postgresql(connection: Any, record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{BUSY_SECONDS}s'")
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("tailor_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
