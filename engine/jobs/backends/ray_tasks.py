"""Jobs as tasks of a Ray cluster: a task starts the job's process on a node chosen by Ray and waits for it.

The worker, the driver, claims jobs and monitors them; the processes use the same store and the same data folder, which all
nodes must have under the same path. If a node is lost, its jobs start on other nodes as their next attempt, so that a node
that was only disconnected can write nothing more.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.jobs.backends.ray_cluster import capacity, import_ray, join, leave, share, wants_gpu
from engine.jobs.processes import STOP, end_tree, spawn
from engine.jobs.slots import CPU, GPU, Slot
from engine.store.records import JobRow

GRACE_SECONDS = 5.0  # for a job to stop before it is signalled
FORCE_SECONDS = 2.0  # for it to stop after the signal
SPAWN_TRIES = 20
LOST_CODE = -9


def run_child(job_id: int, payload: Mapping[str, Any], log: str) -> int:
    """The task: run the process of a job and return its exit code. Cancelling the task stops the process normally.

    The process also stops if this one is lost, since the pipe between them closes.
    """
    process = _spawn(job_id, dict(payload), Path(log))
    try:
        while (code := _wait(process, 1.0)) is None:  # in short intervals, so that a cancellation is noticed
            pass
        return code
    except BaseException:  # the task was cancelled: KeyboardInterrupt
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # already ended
            process.stdin.write(STOP)
        process.stdin.close()
        code = _wait(process, GRACE_SECONDS)
        if code is None:
            process.terminate()
            code = _wait(process, FORCE_SECONDS)
        return LOST_CODE if code is None else code
    finally:
        end_tree(process.pid)
        process.wait()


def _spawn(job_id: int, payload: Json, log: Path) -> subprocess.Popen[bytes]:
    for tries_left in reversed(range(SPAWN_TRIES)):
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            return spawn("engine.jobs.backends.ray_child", [str(job_id)], payload, log)
        except OSError:  # a shared folder not mounted yet, or a temporary lack of memory
            if not tries_left:
                raise
            time.sleep(0.5)
    raise AssertionError("not reached")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


class RayProcess:
    """A job's process on a node of the cluster."""

    pid: int | None = None  # on another machine

    def __init__(self, task: Any) -> None:
        self._task = task
        self._code: int | None = None
        self._stop_requested = self.lost = False

    def poll(self) -> int | None:
        return self.wait(0)

    def wait(self, seconds: float) -> int | None:
        if self._code is None:
            self._code = self._result(seconds)
        return self._code

    def _result(self, seconds: float) -> int | None:
        ray = import_ray()
        exceptions = ray.exceptions
        try:
            ready, _ = ray.wait([self._task], timeout=seconds)
            return int(ray.get(ready[0])) if ready else None
        except exceptions.TaskCancelledError:
            return LOST_CODE
        except exceptions.RayTaskError as error:
            cause = error.cause
            return int(cause.errno or 1) if isinstance(cause, OSError) else 1
        except exceptions.OutOfMemoryError:  # killed by Ray to protect the node
            return LOST_CODE
        except exceptions.RayError:  # the node, its raylet or the task's process was lost
            self.lost = True
            return LOST_CODE

    def ask(self) -> None:
        self._cancel(force=False)

    def terminate(self) -> None:
        self._cancel(force=False)  # the task itself escalates from the pipe to the signal

    def end(self) -> None:
        if self.poll() is None:
            self._cancel(force=True)
            self._code = LOST_CODE

    def _cancel(self, force: bool) -> None:
        if self._code is not None or (self._stop_requested and not force):
            return
        self._stop_requested = True
        ray = import_ray()
        if ray.is_initialized():
            ray.cancel(self._task, force=force)


class RayBackend:
    """Starts jobs as tasks of the cluster specified in the settings."""

    def __init__(self, settings: Settings) -> None:
        self.address = join(settings.ray_address)
        # Resolve defaults here, since the user of a node may have different default folders.
        self.settings = settings.replace(
            home=str(settings.home_dir.resolve()), database_url=settings.store_url, ray_address=self.address
        )
        self._task = import_ray().remote(max_retries=0)(run_child)

    def start(self, job: JobRow, payload: Json, log: Path) -> RayProcess:
        selected = {name: getattr(self.settings, name) for name in ("home", "database_url", "ray_address")}
        job_settings = payload["settings"] | selected
        resources = share(self.settings, gpu=job_settings["device"].startswith("cuda"))
        task = self._task.options(**resources, name=f"job {job.id} ({job.kind}), attempt {job.attempt}")
        return RayProcess(task.remote(job.id, payload | {"settings": job_settings}, str(log.resolve())))

    def slots(self, settings: Settings) -> list[Slot]:
        """The slots that fit in the cluster when the worker starts, minus the actors of a job."""
        resources, threads = capacity(), settings.threads or 1
        count = max(1, int(resources.get("CPU", 0) // threads) - settings.ray_actors)
        if not wants_gpu(settings):
            return [Slot(CPU, ("", CPU), "cpu", threads) for _ in range(count)]
        gpus = max(1, int(resources.get("GPU", 0) / settings.gpus_per_job))
        return [
            *(Slot(GPU, ("", GPU), "cuda", threads) for _ in range(gpus)),
            *(Slot(CPU, (CPU,), "cpu", threads) for _ in range(max(1, count - gpus))),
        ]

    def close(self) -> None:
        leave()
