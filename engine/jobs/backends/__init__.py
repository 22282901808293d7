"""Where the process of a job is started: on this machine (`local`).

A worker claims a job and asks its backend to start it; what it gets back it treats alike, wherever the process is. The
process itself is the same: `engine.jobs.child`, which writes progress, looks for a cancel and goes on from a checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.jobs.backends.base import Backend, JobProcess

if TYPE_CHECKING:
    from engine.settings import Settings

__all__ = ["Backend", "JobProcess", "open_backend"]


def open_backend(settings: Settings) -> Backend:
    """The backend that the settings name."""
    from engine.jobs.backends.local import LocalBackend

    return LocalBackend()
