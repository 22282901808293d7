"""Tables that spreadsheets open: no text of a user is a formula, numbers stay numbers, and nothing else writes CSV."""

from __future__ import annotations

import ast
import csv
import io
import re
from pathlib import Path

import pytest

from engine.core.csv_export import write_row

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("http://evil")', "-", "- a"]
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
    writers = [file.name for file in files if re.search(r"csv\.(?:writer|DictWriter)\(", file.read_text(encoding="utf-8"))]
    assert writers == ["csv_export.py"]


# Texts with tabs that programs read, each text as it is: an apostrophe before it would be taken for a part of it.
TABS = {
    "engine/builders/parsers/conllu.py": "treebanks for Stanza",
    "engine/corpora/terminology.py": "the terms of a project, in the field that shows them and for the decoder",
    "engine/workflows/benchmark/tasks.py": "pairs for the studio's own import",
    "studio/services/glossaries.py": "DeepL's format of the entries of a glossary",
}


def has_tabs(node: ast.AST) -> bool:
    """Whether a part of a program puts tabs between values."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.Constant) and "\t" in str(part.value) for part in node.values)
    joined = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return isinstance(node, ast.Call) and isinstance(joined, ast.Constant) and joined.value == "\t"


def test_texts_with_tabs_are_written_for_programs_alone() -> None:
    files = [file for room in ("engine", "studio") for file in sorted((ROOT / room).rglob("*.py"))]
    paths = [
        str(file.relative_to(ROOT)) for file in files if any(map(has_tabs, ast.walk(ast.parse(file.read_text(encoding="utf-8")))))
    ]
    assert paths == list(TABS)
