"""The queue of jobs. Every change of state is one conditional UPDATE, so that two processes never both make it.

    queued ──claim──> running ──finish──> succeeded
      │                  ├──fail────────> failed ──────┐
      └──cancel──> cancelled <──cancelled─┤            ├──resume──> queued (attempt + 1)
                         └──interrupt───> interrupted ─┘

What a running job writes carries its attempt: a process that was given up for dead and still lives changes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, exists, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from engine.errors import InputError
from engine.store import tables
from engine.store.repositories import Repository, to_row
from engine.store.rows import RESUMABLE, JobRow, JobState

__all__ = ["Jobs"]

TRIES = 5  # to claim a job beside others


class Jobs(Repository[tables.Job, JobRow]):
    """Jobs: what is asked, claimed, reported and ended."""

    table = tables.Job
    row = JobRow
    noun = "job"
    changeable = ("note",)

    def _out(self, record: tables.Job) -> JobRow:
        row = to_row(JobRow, record)
        object.__setattr__(row, "state", JobState(row.state))
        return row

    def enqueue(self, kind: str, arguments: Mapping[str, Any], *, project_id: int | None = None) -> JobRow:
        """A new job at the end of the queue. `engine.jobs.enqueue` also checks the kind."""
        return self._add(kind=kind, arguments=dict(arguments), project_id=project_id, state=JobState.QUEUED.value)

    def list(
        self, project_id: int | None = None, *, states: Iterable[str] | None = None, limit: int | None = None
    ) -> list[JobRow]:
        """Jobs of one project or of all, in some states or in any, newest first."""
        job = tables.Job
        return self._list(
            None if project_id is None else job.project_id == project_id,
            None if states is None else job.state.in_([JobState(state).value for state in states]),
            limit=limit,
        )

    def claim(self, worker: str, pid: int | None = None) -> JobRow | None:
        """Take the oldest waiting job whose project has none at work; None when there is nothing to do."""
        job, other = tables.Job, aliased(tables.Job)
        free = ~exists().where(other.project_id == job.project_id, other.state == JobState.RUNNING)
        oldest = (
            select(job.id)
            .where(job.state == JobState.QUEUED, free)
            .order_by(job.id)
            .limit(1)
            .with_for_update(skip_locked=True)  # PostgreSQL; SQLite has one writer at a time anyway
            .scalar_subquery()
        )
        moment = tables.now()
        take = (
            update(job)
            .where(job.id == oldest, job.state == JobState.QUEUED)
            .values(
                state=JobState.RUNNING.value,
                worker=worker,
                pid=pid,
                heartbeat=moment,
                started=moment,
                finished=None,
                step="",
                step_index=0,
                steps=1,
                done=0.0,
                total=None,
                eta=None,
                note="",
                error="",
            )
            .returning(job)
            .execution_options(synchronize_session=False)
        )
        for _ in range(TRIES):
            # Another worker may take a job of the same project in the same moment; the index lets one have it.
            with contextlib.suppress(IntegrityError), self._store.write(together=True) as session:
                record = session.scalars(take).first()
                return None if record is None else self._out(record)
        return None

    def started(self, id: int, attempt: int, *, pid: int | None, log_path: str) -> bool:
        """The process of a claimed job runs; False when the job is no longer this attempt's."""
        return self._change(id, attempt, pid=pid, log_path=log_path, heartbeat=tables.now())

    def heartbeat(self, id: int, attempt: int) -> bool:
        """The process of a job is alive; False when the job is no longer this attempt's."""
        return self._change(id, attempt, heartbeat=tables.now())

    def progress(
        self,
        id: int,
        attempt: int,
        *,
        step: str,
        step_index: int = 0,
        steps: int = 1,
        done: float = 0.0,
        total: float | None = None,
        eta: float | None = None,
        note: str = "",
        metrics: dict[str, Any] | None = None,
    ) -> bool:
        """How far it is; counts as a heartbeat. False when the job is no longer this attempt's."""
        extra = {} if metrics is None else {"metrics": metrics}
        return self._change(
            id,
            attempt,
            step=step,
            step_index=step_index,
            steps=steps,
            done=done,
            total=total,
            eta=eta,
            note=note,
            heartbeat=tables.now(),
            **extra,
        )

    def finish(self, id: int, attempt: int, result: dict[str, Any] | None = None) -> bool:
        """It is done. False when the job is no longer this attempt's (as for the other endings)."""
        return self._end(id, attempt, JobState.SUCCEEDED, result=result or {}, eta=None)

    def fail(self, id: int, attempt: int, error: str) -> bool:
        """It failed, for the reason in one sentence."""
        return self._end(id, attempt, JobState.FAILED, error=error)

    def cancelled(self, id: int, attempt: int) -> bool:
        """It stopped because the user asked."""
        return self._end(id, attempt, JobState.CANCELLED)

    def interrupt(self, id: int, attempt: int, error: str, *where: ColumnElement[bool]) -> bool:
        """It ended without being done or failed, for the reason in one sentence; cancelled if the user had asked for that.

        `where`: further conditions of the change.
        """
        asked = tables.Job.cancel_requested
        return self._end(id, attempt, JobState.CANCELLED, asked.is_(True), *where) or self._end(
            id, attempt, JobState.INTERRUPTED, asked.is_(False), *where, error=error
        )

    def cancel(self, id: int) -> JobRow:
        """Ask a job to stop: a waiting one is cancelled at once, one at work within moments, an ended one stays."""
        job = tables.Job
        with self._store.write() as session:
            record = self._find(session, id)
            session.execute(
                update(job)
                .where(job.id == id, job.state == JobState.QUEUED)
                .values(state=JobState.CANCELLED.value, finished=tables.now(), cancel_requested=True)
            )
            session.execute(
                update(job).where(job.id == id, job.state == JobState.RUNNING).values(cancel_requested=True)
            )
            session.refresh(record)
            return self._out(record)

    def resume(self, id: int) -> JobRow:
        """Queue an interrupted, failed or cancelled job again, with the same arguments and the next attempt.

        Raises InputError when the job is waiting, at work, or done.
        """
        job = tables.Job
        with self._store.write() as session:
            record = self._find(session, id)
            changed = session.execute(
                update(job)
                .where(job.id == id, job.state.in_([state.value for state in RESUMABLE]))
                .values(
                    state=JobState.QUEUED.value,
                    attempt=job.attempt + 1,
                    cancel_requested=False,
                    error="",
                    note="",
                    eta=None,
                    pid=None,
                    worker="",
                    heartbeat=None,
                    started=None,
                    finished=None,
                )
                .execution_options(synchronize_session=False)
            )
            session.refresh(record)
            if _count(changed) == 0:
                raise InputError(
                    f"Job {id} is {record.state}: only an interrupted, failed or cancelled job can be resumed."
                )
            return self._out(record)

    def interrupt_stale(self, alive: Callable[[JobRow], bool], error: str) -> Sequence[JobRow]:
        """Mark the jobs at work that are not `alive` as interrupted, with `error` as the sentence; returns them.

        One that gave a sign of life between the look and the change is left alone.
        """
        found = []
        for row in self.list(states=[JobState.RUNNING]):
            if alive(row):
                continue
            if self.interrupt(row.id, row.attempt, error, tables.Job.heartbeat == row.heartbeat):
                found.append(self.get(row.id))
        return found

    def delete(self, id: int) -> None:
        """Remove the row of a job that is not at work; files stay. Raises InputError while it is at work."""
        with self._store.write() as session:
            record = self._find(session, id, lock=True)
            if record.state == JobState.RUNNING:
                raise InputError(f"Job {id} is at work. Cancel it first, then delete it.")
            session.delete(record)

    def _end(self, id: int, attempt: int, state: JobState, *where: ColumnElement[bool], **values: Any) -> bool:
        return self._change(id, attempt, *where, state=state.value, finished=tables.now(), pid=None, **values)

    def _change(self, id: int, attempt: int, *where: ColumnElement[bool], **values: Any) -> bool:
        job = tables.Job
        with self._store.write(together=True) as session:
            query = update(job).where(job.id == id, job.attempt == attempt, job.state == JobState.RUNNING, *where)
            return _count(session.execute(query.values(**values).execution_options(synchronize_session=False))) == 1


def _count(result: Any) -> int:
    assert isinstance(result, CursorResult)
    return result.rowcount
