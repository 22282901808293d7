"""What formulas of a workbook call by its text: a cell whose text they compare with, a column of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 8192  # characters of a formula in Excel
OUTSIDE = re.compile(r"""\[|"((?:[^"]++|"")*+)"|'(?:[^']++|'')*+'""")  # a bracket, a text, the name of a sheet
INSIDE = re.compile(
    r"((?:[^\[\]']++|'.)*+)([\[\]])", re.DOTALL
)  # up to the next bracket; ' stands before a special sign
SPECIAL = re.compile(r"'(.)", re.DOTALL)
FORMULAS = ("f", "formula", "formula1", "formula2", "calculatedColumnFormula", "totalsRowFormula", "definedName")


def texts_in(formula: str) -> Iterator[str]:
    """The texts that stand in a formula, the entries of those that are lists, and the names of columns: `Prices[Old one]`."""
    at, depth = 0, 0
    formula = formula[:LONGEST]
    while match := INSIDE.match(formula, at) if depth else OUTSIDE.search(formula, at):
        at = match.end()
        if depth:
            name = SPECIAL.sub(r"\1", match[1]).strip()
            yield from {name, name.removeprefix("@")} - {""}
            depth += 1 if match[2] == "[" else -1
        elif match[0] == "[":
            depth = 1
        elif match[1]:
            text = match[1].replace('""', '"')
            yield text
            if "," in text:
                yield from filter(None, map(str.strip, text.split(",")))
