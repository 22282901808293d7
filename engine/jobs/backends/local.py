"""Jobs as child processes of the worker."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.jobs.backends.base import JobProcess
from engine.jobs.processes import STOP, end_tree, spawn
from engine.jobs.slots import Slot, slots_of
from engine.store.records import JobRow


class LocalProcess:
    """A child process, which ends when the pipe to it is closed."""

    lost = False

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid: int = process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def ask(self) -> None:
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(OSError):  # already ended
                pipe.write(STOP)
            pipe.close()

    def terminate(self) -> None:
        self._process.terminate()

    def end(self) -> None:
        end_tree(self.pid)
        self._process.wait()
        self.ask()


class LocalBackend:
    """Starts jobs on this machine."""

    def start(self, job: JobRow, payload: Json, log: Path) -> JobProcess:
        return LocalProcess(spawn("engine.jobs.child", [str(job.id)], payload, log))

    def slots(self, settings: Settings) -> list[Slot]:
        return slots_of(settings)

    def close(self) -> None:
        pass
