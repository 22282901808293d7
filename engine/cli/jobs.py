"""The commands `tailormt jobs …`: queued, running and ended jobs of this installation."""

from __future__ import annotations

import argparse
import time

from engine.cli.commands import Shown, store_of
from engine.core.text_table import table
from engine.errors import InputError
from engine.store import JobRow

WAIT_SECONDS = 10.0  # for a job to stop


def mapping(row: JobRow) -> dict[str, object]:
    """A job as a JSON object, with times in ISO 8601."""
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else getattr(value, "value", value)
        for name, value in vars(row).items()
    } | {"fraction": round(row.fraction, 4), "seconds": row.seconds}


def list_jobs(args: argparse.Namespace) -> Shown:
    rows = store_of(args).jobs.list(args.project, states=args.state, limit=args.limit)
    cells = [
        [row.id, row.kind, row.project_id or "", row.owner, row.priority, waiting(row) or row.state.value,
         f"{row.fraction:.0%}", row.attempt, row.step or row.error[:60]]
        for row in rows
    ]  # fmt: skip
    text = table(["id", "kind", "project", "user", "priority", "state", "done", "attempt", "step"], cells)
    return [mapping(row) for row in rows], text if rows else "There are no jobs."


def waiting(row: JobRow) -> str:
    """The time until a queued job is retried, as text; empty if it is not waiting for a retry."""
    if row.state != "queued":
        return ""
    if row.not_before is not None and (remaining := row.not_before.timestamp() - time.time()) > 0:
        return f"again in {remaining:.0f} s"
    return ""


def show(args: argparse.Namespace) -> Shown:
    from engine.jobs.progress import steps_of

    row = store_of(args).jobs.get(args.id)
    steps = steps_of(row)
    lines = [
        f"Job {row.id}, {row.kind}: {row.state.value}, {row.fraction:.0%} done, attempt {row.attempt}",
        *([f"Waits      {text}"] if (text := waiting(row)) else []),
        f"Priority   {row.priority}{f', for {row.owner}' if row.owner else ''}{f', on {row.device}' if row.device else ''}",
        *([f"Error      {row.error}"] if row.error else []),
        *([f"Log        {row.log_path}"] if row.log_path else []),
    ]
    if steps:
        cells = [[step.name, step.state, f"{step.fraction:.0%}", step.attempt, step.begun] for step in steps]
        lines += ["", table(["step", "state", "done", "attempt", "begun"], cells)]
    return mapping(row) | {"pipeline": [vars(step) for step in steps]}, "\n".join(lines)


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
    text = "is asked to stop" if row.state == "running" else f"is {row.state.value}"
    return mapping(row), f"Job {row.id} {text}. What is finished is kept; go on with `tailormt jobs resume {row.id}`."


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
