"""A process with limits of time and memory, in which a stranger's file is read for the first time: what a file does to the
program that reads it is known only afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.core.json_object import Json
from engine.core.settings import ROOT

LEAST_THREADS = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"}
WATCHED = 0.1  # seconds between two looks at the process


@dataclass(frozen=True)
class Limits:
    """What the process may take: `seconds` by the clock, `memory` in bytes."""

    seconds: float
    memory: int


class OverLimitError(Exception):
    """The process was ended: it took too long, needed too much memory, or ended before its last answer."""


class TooLongError(OverLimitError):
    """It was not done in time."""


class TooLargeError(OverLimitError):
    """It needed more memory than it may."""


def answers(module: str, request: Json, limits: Limits) -> Iterator[Json]:
    """The answers of `python -m MODULE`, whose `main` is `serve`, as they come. Raises OverLimitError."""
    child = subprocess.Popen(
        [sys.executable, "-m", module], cwd=ROOT, env={**os.environ, **LEAST_THREADS},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    over: list[OverLimitError] = []
    watch = threading.Thread(target=_watch, args=(child, limits, over), daemon=True)
    watch.start()
    last = False
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        with contextlib.suppress(OSError), child.stdin:  # it has ended already
            child.stdin.write(json.dumps({**request, "memory": limits.memory}).encode())
        for line in child.stdout:
            answer = json.loads(line)
            last = bool(answer["last"])
            yield answer
    except (ValueError, LookupError, TypeError):
        last = False
    finally:
        child.kill()
        child.wait()
        watch.join()
        if child.stdout is not None:
            child.stdout.close()
    if over:
        raise over[0]
    if not last:
        raise OverLimitError


def _watch(child: subprocess.Popen[bytes], limits: Limits, over: list[OverLimitError]) -> None:
    """End the process at its limits; that of memory too, which some systems do not keep themselves."""
    import psutil

    end = time.monotonic() + limits.seconds
    with contextlib.suppress(psutil.Error):  # it has ended
        process = psutil.Process(child.pid)
        while child.poll() is None:
            if time.monotonic() > end:
                over.append(TooLongError())
            elif process.memory_info().rss > limits.memory:
                over.append(TooLargeError())
            if over:
                child.kill()
                return
            time.sleep(WATCHED)


def serve(answers: Callable[[Json], Iterator[Json]]) -> None:
    """The body of the process: limits first, then one JSON object a line for the request, with `last` on the one that ends them."""
    request = json.load(sys.stdin)
    limit_memory(request["memory"])
    for answer in answers(request):
        print(json.dumps(answer), flush=True)


def limit_memory(count: int) -> None:
    """No more than `count` bytes of memory of its own for this process, which is also the first to be ended if there is none."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    # There are none on Windows, and some systems have lower ones.
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (count, count))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
