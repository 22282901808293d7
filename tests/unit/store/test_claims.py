"""Many workers at one queue: every job done once, one of a project at a time, and nobody waits for another's claim."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from engine.errors import InputError
from engine.store import JobState, Store, tables
from tests.databases import TEMPLATE, Postgres

CLAIMERS = 12


def test_many_claimers_do_every_job_once_and_one_of_a_project_at_a_time(store_url: str) -> None:
    store = Store(store_url)
    projects = [store.projects.create(f"p{number}", "en", "zh", "base").id for number in range(4)]
    job_ids = [store.jobs.enqueue("count", {}, project_id=projects[n % 4] if n % 5 else None).id for n in range(60)]
    lock, at_work, done = threading.Lock(), Counter[int](), Counter[int]()
    clashes: list[int] = []

    def work(name: int) -> None:
        mine = Store(store_url)
        while sum(done.values()) < len(job_ids):
            job = mine.jobs.claim(f"here:{name}:x")
            if job is None:
                time.sleep(0.005)
                continue
            if job.project_id is not None:
                with lock:
                    at_work[job.project_id] += 1
                    clashes.extend([job.id] if at_work[job.project_id] > 1 else [])
            time.sleep(0.002)
            if job.project_id is not None:
                with lock:
                    at_work[job.project_id] -= 1
            assert mine.jobs.finish(job.id, job.attempt)
            with lock:
                done[job.id] += 1
        mine.close()

    with ThreadPoolExecutor(CLAIMERS) as pool:
        for end in [pool.submit(work, number) for number in range(CLAIMERS)]:
            end.result(timeout=120)
    assert clashes == []
    assert sorted(done) == job_ids
    assert set(done.values()) == {1}
    assert {row.state for row in store.jobs.list()} == {JobState.SUCCEEDED}


def test_a_check_before_a_write_still_holds_when_it_writes(store_url: str) -> None:
    """Two that find nobody there cannot both enter: the same on both databases."""
    store = Store(store_url)
    start = threading.Barrier(CLAIMERS)

    def enter(number: int) -> bool:
        mine = Store(store_url)
        start.wait()
        return mine.workers.register_alone(f"here:{number}:x", "here", number, alive=lambda row: True)

    with ThreadPoolExecutor(CLAIMERS) as pool:
        assert sum(pool.map(enter, range(CLAIMERS))) == 1
    assert len(store.workers.list()) == 1


def test_a_project_is_never_deleted_under_a_job_that_begins(store_url: str) -> None:
    store = Store(store_url)
    for _ in range(10):
        project = store.projects.create("p", "en", "zh", "base").id
        job = store.jobs.enqueue("count", {}, project_id=project)
        start = threading.Barrier(2)

        def delete(project: int = project, start: threading.Barrier = start) -> bool:
            start.wait()
            try:
                store.projects.delete(project)
            except InputError:
                return False
            return True

        def claim(start: threading.Barrier = start) -> bool:
            start.wait()
            return store.jobs.claim("w") is not None

        with ThreadPoolExecutor(2) as pool:
            deleted, claimed = pool.submit(delete), pool.submit(claim)
            assert deleted.result() != claimed.result(), "one of them, not both"
        if claimed.result():
            store.jobs.finish(job.id, 1)


@pytest.fixture
def on_postgres(postgres: Postgres) -> Callable[[], Store]:
    url = postgres.database(TEMPLATE)
    return lambda: Store(url)


def test_a_claim_waits_for_no_other_on_postgresql(on_postgres: Callable[[], Store]) -> None:
    store, other = on_postgres(), on_postgres()
    first, second = (store.jobs.enqueue("count", {}) for _ in range(2))
    with store.write(together=True) as session:
        held = select(tables.Job.id).where(tables.Job.id == first.id).with_for_update()
        assert session.scalar(held) == first.id
        claimed = other.jobs.claim("w")
        assert claimed is not None
        assert claimed.id == second.id
        assert other.jobs.claim("w") is None  # one that waited for the lock would fail after BUSY_SECONDS
    claimed = other.jobs.claim("w")
    assert claimed is not None
    assert claimed.id == first.id
