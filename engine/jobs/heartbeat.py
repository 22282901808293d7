"""Liveness of workers, judged by whether their heartbeats change, not by the clock.

A heartbeat is the time at the machine that wrote it. That clock may be wrong, may be set back or forward while jobs run,
and differs between machines; nor is an old heartbeat a sign of death where the database itself was away for a while. So
whoever looks goes by its own steady clock: dead is whose heartbeat it saw unchanged, look after look, for long enough.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

STALE_SECONDS = 20.0  # without a heartbeat, and one is given up
CONFIRM_SECONDS = 12.0  # the same for one that also looks old by the clock; longer than an orphaned job needs to end
GAP_SECONDS = 15.0  # between two looks, and the watch begins anew: nobody could beat where nobody could look


def recent(beat: datetime.datetime | None, within: float = STALE_SECONDS) -> bool:
    """Whether a heartbeat is of now by this machine's clock; one from the future was written before that was set back."""
    return beat is not None and abs((datetime.datetime.now(datetime.UTC) - beat).total_seconds()) < within


@dataclass
class _Watch:
    beat: datetime.datetime | None
    since: float
    looked: float


class HeartbeatMonitor:
    """The heartbeats that somebody looks at again and again. `clock` counts seconds and never jumps."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: dict[Hashable, _Watch] = {}

    def beating(self, who: Hashable, beat: datetime.datetime | None) -> bool:
        """Note the current heartbeat; False once its owner has to be considered dead."""
        now = self._clock()
        watch = self._watched.get(who)
        if watch is None or watch.beat != beat or now - watch.looked > GAP_SECONDS:
            self._watched[who] = _Watch(beat, now, now)
            return True
        watch.looked = now
        unchanged = now - watch.since
        return unchanged < CONFIRM_SECONDS or (unchanged < STALE_SECONDS and recent(beat))

    def forget(self, exclude: set[Hashable]) -> None:
        """Keep only what is still there to be looked at."""
        for who in self._watched.keys() - exclude:
            del self._watched[who]
