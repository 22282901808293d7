"""Kinds of jobs for the tests of the worker; the worker is told their module with `kinds`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

from engine.core.settings import Settings
from engine.errors import CorpusError, TransientError
from engine.jobs.paths import job_workspace
from engine.jobs.registry import JobContext, JobKind
from engine.store import JobRow

PAUSE = 0.05  # seconds from one number to the next
COUNTED = "counted.txt"


def counted(settings: Settings, job: JobRow) -> int:
    """How far a job of `count` has counted."""
    return int((job_workspace(settings, job) / COUNTED).read_text(encoding="utf-8"))


def count(context: JobContext) -> dict[str, Any]:
    """Counts to `until`, one each `pause` seconds, and goes on from where an earlier attempt stopped."""
    folder = context.workspace / COUNTED
    began = number = int(folder.read_text(encoding="utf-8")) if folder.exists() else 0
    with open(context.workspace / "runs.txt", "a", encoding="utf-8") as runs:
        runs.write(f"{context.job.id} {os.getpid()} {os.getppid()}\n")
    until = context.job.arguments["until"]
    context.progress.begin("counting", 1, 3)
    while number < until:
        context.progress.advance(number, until, f"at {number}")
        time.sleep(context.job.arguments.get("pause", PAUSE))
        number += 1
        temporary = folder.with_suffix(".new")
        temporary.write_text(str(number), encoding="utf-8")
        temporary.replace(folder)  # killed in between, the old number stays
        context.progress.metrics({"step": number, "loss": 1 / number, "bad": float("nan")})
    return {"began": began, "counted": number}


def deaf(context: JobContext) -> dict[str, Any]:
    """Never looks whether it should stop, ignores signals, and has a process of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.modules["__main__"].ORPHAN_SECONDS = 0.2  # type: ignore[attr-defined]
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    context.progress.begin("not listening", 0, 1)
    (context.workspace / "helper.txt").write_text(str(helper.pid), encoding="utf-8")
    time.sleep(60)
    return {}


def sleepy(context: JobContext) -> dict[str, Any]:
    """Never looks whether it should stop, but a signal wakes it, and it cleans up."""
    context.progress.begin("sleeping", 0, 1)
    try:
        (context.workspace / "part.txt").write_text("half", encoding="utf-8")
        time.sleep(60)
    finally:
        (context.workspace / "part.txt").unlink()
    return {}


def misplaced(context: JobContext) -> dict[str, Any]:
    """Complains of a file with its path on the server."""
    folder = context.workspace / "samples"
    raise CorpusError("{path} is empty; the folder is {folder}.", path=folder / "my letters.tmx", folder=folder)


def unreadable(context: JobContext) -> dict[str, Any]:
    raise CorpusError("luxun.txt, line 3: this is no text. Save it as UTF-8.")


def broken(context: JobContext) -> dict[str, Any]:
    context.progress.begin("training", 3, 4)
    raise ZeroDivisionError("a secret of the inside")


def hungry(context: JobContext) -> dict[str, Any]:
    context.progress.begin("training", 3, 4)
    raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")


def unanswered(context: JobContext) -> dict[str, Any]:
    """Fails as a service does that gives no answer, so often as it is told."""
    tried = context.workspace / "tried.txt"
    tries = len(tried.read_text(encoding="utf-8")) if tried.exists() else 0
    tried.write_text("x" * (tries + 1), encoding="utf-8")
    if tries < context.job.arguments["times"]:
        raise TransientError("The service at http://127.0.0.1:1 gave no answer. Try again later.")
    return {"tries": tries + 1}


def deadly(context: JobContext) -> dict[str, Any]:
    """Ends its worker, and itself, each time."""
    with open(context.workspace / "runs.txt", "a", encoding="utf-8") as runs:
        runs.write("x")
    context.progress.begin("breaking things", 0, 1)
    time.sleep(0.2)
    os.kill(int(context.store.jobs.get(context.job.id).worker.split(":")[1]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def bereaving(context: JobContext) -> dict[str, Any]:
    """Ends the process that started this one, the first time, and goes on."""
    runs = context.workspace / "runs.txt"
    if not runs.exists():
        runs.write_text("x", encoding="utf-8")
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return {"loaded": sorted({"torch", "transformers", "worker_kinds"} & sys.modules.keys())}


KINDS = {
    work.__name__: JobKind(work.__name__, work)
    for work in (count, deaf, sleepy, misplaced, unreadable, broken, hungry, unanswered, deadly, bereaving)
} | {"polite": JobKind("polite", count, gives_way_to="anyone"), "loyal": JobKind("loyal", count, gives_way_to="owner")}
