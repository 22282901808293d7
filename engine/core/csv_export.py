"""CSV for spreadsheets. All CSV is written here, so that a user's text is never interpreted as a formula."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import TextIO

# Characters that spreadsheets take as the start of a formula, including full-width ones (OWASP, "CSV injection").
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def write_row(out: TextIO, cells: Iterable[object], end: str = "\r\n") -> None:
    """Write one row, terminated by `end`. Numbers stay numbers; a text that could be a formula gets a leading apostrophe."""
    csv.writer(out, lineterminator=end).writerow([guarded(cell) for cell in cells])


def guarded(cell: object) -> object:
    """A cell in a form that is safe to open in a spreadsheet."""
    if isinstance(cell, str) and FORMULA.match(cell) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
