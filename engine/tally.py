"""What this process did, counted: for whoever asks how it is. A counter costs a microsecond and needs no library."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["BUCKETS", "TALLY", "Tally"]

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds


class Tally:
    """Counters and durations by name. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: dict[str, float] = {}
        self.times: dict[str, list[float]] = {}  # a count for each of BUCKETS and for more, then the sum

    def add(self, name: str, count: float = 1) -> None:
        """Count something."""
        with self._lock:
            self.counts[name] = self.counts.get(name, 0) + count

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """How long the block took, also where it failed."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - begun
            place = next((number for number, most in enumerate(BUCKETS) if seconds <= most), len(BUCKETS))
            with self._lock:
                found = self.times.setdefault(name, [0.0] * (len(BUCKETS) + 2))
                found[place] += 1
                found[-1] += seconds

    def read(self) -> tuple[dict[str, float], dict[str, list[float]]]:
        """A copy of all."""
        with self._lock:
            return dict(self.counts), {name: list(values) for name, values in self.times.items()}


TALLY = Tally()
