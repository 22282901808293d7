"""What a job takes of the machine, as a row beside its own."""

from __future__ import annotations

import pytest

from engine.jobs.progress import RowProgress
from engine.jobs.resource_usage import UsageMeter
from engine.store import Store
from tests.waiting import until


def test_the_newest_figures_stay_and_the_peak_never_falls(store_url: str) -> None:
    store = Store(store_url)
    job = store.jobs.enqueue("count", {})
    assert store.usage.get(job.id) is None
    store.usage.note(job.id, cpu=180.0, memory=5_000_000_000, peak=6_000_000_000)
    store.usage.note(job.id, cpu=20.0, memory=1_000_000_000, peak=1_000_000_000, gpu=7, gpu_total=9)
    row = store.usage.get(job.id)
    assert row is not None
    assert (row.cpu, row.memory, row.peak, row.gpu, row.gpu_total) == (20.0, 1_000_000_000, 6_000_000_000, 7, 9)
    store.jobs.delete(job.id)
    assert store.usage.get(job.id) is None, "it goes with its job"
    store.usage.note(job.id, cpu=1.0, memory=1, peak=1)  # a job that was deleted meanwhile
    assert store.usage.get(job.id) is None


@pytest.mark.slow
def test_a_job_says_what_it_takes_while_it_works(store_url: str) -> None:
    store = Store(store_url)
    store.jobs.enqueue("count", {})
    job = store.jobs.claim("here:1:a")
    assert job is not None
    with RowProgress(store, job) as progress:
        progress.begin("Counting")
        row = until(lambda: store.usage.get(job.id))
    assert row.memory > 10 * 2**20
    assert row.peak >= row.memory


def test_a_measure_is_taken_every_two_seconds() -> None:
    assert UsageMeter().measure() is None
