"""How often: one bucket per key, which fills again as time passes. Kept in memory; a restart forgives."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_KEYS = 20_000  # of addresses and tokens; the one heard of longest ago makes room


class RateLimit:
    """`count` acts in `seconds`, at once or spread out. Safe to use from several threads."""

    def __init__(self, count: float, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.count, self.seconds, self.clock = float(count), seconds, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left of a bucket, and when that was
        self._lock = threading.Lock()

    def take(self, key: str) -> float:
        """Count one act; returns 0, or the seconds to wait where there were too many, and then counts nothing."""
        with self._lock:
            left = self._now(key)
            if left < 1:
                return (1 - left) * self.seconds / self.count
            self._keep(key, left - 1)
            return 0.0

    def give_back(self, key: str) -> None:
        """Take back one act that was counted."""
        with self._lock:
            self._keep(key, min(self.count, self._now(key) + 1))

    def wait(self, key: str) -> float:
        """The seconds until another act is free; counts nothing."""
        with self._lock:
            left = self._now(key)
            return 0.0 if left >= 1 else (1 - left) * self.seconds / self.count

    def forget(self, key: str) -> None:
        """Reset the count of a key."""
        with self._lock:
            self._left.pop(key, None)

    def _now(self, key: str) -> float:
        left, moment = self._left.get(key, (self.count, self.clock()))
        return min(self.count, left + (self.clock() - moment) * self.count / self.seconds)

    def _keep(self, key: str, left: float) -> None:
        self._left[key] = (left, self.clock())
        self._left.move_to_end(key)
        while len(self._left) > MOST_KEYS:
            self._left.popitem(last=False)
