"""A row of the table, and the table."""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Row", "machine", "table"]


@dataclass(frozen=True)
class Row:
    """One measure. `value` is what the limit is about; a ratio is of CPU seconds, and `wall` the same by the clock."""

    name: str
    measure: str
    value: float
    limit: float | None = None  # None: stated, without a limit
    at_least: bool = False  # else the limit is the most that may be
    unit: str = "x"
    wall: float | None = None
    note: str = ""
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def to_mapping(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "met": self.met}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Row:
        return cls(**{key: value for key, value in mapping.items() if key != "met"})


def shown(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}{unit if unit == 'x' else ' ' + unit}"


def table(rows: Sequence[Row]) -> str:
    """Markdown."""
    lines = ["| measure | must reach | measured | by the clock | met | what it is made of |", "|---|---:|---:|---:|---|---|"]
    for row in rows:
        limit = "" if row.limit is None else f"{'≥' if row.at_least else '≤'} {shown(row.limit, row.unit)}"
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        value, wall = shown(row.value, row.unit), shown(row.wall, row.unit)
        lines.append(f"| {row.measure} | {limit} | **{value}** | {wall} | {met} | {row.note} |")
    return "\n".join(lines)


def machine(rounds: int = 0) -> dict[str, Any]:
    """Where and when: processor, cores, threads, load, versions, the command."""
    import torch

    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        models = [x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "processor": name,
        "cores": os.cpu_count(),
        "rounds": rounds,
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "command": " ".join(["python", *sys.argv]),
    }
