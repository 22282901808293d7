"""Rate limits: a token bucket per key, refilled over time. Kept in memory, so a restart resets them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_KEYS = 20_000  # addresses, tokens and names; the least recently used key is dropped


class RateLimit:
    """Allows `count` actions per `seconds`, at once or spread out. Thread-safe."""

    def __init__(self, count: float, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.count, self.seconds, self.clock = float(count), seconds, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # remaining actions, and when counted
        self._lock = threading.Lock()

    def take(self, key: str) -> float:
        """Count one action and return 0; if there were too many, count nothing and return the seconds to wait."""
        with self._lock:
            remaining = self._now(key)
            if remaining < 1:
                return (1 - remaining) * self.seconds / self.count
            self._keep(key, remaining - 1)
            return 0.0

    def give_back(self, key: str) -> None:
        """Undo the count of one action."""
        with self._lock:
            self._keep(key, min(self.count, self._now(key) + 1))

    def wait(self, key: str) -> float:
        """The seconds until another action is allowed, without counting one."""
        with self._lock:
            remaining = self._now(key)
            return 0.0 if remaining >= 1 else (1 - remaining) * self.seconds / self.count

    def forget(self, key: str) -> None:
        """Reset the count of a key."""
        with self._lock:
            self._left.pop(key, None)

    def _now(self, key: str) -> float:
        remaining, moment = self._left.get(key, (self.count, self.clock()))
        return min(self.count, remaining + (self.clock() - moment) * self.count / self.seconds)

    def _keep(self, key: str, remaining: float) -> None:
        self._left[key] = (remaining, self.clock())
        self._left.move_to_end(key)
        while len(self._left) > MOST_KEYS:
            self._left.popitem(last=False)
