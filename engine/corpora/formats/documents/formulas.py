"""What formulas of a workbook call by its text: a cell whose text they compare with, a column of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 8192  # characters of a formula in Excel
# a bracket, a text, the name of a sheet
OUTSIDE = re.compile(r"""\[|"([^"]*(?:""[^"]*)*)"|'[^']*(?:''[^']*)*'""")
INSIDE = re.compile(r"'.|[\[\]]", re.DOTALL)  # a bracket, or a special sign with the ' before it
SPECIAL = re.compile(r"'(.)", re.DOTALL)
FORMULAS = ("f", "formula", "formula1", "formula2", "calculatedColumnFormula", "totalsRowFormula", "definedName")


def texts_in(formula: str) -> Iterator[str]:
    """The texts that stand in a formula, the entries of those that are lists, and the names of columns: `Prices[Old one]`."""
    at = depth = start = 0
    formula = formula[:LONGEST]
    while match := (INSIDE if depth else OUTSIDE).search(formula, at):
        at = match.end()
        if depth and match[0] in "[]":
            name = SPECIAL.sub(r"\1", formula[start : match.start()]).strip()
            yield from {name, name.removeprefix("@")} - {""}
            depth, start = depth + (1 if match[0] == "[" else -1), at
        elif not depth and match[0] == "[":
            depth, start = 1, at
        elif not depth and match[1]:
            text = match[1].replace('""', '"')
            yield text
            if "," in text:
                yield from filter(None, map(str.strip, text.split(",")))
