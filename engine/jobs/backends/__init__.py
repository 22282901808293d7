"""Where the process of a job is started: on this machine (`local`), or on a node of a Ray cluster (`ray`).

A worker claims a job and asks its backend to start it; what it gets back it treats alike, wherever the process is. The
process itself is the same: `engine.jobs.child`, which writes progress, looks for a cancel and goes on from a checkpoint.
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
    """The backend that the settings name; `lasting`: for a worker that stays, so that preparing the start of many jobs pays.

    Raises MissingError where its library is not installed, InputError where it cannot be reached.
    """
    if settings.backend == "ray":
        from engine.jobs.backends.ray_tasks import RayBackend

        return RayBackend(settings)
    if lasting and sys.platform == "linux":
        from engine.jobs.backends.forking import ForkingBackend

        # Without sockets for it, or in a script without a main guard, processes are started anew.
        with contextlib.suppress(OSError, RuntimeError):
            return ForkingBackend()
    from engine.jobs.backends.local import LocalBackend

    return LocalBackend()


def remote_mapper_for(settings: Settings) -> RemoteMapper | None:
    """What a job's process offers parts of its work to; None where it does all by itself."""
    if settings.backend != "ray" or not settings.ray_actors:
        return None
    from engine.jobs.backends.ray_data import RayMap

    return RayMap(settings)


def open_batcher(models: ModelCache) -> Batcher:
    """What translates the texts of requests: this process, or copies on a Ray cluster where the settings ask for them."""
    if models.settings.replicas:
        from engine.jobs.backends.ray_serve import ReplicaBatcher

        return ReplicaBatcher(models)
    from engine.serving.batcher import Batcher

    return Batcher(models)
