"""What a user sees of the queue: `tailormt jobs …`, steps of a pipeline, and which errors are worth another try."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.errors import Cancelled, CorpusError, MissingError, StorageError, TailorError, TransientError
from engine.jobs import enqueue
from engine.jobs.progress import steps_of
from engine.jobs.transient_errors import may_pass
from engine.store import Store


@pytest.fixture
def store(home: Path) -> Store:
    return Store(f"sqlite:///{home / 'tailor.db'}")


def test_the_queue_on_the_command_line(store: Store, home: Path, tailormt: Callable[..., Any]) -> None:
    assert tailormt("jobs", "list").out == "There are no jobs.\n"
    project = store.projects.create("Lu Xun", "en", "zh", "base")
    job = enqueue(store, "customize", {"budget": "quick"}, project_id=project.id, priority=20)
    other = store.jobs.enqueue("leakage", {}, project_id=project.id, owner="ann", priority=10)
    listed = json.loads(tailormt("jobs", "list", "--json").out)
    assert [(row["id"], row["kind"]) for row in listed] == [(other.id, "leakage"), (job.id, "customize")]
    assert "ann" in tailormt("jobs", "list").out
    assert "for ann" in tailormt("jobs", "show", other.id).out
    log = home / "jobs" / "9.log"
    log.parent.mkdir(parents=True)
    log.write_text("== job, attempt 1\nReading samples\n", encoding="utf-8")
    running = store.jobs.claim("here:1")
    assert running is not None
    assert running.id == job.id
    store.jobs.started(running.id, 1, pid=None, log_path=str(log))
    trail = [{"step": "Reading samples", "index": 0, "begun": "2026-11-21T16:00:00+00:00", "attempt": 1}]
    store.jobs.progress(running.id, 1, step="Reading samples", steps=4, done=1, total=2, trail=trail)
    assert "50%" in tailormt("jobs", "show", job.id).out
    assert tailormt("jobs", "log", running.id).out.endswith("Reading samples\n")
    store.jobs.fail(running.id, 1, "luxun.txt is empty.")
    assert "luxun.txt is empty." in tailormt("jobs", "show", job.id).out
    assert "No worker is there" in tailormt("jobs", "resume", job.id).out
    assert [store.jobs.get(row["id"]).state for row in listed] == ["queued", "queued"]
    assert "is cancelled" in tailormt("jobs", "cancel", job.id).out
    assert "nothing to cancel" in tailormt("jobs", "cancel", job.id).sentence
    assert "There is no job 99" in tailormt("jobs", "show", 99).sentence


def test_steps_of_one_process_are_seen_in_order(store: Store) -> None:
    store.jobs.enqueue("customize", {})
    job = store.jobs.claim("w")
    assert job is not None
    assert steps_of(job) == []
    trail = [{"step": name, "index": n, "begun": "2026-11-21T16:00:00+00:00", "attempt": 1} for n, name in enumerate("abc")]
    store.jobs.progress(job.id, 1, step="c", step_index=2, steps=4, done=1, total=4, trail=trail)
    result = steps_of(store.jobs.get(job.id))
    assert [(step.name, step.state, step.fraction) for step in result] == [
        ("a", "succeeded", 1.0), ("b", "succeeded", 1.0), ("c", "running", 0.25),
    ]  # fmt: skip
    store.jobs.fail(job.id, 1, "No.")
    assert [(step.state, step.error) for step in steps_of(store.jobs.get(job.id))][1:] == [("succeeded", ""), ("failed", "No.")]


def test_what_changes_samples_overtakes_nothing_of_its_project_and_the_rest_does(store: Store) -> None:
    first, second = (store.projects.create(name, "en", "zh", "base").id for name in "ab")
    long = enqueue(store, "customize", {}, project_id=first)
    reading = enqueue(store, "prepare", {}, project_id=first)
    look = enqueue(store, "preview", {}, project_id=first)
    chart = enqueue(store, "phrase_map", {}, project_id=first)
    elsewhere = enqueue(store, "prepare", {}, project_id=second)
    order = []
    for _ in range(5):
        job = store.jobs.claim("w")
        assert job is not None
        order.append(job.id)
        store.jobs.finish(job.id, 1)
    assert order == [chart.id, elsewhere.id, long.id, reading.id, look.id], "what starts by itself comes last"


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (TransientError("The service gave no answer."), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (httpx.ConnectError("refused"), True),
        (caused(StorageError("The bucket cannot be reached."), ConnectionRefusedError()), True),
        (httpx.HTTPStatusError("busy", request=httpx.Request("GET", "http://x"), response=httpx.Response(503)), True),
        (httpx.HTTPStatusError("no", request=httpx.Request("GET", "http://x"), response=httpx.Response(404)), False),
        (caused(StorageError("The disk is full: x."), OSError(errno.ENOSPC, "No space left on device")), False),
        (caused(CorpusError("line 3: no text"), TimeoutError()), False),
        (MissingError("eflomal is not installed."), False),
        (Cancelled("stop"), False),
        (TailorError("The memory is not enough."), False),
        (ZeroDivisionError(), False),
        (MemoryError(), False),
    ],
    ids=repr,
)
def test_which_errors_are_worth_another_try(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes


def test_the_rest_interface_shows_jobs_and_their_steps(tmp_path: Path) -> None:
    from tests.unit.studio.test_api import asked

    store = Store(f"sqlite:///{tmp_path / 'tailor.db'}")
    project = store.projects.create("Lu Xun", "en", "zh", "base")
    job = enqueue(store, "customize", {}, project_id=project.id)
    api = asked(tmp_path)
    page = api.get("/api/v1/jobs").json()
    assert [row["id"] for row in page["items"]] == [job.id]
    data = api.get(f"/api/v1/jobs/{job.id}").json()
    assert (data["priority"], data["owner"], data["not_before"]) == (0, "", None)
    assert api.get(f"/api/v1/jobs/{job.id}/steps").json() == []
    store.jobs.claim("w")
    trail = [{"step": "Training", "index": 0, "begun": "2026-11-21T16:00:00+00:00", "attempt": 1}]
    store.jobs.progress(job.id, 1, step="Training", steps=2, done=1, total=4, trail=trail)
    (step,) = api.get(f"/api/v1/jobs/{job.id}/steps").json()
    assert (step["name"], step["state"], step["fraction"]) == ("Training", "running", 0.25)
    store.jobs.fail(job.id, 1, "No.")
    assert api.post(f"/api/v1/jobs/{job.id}/resume").status_code == 202
    assert api.get("/api/v1/jobs/99/steps").status_code == 404
    assert api.post(f"/api/v1/jobs/{job.id}/cancel").json()["state"] == "cancelled"
