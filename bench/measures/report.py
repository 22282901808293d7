"""`bench/RESULTS.md`: a part for the speed table, made by the command alone; other parts of the file stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measures.row import Row, table

__all__ = ["write_results"]

BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
HEAD = "# Results\n\nMade by the commands that stand with each table; edits by hand are lost.\n"


def write_results(path: Path, about: dict[str, Any], rows: Sequence[Row]) -> None:
    """Put table, machine, date and command between the marks; a file without them gets them at its end."""
    text = path.read_text(encoding="utf-8") if path.exists() else HEAD
    figures = [one for row in rows for one in row.figures.values() if isinstance(one, dict)]
    rounds = max((one.get("rounds", 0) for one in figures), default=0)
    part = (
        f"{BEGIN}\n## Speed\n\n    {about['command']}\n\n{about['date']}; {about['processor']}, {about['cores']} cores, "
        f"{about['threads']} thread{'s' * (about['threads'] != 1)}, load {about['load']}; Python {about['python']}, torch "
        f"{about['torch']}. Medians of {rounds} "
        f"rounds; ratios of processor time.\n\n{table(rows)}\n{END}\n"
    )
    if BEGIN in text and END in text:
        before, _, rest = text.partition(BEGIN)
        text = before + part + rest.partition(END)[2].lstrip("\n")
    else:
        text = f"{text.rstrip()}\n\n{part}"
    path.write_text(text, encoding="utf-8")
