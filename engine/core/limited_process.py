"""A process with limits of time and memory for the first reading of untrusted files, so that a malicious one does no harm."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.json_object import Json
from engine.core.oom import out_of_memory
from engine.core.settings import ROOT
from engine.errors import TailorError, TransientError
from engine.messages import Message

LEAST_THREADS = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"}
WATCHED = 0.1  # seconds between two checks of the process
# Limits of `answer_of`:
SECONDS = 60.0
SECONDS_PER_MIB = 1.0  # in addition
MEMORY = 2 << 30  # bytes
TURNS = threading.BoundedSemaphore(2)  # files that are read at the same time


@dataclass(frozen=True)
class Limits:
    """The limits of a process: `seconds` of wall-clock time, `memory` in bytes."""

    seconds: float
    memory: int


class OverLimitError(Exception):
    """The process took too long, needed too much memory, or ended before its last answer."""


class TooLongError(OverLimitError):
    """The process exceeded its time limit."""


class TooLargeError(OverLimitError):
    """The process exceeded its memory limit."""


def answers(module: str, request: Json, limits: Limits) -> Iterator[Json]:
    """The answers of `python -m MODULE`, whose `main` calls `serve`, as they arrive. Raises OverLimitError."""
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
        with contextlib.suppress(OSError), child.stdin:  # the process may have ended already
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
    """Kill the process at its limits, including memory, which some systems do not enforce."""
    import psutil

    end = time.monotonic() + limits.seconds
    with contextlib.suppress(psutil.Error):  # the process has ended
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
    """The body of the process: set limits, then print one JSON object per line; the one with `last` is the final answer."""
    request = json.load(sys.stdin)
    limit_memory(request["memory"])
    for answer in answers(request):
        print(json.dumps(answer), flush=True)


def answer_of(module: str, request: Json, files: Sequence[Path], *raises: type[TailorError], name: str = "") -> Json:
    """The single answer of `python -m MODULE`, whose `main` calls `serve_one`, about files; messages call the first one `name`.

    `raises` are the errors that the work may raise; the first is also raised if a file cannot be read within the limits. Raises
    TransientError if too many other files are being read.
    """
    name = name or files[0].name
    size = sum(file.stat().st_size for file in files if file.is_file()) / 2**20
    limits = Limits(SECONDS + SECONDS_PER_MIB * size, MEMORY)
    if not TURNS.acquire(timeout=SECONDS):
        raise TransientError("Other files are being read. Try again in a minute.")
    try:
        (answer,) = answers(module, request, limits)
        if answer.get("memory"):
            raise TooLargeError
    except OverLimitError as error:
        raise raises[0](_refusal(error, name, limits)) from None
    finally:
        TURNS.release()
    if "error" in answer:
        message = Message.from_mapping(answer["error"])
        for file in files:  # users know its name, not its location
            message = message.naming(str(file.absolute()), file.name)
        raise next((error_type for error_type in raises if error_type.__name__ == answer["type"]), raises[0])(message)
    return answer


def _refusal(error: OverLimitError, name: str, limits: Limits) -> Message:
    if isinstance(error, TooLongError):
        return Message(
            "{context} could not be read within {seconds:.0f} s. Save it again in its program, or split it.",
            context=name, seconds=limits.seconds,
        )  # fmt: skip
    if isinstance(error, TooLargeError):
        return Message(
            "{context} needs more than {memory:,.0f} MiB of memory to be read. Save it again in its program, or split it.",
            context=name, memory=limits.memory / 2**20,
        )  # fmt: skip
    return Message("{context} ended the process that read it. Save it again in its program.", context=name)


def serve_one(work: Callable[[Json], Json]) -> None:
    """The body of the process for a single answer: the result of `work`, or its error."""

    def answers(request: Json) -> Iterator[Json]:
        try:
            yield {**work(request), "last": True}
        except TailorError as error:
            yield {"error": error.message.to_mapping(), "type": type(error).__name__, "last": True}
        except Exception as error:
            if not out_of_memory(error):
                raise
            yield {"memory": True, "last": True}

    serve(answers)


def limit_memory(count: int) -> None:
    """Limit this process to `count` bytes of private memory, and make it the first to be killed if memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    # Not available on Windows; some systems have lower limits.
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (count, count))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
