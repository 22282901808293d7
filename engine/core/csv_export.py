"""CSV for spreadsheets, the one place that writes it: a text of a user that would be a formula there stays a text."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import TextIO

# What spreadsheets take as the start of a formula, the wide signs of East Asian keyboards too (OWASP, "CSV injection").
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def write_row(out: TextIO, cells: Iterable[object], end: str = "\r\n") -> None:
    """One row, which ends with `end`. Numbers stay numbers; a text that begins as a formula gets an apostrophe before it."""
    csv.writer(out, lineterminator=end).writerow([guarded(cell) for cell in cells])


def guarded(cell: object) -> object:
    """A cell as it may stand in a table that a spreadsheet opens."""
    if isinstance(cell, str) and FORMULA.match(cell) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
