"""Killed at any moment, a customization goes on from its last step or checkpoint and ends with the very same weights."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.core.settings import Settings
from engine.jobs.processes import running
from engine.store import JobRow, Store

KILLS = int(os.environ.get("TAILORMT_TEST_KILLS", "5"))
LEARNING = {"max_updates": 24, "validate_every": 6, "checkpoint_every": 2, "tokens_per_batch": 256, "warmup": 1}


class Nursery:
    """Starts the processes of jobs (see nursery.py)."""

    def __init__(self, log: Path) -> None:
        position = Path(__file__).with_name("nursery.py")
        self.process = subprocess.Popen(
            [sys.executable, str(position), str(log)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip
        self.log = log
        assert self.hear() == "ready"

    def start(self, job: JobRow, settings: Settings) -> int:
        import json

        payload = {"settings": settings.to_mapping(), "kinds": [], "attempt": job.attempt}
        return int(self.ask(f"{job.id} {json.dumps(payload)}"))

    def orphan(self, pid: int) -> None:
        self.ask(f"orphan {pid}")

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    result = Nursery(tmp_path / "jobs.log")
    yield result
    result.process.kill()
    result.process.wait()


def ended(pid: int, seconds: float) -> bool:
    """Wait so long for the end of a process; whether it came."""
    deadline = time.monotonic() + seconds
    while running(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.002)
    return True


def run(store: Store, settings: Settings, nursery: Nursery, pause: Callable[[int], float | None]) -> int:
    """Do what is queued as workers do that are lost after `pause(kills)` seconds each; returns how often they were."""
    kills = 0
    while True:
        store.jobs.interrupt_stale(lambda row: False, "The worker was lost.")
        store.jobs.requeue(most=1000, seconds=0.0)
        job = store.jobs.claim(f"here:{kills}")
        if job is None:
            return kills
        pid = nursery.start(job, settings)
        store.jobs.started(job.id, job.attempt, pid=pid, log_path=str(nursery.log))
        seconds = pause(kills)
        if not ended(pid, 600 if seconds is None else seconds):
            assert seconds is not None, "the job does not end"
            if kills % 3 == 2:  # the worker alone was killed: its job hears of it, and may be killed then too
                nursery.orphan(pid)
                ended(pid, random.uniform(0, 0.2))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            assert ended(pid, 120)
            kills += 1
        assert kills < 10 * KILLS, nursery.log.read_text(encoding="utf-8")[-4000:]


def weights(bundle: Path) -> dict[str, Any]:
    import zipfile

    from safetensors.torch import load

    with zipfile.ZipFile(bundle) as opened:
        names = [name for name in opened.namelist() if name.endswith(".safetensors")]
        return {f"{name}:{key}": value for name in names for key, value in load(opened.read(name)).items()}


def test_kills_at_random_moments_change_no_bit(
    settings: Settings, nursery: Nursery, request_for: Callable[..., Any], tmp_path: Path
) -> None:
    import torch

    store = Store(settings.store_url)
    draw = random.Random(20231)

    def enqueue(name: str) -> Path:
        output = tmp_path / f"{name}.zip"
        made = request_for(output, training_options=LEARNING, name="Style")
        store.jobs.enqueue("customize", made.to_mapping())
        return output

    quiet = enqueue("quiet")
    begin = time.monotonic()
    assert run(store, settings, nursery, lambda kills: None) == 0
    whole = time.monotonic() - begin
    (job,) = store.jobs.list()
    assert job.state == "succeeded", nursery.log.read_text(encoding="utf-8")[-4000:]
    expected = weights(quiet)
    kills, outputs = 0, []
    while kills < KILLS:
        outputs.append(enqueue(f"killed-{len(outputs)}"))
        # Longer from kill to kill, since the machine may be slower now than when `whole` was measured.
        kills += run(store, settings, nursery, lambda kills: draw.uniform(0, 0.5 * whole * 1.04**kills))
    assert {row.state for row in store.jobs.list()} == {"succeeded"}
    for output in outputs:
        result = weights(output)
        assert result.keys() == expected.keys()
        for name, value in result.items():
            assert torch.equal(value, expected[name]), (output.name, name)
    leftovers = [path for path in tmp_path.glob("*.zip*") if path.suffix != ".zip"]
    assert leftovers == []
    print(
        f"{kills} kills, {len(outputs)} runs of {whole:.1f} s each, {max(row.attempt for row in store.jobs.list())} attempts"
    )


@pytest.mark.alone
def test_a_cancel_ends_the_process_within_two_seconds_at_every_step(
    settings: Settings,
    nursery: Nursery,
    request_for: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that has its jobs begun by the nursery; each attempt is cancelled in a step that none was cancelled in."""
    import threading

    from engine.jobs import worker
    from engine.jobs.backends import local

    class Forked:
        """A process of the nursery, as the worker treats those that it starts itself."""

        lost = False

        def __init__(self, pid: int) -> None:
            self.pid: int | None = pid

        def poll(self) -> int | None:
            assert self.pid is not None
            return None if running(self.pid) else 0

        def wait(self, seconds: float) -> int | None:
            assert self.pid is not None
            ended(self.pid, seconds)
            return self.poll()

        def ask(self) -> None:
            assert self.pid is not None
            nursery.orphan(self.pid)

        def terminate(self) -> None:
            self._signal(signal.SIGTERM)

        def end(self) -> None:
            self._signal(signal.SIGKILL)
            self.wait(10)

        def _signal(self, number: int) -> None:
            assert self.pid is not None
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def start(self: Any, job: JobRow, payload: dict[str, Any], log: Path) -> Forked:
        return Forked(nursery.start(job, Settings.from_mapping(payload["settings"])))

    monkeypatch.setattr(local.LocalBackend, "start", start)
    store, stop = Store(settings.store_url), threading.Event()
    made = request_for(tmp_path / "style.zip", training_options=LEARNING | {"max_updates": 40}, name="Style")
    job = store.jobs.enqueue("customize", made.to_mapping())
    thread = threading.Thread(target=worker.run, args=(settings,), kwargs={"poll": 0.02, "stop": stop})
    thread.start()
    seconds: dict[str, float] = {}
    try:
        while True:
            row = store.jobs.get(job.id)
            if row.state == "running" and row.pid and (row.step or "Loading") not in seconds:
                begin, step = time.monotonic(), row.step or "Loading"
                store.jobs.cancel(job.id)
                assert ended(row.pid, 120)
                seconds[step] = time.monotonic() - begin
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
    settings: Settings, nursery: Nursery, request_for: Callable[..., Any], tiny: Path, tmp_path: Path
) -> None:
    import torch
    from sqlalchemy import update

    from engine.jobs import enqueue
    from engine.jobs.progress import steps_of
    from engine.store import tables

    store = Store(settings.store_url)
    made = request_for(tmp_path / "unused.zip", training_options=LEARNING).to_mapping()
    project = store.projects.create("twice", "en", "zh", str(tiny))
    arguments = {name: made[name] for name in ("samples", "method", "budget")} | {
        name: value for name, value in made.items() if name.endswith("_options")
    }
    job = enqueue(store, "customize", arguments, project_id=project.id)
    assert run(store, settings, nursery, lambda kills: None) == 0
    done = store.jobs.get(job.id)
    assert done.state == "succeeded", done.error
    assert {one.state for one in steps_of(done)} == {"succeeded"}
    (plugin,) = store.plugins.list(project.id)
    assert plugin.job_id == job.id
    bundle = Path(plugin.path)
    first = weights(bundle)
    # Its worker was lost after all was done, before that was written down: the job is done again, and changes nothing.
    with store.write() as session:
        session.execute(update(tables.Job).where(tables.Job.id == job.id).values(state="interrupted"))
    run(store, settings, nursery, lambda kills: None)
    again = store.jobs.get(job.id)
    assert (again.state, again.attempt) == ("succeeded", 2)
    assert [row.path for row in store.plugins.list(project.id)] == [str(bundle)]
    assert all(torch.equal(value, first[name]) for name, value in weights(bundle).items())
    assert [path.name for path in bundle.parent.iterdir()] == [bundle.name]
