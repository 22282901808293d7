"""The process of one job on a node of a cluster: `engine.jobs.child`, which here also ends with the task that started it.

Otherwise, a node considered lost could continue for seconds alongside the next attempt.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from engine.jobs.child import main

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Request SIGKILL on Linux when the parent ends; elsewhere, only the closing pipe ends the process."""
    parent = os.getppid()
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended in between
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent()
    sys.exit(main(sys.argv[1:]))
