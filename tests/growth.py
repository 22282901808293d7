"""How much more time a longer text takes, on a processor that others use as well."""

from __future__ import annotations

import statistics
from collections.abc import Callable

__all__ = ["growth"]

TURNS = 9


def growth(short: Callable[[], float], long: Callable[[], float], times: int) -> tuple[float, float]:
    """Seconds of a short text and of one `times` as long, as each call measures them.

    Other work makes either look slow, for a while. So each turn is one long text and as much of the short one, in about the same
    time, and of all turns the one with the middle ratio counts.
    """
    turns = [(statistics.mean(short() for _ in range(times)), long()) for _ in range(TURNS)]
    return sorted(turns, key=lambda turn: turn[1] / turn[0])[TURNS // 2]
