"""Which job is next, and what becomes of one that does not succeed: on SQLite and on PostgreSQL."""

from __future__ import annotations

import datetime

import pytest
from sqlalchemy import update

from engine.jobs.registry import KINDS
from engine.store import JobRow, Store, tables
from engine.store.queue import ASKED, AUTOMATIC, LONG


def claim(store: Store, *devices: str) -> JobRow:
    job = store.jobs.claim("here:1:a", devices=devices or None)
    assert job is not None
    return job


def turn_back(store: Store, seconds: float) -> None:
    """Let so much time pass for jobs that wait for theirs."""
    with store.write() as session:
        for record in session.query(tables.Job).filter(tables.Job.not_before.is_not(None)):
            assert record.not_before is not None
            record.not_before -= datetime.timedelta(seconds=seconds)


def test_what_somebody_waits_for_comes_before_what_takes_hours_and_that_before_what_starts_by_itself(store: Store) -> None:
    priorities = (AUTOMATIC, LONG, ASKED, ASKED)
    automatic, long, soon, later = (store.jobs.enqueue("count", {}, priority=number) for number in priorities)
    assert [claim(store).id for _ in range(4)] == [soon.id, later.id, long.id, automatic.id]


def test_what_starts_by_itself_gives_way_to_all_that_users_start_and_training_only_to_what_is_waited_for(store: Store) -> None:
    store.jobs.enqueue("count", {}, priority=AUTOMATIC)
    automatic = claim(store)
    other = store.jobs.enqueue("count", {}, priority=AUTOMATIC)
    assert store.jobs.first_before(automatic, anyone=True) is None
    long = store.jobs.enqueue("count", {}, owner="ann")
    assert store.jobs.first_before(automatic, anyone=True) == long
    assert claim(store).id == long.id
    assert store.jobs.first_before(long, anyone=True) is None
    store.jobs.hasten(other.id)
    hastened = store.jobs.first_before(long, anyone=True)
    assert hastened is not None
    assert (hastened.id, hastened.priority) == (other.id, ASKED)
    assert store.jobs.hasten(other.id, LONG).priority == ASKED, "it is never put back"


def test_what_a_user_starts_has_a_higher_priority_than_the_same_work_that_starts_by_itself() -> None:
    by_itself = {name for name, kind in KINDS.items() if kind.priority == AUTOMATIC}
    assert by_itself == {"preview"}
    assert {name for name, kind in KINDS.items() if kind.priority == LONG} == {"customize", "ablate", "translate"}
    assert all(KINDS[name].gives_way_to == "anyone" for name in (*by_itself, "proportions"))


def test_users_take_turns(store: Store) -> None:
    ann = [store.jobs.enqueue("count", {}, owner="ann").id for _ in range(4)]
    bob = [store.jobs.enqueue("count", {}, owner="bob").id for _ in range(2)]
    nobody = store.jobs.enqueue("count", {}).id
    assert [claim(store).id for _ in range(7)] == [ann[0], bob[0], nobody, ann[1], bob[1], ann[2], ann[3]]
    late = store.jobs.enqueue("count", {}, owner="bob").id
    assert claim(store).id == late


def test_projects_take_turns_where_nobody_signs_in(store: Store) -> None:
    project_id, other_id = (store.projects.create(name, "en", "zh", "base").id for name in "ab")
    first = [store.jobs.enqueue("count", {}, project_id=project_id).id for _ in range(3)]
    second = store.jobs.enqueue("count", {}, project_id=other_id).id
    order = []
    for _ in range(4):
        job = claim(store)
        order.append(job.id)
        store.jobs.finish(job.id, job.attempt)
    assert order == [first[0], second, *first[1:]]


def test_a_place_takes_only_what_it_can_do(store: Store) -> None:
    gpu, cpu, any_ = (store.jobs.enqueue("count", {}, device=name).id for name in ("gpu", "cpu", ""))
    assert claim(store, "cpu").id == cpu
    assert claim(store, "", "cpu").id == any_
    assert store.jobs.claim("w", devices=("", "cpu")) is None
    assert claim(store, "", "gpu").id == gpu


def test_an_error_that_may_pass_is_tried_again_after_pauses_that_double(store: Store) -> None:
    job = store.jobs.enqueue("count", {})
    pauses = []
    for attempt in (1, 2, 3):
        running = claim(store)
        assert running.attempt == attempt
        assert store.jobs.retry(job.id, attempt, "The service gave no answer.", max_retries=3, seconds=10)
        assert not store.jobs.retry(job.id, attempt, "twice", max_retries=3, seconds=10)
        waiting = store.jobs.get(job.id)
        assert (waiting.state, waiting.error, waiting.retries) == ("queued", "The service gave no answer.", attempt)
        assert waiting.not_before is not None
        pauses.append((waiting.not_before - tables.now()).total_seconds())
        assert store.jobs.claim("w") is None
        turn_back(store, 1000)
    assert pauses == pytest.approx([10, 20, 40], abs=5)
    claim(store)
    store.jobs.retry(job.id, 4, "The service gave no answer.", max_retries=3, seconds=10)
    dead = store.jobs.get(job.id)
    assert dead.state == "failed"
    assert dead.error.startswith("The service gave no answer. This was attempt 4 in a row without progress")
    again = store.jobs.resume(job.id)
    assert (again.retries, again.not_before, again.state) == (0, None, "queued")


def test_a_cancelled_job_is_not_tried_again(store: Store) -> None:
    job = store.jobs.enqueue("count", {})
    claim(store)
    store.jobs.cancel(job.id)
    assert store.jobs.retry(job.id, 1, "The service gave no answer.", max_retries=3, seconds=1)
    assert store.jobs.get(job.id).state == "cancelled"


def test_a_clock_that_was_set_back_does_not_hold_a_job_for_hours(store: Store) -> None:
    store.jobs.enqueue("count", {})
    running = claim(store)
    store.jobs.retry(running.id, 1, "no answer", max_retries=3, seconds=10)
    turn_back(store, -3600)  # as if it had been an hour later then
    assert claim(store).id == running.id
    urgent = store.jobs.enqueue("count", {}, priority=ASKED)
    again = claim(store)
    assert again.id == urgent.id
    store.jobs.retry(again.id, again.attempt, "no answer", max_retries=3, seconds=10)
    turn_back(store, -3600)
    first = store.jobs.first_before(running, anyone=True)
    assert first is not None
    assert first.id == urgent.id


def test_a_lost_job_goes_on_and_is_given_up_only_when_it_gets_no_further(store: Store) -> None:
    job = store.jobs.enqueue("count", {})
    for attempt in range(1, 9):  # each gets further than the one before
        assert claim(store).attempt == attempt
        store.jobs.progress(job.id, attempt, step="training", step_index=1, steps=2, done=attempt, total=10)
        store.jobs.interrupt(job.id, attempt, "The worker ended.", lost=True)
        (row,) = store.jobs.requeue(max_retries=2, seconds=0)
        assert (row.state, row.retries, row.attempt) == ("queued", 1, attempt + 1)
    for attempt in (9, 10):
        claim(store)
        store.jobs.interrupt(job.id, attempt, "The worker ended.", lost=True)
        (row,) = store.jobs.requeue(max_retries=2, seconds=0)
    assert row.state == "failed"
    assert "This was attempt 3 in a row without progress" in row.error
    assert store.jobs.requeue(max_retries=2, seconds=0) == []


def test_a_job_whose_worker_was_told_to_stop_goes_on_at_once_and_it_does_not_count(store: Store) -> None:
    job = store.jobs.enqueue("count", {})
    for attempt in range(1, 6):
        claim(store)
        store.jobs.interrupt(job.id, attempt, "The worker was stopped.")
        assert store.jobs.requeue(max_retries=0, seconds=9) == []  # a user wants no retries
        (row,) = store.jobs.requeue(max_retries=1, seconds=9)
        assert (row.retries, row.not_before) == (0, None)


def test_what_was_interrupted_before_jobs_went_on_by_themselves_waits_for_somebody(store: Store) -> None:
    job = store.jobs.enqueue("count", {})
    claim(store)
    store.jobs.interrupt(job.id, 1, "gone")
    with store.write() as session:
        session.execute(update(tables.Job).values(retries=-1))  # as the revision of the schema leaves it
    assert store.jobs.requeue(max_retries=3, seconds=0) == []
    assert store.jobs.resume(job.id).retries == 0
