"""Slots for jobs on a machine: how many run at once on its CPU, and on each of its GPUs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field

from engine.core.cores import model_threads, usable_cores
from engine.core.json_object import Json
from engine.core.settings import Settings

CPU, GPU = "cpu", "gpu"  # devices a job may request; "" is the device that runs models


@dataclass(frozen=True)
class Slot:
    """A slot for one job: `takes` lists the requested devices it serves; the other fields configure the job's process."""

    name: str  # "cpu", "gpu 0"
    takes: tuple[str, ...]
    device: str  # the setting of this name
    threads: int
    environment: dict[str, str] = field(default_factory=dict)

    def payload(self, settings: Settings) -> Json:
        """The settings for a job in this slot, and the environment that its process sets before loading libraries."""
        changed = settings.replace(device=self.device, threads=self.threads)
        return {"settings": changed.to_mapping(), "environment": self.environment}


def slots_of(settings: Settings, cpu_jobs: int | None = None) -> list[Slot]:
    """The slots of this machine. `cpu_jobs` replaces the setting, for a backend that has a different capacity.

    Without a GPU, all jobs run on the CPU. With one, models run on it, and jobs that request the CPU run there.
    """
    count = cpu_jobs or settings.cpu_jobs
    if getattr(settings, "backend", "local") != "local":  # the backend places the jobs
        return [Slot("away", ("", CPU, GPU), settings.device, settings.threads) for _ in range(count)]
    configured = model_threads(settings.threads) if settings.threads else 0
    threads = configured or (max(1, usable_cores() // count) if count > 1 else 0)
    result = gpus(settings)
    if not result:
        return [Slot(CPU, ("", CPU), settings.device, threads) for _ in range(count)]
    slots = []
    for number in result:
        environment = {} if settings.device.startswith("cuda:") else {"CUDA_VISIBLE_DEVICES": number}
        slots += [
            Slot(f"gpu {number}", ("", GPU), settings.device, settings.threads, environment) for _ in range(settings.gpu_jobs)
        ]
    return slots + [Slot(CPU, (CPU,), "cpu", threads, {"CUDA_VISIBLE_DEVICES": ""}) for _ in range(count)]


def gpus(settings: Settings) -> list[str]:
    """The NVIDIA GPUs that jobs may use, in the format of CUDA_VISIBLE_DEVICES; does not load torch."""
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
