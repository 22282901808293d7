"""Liveness of workers and jobs, judged by whether their heartbeats change rather than by the clock.

A heartbeat is the time on the machine that wrote it. That clock may be wrong, may be adjusted while jobs run, and differs
between machines. An old heartbeat is also no sign of death if the database was unavailable for a while. Observers therefore
use a local monotonic clock: an owner is dead if its heartbeat stayed unchanged over successive checks for long enough.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

STALE_SECONDS = 20.0  # without a new heartbeat until the owner is considered dead
CONFIRM_SECONDS = 12.0  # the same if the heartbeat is also old by the clock; longer than an orphaned job takes to end
GAP_SECONDS = 15.0  # between checks until observation restarts: the database may have been unavailable to the owner too


def recent(beat: datetime.datetime | None, within: float = STALE_SECONDS) -> bool:
    """Whether a heartbeat is recent by this machine's clock, in either direction, since the clock may have been set back."""
    return beat is not None and abs((datetime.datetime.now(datetime.UTC) - beat).total_seconds()) < within


@dataclass
class _Watch:
    beat: datetime.datetime | None
    since: float
    looked: float


class HeartbeatMonitor:
    """Tracks heartbeats over repeated checks. `clock` counts seconds and is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: dict[Hashable, _Watch] = {}

    def beating(self, owner: Hashable, beat: datetime.datetime | None) -> bool:
        """Record the current heartbeat; returns False once its owner is considered dead."""
        now = self._clock()
        watch = self._watched.get(owner)
        if watch is None or watch.beat != beat or now - watch.looked > GAP_SECONDS:
            self._watched[owner] = _Watch(beat, now, now)
            return True
        watch.looked = now
        unchanged = now - watch.since
        return unchanged < CONFIRM_SECONDS or (unchanged < STALE_SECONDS and recent(beat))

    def forget(self, exclude: set[Hashable]) -> None:
        """Drop all owners that are not in `exclude`."""
        for owner in self._watched.keys() - exclude:
            del self._watched[owner]
