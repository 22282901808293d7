"""The door to the database: opening it, short transactions, and a repository a noun."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from engine.store import schema
from engine.store.database import file_of, open_engine, parse, sentences, shown, writing
from engine.store.defaults import Defaults
from engine.store.queue import Jobs
from engine.store.ratings import Ratings
from engine.store.repositories import Comparisons, Corpora, PhraseSets, Plugins, Projects, Workers
from engine.store.sheets import Sheets
from engine.store.tags import Tags
from engine.store.tokens import Tokens
from engine.store.usage import Usages

__all__ = ["Store"]


class Store:
    """All that is remembered, behind one repository a noun. Safe to share between threads; open one a process.

    `url` is an SQLAlchemy URL (`sqlite:////home/me/tailor.db`, `postgresql://…`). A new store gets its schema, an older one
    is brought up to date; several processes may do so at once. Raises InputError for a bad URL, a file that is no
    database, or a schema newer than this program; MissingError when the database's driver is not installed; StorageError
    when the database cannot be reached or written.
    """

    def __init__(self, url: str) -> None:
        self.url = parse(url)
        self.place = shown(self.url)
        self._engine = open_engine(self.url)
        self._writer = writing(self._engine)
        self._bring_up()
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
        with sentences(self.place), Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    def _bring_up(self) -> None:
        with sentences(self.place):
            with self._engine.connect() as connection:
                found = schema.standing(connection)
            schema.check(found, self.place)
            if not found.current:
                schema.upgrade(self._engine)

    def _look(self) -> tuple[int, int] | None:
        file = file_of(self.url)
        if file is None:
            return None
        try:
            found = file.stat()
        except OSError:
            return (0, 0)
        return found.st_dev, found.st_ino
