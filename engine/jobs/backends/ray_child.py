"""The process of one job on a node of a cluster: `engine.jobs.child`, which here also dies with the task that started it.

Otherwise a node that was given up for lost could go on for seconds beside the next attempt.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from engine.jobs.child import main

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask Linux for SIGKILL at the parent's end; elsewhere the closing pipe has to do."""
    parent = os.getppid()
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended in between
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent()
    sys.exit(main(sys.argv[1:]))
