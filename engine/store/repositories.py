"""One repository class per kind of row. Every method is one short transaction and returns plain rows."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from engine.core.json_object import Json
from engine.errors import InputError, NotFoundError
from engine.messages import Message, mark
from engine.store import tables
from engine.store.records import ComparisonRow, CorpusRow, JobState, PhraseSetRow, PluginRow, ProjectRow, WorkerRow

Table = TypeVar("Table", bound=tables.Base)
Row = TypeVar("Row")


def to_row(kind: type[Row], record: tables.Base) -> Row:
    """A plain row with the record's values."""
    return kind(**{field.name: getattr(record, field.name) for field in dataclasses.fields(kind)})  # type: ignore[arg-type]


class Repository(tables.StorePart, Generic[Table, Row]):
    """Base of all repositories."""

    table: ClassVar[type[Any]]
    row: ClassVar[type[Any]]
    noun: ClassVar[str]
    changeable: ClassVar[tuple[str, ...]] = ()

    def get(self, id: int) -> Row:
        """The row with this id. Raises InputError if there is none."""
        with self._store.read() as session:
            return self._out(self._find(session, id))

    def delete(self, id: int) -> None:
        """Remove the row and its dependent rows; files are kept. Raises InputError if there is none."""
        with self._store.write() as session:
            session.delete(self._find(session, id))

    def update(self, id: int, **changes: Any) -> Row:
        """Change some fields. Raises InputError if there is no such row, TypeError for a field that is not changeable."""
        for name in changes:
            if name not in self.changeable:
                raise TypeError(f"{name} of a {self.noun} cannot be changed; {', '.join(self.changeable)} can")
        with self._store.write() as session:
            record = self._find(session, id)
            for name, value in changes.items():
                setattr(record, name, value)
            session.flush()
            return self._out(record)

    def _find(self, session: Session, id: int, *, lock: bool = False) -> Table:
        """The record with this id; `lock`: lock it until the transaction ends, also against `together` writers."""
        record: Table | None = session.get(self.table, id, with_for_update=lock or None)
        if record is None:
            raise NotFoundError("There is no {noun} {id}: it may have been deleted.", noun=Message(self.noun), id=id)
        return record

    def _out(self, record: Table) -> Row:
        return to_row(self.row, record)

    def _add(self, **values: Any) -> Row:
        with self._store.write() as session:
            record: Table = self.table(**values)
            session.add(record)
            session.flush()
            return self._out(record)

    def _list(self, *where: ColumnElement[bool] | None, limit: int | None = None, offset: int = 0) -> list[Row]:
        """Newest first."""
        query = select(self.table).where(*(condition for condition in where if condition is not None))
        query = query.order_by(self.table.id.desc()).limit(limit).offset(offset or None)
        with self._store.read() as session:
            return [self._out(record) for record in session.scalars(query)]

    def _count(self, *where: ColumnElement[bool] | None) -> int:
        query = select(func.count(self.table.id)).where(*(condition for condition in where if condition is not None))
        with self._store.read() as session:
            return int(session.scalar(query) or 0)


class Projects(Repository[tables.Project, ProjectRow]):
    table = tables.Project
    row = ProjectRow
    noun = mark("project")
    changeable = ("name", "source", "target", "base")

    def create(self, name: str, source: str, target: str, base: str) -> ProjectRow:
        """A new project. Raises InputError when the name is empty."""
        if not name.strip():
            raise InputError("A project needs a name.")
        return self._add(name=name.strip(), source=source, target=target, base=base)

    def list(self) -> list[ProjectRow]:
        """All projects, newest first."""
        return self._list()

    def last_changed(self) -> ProjectRow | None:
        """The most recently changed project; of several changed at the same time, the newest."""
        query = select(tables.Project).order_by(tables.Project.updated.desc(), tables.Project.id.desc()).limit(1)
        with self._store.read() as session:
            record = session.scalars(query).first()
            return None if record is None else self._out(record)

    def delete(self, id: int) -> None:
        """Remove the project with its corpora, jobs, plugin rows and comparisons; files are kept.

        Raises InputError while one of its jobs is running.
        """
        with self._store.write() as session:
            project = self._find(session, id)
            job_states = (
                select(tables.Job.state).where(tables.Job.project_id == id).with_for_update()
            )  # so that none is claimed meanwhile
            if JobState.RUNNING in session.scalars(job_states).all():
                raise InputError(
                    "A job of the project {project} is running. Cancel it first, then delete the project.", project=project.name
                )
            session.delete(project)


class Corpora(Repository[tables.Corpus, CorpusRow]):
    table = tables.Corpus
    row = CorpusRow
    noun = mark("corpus")
    changeable = ("name", "state", "folder", "kept", "skipped", "report")

    def create(self, project_id: int, name: str, *, folder: str = "", state: str = "new") -> CorpusRow:
        """A new corpus of a project; the states are new, reading, ready, failed."""
        return self._add(project_id=project_id, name=name, folder=folder, state=state)

    def list(self, project_id: int | None = None) -> list[CorpusRow]:
        """Corpora of one project or of all, newest first."""
        return self._list(None if project_id is None else tables.Corpus.project_id == project_id)


class PhraseSets(Repository[tables.PhraseSet, PhraseSetRow]):
    table = tables.PhraseSet
    row = PhraseSetRow
    noun = mark("phrase set")

    def create(self, corpus_id: int, path: str, parser: str, count: int) -> PhraseSetRow:
        """A new phrase set; replaces an existing one of the corpus for the same file."""
        with self._store.write() as session:
            same = select(tables.PhraseSet).where(tables.PhraseSet.corpus_id == corpus_id, tables.PhraseSet.path == path)
            for old in session.scalars(same):
                session.delete(old)
            record = tables.PhraseSet(corpus_id=corpus_id, path=path, parser=parser, count=count)
            session.add(record)
            session.flush()
            return self._out(record)

    def list(self, corpus_id: int | None = None) -> list[PhraseSetRow]:
        """Phrase sets of one corpus or of all, newest first."""
        return self._list(None if corpus_id is None else tables.PhraseSet.corpus_id == corpus_id)


class Plugins(Repository[tables.Plugin, PluginRow]):
    table = tables.Plugin
    row = PluginRow
    noun = mark("plugin")
    changeable = ("name", "method", "path", "base_fingerprint", "metrics", "job_id")

    def create(
        self,
        project_id: int,
        name: str,
        *,
        method: str,
        path: str,
        base_fingerprint: str = "",
        metrics: Json | None = None,
        job_id: int | None = None,
        imported: bool = False,
    ) -> PluginRow:
        """A new plugin."""
        return self._add(
            project_id=project_id,
            name=name,
            method=method,
            path=path,
            base_fingerprint=base_fingerprint,
            metrics=metrics or {},
            job_id=job_id,
            imported=imported,
        )

    def list(self, project_id: int | None = None, *, job_id: int | None = None) -> list[PluginRow]:
        """Plugins of one project, of one job, or all, newest first."""
        return self._list(
            None if project_id is None else tables.Plugin.project_id == project_id,
            None if job_id is None else tables.Plugin.job_id == job_id,
        )

    def count(self, project_id: int) -> int:
        """The number of plugins of a project."""
        return self._count(tables.Plugin.project_id == project_id)

    def by_numbers(self, project_id: int, numbers: Iterable[int]) -> dict[int, PluginRow]:
        """{id: plugin} of those ids that belong to the project."""
        chosen = tables.Plugin.id.in_(list(numbers))
        return {row.id: row for row in self._list(tables.Plugin.project_id == project_id, chosen)}

    def first_usable(self, project_id: int) -> PluginRow | None:
        """The newest plugin trained in the project (not imported or blended) that does no harm and whose bundle exists."""
        plugin = tables.Plugin
        trained = select(plugin).where(plugin.project_id == project_id, ~plugin.imported, plugin.method != "blend")
        query = trained.order_by(plugin.id.desc()).execution_options(yield_per=10)
        with self._store.read() as session:
            return next((row for row in map(self._out, session.scalars(query)) if row.exists and not row.harm), None)


class Comparisons(Repository[tables.Comparison, ComparisonRow]):
    table = tables.Comparison
    row = ComparisonRow
    noun = mark("comparison")
    changeable = ("title", "rows")

    def create(self, project_id: int, title: str, rows: list[Json]) -> ComparisonRow:
        """A new comparison; `rows` may hold any JSON values."""
        return self._add(project_id=project_id, title=title, rows=rows)

    def list(self, project_id: int | None = None) -> list[ComparisonRow]:
        """Comparisons of one project or of all, newest first."""
        return self._list(None if project_id is None else tables.Comparison.project_id == project_id)


class Workers(tables.StorePart):
    """Worker processes and their last heartbeats."""

    def beat(self, name: str, host: str, pid: int, job_id: int | None = None) -> None:
        """Record that the worker is alive and, if `job_id` is given, running that job."""
        with self._store.write(together=True) as session:
            session.merge(tables.Worker(name=name, host=host, pid=pid, job_id=job_id, heartbeat=tables.now()))

    def register_alone(self, name: str, host: str, pid: int, alive: Callable[[WorkerRow], bool]) -> bool:
        """Register the worker unless another `alive` one serves this store; returns whether it was registered."""
        with self._store.write() as session:
            workers = [to_row(WorkerRow, record) for record in session.scalars(select(tables.Worker))]
            if any(alive(row) for row in workers if row.name != name):
                return False
            session.add(tables.Worker(name=name, host=host, pid=pid))
            return True

    def remove(self, name: str) -> None:
        """Remove a worker that has ended."""
        with self._store.write() as session:
            record = session.get(tables.Worker, name)
            if record is not None:
                session.delete(record)

    def list(self, within: float | None = 10.0) -> list[WorkerRow]:
        """Workers with a heartbeat in the last `within` seconds (None: all that are registered)."""
        query = select(tables.Worker).order_by(tables.Worker.started)
        if within is not None:
            now, span = tables.now(), datetime.timedelta(seconds=within)
            # A heartbeat in the future is from before the clock was set back.
            query = query.where(tables.Worker.heartbeat.between(now - span, now + span))
        with self._store.read() as session:
            return [to_row(WorkerRow, record) for record in session.scalars(query)]
