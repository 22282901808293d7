"""Recovery of jobs that did not succeed: automatic retries, and when to stop them.

A job that lost its process or met a transient error is queued again automatically after a pause that doubles. After too many
consecutive attempts without further progress it is marked as failed and keeps its log; users can still resume it.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, select, update

from engine.core.json_object import Json
from engine.errors import InputError
from engine.messages import Message, mark, unpack
from engine.store import tables
from engine.store.audit import write_down
from engine.store.records import GAVE_WAY, RESUMABLE, JobRow, JobState, TrailStep
from engine.store.repositories import Repository, to_row

FURTHEST_SECONDS = 600.0  # the longest pause before another attempt
AGAIN: Json = {  # fields of a job that is queued again
    "state": JobState.QUEUED.value,
    "note": "",
    "eta": None,
    "pid": None,
    "worker": "",
    "heartbeat": None,
    "started": None,
    "finished": None,
}


class JobRecovery(Repository[tables.Job, JobRow]):
    """The unsuccessful endings of jobs, retries and resuming."""

    table = tables.Job
    row = JobRow
    noun = mark("job")
    changeable = ("note",)

    def _out(self, record: tables.Job) -> JobRow:
        row = to_row(JobRow, record)
        object.__setattr__(row, "state", JobState(row.state))
        text = unpack({"error": row.error, "note": row.note, "messages": record.messages})
        for name in ("error", "note"):
            object.__setattr__(row, name, text[name])
        return row

    def interrupt(self, id: int, attempt: int, error: str, *where: ColumnElement[bool], lost: bool = False) -> bool:
        """Mark a job as interrupted, with the reason in one sentence, or as cancelled if the user had requested that.

        `where`: further conditions of the change. `lost`: nobody requested it, so it counts as an attempt.
        """
        cancel_requested = tables.Job.cancel_requested
        if self._end(id, attempt, JobState.CANCELLED, cancel_requested.is_(True), *where):
            return True
        values: Json = {"error": error}
        if lost:
            with self._store.read() as session:
                record = session.get(tables.Job, id)
                if record is not None:
                    values |= _counted(record)
        return self._end(id, attempt, JobState.INTERRUPTED, cancel_requested.is_(False), *where, **values)

    def retry(self, id: int, attempt: int, error: str, *, max_retries: int, seconds: float) -> bool:
        """Queue a job again after a transient error, up to `max_retries` times in a row; then mark it as failed.

        `seconds`: the first pause; each further one is twice as long. Returns False if this is no longer the job's attempt.
        """
        with self._ending(id, attempt) as record:
            if record is None or record.cancel_requested:
                return record is not None and self._settle(record, JobState.CANCELLED)
            for name, value in _counted(record).items():
                setattr(record, name, value)
            if record.retries > max_retries:
                return self._settle(record, JobState.FAILED, _given_up(error, record.retries))
            self._again(record, seconds)
            record.error, record.messages = error, data_of(error)
            return True

    def give_way(self, id: int, attempt: int) -> bool:
        """Queue a job again that stopped in favour of another one, to continue where it was.

        Returns False if this is no longer the job's attempt.
        """
        with self._ending(id, attempt) as record:
            if record is None or record.cancel_requested:
                return record is not None and self._settle(record, JobState.CANCELLED)
            self._again(record, 0.0)
            record.note, record.error = GAVE_WAY, ""
            record.messages = data_of(GAVE_WAY)
            return True

    def requeue(self, *, max_retries: int, seconds: float) -> Sequence[JobRow]:
        """Queue interrupted jobs again, or mark them as failed if lost more than `max_retries` times in a row; returns all."""
        job, result = tables.Job, []
        if max_retries <= 0:
            return []
        query = select(job).where(job.state == JobState.INTERRUPTED, job.retries >= 0).order_by(job.id)
        with self._store.read() as session:  # called every few seconds and nearly always without a result
            if session.scalar(query.with_only_columns(job.id).limit(1)) is None:
                return []
        with self._store.write() as session:
            for record in session.scalars(query.with_for_update(skip_locked=True)).all():
                if record.retries > max_retries:
                    self._settle(record, JobState.FAILED, _given_up(record.error, record.retries))
                else:
                    self._again(record, seconds)
                session.flush()
                result.append(self._out(record))
        return result

    def pausing(self) -> bool:
        """Whether a job is waiting for its retry time."""
        job = tables.Job
        with self._store.read() as session:
            waiting = select(job.id).where(job.state == JobState.QUEUED, job.not_before.is_not(None)).limit(1)
            return session.scalar(waiting) is not None

    def resume(self, id: int) -> JobRow:
        """Queue an interrupted, failed or cancelled job again, with the same arguments and the next attempt.

        Raises InputError if the job is waiting, running or done.
        """
        job = tables.Job
        with self._store.write() as session:
            record = self._find(session, id)
            if record.state not in RESUMABLE:
                raise InputError(
                    "Job {id} is {state}: only an interrupted, failed or cancelled job can be resumed.",
                    id=id,
                    state=Message(record.state),
                )
            write_down(session, record, "resumed")
            trail = self._timed(record)
            session.execute(
                update(job)
                .where(job.id == id, job.state.in_([state.value for state in RESUMABLE]))
                .values(
                    **AGAIN, attempt=job.attempt + 1, cancel_requested=False, error="", not_before=None, retries=0,
                    reached=0.0, trail=trail,
                )
                .execution_options(synchronize_session=False)
            )  # fmt: skip
            session.refresh(record)
            return self._out(record)

    def _again(self, record: tables.Job, seconds: float) -> None:
        record.trail = self._timed(record)
        for name, value in AGAIN.items():
            setattr(record, name, value)
        record.attempt += 1
        record.not_before = None
        if record.retries > 0:
            pause = min(FURTHEST_SECONDS, seconds * 2 ** min(record.retries - 1, 30))
            record.not_before = tables.now() + datetime.timedelta(seconds=pause)

    def _timed(self, record: tables.Job) -> list[TrailStep]:
        """The steps so far, with the time of all attempts stored in the last, since the next attempt resets the row's times."""
        steps = list(record.trail)
        if steps:
            steps[-1] = {**steps[-1], "earlier": self._out(record).seconds or 0.0}
        return steps

    @contextlib.contextmanager
    def _ending(self, id: int, attempt: int) -> Iterator[tables.Job | None]:
        """The running job, locked until the block ends; None if this is no longer its attempt."""
        with self._store.write() as session:
            record = session.get(tables.Job, id, with_for_update=True)
            is_current = record is not None and record.attempt == attempt and record.state == JobState.RUNNING
            yield record if is_current else None

    def _settle(self, record: tables.Job, state: JobState, error: str = "") -> bool:
        record.state, record.error, record.finished, record.pid = state.value, error, tables.now(), None
        record.messages = data_of(error)
        return True

    def _end(self, id: int, attempt: int, state: JobState, *where: ColumnElement[bool], **values: Any) -> bool:
        ended = {"state": state.value, "finished": tables.now(), "pid": None, "messages": data_of(values.get("error"))}
        return self._change(id, attempt, *where, **(values | ended))

    def _change(self, id: int, attempt: int, *where: ColumnElement[bool], **values: Any) -> bool:
        """Set these fields of the running job; returns False if this is no longer its attempt."""
        job = tables.Job
        with self._store.write(together=True) as session:
            query = update(job).where(job.id == id, job.attempt == attempt, job.state == JobState.RUNNING, *where)
            return count(session.execute(query.values(**values).execution_options(synchronize_session=False))) == 1


def count(result: Any) -> int:
    """The number of rows changed by a statement."""
    assert isinstance(result, CursorResult)
    return result.rowcount


def _counted(record: tables.Job) -> Json:
    """The number of consecutive attempts without further progress, including this one, and the best progress (0 to 1)."""
    part = min(1.0, record.done / record.total) if record.total else 0.0
    reached = min(1.0, (record.step_index + part) / max(1, record.steps))
    progressed = reached > record.reached + 1e-9
    return {"retries": 1 if progressed else max(0, record.retries) + 1, "reached": max(reached, record.reached)}


def _given_up(error: str, attempts: int) -> Message:
    return Message(
        "{error} This was attempt {attempts} in a row without progress, so it will not be retried "
        "automatically; resume it once the cause is resolved.",
        error=error,
        attempts=attempts,
    )


def data_of(text: str | None) -> list[Json] | None:
    """The value of the column `messages` for a sentence."""
    return [text.to_mapping()] if isinstance(text, Message) else None
