"""Starting, identifying and ending processes."""

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

# Windows has no sessions: there, a separate process group without a window.
APART: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
HOST = socket.gethostname()
STOP = b"stop\n"  # written to the job's process by a worker that shuts down normally


def running(pid: int) -> bool:
    """Whether a process with this id is running on this machine; zombies are not."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def is_child(pid: int, job_id: int) -> bool:
    """Whether the process runs this job; process ids are reused, so the id alone is not enough."""
    import psutil

    try:
        process = psutil.Process(pid)
        started = "engine.jobs.child" in (words := process.cmdline()) and words[-1] == str(job_id)
        return (started or process.name() == _name(job_id)) and running(pid)
    except psutil.Error:
        return False


def name_process(job_id: int) -> None:
    """Name this forked process after its job in process lists (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(_name(job_id), encoding="ascii")


def _name(job_id: int) -> str:
    return f"job {job_id}"  # Linux keeps at most 15 characters


def end_tree(pid: int) -> None:
    """Kill a process and all its descendants."""
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
    """Start `python -m module` in a new session, with output appended to `log` and `payload` as a line on stdin.

    The payload is not passed on the command line, where other users of the machine could read a database password. The pipe
    stays open; when it closes, the process knows that this one has ended. Raises OSError if it cannot be started.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            bufsize=0,  # so that closing the pipe never writes
            env=environment,
            start_new_session=True,  # not affected by Ctrl-C in the terminal
            creationflags=APART,
        )
    assert process.stdin is not None
    send(payload, process.stdin.fileno())
    return process


def send(payload: Json, pipe: int) -> None:
    """Write the payload to the pipe, for `receive` at the other end."""
    with contextlib.suppress(OSError):  # the process has already ended, which its watcher detects
        os.write(pipe, json.dumps(payload).encode() + b"\n")


def receive() -> Json:
    """Read the payload from stdin, unbuffered, so that the pipe can be watched. Raises EOFError if no worker sent it."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1)
        if not part:
            raise EOFError("this process is started by a worker, which hands it its settings on stdin")
        line += part
    return json.loads(line)
