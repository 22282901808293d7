"""Backends, which start the processes of jobs on this machine (`local`) or on a node of a Ray cluster (`ray`).

A worker claims a job and has its backend start it; it handles the returned process the same way, wherever that runs. The
process itself is always `engine.jobs.child`, which writes progress, checks for cancellation and resumes from checkpoints.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from engine.jobs.backends.base import Backend, JobProcess

if TYPE_CHECKING:
    from engine.core.remote_map import RemoteMapper
    from engine.core.settings import Settings
    from engine.serving.batcher import Batcher
    from engine.serving.model_cache import ModelCache


def open_backend(settings: Settings, lasting: bool = False) -> Backend:
    """The backend specified in the settings; `lasting`: for a long-running worker, for which preloading libraries pays off.

    Raises MissingError if its library is not installed, InputError if it cannot be reached.
    """
    if settings.backend == "ray":
        from engine.jobs.backends.ray_tasks import RayBackend

        return RayBackend(settings)
    if lasting and sys.platform == "linux":
        from engine.jobs.backends.forking import ForkingBackend

        # Without sockets, or in a script without a main guard, each job starts a new Python process.
        with contextlib.suppress(OSError, RuntimeError):
            return ForkingBackend()
    from engine.jobs.backends.local import LocalBackend

    return LocalBackend()


def remote_mapper_for(settings: Settings) -> RemoteMapper | None:
    """The mapper to which a job's process offers parts of its work; None if it does all of it itself."""
    if settings.backend != "ray" or not settings.ray_actors:
        return None
    from engine.jobs.backends.ray_data import RayMap

    return RayMap(settings)


def open_batcher(models: ModelCache) -> Batcher:
    """The batcher that translates requests: in this process or, if set, with replicas on a Ray cluster."""
    if models.settings.replicas:
        from engine.jobs.backends.ray_serve import ReplicaBatcher

        return ReplicaBatcher(models)
    from engine.serving.batcher import Batcher

    return Batcher(models)
