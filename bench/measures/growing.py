"""Time and memory of what the product does over the size of what grows; an item is what grows, with what is done with it.

A home grows from size to size in one process, and is measured at each size in a new one, so that memory is that of the
calls alone. Each call is made once in a small home first, since what is imported and read once per process does not grow.
"""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Call", "Item", "Point", "growth", "slope"]

ENOUGH = 0.4  # seconds after which a call is not made again
MOST_CALLS = 30
UPPER = 3  # sizes that the slope is of


@dataclass(frozen=True)
class Call:
    """What is done with a home. `again` empties what keeps its result, so that it can be measured more than once."""

    what: str
    run: Callable[[], Any]
    again: Callable[[], Any] | None = None
    once: bool = False


@dataclass(frozen=True)
class Item:
    """What grows, from `least` to `most`. `grow` brings a home to a size, `calls` says what is done with it."""

    name: str
    title: str
    least: int
    most: int
    grow: Callable[[Path, int], None]
    calls: Callable[[Path], Sequence[Call]]

    def sizes(self, most: int) -> list[int]:
        """Powers of ten up to `most`, which counts where it is smaller than the item's own."""
        last = min(self.most, most) if most else self.most
        return [size for power in range(10) if self.least <= (size := 10**power) <= last]


@dataclass(frozen=True)
class Point:
    """What one call took at one size: seconds of processor time, the median; MiB that it needed at its peak beyond those before."""

    item: str
    what: str
    size: int
    seconds: float
    mib: float | None
    calls: int


def growth(item: Item, folder: Path, most: int) -> Iterator[list[Point]]:
    """The points of an item, size by size."""
    small, home = folder / f"{item.name}-small", folder / item.name
    apart(item.grow, small, item.least)
    for size in item.sizes(most):
        apart(item.grow, home, size)
        yield [Point(**row) for row in apart(measured, item, small, home, size)]
    shutil.rmtree(home, ignore_errors=True)


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def measured(item: Item, small: Path, home: Path, size: int) -> list[dict[str, Any]]:
    for call in item.calls(small):
        call.run()
    return [asdict(measure(item.name, call, size)) for call in item.calls(home)]


def measure(item: str, call: Call, size: int) -> Point:
    """The first call gives the memory; the time is the median of so many as fit."""
    seconds: list[float] = []
    before, peak = settled(), None
    while not seconds or (not call.once and sum(seconds) < ENOUGH and len(seconds) < MOST_CALLS):
        if call.again is not None and seconds:
            call.again()
        begin = time.process_time()
        result = call.run()
        seconds.append(time.process_time() - begin)
        if peak is None:
            peak = most_resident()
        del result
    mib = None if before is None or peak is None else max(0.0, peak - before)
    return Point(item, call.what, size, statistics.median(seconds), mib, len(seconds))


def settled() -> float | None:
    """Resident MiB after what is not needed any more was given back, and the peak begins anew; None where Linux is not."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return None
    return of_status("VmRSS")


def most_resident() -> float | None:
    return of_status("VmHWM")


def of_status(name: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), None)


def slope(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    """Of log value over log size, least squares over the upper sizes: 1 is linear, 0 does not grow. None with too few."""
    points = [(math.log(x), math.log(y)) for x, y in zip(sizes, values, strict=True) if y > 0][-UPPER:]
    if len(points) < 2:
        return None
    mean_x, mean_y = (statistics.fmean(column) for column in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
