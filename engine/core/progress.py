"""How long work reports what it does now, how far it is, and how long it will take; and how it learns that it should stop.

Every long function takes a `progress: Progress` and calls `check()` at least once a second. The base class reports
nowhere; the command line writes to stderr, a job writes to its row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping


class Eta:
    """Seconds left, from the pace since the start of a step, smoothed towards the recent pace."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.end: float | None = None  # when it ends at the latest
        self.done: float | None = None  # units at the last report
        self.seconds_per_unit: float | None = None  # smoothed

    def update(self, done: float, total: float | None) -> float | None:
        """Seconds left when `done` of `total` units are finished, or None while nothing is known.

        What is done at the first report counts for nothing if it is more than 0: an earlier run did it.
        """
        if not total:
            return None
        now = time.monotonic()
        if self.done is None:
            self.done, self.last = done, now if done else self.last
        elif done > self.done:
            recent = (now - self.last) / (done - self.done)
            self.seconds_per_unit = (
                recent if self.seconds_per_unit is None else 0.8 * self.seconds_per_unit + 0.2 * recent
            )
            self.done, self.last = done, now
        left = None if self.seconds_per_unit is None else max(0.0, (total - done) * self.seconds_per_unit)
        if left is None or self.end is None or done >= total:
            return left
        return min(left, max(0.0, self.end - now))


def duration(seconds: float | None) -> str:
    """Seconds as a person says them: `48 s`, `6 min`, `2 h 10 min`, `58 h`."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 600 else f"{round(seconds / 3600)} h"


class Progress:
    """Reports nowhere. Subclasses override `show`, `metrics` and `check`."""

    def __init__(self) -> None:
        self.step = ""
        self.index = 0
        self.steps = 1
        self._eta = Eta()

    def begin(self, step: str, index: int = 0, steps: int = 1) -> None:
        """A new step starts: its name in the user's words, its place (from 0) among `steps`. One that is skipped counts as done."""
        self.step, self.index, self.steps = step, index, steps
        self._eta = Eta()
        self.advance(0, None)

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        """`done` of `total` units of the current step are finished. Raises Cancelled when the user wants to stop."""
        self.check()
        self.show(done, total, self._eta.update(done, total), note)

    def ends_within(self, seconds: float) -> None:
        """The step is cut off after so many seconds, whatever is done by then."""
        self._eta.end = time.monotonic() + seconds

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        """Make it visible; `eta` in seconds."""

    def metrics(self, row: Mapping[str, object]) -> None:
        """A row of figures (step, loss, …) for curves and logs."""

    def check(self) -> None:
        """Raises Cancelled when the user wants to stop."""


class Quiet(Progress):
    """Reports nothing, and hears that it should stop: for a second pass over what was counted already."""

    def __init__(self, inner: Progress) -> None:
        super().__init__()
        self.inner = inner

    def check(self) -> None:
        self.inner.check()


class Part(Quiet):
    """One of several passes that are counted as a whole: `before` units came in earlier passes, `total` are in all of them."""

    def __init__(self, inner: Progress, before: float, total: float) -> None:
        super().__init__(inner)
        self.before, self.total = before, total

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        self.inner.advance(self.before + done, self.total, note)
