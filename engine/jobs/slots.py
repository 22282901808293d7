"""Slots for jobs on a machine: how many run at once on its processor, and on each of its GPUs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field

from engine.core.cores import model_threads, usable_cores
from engine.core.json_object import Json
from engine.core.settings import Settings

CPU, GPU = "cpu", "gpu"  # what a job may ask for; "" is wherever models run


@dataclass(frozen=True)
class Slot:
    """A place for one job: `takes` says which wishes for a device it serves, the rest is what its process is given."""

    name: str  # "cpu", "gpu 0"
    takes: tuple[str, ...]
    device: str  # of the settings
    threads: int
    environment: dict[str, str] = field(default_factory=dict)

    def payload(self, settings: Settings) -> Json:
        """The settings for a job here, and the environment that its process sets before it loads anything."""
        changed = settings.replace(device=self.device, threads=self.threads)
        return {"settings": changed.to_mapping(), "environment": self.environment}


def slots_of(settings: Settings, cpu_jobs: int | None = None) -> list[Slot]:
    """The places of this machine by its settings. `cpu_jobs` in place of the setting, where a backend has its own room.

    Without a GPU all jobs are for the processor. With one, models run there, and on the processor what asks for it.
    """
    count = cpu_jobs or settings.cpu_jobs
    if getattr(settings, "backend", "local") != "local":  # it finds a place for each job by itself
        return [Slot("away", ("", CPU, GPU), settings.device, settings.threads) for _ in range(count)]
    own = model_threads(settings.threads) if settings.threads else 0
    threads = own or (max(1, usable_cores() // count) if count > 1 else 0)
    result = gpus(settings)
    if not result:
        return [Slot(CPU, ("", CPU), settings.device, threads) for _ in range(count)]
    slots = []
    for number in result:
        seen = {} if settings.device.startswith("cuda:") else {"CUDA_VISIBLE_DEVICES": number}
        slots += [
            Slot(f"gpu {number}", ("", GPU), settings.device, settings.threads, seen) for _ in range(settings.gpu_jobs)
        ]
    return slots + [Slot(CPU, (CPU,), "cpu", threads, {"CUDA_VISIBLE_DEVICES": ""}) for _ in range(count)]


def gpus(settings: Settings) -> list[str]:
    """Names of the NVIDIA GPUs that jobs may use, as CUDA_VISIBLE_DEVICES writes them; torch is not loaded for it."""
    if settings.device.startswith("cuda:"):
        return [settings.device.partition(":")[2]]
    if settings.device not in ("auto", "cuda"):
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip() not in ("", "-1")]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(number) for number, line in enumerate(listed.splitlines()) if line.startswith("GPU ")]
