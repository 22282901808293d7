"""A job's progress: at most two writes a second, whatever the work reports, and a wish to stop is heard."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from engine.errors import Cancelled, StorageError
from engine.jobs.progress import LOOK_SECONDS, RowProgress, StopReason, plain
from engine.store import JobRow, Store, tables


@pytest.fixture
def store(store_url: str) -> Store:
    return Store(store_url)


@pytest.fixture
def job(store: Store) -> JobRow:
    store.jobs.enqueue("count", {})
    claimed = store.jobs.claim("here:1:a")
    assert claimed is not None
    return claimed


def test_thousands_of_reports_are_few_writes_and_the_last_one_is_kept(
    store: Store, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, writes = store.jobs.progress, []
    monkeypatch.setattr(store.jobs, "progress", lambda *key, **values: writes.append(1) or write(*key, **values))
    with RowProgress(store, job) as progress:
        progress.begin("training", 2, 4)
        begin, number = time.monotonic(), 0
        while len(writes) < 2 or number <= 1000:
            number += 1
            assert time.monotonic() < begin + 300
            progress.advance(number, 10**7, "sentences")
            progress.metrics({"step": number, "loss": np.float32(2.5)})
            progress.metrics({"valid_loss": 3.0})
    assert len(writes) <= 2 + (time.monotonic() - begin) / LOOK_SECONDS, "one at each look, one at the start and one at the end"
    row = store.jobs.get(job.id)
    assert (row.step, row.step_index, row.steps, row.done, row.note) == ("training", 2, 4, number, "sentences")
    assert row.metrics == {"step": number, "loss": 2.5, "valid_loss": 3.0}
    assert row.eta is not None


def _stopped(progress: RowProgress, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        progress.advance(1, 2)
        time.sleep(0.01)


def test_a_cancelled_job_hears_of_it(store: Store, job: JobRow) -> None:
    with RowProgress(store, job) as progress:
        progress.begin("training")
        store.jobs.cancel(job.id)
        with pytest.raises(Cancelled):
            _stopped(progress)
    assert progress.stop_reason == StopReason.CANCEL


def test_a_job_that_was_given_to_another_attempt_stops_and_writes_nothing(store: Store, job: JobRow) -> None:
    with RowProgress(store, job) as progress:
        progress.begin("training")
        store.jobs.interrupt(job.id, job.attempt, "given up for dead")
        store.jobs.resume(job.id)
        with pytest.raises(Cancelled):
            _stopped(progress)
    assert progress.stop_reason == StopReason.LOST
    assert (store.jobs.get(job.id).state, store.jobs.get(job.id).step) == ("queued", "")


def test_a_busy_database_does_not_stop_the_work(store: Store, job: JobRow, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(id: int) -> JobRow:
        raise StorageError("busy")

    with monkeypatch.context() as patch:
        patch.setattr(store.jobs, "get", busy)
        with RowProgress(store, job) as progress:
            progress.begin("training")
            _stopped(progress, 0.8)
            progress.advance(7, 9)
    assert store.jobs.get(job.id).done == 7


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_what_is_plain_is_strict_json(value: object) -> None:
    import json

    assert json.loads(json.dumps(plain(value), allow_nan=False)) == plain(value)


def test_numbers_of_numpy_are_unwrapped() -> None:
    values = {"a": np.float32(0.5), "b": np.int64(3), "c": np.array([1.0]), "d": Path("x"), "e": np.float64("nan")}
    assert plain(values) == {"a": 0.5, "b": 3, "c": 1.0, "d": "x", "e": None}


def _turned_back(store: Store, job: JobRow, seconds: float) -> JobRow:
    """The job as if its attempt had begun earlier."""
    row = store.jobs.get(job.id)
    assert row.started is not None
    with store.write() as session:
        earlier = row.started - datetime.timedelta(seconds=seconds)
        session.execute(update(tables.Job).where(tables.Job.id == job.id).values(started=earlier))
    return store.jobs.get(job.id)


def _attempt(store: Store, step: str, seconds: float) -> JobRow:
    """The waiting job is at work in that step, and has been for that long."""
    claimed = store.jobs.claim("here:1:a")
    assert claimed is not None
    with RowProgress(store, claimed) as progress:
        progress.begin(step, 0, 2)
    return _turned_back(store, claimed, seconds)


def test_the_time_of_a_job_is_that_of_all_its_attempts(store: Store) -> None:
    number = store.jobs.enqueue("count", {}).id
    assert store.jobs.get(number).seconds is None
    first = _attempt(store, "reading", 60)
    assert store.jobs.give_way(number, first.attempt)
    assert store.jobs.get(number).seconds == pytest.approx(60, abs=5), "while it waits again"
    second = _attempt(store, "training", 600)
    assert second.seconds == pytest.approx(660, abs=5)
    store.jobs.cancelled(number, second.attempt)
    assert store.jobs.resume(number).seconds == pytest.approx(660, abs=5)
    third = _attempt(store, "training", 180)  # the step that the last attempt was in, once more
    store.jobs.finish(number, third.attempt)
    assert store.jobs.get(number).seconds == pytest.approx(840, abs=5)


def test_what_a_lost_job_did_not_work_is_no_time_of_it(store: Store) -> None:
    store.jobs.enqueue("count", {})
    job = _attempt(store, "training", 7200)
    with store.write() as session:  # its process was gone after an hour; the machine was switched on an hour later
        beat = update(tables.Job).where(tables.Job.id == job.id)
        session.execute(beat.values(heartbeat=tables.now() - datetime.timedelta(hours=1)))
    store.jobs.interrupt_stale(lambda row: False, "gone")
    assert store.jobs.get(job.id).seconds == pytest.approx(3600, abs=5)
    assert store.jobs.resume(job.id).seconds == pytest.approx(3600, abs=5)
