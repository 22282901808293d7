"""The queue: each change of state happens once, whoever else is at it."""

from __future__ import annotations

import datetime
import multiprocessing
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from engine.errors import InputError
from engine.store import JobRow, JobState, Store, tables


def _running(store: Store, **arguments: object) -> JobRow:
    store.jobs.enqueue("count", arguments)
    job = store.jobs.claim("here:1:a")
    assert job is not None
    return job


def test_first_come_first_served(store: Store) -> None:
    earlier, later = store.jobs.enqueue("count", {"until": 3}), store.jobs.enqueue("count", {})
    first = store.jobs.claim("here:1:a", pid=1)
    assert first is not None
    assert (first.id, first.state, first.worker, first.arguments) == (earlier.id, "running", "here:1:a", {"until": 3})
    assert first.started is not None
    second = store.jobs.claim("here:2:b")
    assert second is not None
    assert second.id == later.id
    assert store.jobs.claim("here:1:a") is None
    assert [row.id for row in store.jobs.list(states=["running"])] == [later.id, earlier.id]


def _claim_all(url: str) -> list[int]:
    store, result, empty = Store(url), [], 0
    while empty < 3:
        job = store.jobs.claim("racer")
        if job is None:
            empty += 1
        else:
            result.append(job.id)
    return result


@pytest.mark.slow
def test_racing_processes_never_claim_one_job_twice(store: Store) -> None:
    job_ids = [store.jobs.enqueue("count", {}).id for _ in range(80)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        parts = pool.map(_claim_all, [str(store.url)] * 2)
    assert sorted(number for part in parts for number in part) == job_ids


def test_racing_threads_never_claim_one_job_twice(store: Store) -> None:
    job_ids = [store.jobs.enqueue("count", {}).id for _ in range(60)]
    with ThreadPoolExecutor(6) as pool:
        parts = list(pool.map(_claim_all, [str(store.url)] * 6))
    assert sorted(number for part in parts for number in part) == job_ids


def test_racing_endings_agree_on_one(store: Store) -> None:
    job = _running(store)
    key = (job.id, job.attempt)
    ways = [
        lambda: store.jobs.finish(*key, {"ok": True}),
        lambda: store.jobs.fail(*key, "no"),
        lambda: store.jobs.cancelled(*key),
        lambda: store.jobs.interrupt(*key, "gone"),
    ]
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: ways[number % 4](), range(16)))
    assert Counter(won)[True] == 1


def test_one_job_of_a_project_at_a_time(store: Store) -> None:
    project, other_project = (store.projects.create(name, "en", "zh", "base") for name in "ab")
    first = store.jobs.enqueue("prepare", {}, project_id=project.id)
    second = store.jobs.enqueue("customize", {}, project_id=project.id)
    other = store.jobs.enqueue("prepare", {}, project_id=other_project.id)
    claimed = [store.jobs.claim("w"), store.jobs.claim("w"), store.jobs.claim("w")]
    assert [row and row.id for row in claimed] == [first.id, other.id, None]
    store.jobs.finish(first.id, first.attempt)
    last = store.jobs.claim("w")
    assert last is not None
    assert last.id == second.id
    with pytest.raises(InputError, match="A job of the project a is running"):
        store.projects.delete(project.id)


def test_steps_of_one_number_do_not_send_the_figure_back(store: Store) -> None:
    job = _running(store)

    def shown(names: str, index: int, done: float, earlier_attempt: bool = False) -> float:
        attempts = [job.attempt - earlier_attempt] * (len(names) - 1) + [job.attempt]
        trail = [{"step": name, "index": index, "attempt": attempt} for name, attempt in zip(names, attempts, strict=True)]
        values = {"step": names[-1], "step_index": index, "steps": 4, "done": done, "total": 10, "trail": trail}
        assert store.jobs.progress(job.id, job.attempt, **values)
        return store.jobs.get(job.id).fraction

    assert shown("a", 2, 5) == pytest.approx(2.5 / 4)
    assert shown("ab", 2, 1) == pytest.approx(3 / 4)  # of what follows nobody knows how much there is
    assert shown("ab", 2, 1, earlier_attempt=True) == pytest.approx(2.1 / 4)
    assert shown("ab", 3, 1) == pytest.approx(3.1 / 4)  # not done before its end


def test_progress_is_seen_by_others_and_counts_as_a_sign_of_life(store: Store) -> None:
    job = _running(store)
    assert store.jobs.progress(
        job.id, job.attempt, step="training", step_index=2, steps=4, done=30, total=60, eta=12.5, metrics={"loss": 2.5}
    )
    seen = Store(str(store.url)).jobs.get(job.id)
    assert (seen.step, seen.done, seen.total, seen.eta, seen.metrics) == ("training", 30, 60, 12.5, {"loss": 2.5})
    assert seen.fraction == pytest.approx(2.5 / 4)
    assert seen.heartbeat is not None
    assert job.heartbeat is not None
    assert seen.heartbeat > job.heartbeat
    assert store.jobs.finish(job.id, job.attempt, {"plugin": "p.zip"})
    done = store.jobs.get(job.id)
    assert (done.state, done.fraction, done.result, done.pid) == ("succeeded", 1.0, {"plugin": "p.zip"}, None)
    assert done.seconds is not None
    assert not done.active


def test_cancelling(store: Store) -> None:
    waiting = store.jobs.enqueue("count", {})
    assert store.jobs.cancel(waiting.id).state == JobState.CANCELLED
    assert store.jobs.claim("w") is None
    job = _running(store)
    row = store.jobs.cancel(job.id)
    assert (row.state, row.cancel_requested) == (JobState.RUNNING, True)
    store.jobs.finish(job.id, job.attempt)
    assert store.jobs.cancel(job.id).state == JobState.SUCCEEDED  # too late, and no harm done
    with pytest.raises(InputError, match="There is no job 99"):
        store.jobs.cancel(99)


def test_resuming_queues_the_same_work_again_and_shuts_the_old_attempt_out(store: Store) -> None:
    job = _running(store, until=5)
    with pytest.raises(InputError, match=r"Job \d+ is running: only an interrupted, failed or cancelled job"):
        store.jobs.resume(job.id)
    store.jobs.interrupt(job.id, job.attempt, "The power went.")
    assert store.jobs.get(job.id).error == "The power went."
    again = store.jobs.resume(job.id)
    assert (again.state, again.attempt, again.arguments, again.error) == ("queued", 2, {"until": 5}, "")
    claimed = store.jobs.claim("w")
    assert claimed is not None
    assert claimed.attempt == 2
    assert not store.jobs.heartbeat(job.id, 1)
    assert not store.jobs.progress(job.id, 1, step="training")
    assert not store.jobs.finish(job.id, 1)
    assert store.jobs.finish(job.id, 2)
    with pytest.raises(InputError, match="is succeeded"):
        store.jobs.resume(job.id)


def test_what_gives_no_sign_of_life_is_interrupted(store: Store) -> None:
    job, other = _running(store), _running(store)
    cancelled = _running(store)
    store.jobs.cancel(cancelled.id)
    old = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1)
    with store.write() as session:
        session.execute(update(tables.Job).where(tables.Job.id != other.id).values(heartbeat=old))

    def alive(row: JobRow) -> bool:
        return row.heartbeat is not None and row.heartbeat > old

    result = store.jobs.interrupt_stale(alive, "Its worker is gone.")
    assert {row.id: (row.state, row.error) for row in result} == {
        job.id: ("interrupted", "Its worker is gone."),
        cancelled.id: ("cancelled", ""),
    }
    assert store.jobs.get(other.id).state == "running"


def test_a_sign_of_life_in_the_last_moment_saves_a_job(store: Store) -> None:
    job = _running(store)

    def beats_while_looked_at(row: JobRow) -> bool:
        store.jobs.heartbeat(job.id, job.attempt)
        return False

    assert store.jobs.interrupt_stale(beats_while_looked_at, "gone") == []
    assert store.jobs.get(job.id).state == "running"


def test_a_job_at_work_is_not_deleted(store: Store) -> None:
    job = _running(store)
    with pytest.raises(InputError, match="Cancel it first"):
        store.jobs.delete(job.id)
    store.jobs.fail(job.id, job.attempt, "no")
    store.jobs.delete(job.id)
    assert store.jobs.list() == []


def test_of_many_jobs_only_those_asked_for_are_read(store: Store) -> None:
    project_id, other_id = (store.projects.create(name, "en", "zh", "base").id for name in "ab")
    first = store.jobs.enqueue("prepare", {}, project_id=project_id)
    runs = [store.jobs.enqueue("customize", {}, project_id=project_id).id for _ in range(5)]
    last = store.jobs.enqueue("prepare", {}, project_id=project_id)
    other = store.jobs.enqueue("customize", {}, project_id=other_id)
    store.jobs.enqueue("count", {})  # of no project
    assert [row.id for row in store.jobs.list(project_id, kinds=["customize"], limit=2, offset=1)] == [runs[3], runs[2]]
    assert (store.jobs.count(project_id, kinds=["customize"]), store.jobs.count(other_id), store.jobs.count()) == (5, 1, 9)
    assert store.jobs.count(project_id, states=["running"]) == 0
    assert store.jobs.newest(project_id, "prepare") == last
    assert store.jobs.newest(other_id, "prepare", "compare") is None
    store.jobs.cancel(last.id)
    assert store.jobs.newest(project_id, "prepare", begun=True) == first, "one that was cancelled while it waited never began"
    assert {project: row.id for project, row in store.jobs.last_of_each().items()} == {project_id: last.id, other_id: other.id}
    assert store.jobs.oldest_waiting() == first


def test_jobs_are_counted_and_their_durations_told_without_their_rows(store: Store) -> None:
    assert (store.jobs.oldest_waiting(), store.jobs.counted(), store.jobs.durations()) == (None, {}, {})
    done, failed = _running(store), _running(store)
    store.jobs.finish(done.id, done.attempt)
    store.jobs.fail(failed.id, failed.attempt, "no")
    store.jobs.enqueue("prepare", {})
    assert store.jobs.counted() == {("count", "succeeded"): 1, ("count", "failed"): 1, ("prepare", "queued"): 1}
    assert store.jobs.durations() == {"count": [store.jobs.get(done.id).seconds]}
