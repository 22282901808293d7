"""A pipeline as one thing with steps: those that are jobs of their own, else those that one process went through."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.store.rows import JobRow, JobState

if TYPE_CHECKING:
    from engine.store import Store

__all__ = ["Step", "as_one", "steps_of"]

ENDS = {"customize": "export"}  # what is left to the job itself where its steps are jobs


@dataclass(frozen=True)
class Step:
    """A step of a job. `job` is its number where it is a job of its own."""

    name: str
    state: str
    job: int | None = None
    begun: str = ""  # ISO 8601, UTC
    attempt: int = 1
    fraction: float = 0.0
    error: str = ""


def steps_of(store: Store, job: JobRow) -> list[Step]:
    """The steps of a job in order, as far as they are known; of one that waits and has not begun, none."""
    parts = store.jobs.list(parent=job.id)[::-1]
    if parts:
        return [_part(row) for row in parts] + [_part(job, ENDS.get(job.kind, job.kind))]
    names = [str(row.get("step", "")) for row in job.trail]
    current = names.index(job.step) if job.step in names and job.state != JobState.SUCCEEDED else len(names)
    return [
        Step(
            name,
            (JobState.SUCCEEDED if place < current else job.state).value,
            begun=str(row.get("begun", "")),
            attempt=int(row.get("attempt", 1)),
            fraction=1.0 if place < current else _share(job),
            error=job.error if place == current else "",
        )
        for place, (name, row) in enumerate(zip(names, job.trail, strict=True))
    ]


def as_one(store: Store, job: JobRow) -> JobRow:
    """A job whose steps are jobs of their own, as its user sees it: at work while one of them is, as far as they are."""
    if job.state != JobState.QUEUED or not (parts := store.jobs.list(parent=job.id)[::-1]):
        return job
    begun = [row for row in parts if row.started is not None]
    if not begun:
        return job
    now = next((row for row in parts if row.state == JobState.RUNNING), None)
    done = sum(row.state == JobState.SUCCEEDED for row in parts)
    return replace(
        job,
        state=JobState.RUNNING,
        step=(now.step or now.kind) if now else "",
        step_index=done,
        steps=len(parts) + 1,
        done=now.fraction if now else 0.0,
        total=1.0 if now else None,
        eta=now.eta if now else None,
        started=min(row.started for row in begun if row.started is not None),
        heartbeat=now.heartbeat if now else job.heartbeat,
        log_path=now.log_path if now else job.log_path,
    )


def _part(row: JobRow, name: str = "") -> Step:
    begun = row.started.astimezone(datetime.UTC).isoformat(timespec="seconds") if row.started else ""
    return Step(name or row.kind, row.state.value, row.id, begun, row.attempt, row.fraction, row.error)


def _share(job: JobRow) -> float:
    return min(1.0, job.done / job.total) if job.total else 0.0
