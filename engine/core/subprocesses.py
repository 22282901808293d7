"""Running programs in separate processes that a user can stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.core.progress import Progress


def run_program(
    command: Sequence[str], progress: Progress, *, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a program in `folder`, with `environment` added to ours; returns (exit status, stdout, stderr).

    Raises OSError if it cannot be started, and Cancelled if the user stops; then it is ended with its child processes.
    """
    child = subprocess.Popen(
        list(command), cwd=folder, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        while True:
            try:
                out, err = child.communicate(timeout=1)
                return child.returncode, out, err
            except subprocess.TimeoutExpired:
                progress.check()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        raise


def last_line(output: str) -> str:
    """The last non-blank line, where a failed program usually reports the reason."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no word")
