"""The metrics of a running training: metrics.jsonl for curves, and means over the latest updates for progress messages."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.atomic_files import write_jsonl
from engine.core.json_object import Json
from engine.errors import storage_errors


def read_metrics(path: Path) -> list[Json]:
    """The rows written so far, without a line truncated by a crash."""
    rows = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return rows


class MetricsLog:
    """metrics.jsonl, one JSON object per line, appended; when training resumes, rows after its checkpoint are removed."""

    def __init__(self, path: Path, resume_at: int | None) -> None:
        self.path = path
        rows = read_metrics(path) if resume_at is not None else []
        write_jsonl(path, [row for row in rows if row.get("step", 0) <= (resume_at or 0)], "the training log")

    def write(self, row: Mapping[str, Any]) -> None:
        with storage_errors("the training log", self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def first_validation(self) -> float:
        return next((float(row["valid_loss"]) for row in read_metrics(self.path) if "valid_loss" in row), 0.0)


class Meter:
    """Means over the updates since the last report, and tokens per second."""

    def __init__(self) -> None:
        self.note = ""
        self._reset()

    def _reset(self) -> None:
        self.begin = self.last = time.monotonic()
        self.tokens = self.batches = 0
        self.sums: dict[str, float] = {}

    def skip_elapsed(self) -> None:
        """Exclude the time since the last batch, which was not spent on training."""
        self.begin += time.monotonic() - self.last
        self.last = time.monotonic()

    def add(self, tokens: int, loss: float, parts: Mapping[str, float]) -> None:
        """Add a batch: its target tokens, its loss and the loss terms."""
        self.last = time.monotonic()
        self.tokens += tokens
        self.batches += 1
        for key, value in {"loss": loss, **parts}.items():
            self.sums[key] = self.sums.get(key, 0.0) + value

    def row(self) -> dict[str, float]:
        """Return the means and reset."""
        speed = self.tokens / max(1e-6, time.monotonic() - self.begin)
        means = {key: round(value / max(1, self.batches), 5) for key, value in self.sums.items()}
        self.note = f"loss {means.get('nll', means.get('loss', 0.0)):.3f}, {speed:,.0f} tokens/s"
        self._reset()
        return {**means, "tokens_per_second": round(speed, 1)}
