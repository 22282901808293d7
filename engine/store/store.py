"""The store: opening the database, short transactions, and one repository per kind of row."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from sqlalchemy import text
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from engine.core.actor import Actor, current_actor
from engine.errors import StorageError
from engine.store import schema
from engine.store.accounts import Accounts, Members, SignIns
from engine.store.artefacts import Artefacts
from engine.store.audit import Audit
from engine.store.comparisons import ComparisonTables
from engine.store.database import BUSY_SECONDS, file_of, open_engine, parse, redacted_url, sentences, unreachable, writing
from engine.store.defaults import Defaults
from engine.store.queue import Jobs
from engine.store.ratings import Ratings
from engine.store.repositories import Comparisons, Corpora, PhraseSets, Plugins, Projects, Workers
from engine.store.row_access import GuardedSession
from engine.store.second_factor import SecondFactors
from engine.store.tags import Tags
from engine.store.tokens import Tokens
from engine.store.usage import Usages

LOCK = 0x7A11_03_3E  # PostgreSQL advisory lock held by exclusive writers
AGAIN_SECONDS = 0.25  # between attempts to reach an unavailable database


class Store:
    """All persistent data, with one repository per entity. Safe to share between threads; open one per process.

    `url` is an SQLAlchemy URL (`sqlite:////home/me/tailor.db`, `postgresql://…`). The schema of a new store is created, that of
    an older one is upgraded; several processes may do so at once. Raises InputError for an invalid URL, a file that is not a
    database, or a schema newer than this program; MissingError if the database driver is not installed; StorageError if
    the database cannot be reached or written.

    When opening the store, a PostgreSQL server that is unavailable is retried for `wait` seconds; later, if it is being
    restarted, for BUSY_SECONDS, the same as a busy SQLite file.
    """

    def __init__(self, url: str, *, wait: float = 0.0) -> None:
        self.url = parse(url)
        self.address = redacted_url(self.url)
        self._engine = open_engine(self.url)
        self._writer = writing(self._engine)
        self.access: Callable[[], Actor] = current_actor  # the actor of each session (engine.store.row_access)
        self._bring_up(time.monotonic() + wait)
        self._stamp = self._look()
        self.projects = Projects(self)
        self.corpora = Corpora(self)
        self.phrase_sets = PhraseSets(self)
        self.jobs = Jobs(self)
        self.plugins = Plugins(self)
        self.comparisons = Comparisons(self)
        self.sheets = ComparisonTables(self)
        self.workers = Workers(self)
        self.defaults = Defaults(self)
        self.ratings = Ratings(self)
        self.tags = Tags(self)
        self.tokens = Tokens(self)
        self.usage = Usages(self)
        self.accounts = Accounts(self)
        self.members = Members(self)
        self.sign_ins = SignIns(self)
        self.second_factors = SecondFactors(self)
        self.audit = Audit(self)
        self.artefacts = Artefacts(self)

    def read(self) -> contextlib.AbstractContextManager[Session]:
        """A short read transaction."""
        return self._session(self._engine)

    def write(self, *, together: bool = False) -> contextlib.AbstractContextManager[Session]:
        """A short write transaction: committed at the end of the block, rolled back on an exception.

        Only one runs at a time, on every database, so that data read in it is still valid when it writes. With `together` it
        may run concurrently with others on PostgreSQL: for frequent single conditional statements, and for transactions
        that lock the rows they read.
        """
        return self._session(self._writer, alone=not together)

    def system(self) -> contextlib.AbstractContextManager[Session]:
        """A write transaction without permission checks, for the program's own records."""
        return self._session(self._writer, guarded=False)

    def lost(self) -> bool:
        """Whether the file of an SQLite store was removed or replaced since it was opened, so that writes are lost."""
        return self._stamp != self._look()

    def close(self) -> None:
        """Close the connections. The store remains usable and opens new ones on demand."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _session(self, engine: Engine, alone: bool = False, guarded: bool = True) -> Iterator[Session]:
        with sentences(self.address), self._reached(engine, alone) as session:
            session.info["access"] = self.access() if guarded else None
            try:
                yield session
            except BaseException:
                session.rollback()
                raise
            session.commit()

    def _reached(self, engine: Engine, alone: bool) -> Session:
        """A session; on PostgreSQL, in a transaction that has reached the server and, if `alone`, holds the write lock."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            session = GuardedSession(engine, expire_on_commit=False)
            if engine.dialect.name == "sqlite":
                return session
            try:
                session.connection()
                if alone:
                    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
                return session
            except BaseException as error:
                session.close()
                if not unreachable(error) or time.monotonic() > deadline:
                    raise
            time.sleep(AGAIN_SECONDS)

    def _bring_up(self, deadline: float) -> None:
        while True:
            try:
                with sentences(self.address):
                    with self._engine.connect() as connection:
                        result = schema.standing(connection)
                    schema.check(result, self.address)
                    if not result.current:
                        schema.upgrade(self._engine)
                    return
            except StorageError as error:
                if time.monotonic() > deadline or not unreachable(error.__cause__):
                    raise
                time.sleep(AGAIN_SECONDS)

    def _look(self) -> tuple[int, int] | None:
        file = file_of(self.url)
        if file is None:
            return None
        try:
            result = file.stat()
        except OSError:
            return (0, 0)
        return result.st_dev, result.st_ino
