"""Starting, recognising and ending processes."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from engine.core.json_object import Json
from engine.core.settings import ROOT

# Windows knows no sessions: there, a group of its own without a window.
APART: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
HOST = socket.gethostname()
STOP = b"stop\n"  # what a worker that ends in order writes to the process of its job


def running(pid: int) -> bool:
    """Whether a process of this machine has that number and has not ended (a zombie has)."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def is_child(pid: int, job_id: int) -> bool:
    """Whether that process is the one of that job: numbers of ended processes are given again."""
    import psutil

    try:
        process = psutil.Process(pid)
        started = "engine.jobs.child" in (words := process.cmdline()) and words[-1] == str(job_id)
        return (started or process.name() == _name(job_id)) and running(pid)
    except psutil.Error:
        return False


def name_process(job_id: int) -> None:
    """Have this process, a fork, listed by the name of its job (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(_name(job_id), encoding="ascii")


def _name(job_id: int) -> str:
    return f"job {job_id}"  # of 15 letters at most


def end_tree(pid: int) -> None:
    """End a process and all that it started, at once."""
    import psutil

    try:
        parent = psutil.Process(pid)
        family = [*parent.children(recursive=True), parent]
    except psutil.Error:
        return
    for process in family:
        try:
            process.kill()
        except psutil.Error:
            continue


def spawn(module: str, arguments: list[str], payload: Json, log: Path) -> subprocess.Popen[bytes]:
    """Start `python -m module` in a session of its own, its output appended to `log`, `payload` as a line on stdin.

    The payload does not go on the command line, where all users of the machine could read a database password. The
    pipe stays open: its end tells the process that this one is gone. Raises OSError when it cannot be started.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            bufsize=0,  # so that closing the pipe never writes
            env=environment,
            start_new_session=True,  # Ctrl-C in a terminal is for the process that it was typed at
            creationflags=APART,
        )
    assert process.stdin is not None
    send(payload, process.stdin.fileno())
    return process


def send(payload: Json, pipe: int) -> None:
    """Write the payload for `receive` at the other end of the pipe."""
    with contextlib.suppress(OSError):  # it has ended already: the process that waits for it notices
        os.write(pipe, json.dumps(payload).encode() + b"\n")


def receive() -> Json:
    """Read the payload from stdin, unbuffered, so that the rest of the pipe can be watched. Raises EOFError where no
    worker started this process.
    """
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1)
        if not part:
            raise EOFError("this process is started by a worker, which hands it its settings on stdin")
        line += part
    return json.loads(line)
