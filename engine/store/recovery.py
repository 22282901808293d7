"""What happens to a job that did not succeed: whether it is tried again, and when it is given up.

A job that lost its process, or met an error that may pass, is queued again by itself after a pause that doubles. It is
given up after so many attempts in a row that got no further than the one before, and kept as failed, with its log; a user
can resume it all the same.
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
AGAIN: Json = {  # of a job that is queued again
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
    """Endings without success, and what follows from them."""

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
        """It ended without being done or failed, for the reason in one sentence; cancelled if the user had asked for that.

        `where`: further conditions of the change. `lost`: nobody asked for it, so that it counts as an attempt of the job.
        """
        asked = tables.Job.cancel_requested
        if self._end(id, attempt, JobState.CANCELLED, asked.is_(True), *where):
            return True
        values: Json = {"error": error}
        if lost:
            with self._store.read() as session:
                record = session.get(tables.Job, id)
                if record is not None:
                    values |= _counted(record)
        return self._end(id, attempt, JobState.INTERRUPTED, asked.is_(False), *where, **values)

    def retry(self, id: int, attempt: int, error: str, *, max_retries: int, seconds: float) -> bool:
        """It met an error that may pass: queue it again after a pause, `max_retries` times in a row; then it has failed.

        `seconds`: the first pause; each further one is twice as long. False when the job is no longer this attempt's.
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
        """It stopped for a job that was asked for meanwhile: queue it again, to go on where it was. False when the job is no
        longer this attempt's.
        """
        with self._ending(id, attempt) as record:
            if record is None or record.cancel_requested:
                return record is not None and self._settle(record, JobState.CANCELLED)
            self._again(record, 0.0)
            record.note, record.error = GAVE_WAY, ""
            record.messages = data_of(GAVE_WAY)
            return True

    def requeue(self, *, max_retries: int, seconds: float) -> Sequence[JobRow]:
        """Queue interrupted jobs again, those that were lost more than `max_retries` times in a row end as failed; returns all."""
        job, result = tables.Job, []
        if max_retries <= 0:
            return []
        query = select(job).where(job.state == JobState.INTERRUPTED, job.retries >= 0).order_by(job.id)
        with self._store.read() as session:  # asked every few seconds: nearly always there is none
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
        """Whether a job waits for its time to be tried again."""
        job = tables.Job
        with self._store.read() as session:
            waiting = select(job.id).where(job.state == JobState.QUEUED, job.not_before.is_not(None)).limit(1)
            return session.scalar(waiting) is not None

    def resume(self, id: int) -> JobRow:
        """Queue an interrupted, failed or cancelled job again, with the same arguments and the next attempt.

        Raises InputError when the job is waiting, at work, or done.
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
        """The steps so far, with the time of all attempts at the last: the row's own times become those of the next attempt."""
        steps = list(record.trail)
        if steps:
            steps[-1] = {**steps[-1], "earlier": self._out(record).seconds or 0.0}
        return steps

    @contextlib.contextmanager
    def _ending(self, id: int, attempt: int) -> Iterator[tables.Job | None]:
        """The job at this attempt, locked until the block ends; None where it is no longer this attempt's."""
        with self._store.write() as session:
            record = session.get(tables.Job, id, with_for_update=True)
            there = record is not None and record.attempt == attempt and record.state == JobState.RUNNING
            yield record if there else None

    def _settle(self, record: tables.Job, state: JobState, error: str = "") -> bool:
        record.state, record.error, record.finished, record.pid = state.value, error, tables.now(), None
        record.messages = data_of(error)
        return True

    def _end(self, id: int, attempt: int, state: JobState, *where: ColumnElement[bool], **values: Any) -> bool:
        ended = {"state": state.value, "finished": tables.now(), "pid": None, "messages": data_of(values.get("error"))}
        return self._change(id, attempt, *where, **(values | ended))

    def _change(self, id: int, attempt: int, *where: ColumnElement[bool], **values: Any) -> bool:
        """Set these fields of the job; False when it is no longer this attempt's."""
        job = tables.Job
        with self._store.write(together=True) as session:
            query = update(job).where(job.id == id, job.attempt == attempt, job.state == JobState.RUNNING, *where)
            return count(session.execute(query.values(**values).execution_options(synchronize_session=False))) == 1


def count(result: Any) -> int:
    """How many rows a statement changed."""
    assert isinstance(result, CursorResult)
    return result.rowcount


def _counted(record: tables.Job) -> Json:
    """The attempts in a row that got no further, this one included, and how far the best one got (0 to 1)."""
    part = min(1.0, record.done / record.total) if record.total else 0.0
    reached = min(1.0, (record.step_index + part) / max(1, record.steps))
    further = reached > record.reached + 1e-9
    return {"retries": 1 if further else max(0, record.retries) + 1, "reached": max(reached, record.reached)}


def _given_up(error: str, attempts: int) -> Message:
    return Message(
        "{error} This was attempt {attempts} in a row without progress, so it will not be retried "
        "automatically; resume it once the cause is resolved.",
        error=error,
        attempts=attempts,
    )


def data_of(text: str | None) -> list[Json] | None:
    """What the column `messages` keeps of a sentence."""
    return [text.to_mapping()] if isinstance(text, Message) else None
