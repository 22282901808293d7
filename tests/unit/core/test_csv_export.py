"""Tables that spreadsheets open: no text of a user is a formula, numbers stay numbers, and nothing else writes CSV."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from engine.core.csv_export import write_row

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("http://evil")', "-", "- a"],
)
def test_no_text_is_a_formula(text: str) -> None:
    out = io.StringIO()
    write_row(out, [text, "plain", f"a{text}"])
    assert next(csv.reader(io.StringIO(out.getvalue(), newline=""))) == [f"'{text}", "plain", f"a{text}"]


def test_numbers_stay_numbers() -> None:
    out = io.StringIO()
    write_row(out, [-1, -0.5, "-0.512", "+3", "-1e-05", "", None], "\n")
    assert out.getvalue() == "-1,-0.5,-0.512,+3,-1e-05,,\n"


def test_nothing_else_writes_csv() -> None:
    files = [file for room in ("engine", "studio") for file in (ROOT / room).rglob("*.py")]
    writers = [
        file.name for file in files if re.search(r"csv\.(?:writer|DictWriter)\(", file.read_text(encoding="utf-8"))
    ]
    assert writers == ["csv_export.py"]
