"""How long-running work reports its current step, its progress and the time left, and how it is cancelled.

Every long-running function takes a `progress: Progress` and calls `check()` at least once a second. The base class reports
nothing; the command line writes to stderr, a job writes to its row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping


class Eta:
    """Seconds left, from the pace since the start of a step, smoothed towards the recent pace."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.end: float | None = None  # the latest time at which it ends
        self.done: float | None = None  # units at the last report
        self.seconds_per_unit: float | None = None  # smoothed

    def update(self, done: float, total: float | None) -> float | None:
        """Seconds left when `done` of `total` units are finished, or None if unknown.

        Units already done at the first report are not counted as work: an earlier run did them.
        """
        if not total:
            return None
        now = time.monotonic()
        if self.done is None:
            self.done, self.last = done, now if done else self.last
        elif done > self.done:
            recent = (now - self.last) / (done - self.done)
            self.seconds_per_unit = recent if self.seconds_per_unit is None else 0.8 * self.seconds_per_unit + 0.2 * recent
            self.done, self.last = done, now
        remaining = None if self.seconds_per_unit is None else max(0.0, (total - done) * self.seconds_per_unit)
        if remaining is None or self.end is None or done >= total:
            return remaining
        return min(remaining, max(0.0, self.end - now))


def duration(seconds: float | None) -> str:
    """Seconds in human-readable form: `48 s`, `6 min`, `2 h 10 min`, `58 h`."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 600 else f"{round(seconds / 3600)} h"


class Progress:
    """Reports nothing. Subclasses override `show`, `metrics` and `check`."""

    def __init__(self) -> None:
        self.step = ""
        self.index = 0
        self.steps = 1
        self._eta = Eta()

    def begin(self, step: str, index: int = 0, steps: int = 1) -> None:
        """Start a step: its name in the user's words and its index (from 0) among `steps`. A skipped step counts as done."""
        self.step, self.index, self.steps = step, index, steps
        self._eta = Eta()
        self.advance(0, None)

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        """Report `done` of `total` units of the current step. Raises Cancelled if the user wants to stop."""
        self.check()
        self.show(done, total, self._eta.update(done, total), note)

    def ends_within(self, seconds: float) -> None:
        """Announce that the step is cut off after this many seconds."""
        self._eta.end = time.monotonic() + seconds

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        """Display the progress; `eta` in seconds."""

    def metrics(self, row: Mapping[str, object]) -> None:
        """Record a row of figures (step, loss, …) for curves and logs."""

    def check(self) -> None:
        """Raise Cancelled if the user wants to stop."""


class Quiet(Progress):
    """Reports nothing but can be cancelled: for a second pass over work that was counted already."""

    def __init__(self, inner: Progress) -> None:
        super().__init__()
        self.inner = inner

    def check(self) -> None:
        self.inner.check()


class Part(Quiet):
    """One of several passes counted as a whole: `before` units belong to earlier passes, `total` to all passes."""

    def __init__(self, inner: Progress, before: float, total: float) -> None:
        super().__init__(inner)
        self.before, self.total = before, total

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        self.inner.advance(self.before + done, self.total, note)
