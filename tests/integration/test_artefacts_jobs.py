"""A job that a lost machine began goes on at another, which shares nothing with it but the database and the S3 store."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.jobs import enqueue
from engine.jobs.paths import job_workspace
from engine.jobs.processes import end_tree
from engine.jobs.registry import KINDS, JobContext
from engine.store import JobRow, JobState, Store
from engine.store.sharing import share_of
from engine.store.sharing.garbage_collection import collect, verify
from tests.bundles import weights
from tests.s3 import BUCKET, s3_server

TRAINING = {
    "max_updates": 40, "tokens_per_batch": 256, "learning_rate": 0.003, "warmup": 2, "validate_every": 20, "checkpoint_every": 2,
    "patience": 0, "watch": 0, "replay": 0.0,  # of which a worker's process has more than this one
}  # fmt: skip


def test_a_lost_machines_training_goes_on_elsewhere_to_the_same_weights(
    request_for: Callable[..., Any], sample: Path, tmp_path: Path
) -> None:
    pytest.importorskip("moto")
    pytest.importorskip("s3fs")
    here = tmp_path / "home"
    with s3_server() as server:
        settings = Settings(
            home=str(here), database_url=f"sqlite:///{tmp_path / 'tailor.db'}", device="cpu", first_look=False,
            artefacts=f"s3://{BUCKET}/team", artefacts_endpoint=server.url, artefacts_seconds=0.2,
        )  # fmt: skip
        store = Store(settings.store_url)
        request = request_for(tmp_path / "x.zip", training_options=TRAINING).to_mapping()
        project = store.projects.create("Rain", "en", "zh", request["base"])
        samples = here / "projects" / "1" / "samples" / "a.txt"
        samples.parent.mkdir(parents=True)
        samples.write_bytes(sample.read_bytes())
        share_of(settings, store)
        wish = {key: request[key] for key in ("method_options", "training_options", "phrase_options", "budget")}
        job = enqueue(store, "customize", wish | {"samples": [str(samples)]}, project_id=project.id)

        def machine(name: str) -> None:
            """Another machine: under the same path, what lay there is not there."""
            os.rename(here, tmp_path / name)

        machine("studio")
        environment = {f"TAILORMT_{key.upper()}": str(value) for key, value in settings.to_mapping().items() if key in (
            "home", "database_url", "device", "artefacts", "artefacts_endpoint", "artefacts_seconds")}  # fmt: skip
        worker = subprocess.Popen(
            [sys.executable, "-m", "engine.jobs.worker", "--once"], env={**os.environ, **environment, "TAILORMT_FIRST_LOOK": "off"}
        )
        try:
            deadline = time.monotonic() + 600
            while not _has(store, "training/checkpoint/state.safetensors"):
                assert time.monotonic() < deadline
                assert worker.poll() is None, store.jobs.get(job.id)
                time.sleep(0.02)
            process = psutil.Process(server.process.pid) if server.process else None
            assert process is not None
            process.suspend()  # the store does not answer for a while: training goes on
            time.sleep(0.5)
            process.resume()
        finally:
            end_tree(worker.pid)
            worker.wait()
        at_work = store.jobs.get(job.id)
        assert at_work.state == JobState.RUNNING, "it was killed in the middle"
        store.jobs.interrupt(job.id, at_work.attempt, "lost")
        if store.jobs.get(job.id).state != JobState.QUEUED:
            store.jobs.resume(job.id)
        machine("lost")
        claimed = store.jobs.claim("other:1:a")
        assert claimed is not None
        steps = Steps()
        result = _do(settings, store, claimed, steps)
        assert "Reading samples" not in steps.seen, "what the lost machine had finished is not done again"
        assert steps.trained[0] >= 2, "training goes on from a checkpoint, the first of which is that of update 2"
        store.jobs.finish(claimed.id, claimed.attempt, {})
        plugin_weights = weights(Path(result["plugin"]))

        # The studio has what was made a moment later.
        machine("worked")
        os.rename(tmp_path / "studio", here)
        share_of(settings, store).look()
        assert weights(Path(store.plugins.list()[0].path)) == plugin_weights
        assert verify(settings, store) == []
        assert collect(settings, store, hours=0).blobs > 0, "checkpoints that were overtaken"
        assert verify(settings, store) == []

    calm = Settings(home=str(tmp_path / "calm"), device="cpu", first_look=False)
    alone = Store(calm.store_url)
    alone.projects.create("Rain", "en", "zh", request["base"])
    alone.jobs.enqueue("customize", wish | {"samples": [str(sample)]}, project_id=1)
    calm_job = alone.jobs.claim("here:1:a")
    assert calm_job is not None
    undisturbed = _do(calm, alone, calm_job, Progress())
    assert weights(Path(undisturbed["plugin"])) == plugin_weights


class Steps(Progress):
    """Remembers the steps that were done, and where training began."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.trained: list[float] = []

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        self.seen.append(self.step)
        if self.step == "Training" and done:
            self.trained.append(done)


def _has(store: Store, name: str) -> bool:
    row = store.artefacts.get("projects/1")
    return row is not None and any(path.endswith(name) for path in row.files)


def _do(settings: Settings, store: Store, job: JobRow, progress: Progress) -> dict[str, Any]:
    assert threading.current_thread() is threading.main_thread()
    return KINDS[job.kind].do(JobContext(job, store, settings, job_workspace(settings, job), progress))
