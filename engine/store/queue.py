"""The queue of jobs. Every change of state is one conditional UPDATE, so that two processes never both make it.

    queued ──claim──> running ──finish──> succeeded
      │                  ├──fail────────> failed ──────┐
      └──cancel──> cancelled <──cancelled─┤            ├──resume──> queued (attempt + 1)
                         └──interrupt───> interrupted ─┘

What a running job writes carries its attempt: a process that was given up for dead and still lives changes nothing.
A job may wait for others (`after`). What interrupted jobs go on by themselves with is in engine/store/recovery.py.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from engine.errors import InputError
from engine.store import tables
from engine.store.audit import write_down
from engine.store.recovery import FURTHEST_SECONDS, Recovery, count
from engine.store.rows import JobRow, JobState

__all__ = ["Jobs"]

TRIES = 5  # to claim a job beside others


class Jobs(Recovery):
    """Jobs: what is asked, claimed, reported and ended."""

    def enqueue(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        *,
        project_id: int | None = None,
        owner: str = "",
        priority: int = 0,
        device: str = "",
        after: Sequence[int] = (),
        parts: Sequence[Mapping[str, Any]] = (),
    ) -> JobRow:
        """A new job at the end of the queue. `engine.jobs.enqueue` also checks the kind.

        It waits until the jobs `after` have succeeded. `parts` are jobs (kind, priority, device) that are steps of this one:
        they have its arguments, each waits for the one before, and it waits for them. Raises InputError where a job to wait
        for is not there or has ended without success.
        """
        access = self._store.access()
        if not owner and access.user is not None:  # turns are taken by people, however they ask
            owner = f"account {access.user}"
        common = {"project_id": project_id, "owner": owner, "state": JobState.QUEUED.value}
        common["party"] = owner or ("" if project_id is None else f"project {project_id}")
        with self._store.write() as session:
            for number in after:
                if self._find(session, number, lock=True).state in (JobState.FAILED, JobState.CANCELLED):
                    raise InputError(f"Job {number}, which this one needs, has ended without success. Resume it first.")
            record = tables.Job(kind=kind, arguments=dict(arguments), priority=priority, device=device, **common)
            session.add(record)
            session.flush()
            before = list(after)
            for part in parts:
                step = tables.Job(**common, **part, arguments=dict(arguments), parent_id=record.id, after=list(before))
                session.add(step)
                session.flush()
                session.add_all([tables.JobAfter(job_id=step.id, after_id=number) for number in before])
                before = [step.id]
                record.after = [*record.after, step.id]
            record.after = record.after or list(after)
            session.flush()
            session.add_all([tables.JobAfter(job_id=record.id, after_id=number) for number in record.after])
            session.flush()
            return self._out(record)

    def list(
        self,
        project_id: int | None = None,
        *,
        states: Iterable[str] | None = None,
        limit: int | None = None,
        parent: int | None = None,
        whole: bool = False,
    ) -> list[JobRow]:
        """Jobs of one project or of all, in some states or in any, newest first.

        `parent`: only the steps of that job; `whole`: none that is a step of another.
        """
        job = tables.Job
        return self._list(
            None if project_id is None else job.project_id == project_id,
            None if states is None else job.state.in_([JobState(state).value for state in states]),
            None if parent is None else job.parent_id == parent,
            job.parent_id.is_(None) if whole else None,
            limit=limit,
        )

    def claim(self, worker: str, pid: int | None = None, *, devices: Sequence[str] | None = None) -> JobRow | None:
        """Take the next waiting job that is ready; None when there is nothing to do.

        Ready is one whose project has none at work, whose jobs to wait for have succeeded, whose time has come, and that
        asks for one of the `devices`. The highest priority comes first, then the party that was served longest ago (each
        user's turn, else each project's), then the oldest.
        """
        job, other, before, turn = tables.Job, aliased(tables.Job), aliased(tables.Job), tables.JobTurn
        after, moment = tables.JobAfter, tables.now()
        free = ~exists().where(other.project_id == job.project_id, other.state == JobState.RUNNING)
        ready = ~exists().where(after.job_id == job.id, before.id == after.after_id, before.state != JobState.SUCCEEDED)
        # Nothing waits longer than the longest pause: a moment further off means that the clock was set back.
        late = moment + datetime.timedelta(seconds=FURTHEST_SECONDS)
        due = or_(job.not_before.is_(None), job.not_before <= moment, job.not_before > late)
        served = select(turn.served).where(turn.party == job.party).scalar_subquery()
        first = (
            select(job.id)
            .where(job.state == JobState.QUEUED, free, ready, due)
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
        trail: Sequence[dict[str, Any]] | None = None,
    ) -> bool:
        """How far it is; counts as a heartbeat. False when the job is no longer this attempt's."""
        extra: dict[str, Any] = {} if metrics is None else {"metrics": metrics}
        extra |= {} if trail is None else {"trail": [*trail]}
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
        return self._end(id, attempt, JobState.SUCCEEDED, result=result or {}, eta=None, retries=0)

    def fail(self, id: int, attempt: int, error: str) -> bool:
        """It failed, for the reason in one sentence; so do the jobs that wait for it."""
        return self._end(id, attempt, JobState.FAILED, error=error)

    def cancelled(self, id: int, attempt: int) -> bool:
        """It stopped because the user asked; the jobs that wait for it are cancelled too."""
        return self._end(id, attempt, JobState.CANCELLED)

    def cancel(self, id: int) -> JobRow:
        """Ask a job to stop: a waiting one is cancelled at once, one at work within moments, an ended one stays.

        Its steps stop with it, and jobs that wait for it are cancelled.
        """
        job = tables.Job
        with self._store.write() as session:
            record = self._find(session, id)
            those = or_(job.id == id, job.parent_id == id)
            queued = session.scalars(select(job.id).where(those, job.state == JobState.QUEUED)).all()
            if record.state in (JobState.QUEUED, JobState.RUNNING) and not record.cancel_requested:
                write_down(session, record, "cancelled")
            session.execute(
                update(job)
                .where(those, job.state == JobState.QUEUED)
                .values(state=JobState.CANCELLED.value, finished=tables.now(), cancel_requested=True)
                .execution_options(synchronize_session=False)
            )
            session.execute(
                update(job)
                .where(those, job.state == JobState.RUNNING)
                .values(cancel_requested=True)
                .execution_options(synchronize_session=False)
            )
            for number in queued:
                self._drop_waiting(session, number, JobState.CANCELLED)
            session.refresh(record)
            return self._out(record)

    def interrupt_stale(self, alive: Callable[[JobRow], bool], error: str) -> Sequence[JobRow]:
        """Mark the jobs at work that are not `alive` as interrupted, with `error` as the sentence; returns them.

        One that gave a sign of life between the look and the change is left alone.
        """
        found = []
        for row in self.list(states=[JobState.RUNNING]):
            if alive(row):
                continue
            if self.interrupt(row.id, row.attempt, error, tables.Job.heartbeat == row.heartbeat, lost=True):
                found.append(self.get(row.id))
        return found

    def delete(self, id: int) -> None:
        """Remove the row of a job that is not at work, with its steps; files stay. Raises InputError while it is at work,
        and while another job waits for it.
        """
        job, after = tables.Job, tables.JobAfter
        with self._store.write() as session:
            record = self._find(session, id, lock=True)
            at_work = select(job.id).where(or_(job.id == id, job.parent_id == id), job.state == JobState.RUNNING)
            if session.scalar(at_work.limit(1)) is not None:
                raise InputError(f"Job {id} is at work. Cancel it first, then delete it.")
            waits = select(job.id).where(job.id == after.job_id, after.after_id == id, job.state == JobState.QUEUED)
            if (other := session.scalar(waits.limit(1))) is not None:
                raise InputError(f"Job {other} waits for job {id}. Cancel that one first.")
            session.execute(delete(job).where(job.parent_id == id))
            session.delete(record)

    def _change(self, id: int, attempt: int, *where: ColumnElement[bool], **values: Any) -> bool:
        job = tables.Job
        with self._store.write(together=True) as session:
            query = update(job).where(job.id == id, job.attempt == attempt, job.state == JobState.RUNNING, *where)
            return count(session.execute(query.values(**values).execution_options(synchronize_session=False))) == 1
