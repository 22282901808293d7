"""The speed table's part of `bench/RESULTS.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.workflows.benchmark.results import put_part
from measures.row import Row, table

__all__ = ["write_results"]


def write_results(path: Path, runs: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> None:
    """Put the table, and machine, date and command of each run, into the file."""
    text = "\n\n".join(f"    {run['command']}\n\n{told(run)}" for run in runs)
    put_part(
        path,
        "speed",
        "## Speed\n\nRatios of processor time, medians over the rounds of a run; what a ratio is made of is in "
        f"[docs/performance.md](../docs/performance.md).\n\n{table(rows)}\n\n{text}",
    )


def told(run: Mapping[str, Any]) -> str:
    threads = f"{run['threads']} thread{'s' * (run['threads'] != 1)}"
    rounds = f"; {run['rounds']} round{'s' * (run['rounds'] != 1)}" if run["rounds"] else ""
    return (
        f"{run['date']}; {run['processor']}, {run['cores']} cores, {threads}, load {run['load']} at the end; "
        f"Python {run['python']}, torch {run['torch']}{rounds}."
    )
