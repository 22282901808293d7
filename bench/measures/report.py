"""`bench/RESULTS.md`: a part for the speed table, made by the command alone; other parts of the file stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measures.row import Row, table

__all__ = ["write_results"]

BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
HEAD = "# Results\n\nMade by the commands that stand with each table; edits by hand are lost.\n"


def write_results(path: Path, runs: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> None:
    """Put the table, and machine, date and command of each run, between the marks; a file without them gets them at its end."""
    text = path.read_text(encoding="utf-8") if path.exists() else HEAD
    said = "\n\n".join(f"    {run['command']}\n\n{told(run)}" for run in runs)
    part = (
        f"{BEGIN}\n## Speed\n\nRatios of processor time, medians over the rounds of a run; what a ratio is made of is in "
        f"[docs/performance.md](../docs/performance.md).\n\n{table(rows)}\n\n{said}\n{END}\n"
    )
    if BEGIN in text and END in text:
        before, _, rest = text.partition(BEGIN)
        text = before + part + rest.partition(END)[2].lstrip("\n")
    else:
        text = f"{text.rstrip()}\n\n{part}"
    path.write_text(text, encoding="utf-8")


def told(run: Mapping[str, Any]) -> str:
    threads = f"{run['threads']} thread{'s' * (run['threads'] != 1)}"
    return (
        f"{run['date']}; {run['processor']}, {run['cores']} cores, {threads}, load {run['load']} at the end; "
        f"Python {run['python']}, torch {run['torch']}; {run['rounds']} round{'s' * (run['rounds'] != 1)}."
    )
