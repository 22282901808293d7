"""Killed at any moment, a customization goes on from its last step or checkpoint and ends with the very same weights."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.core.settings import Settings
from engine.jobs import log_tail
from engine.jobs.backends.forking import ForkedProcess, ForkingBackend
from engine.jobs.paths import log_file
from engine.jobs.processes import running
from engine.store import JobRow, Store

KINDS = ["tests.slow.steps_at_once"]
KILLS = int(os.environ.get("TAILORMT_TEST_KILLS", "5"))
LEARNING = {"max_updates": 24, "validate_every": 6, "checkpoint_every": 2, "tokens_per_batch": 256, "warmup": 1}


@pytest.fixture
def start(settings: Settings) -> Callable[[JobRow], ForkedProcess]:
    """Starts the process of a job as a worker does."""
    backend = ForkingBackend()
    payload = {"settings": settings.to_mapping(), "kinds": KINDS}

    def started(job: JobRow) -> ForkedProcess:
        process = backend.start(job, {**payload, "attempt": job.attempt}, log_file(settings, job.id))
        assert isinstance(process, ForkedProcess)
        return process

    return started


def _worked_until_its_end(pid: int) -> float:
    """Seconds of processor time that the process takes until it has ended: what is slow beside it does not count."""
    process = psutil.Process(pid)
    times = []
    with contextlib.suppress(psutil.NoSuchProcess):
        while running(pid):
            spent = process.cpu_times()
            times.append(spent.user + spent.system)
            time.sleep(0.01)
    return times[-1] - times[0] if times else 0.0


def run(store: Store, settings: Settings, start: Callable[[JobRow], ForkedProcess], pause: Callable[[int], float | None]) -> int:
    """Do what is queued as workers do that are lost after `pause(kills)` seconds each; returns how often they were."""
    kills = 0
    while True:
        store.jobs.interrupt_stale(lambda row: False, "The worker was lost.")
        store.jobs.requeue(max_retries=1000, seconds=0.0)
        job = store.jobs.claim(f"here:{kills}")
        if job is None:
            return kills
        process = start(job)
        store.jobs.started(job.id, job.attempt, pid=process.pid, log_path=str(log_file(settings, job.id)))
        seconds = pause(kills)
        if process.wait(600 if seconds is None else seconds) is None:
            assert seconds is not None, "the job does not end"
            if kills % 3 == 2:  # the worker alone was killed: its job hears of it, and may be killed then too
                process._pipe.close()
                process.wait(random.uniform(0, 0.2))
            process.end()
            assert process.wait(120) is not None
            kills += 1
        assert kills < 10 * KILLS, log_tail(store.jobs.get(job.id))


def weights(bundle: Path) -> dict[str, Any]:
    import zipfile

    from safetensors.torch import load

    with zipfile.ZipFile(bundle) as opened:
        names = [name for name in opened.namelist() if name.endswith(".safetensors")]
        return {f"{name}:{key}": value for name in names for key, value in load(opened.read(name)).items()}


def test_kills_at_random_moments_change_no_bit(
    settings: Settings, start: Callable[[JobRow], ForkedProcess], request_for: Callable[..., Any], tmp_path: Path
) -> None:
    import torch

    store = Store(settings.store_url)
    draw = random.Random(20231)

    def enqueue(name: str) -> Path:
        output = tmp_path / f"{name}.zip"
        request = request_for(output, training_options=LEARNING, name="Style")
        store.jobs.enqueue("customize", request.to_mapping())
        return output

    quiet = enqueue("quiet")
    begin = time.monotonic()
    assert run(store, settings, start, lambda kills: None) == 0
    duration = time.monotonic() - begin
    (job,) = store.jobs.list()
    assert job.state == "succeeded", log_tail(job)
    expected = weights(quiet)
    kills, outputs = 0, []
    while kills < KILLS:
        outputs.append(enqueue(f"killed-{len(outputs)}"))
        # Longer from kill to kill, since the machine may be slower now than when `duration` was measured.
        kills += run(store, settings, start, lambda kills: draw.uniform(0, 0.5 * duration * 1.04**kills))
    assert {row.state for row in store.jobs.list()} == {"succeeded"}
    for output in outputs:
        result = weights(output)
        assert result.keys() == expected.keys()
        for name, value in result.items():
            assert torch.equal(value, expected[name]), (output.name, name)
    leftovers = [path for path in tmp_path.glob("*.zip*") if path.suffix != ".zip"]
    assert leftovers == []
    print(f"{kills} kills, {len(outputs)} runs of {duration:.1f} s each, {max(row.attempt for row in store.jobs.list())} attempts")


def test_a_cancel_ends_the_process_within_two_seconds_of_its_work_at_every_step(
    settings: Settings, request_for: Callable[..., Any], tmp_path: Path
) -> None:
    """Each attempt is cancelled in a step that none was cancelled in."""
    import threading

    from engine.jobs import worker

    store, stop = Store(settings.store_url), threading.Event()
    request = request_for(tmp_path / "style.zip", training_options=LEARNING | {"max_updates": 40}, name="Style")
    job = store.jobs.enqueue("customize", request.to_mapping())
    thread = threading.Thread(target=worker.run, args=(settings,), kwargs={"poll": 0.02, "stop": stop, "kinds": KINDS})
    thread.start()
    seconds: dict[str, float] = {}
    try:
        while True:
            row = store.jobs.get(job.id)
            if row.state == "running" and row.pid and (row.step or "Loading") not in seconds:
                step = row.step or "Loading"
                store.jobs.cancel(job.id)
                seconds[step] = _worked_until_its_end(row.pid)
                while store.jobs.get(job.id).active:
                    time.sleep(0.01)
                assert store.jobs.get(job.id).state in ("cancelled", "succeeded")
            elif row.resumable:
                store.jobs.resume(job.id)
            if row.state == "succeeded":
                break
            time.sleep(0.005)
    finally:
        stop.set()
        thread.join(120)
    print({step: round(value, 2) for step, value in seconds.items()})
    # A cancel is seen within half a second; of so small a job the next step, or two, may be over by then.
    assert len(seconds) >= 4, seconds
    assert max(seconds.values()) < 2, seconds


def test_a_job_that_runs_twice_makes_one_plugin(
    settings: Settings, start: Callable[[JobRow], ForkedProcess], request_for: Callable[..., Any], tiny: Path, tmp_path: Path
) -> None:
    import torch
    from sqlalchemy import update

    from engine.jobs import enqueue
    from engine.jobs.progress import steps_of
    from engine.store import tables

    store = Store(settings.store_url)
    request = request_for(tmp_path / "unused.zip", training_options=LEARNING).to_mapping()
    project = store.projects.create("twice", "en", "zh", str(tiny))
    arguments = {name: request[name] for name in ("samples", "method", "budget")} | {
        name: value for name, value in request.items() if name.endswith("_options")
    }
    job = enqueue(store, "customize", arguments, project_id=project.id)
    assert run(store, settings, start, lambda kills: None) == 0
    done = store.jobs.get(job.id)
    assert done.state == "succeeded", done.error
    assert {step.state for step in steps_of(done)} == {"succeeded"}
    (plugin,) = store.plugins.list(project.id)
    assert plugin.job_id == job.id
    bundle = Path(plugin.path)
    first = weights(bundle)
    # Its worker was lost after all was done, before that was written down: the job is done again, and changes nothing.
    with store.write() as session:
        session.execute(update(tables.Job).where(tables.Job.id == job.id).values(state="interrupted"))
    run(store, settings, start, lambda kills: None)
    again = store.jobs.get(job.id)
    assert (again.state, again.attempt) == ("succeeded", 2)
    assert [row.path for row in store.plugins.list(project.id)] == [str(bundle)]
    assert all(torch.equal(value, first[name]) for name, value in weights(bundle).items())
    assert [path.name for path in bundle.parent.iterdir()] == [bundle.name]
