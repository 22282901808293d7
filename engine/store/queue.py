"""The job queue. Every change of state is one conditional UPDATE, so that only one process can make it.

    queued ──claim──> running ──finish──> succeeded
      │                  ├──fail────────> failed ──────┐
      └──cancel──> cancelled <──cancelled─┤            ├──resume──> queued (attempt + 1)
                         └──interrupt───> interrupted ─┘

Updates by a running job carry its attempt, so a process that was considered lost but is still alive changes nothing.
The automatic recovery of interrupted jobs is in engine/store/recovery.py.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from engine.core.json_object import Json
from engine.errors import InputError
from engine.store import tables
from engine.store.audit import write_down
from engine.store.records import JobFigures, JobRow, JobState
from engine.store.recovery import FURTHEST_SECONDS, JobRecovery, data_of

TRIES = 5  # attempts to claim a job concurrently with other workers
# Priorities: requests that a user is waiting for; long jobs started by users; jobs started automatically.
ASKED, LONG, AUTOMATIC = 20, 0, -10
AT_FIRST: JobFigures = {"step": "", "step_index": 0, "steps": 1, "done": 0.0, "total": None, "eta": None, "note": ""}


def _due(job: Any, moment: datetime.datetime) -> ColumnElement[bool]:
    """The condition that the job need not wait any longer at `moment`."""
    # No job waits longer than the longest pause: a later time means that the clock was set back.
    late = moment + datetime.timedelta(seconds=FURTHEST_SECONDS)
    return or_(job.not_before.is_(None), job.not_before <= moment, job.not_before > late)


def _among(project_id: int | None, states: Iterable[str] | None, kinds: Iterable[str] | None) -> list[ColumnElement[bool]]:
    job = tables.Job
    result = [] if project_id is None else [job.project_id == project_id]
    if states is not None:
        result.append(job.state.in_([JobState(state).value for state in states]))
    return result if kinds is None else [*result, job.kind.in_(list(kinds))]


class Jobs(JobRecovery):
    """Queueing, claiming, progress and endings of jobs."""

    def enqueue(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        *,
        project_id: int | None = None,
        owner: str = "",
        priority: int = LONG,
        device: str = "",
    ) -> JobRow:
        """Add a job to the queue. `engine.jobs.enqueue` also checks the kind."""
        access = self._store.access()
        if not owner and access.user is not None:  # turns are per user, regardless of the interface
            owner = f"account {access.user}"
        party = owner or ("" if project_id is None else f"project {project_id}")
        with self._store.write() as session:
            record = tables.Job(
                kind=kind, arguments=dict(arguments), project_id=project_id, owner=owner, party=party,
                priority=priority, device=device, state=JobState.QUEUED.value,
            )  # fmt: skip
            session.add(record)
            session.flush()
            return self._out(record)

    def list(
        self,
        project_id: int | None = None,
        *,
        states: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[JobRow]:
        """Jobs of one project or of all, optionally filtered by state and kind, newest first."""
        return self._list(*_among(project_id, states, kinds), limit=limit, offset=offset)

    def count(
        self, project_id: int | None = None, *, states: Iterable[str] | None = None, kinds: Iterable[str] | None = None
    ) -> int:
        """The number of jobs that `list` would return."""
        return self._count(*_among(project_id, states, kinds))

    def newest(self, project_id: int, *kinds: str, begun: bool = False) -> JobRow | None:
        """The project's last job of these kinds; with `begun`, ignoring jobs cancelled before they started."""
        job = tables.Job
        waited = and_(job.state == JobState.CANCELLED.value, job.started.is_(None))
        return next(iter(self._list(*_among(project_id, None, kinds), ~waited if begun else None, limit=1)), None)

    def last_of_each(self) -> dict[int, JobRow]:
        """{project id: its last job}."""
        job = tables.Job
        last = select(func.max(job.id)).where(job.project_id.is_not(None)).group_by(job.project_id)
        return {row.project_id: row for row in self._list(job.id.in_(last)) if row.project_id is not None}

    def oldest_waiting(self) -> JobRow | None:
        """The queued job that has waited longest."""
        job = tables.Job
        query = select(job).where(job.state == JobState.QUEUED.value).order_by(job.id).limit(1)
        with self._store.read() as session:
            record = session.scalars(query).first()
            return None if record is None else self._out(record)

    def counted(self) -> dict[tuple[str, str], int]:
        """{(kind, state): number of jobs}."""
        job = tables.Job
        query = select(job.kind, job.state, func.count(job.id)).group_by(job.kind, job.state)
        with self._store.read() as session:
            return {(kind, state): number for kind, state, number in session.execute(query)}

    def durations(self) -> Mapping[str, Sequence[float]]:
        """{kind: seconds of the last attempt of each job that succeeded}."""
        job = tables.Job
        query = select(job.kind, job.started, job.finished).where(job.state == JobState.SUCCEEDED.value)
        result: dict[str, list[float]] = {}
        with self._store.read() as session:
            for kind, started, finished in session.execute(query):
                if started is not None and finished is not None:  # the clock may have been set back
                    result.setdefault(kind, []).append(max(0.0, (finished - started).total_seconds()))
        return result

    def claim(self, worker: str, pid: int | None = None, *, devices: Sequence[str] | None = None) -> JobRow | None:
        """Claim the next queued job that is ready; None if there is none.

        A job is ready if no other job of its project is running, its retry time has come, and it requests one of the `devices`.
        The highest priority comes first, then the party (user, else project) served longest ago, then the oldest job.
        """
        job, other, turn = tables.Job, aliased(tables.Job), tables.JobTurn
        moment = tables.now()
        free = ~exists().where(other.project_id == job.project_id, other.state == JobState.RUNNING)
        served = select(turn.served).where(turn.party == job.party).scalar_subquery()
        first = (
            select(job.id)
            .where(job.state == JobState.QUEUED, free, _due(job, moment))
            .order_by(job.priority.desc(), func.coalesce(served, 0), job.id)
            .limit(1)
            .with_for_update(skip_locked=True, of=job)  # PostgreSQL; SQLite has one writer at a time anyway
        )
        if devices is not None:
            first = first.where(job.device.in_(list(devices)))
        take = (
            update(job)
            .where(job.id == first.scalar_subquery(), job.state == JobState.QUEUED)
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
                not_before=None,
            )
            .returning(job)
            .execution_options(synchronize_session=False)
        )
        for _ in range(TRIES):
            # Another worker may claim a job of the same project concurrently; the unique index lets only one succeed.
            with contextlib.suppress(IntegrityError), self._store.write(together=True) as session:
                record = session.scalars(take).first()
                if record is None:
                    return None
                number = (session.scalar(select(func.max(turn.served))) or 0) + 1
                session.merge(turn(party=record.party, served=number))
                return self._out(record)
        return None

    def first_before(self, job: JobRow, *, anyone: bool) -> JobRow | None:
        """The first ready job of a higher priority that `job` should give way to; None if there is none.

        Automatic jobs give way to all jobs of users, long jobs only to those that a user is waiting for (ASKED). Without
        `anyone`, only jobs of the same owner count.
        """
        other = tables.Job
        least = ASKED if job.priority >= LONG else LONG
        query = select(other).where(
            other.state == JobState.QUEUED, other.priority >= least, other.priority > job.priority, _due(other, tables.now())
        )
        if not anyone:
            query = query.where(other.owner == job.owner)
        with self._store.read() as session:
            record = session.scalars(query.order_by(other.priority.desc(), other.id).limit(1)).first()
            return None if record is None else self._out(record)

    def hasten(self, id: int, priority: int = ASKED) -> JobRow:
        """Raise the priority of an active job to at least this value, for a user who is waiting for it. Raises InputError."""
        job = tables.Job
        active = (JobState.QUEUED.value, JobState.RUNNING.value)
        with self._store.write() as session:
            query = update(job).where(job.id == id, job.priority < priority, job.state.in_(active))
            session.execute(query.values(priority=priority).execution_options(synchronize_session=False))
        return self.get(id)

    def started(self, id: int, attempt: int, *, pid: int | None, log_path: str) -> bool:
        """Record the process of a claimed job; returns False if this is no longer the job's attempt."""
        return self._change(id, attempt, pid=pid, log_path=log_path, heartbeat=tables.now())

    def heartbeat(self, id: int, attempt: int) -> bool:
        """Record that a job's process is alive; returns False if this is no longer the job's attempt."""
        return self._change(id, attempt, heartbeat=tables.now())

    def progress(self, id: int, attempt: int, **fields: Unpack[JobFigures]) -> bool:
        """Record progress, which counts as a heartbeat; returns False if this is no longer the job's attempt."""
        values: JobFigures = {**AT_FIRST, **fields}
        return self._change(id, attempt, **values, messages=data_of(values["note"]), heartbeat=tables.now())

    def finish(self, id: int, attempt: int, result: Json | None = None) -> bool:
        """Mark a job as succeeded. Like all endings, returns False if this is no longer the job's attempt."""
        return self._end(id, attempt, JobState.SUCCEEDED, result=result or {}, eta=None, retries=0)

    def fail(self, id: int, attempt: int, error: str) -> bool:
        """Mark a job as failed, with the reason in one sentence."""
        return self._end(id, attempt, JobState.FAILED, error=error)

    def cancelled(self, id: int, attempt: int) -> bool:
        """Mark a job as cancelled by the user."""
        return self._end(id, attempt, JobState.CANCELLED)

    def cancel(self, id: int) -> JobRow:
        """Request cancellation: a queued job is cancelled at once, a running one shortly after; an ended one is unchanged."""
        job = tables.Job
        with self._store.write() as session:
            record = self._find(session, id)
            if record.state in (JobState.QUEUED, JobState.RUNNING) and not record.cancel_requested:
                write_down(session, record, "cancelled")
            for state, values in (
                (JobState.QUEUED, {"state": JobState.CANCELLED.value, "finished": tables.now(), "cancel_requested": True}),
                (JobState.RUNNING, {"cancel_requested": True}),
            ):
                session.execute(
                    update(job)
                    .where(job.id == id, job.state == state)
                    .values(**values)
                    .execution_options(synchronize_session=False)
                )
            session.refresh(record)
            return self._out(record)

    def interrupt_stale(self, alive: Callable[[JobRow], bool], error: str) -> Sequence[JobRow]:
        """Mark running jobs that are not `alive` as interrupted, with `error` as the reason; returns them.

        A job with a heartbeat between the check and the change is skipped.
        """
        results = []
        for row in self.list(states=[JobState.RUNNING]):
            if alive(row):
                continue
            if self.interrupt(row.id, row.attempt, error, tables.Job.heartbeat == row.heartbeat, lost=True):
                results.append(self.get(row.id))
        return results

    def delete(self, id: int) -> None:
        """Remove the row of a job; files are kept. Raises InputError while it is running."""
        with self._store.write() as session:
            record = self._find(session, id, lock=True)
            if record.state == JobState.RUNNING:
                raise InputError("Job {id} is running. Cancel it first, then delete it.", id=id)
            session.delete(record)
