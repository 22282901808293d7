"""Reports a job's progress to its row, and detects that the job should stop.

The work only stores figures in memory; a thread writes them at most every half second, so that a busy database never slows
training down. The same thread writes the heartbeat and checks whether the job should stop.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.errors import Cancelled, InputError, StorageError
from engine.jobs.resource_usage import UsageMeter
from engine.store.records import JobFigures, JobRow, JobState, TrailStep

if TYPE_CHECKING:
    from engine.store import Store

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
BEAT_SECONDS = 2.0
MOST_STEPS = 60  # stored per job
LOOKS = 4  # checks at which a job of another project is still queued, so that no other slot is free for it


class StopReason(StrEnum):
    """Why a job should stop."""

    CANCEL = "cancel"  # requested by the user
    WORKER = "worker"  # the worker is ending
    ORPHAN = "orphan"  # the worker was lost
    TURN = "turn"  # a job of higher priority is waiting
    LOST = "lost"  # the row belongs to another attempt: write nothing more


class RowProgress(Progress):
    """Progress of a job, stored in its row. A context manager: the thread runs during the block."""

    def __init__(self, store: Store, job: JobRow) -> None:
        self.stop_reason: StopReason | None = None
        self.gives_way_to = ""  # as in `engine.jobs.registry.JobKind`
        self._waiting: list[int] = []  # the id of the waiting job at each of the last checks
        self._store, self._job = store, job
        self._lock = threading.Lock()
        self._figures: JobFigures | None = None
        self._metrics: Json = dict(job.metrics)
        self._trail: list[TrailStep] = list(job.trail)
        self._changed = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_on, name="row-progress", daemon=True)
        super().__init__()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closing.set()
        self._thread.join(timeout=30)
        with contextlib.suppress(StorageError):
            self._write()

    def stop(self, reason: StopReason) -> None:
        """Make the next `check` raise Cancelled. The first reason is kept."""
        self.stop_reason = self.stop_reason or reason

    def check(self) -> None:
        if self.stop_reason is not None:
            raise Cancelled("The job was asked to stop; finished steps and the last checkpoint are kept.")

    def begin(self, step: str, index: int = 0, steps: int = 1) -> None:
        if step != self.step:
            moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            with self._lock:  # a step that restarts, in this attempt or another, is listed once
                before = [entry for entry in self._trail if entry.get("step") != step]
                row: TrailStep = {"step": step, "index": index, "begun": moment, "attempt": self._job.attempt}
                if self._job.earlier:
                    row["earlier"] = self._job.earlier
                self._trail = [*before, row][-MOST_STEPS:]
        previous_step = self.step
        super().begin(step, index, steps)
        if step != previous_step:
            log.info("%s (step %d of %d)", step, index + 1, steps)

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        with self._lock:
            self._figures = {
                "step": self.step,
                "step_index": self.index,
                "steps": self.steps,
                "done": plain(float(done)) or 0.0,
                "total": None if total is None else plain(float(total)),
                "eta": None if eta is None else plain(float(eta)),
                "note": note,
            }
            self._changed = True

    def metrics(self, row: Mapping[str, object]) -> None:
        with self._lock:
            self._metrics |= plain(row)
            self._changed = True
        log.info("%s", ", ".join(f"{key} {value:g}" for key, value in row.items() if isinstance(value, (int, float))))

    def _write(self) -> bool:
        """Write changed figures; returns whether there were any."""
        with self._lock:
            if not self._changed or not self._figures:
                return False
            values, self._changed = self._figures, False
            values |= {"metrics": dict(self._metrics), "trail": list(self._trail)}
        if not self._store.jobs.progress(self._job.id, self._job.attempt, **values):
            self.stop(StopReason.LOST)
        return True

    def _look(self) -> None:
        try:
            row = self._store.jobs.get(self._job.id)
        except InputError:  # the row was deleted
            self.stop(StopReason.LOST)
            return
        if row.state != JobState.RUNNING or row.attempt != self._job.attempt:
            self.stop(StopReason.LOST)
        elif row.cancel_requested:
            self.stop(StopReason.CANCEL)
        elif self.gives_way_to and self._in_the_way(row):
            self.stop(StopReason.TURN)

    def _in_the_way(self, row: JobRow) -> bool:
        """Whether a job of higher priority waits for this one: one of the same project, or one that no other worker takes."""
        other = self._store.jobs.first_before(row, anyone=self.gives_way_to == "anyone")
        if other is None:
            self._waiting.clear()
            return False
        self._waiting = [*self._waiting, other.id][-LOOKS:]
        return other.project_id == self._job.project_id or self._waiting == [other.id] * LOOKS

    def _write_on(self) -> None:
        beat = time.monotonic()
        meter = UsageMeter()
        while not self._closing.wait(LOOK_SECONDS):
            try:
                self._look()
                if (usage := meter.measure()) is not None:
                    self._store.usage.note(self._job.id, **usage)
                if self._write():
                    beat = time.monotonic()
                elif time.monotonic() - beat >= BEAT_SECONDS:
                    beat = time.monotonic()
                    self._store.jobs.heartbeat(self._job.id, self._job.attempt)
            except StorageError as error:  # the database is busy: the work continues, the figures are written later
                log.warning("%s", error)
            except Exception:
                log.exception("progress could not be written")


def plain(value: Any) -> Any:
    """Convert a value for JSON: numpy and torch scalars unwrapped, NaN and infinity as None, other objects as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if hasattr(value, "item") and getattr(value, "size", 1) in (1, ()):
        return plain(value.item())
    return str(value)


@dataclass(frozen=True)
class Step:
    """A step of a job, with its state."""

    name: str
    state: str
    begun: str = ""  # ISO 8601, UTC
    attempt: int = 1
    fraction: float = 0.0
    error: str = ""


def steps_of(job: JobRow) -> list[Step]:
    """The steps that a job has started, in order; none for a job that has not started."""
    names = [str(row.get("step", "")) for row in job.trail]
    current = names.index(job.step) if job.step in names and job.state != JobState.SUCCEEDED else len(names)
    share = min(1.0, job.done / job.total) if job.total else 0.0
    return [
        Step(
            name,
            (JobState.SUCCEEDED if index < current else job.state).value,
            begun=str(row.get("begun", "")),
            attempt=int(row.get("attempt", 1)),
            fraction=1.0 if index < current else share,
            error=job.error if index == current else "",
        )
        for index, (name, row) in enumerate(zip(names, job.trail, strict=True))
    ]
