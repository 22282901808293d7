"""The queue of jobs. Every change of state is one conditional UPDATE, so that two processes never both make it.

    queued ──claim──> running ──finish──> succeeded
      │                  ├──fail────────> failed ──────┐
      └──cancel──> cancelled <──cancelled─┤            ├──resume──> queued (attempt + 1)
                         └──interrupt───> interrupted ─┘

What a running job writes carries its attempt: a process that was given up for dead and still lives changes nothing.
What interrupted jobs go on by themselves with is in engine/store/recovery.py.
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

TRIES = 5  # to claim a job beside others
# Priorities: what somebody has just asked for and waits for; long work that somebody started; what starts by itself.
ASKED, LONG, AUTOMATIC = 20, 0, -10
AT_FIRST: JobFigures = {"step": "", "step_index": 0, "steps": 1, "done": 0.0, "total": None, "eta": None, "note": ""}


def _due(job: Any, moment: datetime.datetime) -> ColumnElement[bool]:
    """Whether the job need not wait any longer at `moment`."""
    # Nothing waits longer than the longest pause: a moment further off means that the clock was set back.
    late = moment + datetime.timedelta(seconds=FURTHEST_SECONDS)
    return or_(job.not_before.is_(None), job.not_before <= moment, job.not_before > late)


def _among(
    project_id: int | None, states: Iterable[str] | None, kinds: Iterable[str] | None
) -> list[ColumnElement[bool]]:
    job = tables.Job
    result = [] if project_id is None else [job.project_id == project_id]
    if states is not None:
        result.append(job.state.in_([JobState(state).value for state in states]))
    return result if kinds is None else [*result, job.kind.in_(list(kinds))]


class Jobs(JobRecovery):
    """Jobs: what is asked, claimed, reported and ended."""

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
        """A new job at the end of the queue. `engine.jobs.enqueue` also checks the kind."""
        access = self._store.access()
        if not owner and access.user is not None:  # turns are taken by people, however they ask
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
        """Jobs of one project or of all, in some states or in any, of some kinds or of any, newest first."""
        return self._list(*_among(project_id, states, kinds), limit=limit, offset=offset)

    def count(
        self, project_id: int | None = None, *, states: Iterable[str] | None = None, kinds: Iterable[str] | None = None
    ) -> int:
        """How many jobs `list` would give."""
        return self._count(*_among(project_id, states, kinds))

    def newest(self, project_id: int, *kinds: str, begun: bool = False) -> JobRow | None:
        """The project's last job of these kinds; with `begun` not one that was cancelled while it waited."""
        job = tables.Job
        waited = and_(job.state == JobState.CANCELLED.value, job.started.is_(None))
        return next(iter(self._list(*_among(project_id, None, kinds), ~waited if begun else None, limit=1)), None)

    def last_of_each(self) -> dict[int, JobRow]:
        """{number of a project: its last job}."""
        job = tables.Job
        last = select(func.max(job.id)).where(job.project_id.is_not(None)).group_by(job.project_id)
        return {row.project_id: row for row in self._list(job.id.in_(last)) if row.project_id is not None}

    def oldest_waiting(self) -> JobRow | None:
        """The job that has waited for the longest time."""
        job = tables.Job
        query = select(job).where(job.state == JobState.QUEUED.value).order_by(job.id).limit(1)
        with self._store.read() as session:
            record = session.scalars(query).first()
            return None if record is None else self._out(record)

    def counted(self) -> dict[tuple[str, str], int]:
        """{(kind, state): how many jobs}."""
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
                if started is not None and finished is not None:  # the clock may have been set back since
                    result.setdefault(kind, []).append(max(0.0, (finished - started).total_seconds()))
        return result

    def claim(self, worker: str, pid: int | None = None, *, devices: Sequence[str] | None = None) -> JobRow | None:
        """Take the next waiting job that is ready; None when there is nothing to do.

        Ready is one whose project has none at work, whose time has come, and that asks for one of the `devices`. The highest
        priority comes first, then the party that was served longest ago (each user's turn, else each project's), then the
        oldest.
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
            # Another worker may take a job of the same project in the same moment; the index lets one have it.
            with contextlib.suppress(IntegrityError), self._store.write(together=True) as session:
                record = session.scalars(take).first()
                if record is None:
                    return None
                number = (session.scalar(select(func.max(turn.served))) or 0) + 1
                session.merge(turn(party=record.party, served=number))
                return self._out(record)
        return None

    def first_before(self, job: JobRow, *, anyone: bool) -> JobRow | None:
        """The job that is ready, but waits while this one, of a lower priority, is at work; None where there is none. Automatic
        work gives way to all work of users, long work only to what somebody waits for (ASKED). Without `anyone` only a job of
        the same owner counts.
        """
        other = tables.Job
        least = ASKED if job.priority >= LONG else LONG
        query = select(other).where(
            other.state == JobState.QUEUED,
            other.priority >= least,
            other.priority > job.priority,
            _due(other, tables.now()),
        )
        if not anyone:
            query = query.where(other.owner == job.owner)
        with self._store.read() as session:
            record = session.scalars(query.order_by(other.priority.desc(), other.id).limit(1)).first()
            return None if record is None else self._out(record)

    def hasten(self, id: int, priority: int = ASKED) -> JobRow:
        """Somebody waits now for what had been started by itself: the job has at least this priority. Raises InputError."""
        job = tables.Job
        active = (JobState.QUEUED.value, JobState.RUNNING.value)
        with self._store.write() as session:
            query = update(job).where(job.id == id, job.priority < priority, job.state.in_(active))
            session.execute(query.values(priority=priority).execution_options(synchronize_session=False))
        return self.get(id)

    def started(self, id: int, attempt: int, *, pid: int | None, log_path: str) -> bool:
        """The process of a claimed job runs; False when the job is no longer this attempt's."""
        return self._change(id, attempt, pid=pid, log_path=log_path, heartbeat=tables.now())

    def heartbeat(self, id: int, attempt: int) -> bool:
        """The process of a job is alive; False when the job is no longer this attempt's."""
        return self._change(id, attempt, heartbeat=tables.now())

    def progress(self, id: int, attempt: int, **figures: Unpack[JobFigures]) -> bool:
        """How far it is; counts as a heartbeat. False when the job is no longer this attempt's."""
        known: JobFigures = {**AT_FIRST, **figures}
        return self._change(id, attempt, **known, messages=data_of(known["note"]), heartbeat=tables.now())

    def finish(self, id: int, attempt: int, result: Json | None = None) -> bool:
        """It is done. False when the job is no longer this attempt's (as for the other endings)."""
        return self._end(id, attempt, JobState.SUCCEEDED, result=result or {}, eta=None, retries=0)

    def fail(self, id: int, attempt: int, error: str) -> bool:
        """It failed, for the reason in one sentence."""
        return self._end(id, attempt, JobState.FAILED, error=error)

    def cancelled(self, id: int, attempt: int) -> bool:
        """It stopped because the user asked."""
        return self._end(id, attempt, JobState.CANCELLED)

    def cancel(self, id: int) -> JobRow:
        """Ask a job to stop: a waiting one is cancelled at once, one at work within moments, an ended one stays."""
        job = tables.Job
        with self._store.write() as session:
            record = self._find(session, id)
            if record.state in (JobState.QUEUED, JobState.RUNNING) and not record.cancel_requested:
                write_down(session, record, "cancelled")
            for state, values in (
                (
                    JobState.QUEUED,
                    {"state": JobState.CANCELLED.value, "finished": tables.now(), "cancel_requested": True},
                ),
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
        """Mark the jobs at work that are not `alive` as interrupted, with `error` as the sentence; returns them.

        One that gave a sign of life between the look and the change is left alone.
        """
        results = []
        for row in self.list(states=[JobState.RUNNING]):
            if alive(row):
                continue
            if self.interrupt(row.id, row.attempt, error, tables.Job.heartbeat == row.heartbeat, lost=True):
                results.append(self.get(row.id))
        return results

    def delete(self, id: int) -> None:
        """Remove the row of a job that is not at work; files stay. Raises InputError while it is at work."""
        with self._store.write() as session:
            record = self._find(session, id, lock=True)
            if record.state == JobState.RUNNING:
                raise InputError("Job {id} is running. Cancel it first, then delete it.", id=id)
            session.delete(record)
