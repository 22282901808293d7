"""What a worker needs of a backend, and of a job's process, wherever it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.jobs.slots import Slot
from engine.store.records import JobRow


class JobProcess(Protocol):
    """A job's process, started; ended exactly when `poll` gives a number."""

    @property
    def pid(self) -> int | None:
        """Its number on this machine; None where it runs on another."""

    @property
    def lost(self) -> bool:
        """Whether it ended because its machine did: no fault of the job, which another machine can do."""

    def poll(self) -> int | None:
        """The exit code, or None while it runs; negative: the signal that ended it."""

    def wait(self, seconds: float) -> int | None:
        """As `poll`, but waits for the end, for so long at most."""

    def ask(self) -> None:
        """Let it know that the worker ends: it stops at its next look and keeps what it can go on from."""

    def terminate(self) -> None:
        """Tell it to stop by a signal."""

    def end(self) -> None:
        """End it and all that it started, at once; free what belongs to it. May be called more than once."""


class Backend(Protocol):
    """Starts jobs."""

    def start(self, job: JobRow, payload: Json, log: Path) -> JobProcess:
        """Start the process of a job, its output appended to `log`. Raises OSError when that cannot be done."""

    def slots(self, settings: Settings) -> list[Slot]:
        """The places for jobs that may be at work at once."""

    def close(self) -> None:
        """Let go of what was opened."""
