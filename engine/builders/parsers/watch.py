"""Monitoring stanza's trainers: turns their log lines into progress and stops them between two updates on request."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path

from engine.core.progress import Progress

# "Step 50/3000 Loss", "Finished STEP 50/3000, loss", "12: step 20/90 (epoch 1/12)"
STEP = re.compile(r"\bstep\s+(\d+)/\s*(\d+)", re.IGNORECASE)
SCORE = re.compile(r"(?:Dev score:|dev_score =)\s*([\d.]+)")


class TimeIsUp(Exception):  # noqa: N818 - not an error: the best model so far is kept
    """The part has reached its time limit."""


class ProgressHandler(logging.Handler):
    """A log handler that reports a trainer's progress. Its exceptions pass through the trainer, which saves only whole models."""

    def __init__(self, progress: Progress, minutes: int = 0, model: Path | None = None) -> None:
        super().__init__(logging.INFO)
        self.progress = progress
        self.model = model
        self.end = time.monotonic() + 60 * minutes if minutes else float("inf")
        self.note = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if match := SCORE.search(text):
            value = float(match[1])
            self.note = f"score on held-out sentences {value if value > 1 else 100 * value:.1f}"
        if match := STEP.search(text):
            self.step(int(match[1]), int(match[2]))

    def step(self, done: float, total: float) -> None:
        """Report `done` of `total` updates. Raises Cancelled or TimeIsUp."""
        self.progress.advance(done, total, self.note)
        if time.monotonic() > self.end and self.model is not None and self.model.is_file():
            raise TimeIsUp


@contextlib.contextmanager
def watched(progress: Progress, minutes: int = 0, model: Path | None = None) -> Iterator[ProgressHandler]:
    """Redirect stanza's log to a ProgressHandler while the block runs. TimeIsUp ends the block without an error."""
    import stanza  # noqa: F401 - sets up the loggers that are redirected here

    watch = ProgressHandler(progress, minutes, model)
    loggers = [logging.getLogger(name) for name in ("stanza", "stanza.constituency", "stanza.constituency.trainer")]
    selected = [(logger, logger.level, logger.handlers, logger.propagate) for logger in loggers]
    try:
        for logger in loggers:
            logger.handlers, logger.propagate = [watch], False
            logger.setLevel(logging.INFO)
        with contextlib.suppress(TimeIsUp):
            yield watch
    finally:
        for logger, level, handlers, propagate in selected:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
