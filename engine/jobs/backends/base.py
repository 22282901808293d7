"""The interfaces of backends and of the processes of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.jobs.slots import Slot
from engine.store.records import JobRow


class JobProcess(Protocol):
    """A started process of a job; it has ended exactly if `poll` returns a number."""

    @property
    def pid(self) -> int | None:
        """The process id on this machine; None if it runs on another."""

    @property
    def lost(self) -> bool:
        """Whether it ended because its machine was lost, so that another machine can run the job."""

    def poll(self) -> int | None:
        """The exit code, or None while it runs; if negative, the signal that ended it."""

    def wait(self, seconds: float) -> int | None:
        """Like `poll`, but waits up to this time for the end."""

    def ask(self) -> None:
        """Notify it that the worker ends: it stops at its next check and can be resumed."""

    def terminate(self) -> None:
        """Stop it with a signal."""

    def end(self) -> None:
        """Kill it with all its descendants and free its resources. May be called more than once."""


class Backend(Protocol):
    """Starts jobs."""

    def start(self, job: JobRow, payload: Json, log: Path) -> JobProcess:
        """Start the process of a job, its output appended to `log`. Raises OSError on failure."""

    def slots(self, settings: Settings) -> list[Slot]:
        """The slots for jobs that may run at once."""

    def close(self) -> None:
        """Release all resources."""
