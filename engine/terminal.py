"""What the command line shows: progress on stderr, tables whose columns line up for Chinese too, and Ctrl-C as a wish."""

from __future__ import annotations

import signal
import sys
import time
import unicodedata
from collections.abc import Sequence
from types import FrameType
from typing import Any

from engine.errors import Cancelled
from engine.progress import Progress, duration

__all__ = ["TerminalProgress", "stop_on_interrupt", "table", "width"]

_stopped = False


def stop_on_interrupt() -> None:
    """Make the first Ctrl-C (or SIGTERM) a wish that long work hears at its next check; a second one ends at once."""

    def wish(number: int, frame: FrameType | None) -> None:
        global _stopped  # noqa: PLW0603 - a signal handler has nowhere else to write
        if _stopped:
            raise KeyboardInterrupt
        _stopped = True
        print("\nStopping at the next safe point …", file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, wish)
    signal.signal(signal.SIGTERM, wish)


class TerminalProgress(Progress):
    """One line that changes on a terminal; elsewhere a line a step and one every ten seconds."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__()
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self.shown = 0.0
        self.line = ""

    def check(self) -> None:
        if _stopped:
            self.close()
            raise Cancelled("Stopped. What is finished is kept: run the same command again to go on.")

    def begin(self, step: str, index: int = 0, steps: int = 1) -> None:
        self.close()
        self.shown = 0.0
        super().begin(step, index, steps)

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        now = time.monotonic()
        if self.quiet or not self.step or (now - self.shown < (0.1 if self.live else 10) and done != total):
            return
        self.shown = now
        place = f"[{self.index + 1}/{self.steps}] " if self.steps > 1 else ""
        share = f" {done / total:4.0%}" if total else ""
        left = f", {duration(eta)} left" if eta else ""
        line = f"{place}{self.step}{share}{left}{', ' + note if note else ''}"
        if line == self.line:
            return
        self.line = line
        print(f"\r\x1b[K{line}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the changing line."""
        if self.live and self.line:
            print(file=sys.stderr, flush=True)
        self.line = ""


def width(text: str) -> int:
    """Columns that a text takes on a terminal: two for a wide character."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def wrap(text: str, columns: int) -> list[str]:
    """Break a text into lines of at most `columns`, at spaces where there are some."""
    lines, line, used = [], "", 0
    words = text.split(" ")
    for i, word in enumerate(words):
        piece = word if i == len(words) - 1 else word + " "
        if used + width(word) > columns and line.strip() and width(word) <= columns:
            lines.append(line.rstrip())
            line, used = "", 0
        for c in piece:
            if used + width(c) > columns:
                lines.append(line.rstrip())
                line, used = "", 0
            line, used = line + c, used + width(c)
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], columns: int = 110) -> str:
    """A plain table; cells too long for their share of the line are wrapped."""
    texts = [[str(cell) for cell in row] for row in [head, *rows]]
    count = len(head)
    wants = [max(width(row[i]) for row in texts) for i in range(count)]
    room = columns - 3 * (count - 1)
    while sum(wants) > room:
        wants[wants.index(max(wants))] -= 1
    lines = []
    for n, row in enumerate(texts):
        cells = [wrap(cell, want) for cell, want in zip(row, wants, strict=True)]
        for k in range(max(map(len, cells))):
            parts = [cell[k] if k < len(cell) else "" for cell in cells]
            lines.append(
                "   ".join(part + " " * (want - width(part)) for part, want in zip(parts, wants, strict=True)).rstrip()
            )
        if n == 0:
            lines.append("   ".join("-" * want for want in wants))
        elif any(len(cell) > 1 for cell in cells) and n < len(texts) - 1:
            lines.append("")
    return "\n".join(lines)
