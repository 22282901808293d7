"""The cores that this process may use, and how it shares them with other processes."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

SPIN = "3000"  # iterations that a thread spins before it sleeps
_LOCK, _BEFORE = threading.Lock(), list[int]()  # previous thread counts, one per active `one_thread`
CGROUPS = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """The number of usable cores by process affinity and control-group quota; at least 1."""
    return max(1, min(affinity(), quota()))


def model_threads(requested: int) -> int:
    """Threads for models: at most one per core, since more would only wait for each other; 0: all cores."""
    return min(requested, usable_cores()) if requested else usable_cores()


def affinity() -> int:
    """The cores that the process may run on, regardless of its quota."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache
def quota(root: Path = CGROUPS, memberships: Path = Path("/proc/self/cgroup")) -> int:
    """The cores that the process's control groups grant it, rounded up; 2^20 if there is no limit.

    Reads `cpu.max` (version 2) and `cpu.cfs_quota_us` (version 1) of the group and its ancestors: a container's group is its
    root. Read once, since a process keeps its number of threads.
    """
    try:
        lines = memberships.read_text(encoding="utf-8").splitlines()
    except OSError:
        return 1 << 20
    granted = [math.inf]
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number != "0" and "cpu" not in controllers.split(","):
            continue
        folder = root if number == "0" else root / controllers
        group = Path(path.strip("/"))
        granted += [_granted(folder / part) for part in (group, *group.parents)]
    return min(1 << 20, math.ceil(min(granted))) if math.isfinite(min(granted)) else 1 << 20


def _granted(folder: Path) -> float:
    """Cores granted by the files of one group; infinite if it has no limit."""
    try:
        if (file := folder / "cpu.max").exists():
            limit, period = file.read_text(encoding="ascii").split()
        else:
            limit = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        return int(limit) / int(period) if limit.isdigit() and int(limit) and int(period) else math.inf
    except (OSError, ValueError):
        return math.inf


def share_cores(*, spin: bool = True) -> None:
    """Make models' waiting threads sleep, after a moment of spinning unless `spin` is false, and limit them to the granted cores.

    Spinning threads occupy cores that others need; threads that sleep at once take longer to wake than many products take
    (docs/performance.md, "Waiting threads"). Must be called before torch is loaded; variables set by the user are kept.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if spin and os.environ["OMP_WAIT_POLICY"] == "PASSIVE":
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)
    elif not spin and os.environ.get("GOMP_SPINCOUNT") == SPIN:  # inherited from the parent process
        del os.environ["GOMP_SPINCOUNT"]
    if (cores := usable_cores()) < affinity():  # torch respects the affinity but not the quota
        os.environ.setdefault("OMP_NUM_THREADS", str(cores))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch on one thread, for many products too small to be shared (a fit of a few weights, a parser).

    Threads that wait for each other cost up to ten times what they save. Blocks may overlap: the original number is restored.
    """
    import torch

    with _LOCK:
        _BEFORE.append(_BEFORE[0] if _BEFORE else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            torch.set_num_threads(_BEFORE.pop())
