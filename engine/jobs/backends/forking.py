"""Jobs as forks of a process that has loaded the libraries, so that they start without delay (Linux).

The forked process is Python's fork server, which runs only imports (`engine.jobs.preload`), so that there are no threads or
locks that a fork could lose. Otherwise, a job's process is as described in `engine.jobs.child`. If the program is updated while
the worker runs, the preloaded modules no longer match those on disk; from then on, each job starts a new Python process.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import sys
import sysconfig
import threading
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.json_object import Json
from engine.core.settings import ROOT
from engine.jobs.backends.base import JobProcess
from engine.jobs.backends.local import LocalBackend
from engine.jobs.processes import STOP, end_tree, name_process, send
from engine.store.records import JobRow

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

_LOCK = threading.Lock()  # multiprocessing polls all its processes when it starts one


class ForkedProcess:
    """A forked process, which ends when the pipe to it is closed."""

    lost = False

    def __init__(self, process: ForkServerProcess, pipe: Connection) -> None:
        self._process, self._pipe = process, pipe
        assert process.pid is not None
        self.pid: int = process.pid

    def poll(self) -> int | None:
        with _LOCK:
            return self._process.exitcode

    def wait(self, seconds: float) -> int | None:
        wait([self._process.sentinel], seconds)
        return self.poll()

    def ask(self) -> None:
        if not self._pipe.closed:
            with contextlib.suppress(OSError):  # already ended
                os.write(self._pipe.fileno(), STOP)
            self._pipe.close()

    def terminate(self) -> None:
        self._process.terminate()

    def end(self) -> None:
        end_tree(self.pid)
        wait([self._process.sentinel])
        self.ask()


class ForkingBackend(LocalBackend):
    """Starts jobs on this machine by forking; the fork server is started here and ends with this process."""

    def __init__(self) -> None:
        self._installed = installed()
        self._context = multiprocessing.get_context("forkserver")
        forkserver.set_forkserver_preload(["engine.jobs.preload"])
        forkserver.ensure_running()

    def start(self, job: JobRow, payload: Json, log: Path) -> JobProcess:
        if installed() != self._installed:  # updated meanwhile
            return super().start(job, payload, log)
        log.open("ab").close()  # here, so that errors can be reported
        reading, writing = self._context.Pipe(duplex=False)
        process = self._context.Process(target=run_job, args=(job.id, reading, str(log), dict(os.environ)))
        with _LOCK:
            process.start()
        reading.close()
        send(payload, writing.fileno())
        return ForkedProcess(process, writing)


def installed() -> tuple[float, float] | None:
    """Modification times of the program and of its libraries, in seconds since 1970; None while they are being changed."""
    try:
        program = max(file.stat().st_mtime for file in (ROOT / "engine").rglob("*.py"))
        return program, Path(sysconfig.get_paths()["purelib"]).stat().st_mtime
    except OSError:
        return None


def run_job(number: int, pipe: Connection, log: str, environment: dict[str, str]) -> None:
    """Run a job in the fork, with a separate session, name, stdin and log, as in a newly started process."""
    os.setsid()
    name_process(number)
    os.dup2(pipe.fileno(), 0)
    pipe.close()
    with open(log, "ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", line_buffering=True)
    os.environ.clear()
    os.environ.update(environment)
    from engine.jobs.child import main

    sys.exit(main([str(number)]))
