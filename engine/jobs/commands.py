"""The commands below `tailormt jobs`: what waits, works and has ended in this installation's queue."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.errors import InputError
from engine.terminal import table

if TYPE_CHECKING:
    from engine.store import JobRow, Store

__all__ = ["JOB_COMMANDS", "add_job_commands"]

Shown = tuple[Any, str]
STATES = ("queued", "running", "succeeded", "failed", "cancelled", "interrupted")
WAIT_SECONDS = 10.0  # for a job to stop


def add_job_commands(jobs: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands and their flags; `command` makes one with the common flags."""
    found = command("list", "jobs, newest first; steps of a pipeline are counted with it", jobs)
    found.add_argument("--project", type=int, metavar="ID", help="the project's number [all]")
    found.add_argument("--state", action="append", choices=STATES, help="only in this state; may be given again")
    found.add_argument("--steps", action="store_true", help="also the jobs that are steps of others")
    found.add_argument("--limit", type=int, default=50, metavar="N", help="[50]")
    for name, help in (
        ("show", "where a job stands, its steps, and what it waits for"),
        ("cancel", "stop a job, and its steps; what is finished is kept"),
        ("resume", "go on with an interrupted, failed or cancelled job from its last finished step or checkpoint"),
        ("log", "the end of a job's log"),
    ):
        found = command(name, help, jobs)
        found.add_argument("id", type=int, help="the job's number, see `tailormt jobs list`")
        if name == "log":
            found.add_argument("--characters", type=int, default=20_000, metavar="N", help="how much of it [20000]")


def store_of(args: argparse.Namespace) -> Store:
    from engine.store import Store

    return Store(args.settings.store_url)


def mapping(row: JobRow) -> dict[str, Any]:
    """A job for programs: times as text."""
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else getattr(value, "value", value)
        for name, value in vars(row).items()
    } | {"fraction": round(row.fraction, 4), "seconds": row.seconds}


def list_jobs(args: argparse.Namespace) -> Shown:
    rows = store_of(args).jobs.list(args.project, states=args.state, limit=args.limit, whole=not args.steps)
    cells = [
        [row.id, row.kind, row.project_id or "", row.owner, row.priority, waiting(row) or row.state.value,
         f"{row.fraction:.0%}", row.attempt, row.step or row.error[:60]]
        for row in rows
    ]  # fmt: skip
    text = table(["id", "kind", "project", "user", "priority", "state", "done", "attempt", "step"], cells)
    return [mapping(row) for row in rows], text if rows else "There are no jobs."


def waiting(row: JobRow) -> str:
    """Why a queued job waits, where there is more to say than that it does."""
    if row.state != "queued":
        return ""
    if row.not_before is not None and (left := row.not_before.timestamp() - time.time()) > 0:
        return f"again in {left:.0f} s"
    return f"after {', '.join(map(str, row.after))}" if row.after else ""


def show(args: argparse.Namespace) -> Shown:
    from engine.jobs.steps import steps_of

    store = store_of(args)
    row = store.jobs.get(args.id)
    steps = steps_of(store, row)
    lines = [
        f"Job {row.id}, {row.kind}: {row.state.value}, {row.fraction:.0%} done, attempt {row.attempt}",
        *([f"Waits      {said}"] if (said := waiting(row)) else []),
        f"Priority   {row.priority}{f', for {row.owner}' if row.owner else ''}{f', on {row.device}' if row.device else ''}",
        *([f"Needs      {', '.join(f'job {number}' for number in row.after)}"] if row.after else []),
        *([f"Step of    job {row.parent_id}"] if row.parent_id else []),
        *([f"Error      {row.error}"] if row.error else []),
        *([f"Log        {row.log_path}"] if row.log_path else []),
    ]
    if steps:
        cells = [[one.name, one.job or "", one.state, f"{one.fraction:.0%}", one.attempt, one.begun] for one in steps]
        lines += ["", table(["step", "job", "state", "done", "attempt", "begun"], cells)]
    return mapping(row) | {"pipeline": [vars(one) for one in steps]}, "\n".join(lines)


def cancel(args: argparse.Namespace) -> Shown:
    store = store_of(args)
    row = store.jobs.get(args.id)
    if not row.active:
        raise InputError(f"Job {row.id} is {row.state.value}; there is nothing to cancel.")
    row = store.jobs.cancel(args.id)
    deadline = time.monotonic() + WAIT_SECONDS
    while row.state == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
        row = store.jobs.get(args.id)
    said = "is asked to stop" if row.state == "running" else f"is {row.state.value}"
    return mapping(row), f"Job {row.id} {said}. What is finished is kept; go on with `tailormt jobs resume {row.id}`."


def resume(args: argparse.Namespace) -> Shown:
    store = store_of(args)
    row = store.jobs.resume(args.id)
    alone = "" if store.workers.list() else " No worker is there: start one with `tailormt worker`."
    return mapping(row), f"Job {row.id} is queued again, as attempt {row.attempt}.{alone}"


def log(args: argparse.Namespace) -> Shown:
    from engine.jobs.paths import log_tail

    row = store_of(args).jobs.get(args.id)
    text = log_tail(row, args.characters)
    return {"id": row.id, "path": row.log_path, "text": text}, text.rstrip("\n") or f"Job {row.id} has no log yet."


JOB_COMMANDS = {
    "jobs list": list_jobs,
    "jobs show": show,
    "jobs cancel": cancel,
    "jobs resume": resume,
    "jobs log": log,
}
