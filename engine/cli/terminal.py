"""Terminal output: progress on stderr, a table of tried methods, and Ctrl-C as a request to stop."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType
from typing import Any

from engine.core.progress import Progress, duration
from engine.core.text_table import table
from engine.errors import Cancelled

_stopped = False


def stop_on_interrupt() -> None:
    """Make the first Ctrl-C (or SIGTERM) a request to stop at the next check of the progress; a second one ends at once."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        global _stopped  # noqa: PLW0603 - a signal handler has no other state
        if _stopped:
            raise KeyboardInterrupt
        _stopped = True
        print("\nStopping at the next safe point …", file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)


class TerminalProgress(Progress):
    """A line that is updated on a terminal; elsewhere, one line per step and one every ten seconds."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__()
        self.quiet = quiet
        self.resumes = True  # whether the same command continues when run again
        self.live = sys.stderr.isatty()
        self.shown = 0.0
        self.line = ""

    def check(self) -> None:
        if _stopped:
            self.close()
            raise Cancelled(
                "Stopped. What is finished is kept: run the same command again to continue."
                if self.resumes
                else "Stopped. Nothing was written."
            )

    def begin(self, step: str, index: int = 0, steps: int = 1) -> None:
        self.close()
        self.shown = 0.0
        super().begin(step, index, steps)

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        now = time.monotonic()
        if self.quiet or not self.step or (now - self.shown < (0.1 if self.live else 10) and done != total):
            return
        self.shown = now
        step = f"[{self.index + 1}/{self.steps}] " if self.steps > 1 else ""
        share = f" {done / total:4.0%}" if total else ""
        remaining = f", {duration(eta)} left" if eta else ""
        line = f"{step}{self.step}{share}{remaining}{', ' + note if note else ''}"
        if line == self.line:
            return
        self.line = line
        print(f"\r\x1b[K{line}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line that is being updated."""
        if self.live and self.line:
            print(file=sys.stderr, flush=True)
        self.line = ""


def comparison(tried: list[dict[str, Any]]) -> str:
    """A table of the methods that `auto` tried."""
    from engine.workflows.customize.run import Trial

    rows = [
        [f"{trial.name}{' *' if trial.chosen else ''}", trial.bleu, trial.chrf,
         "" if trial.general_bleu is None else trial.general_bleu, f"{trial.seconds:.0f}"]
        for trial in (Trial(**values) for values in tried)
    ]  # fmt: skip
    return "\nMethods that were tried (* is in the plugin)\n" + table(
        ["method", "BLEU held out", "chrF held out", "BLEU general text", "seconds"], rows
    )
