"""Tables of a workbook: their column names must equal the texts of their header cells, or Excel reports a damaged file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.core.numerals import whole_number

LONGEST_NAME = 255
AREA = re.compile(r"([A-Z]{1,3})([0-9]{1,7})(?::([A-Z]{1,3})([0-9]{1,7}))?")
ENCODED = {ord(sign): f"_x{ord(sign):04x}_" for sign in "\t\n\r"}


def column_number(letters: str) -> int:
    """A → 1, Z → 26, AA → 27."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    """1 → A, 26 → Z, 27 → AA."""
    letters = ""
    while number:
        number, remainder = divmod(number - 1, 26)
        letters = chr(65 + remainder) + letters
    return letters


@dataclass
class Label:
    """An attribute of a table column that repeats the text of a cell; `key` is the key of that text, once found."""

    column: Any
    attribute: str  # name, totalsRowLabel
    cell: str  # B3
    key: Hashable | None = None

    @property
    def text(self) -> str:
        return str(self.column.get(self.attribute) or "")

    def set(self, text: str) -> None:
        """Change the text."""
        self.column.set(self.attribute, text.translate(ENCODED))


@dataclass
class Table:
    """One table: its part, and the labels that repeat the texts of cells."""

    part: str
    labels: list[Label] = field(default_factory=list)
    fixed: bool = False  # the columns come from a query, which refers to their names

    @classmethod
    def read(cls, part: str, root: Any) -> Table:
        """The table in a part, without labels if it has no header cells or does not state its area."""
        table = cls(part, fixed=root.get("tableType") == "queryTable")
        area = AREA.fullmatch(str(root.get("ref") or ""))
        if area is None or root.get("headerRowCount") == "0":
            return table
        first, last = area[2], area[4] or area[2]
        totals = whole_number(root.get("totalsRowCount"), 1) is not None
        for column, element in enumerate(root.iterfind("{*}tableColumns/{*}tableColumn"), column_number(area[1])):
            table.labels.append(Label(element, "name", f"{column_letters(column)}{first}"))
            if totals and element.get("totalsRowLabel"):
                table.labels.append(Label(element, "totalsRowLabel", f"{column_letters(column)}{last}"))
        return table

    def clashes(self, texts: Mapping[Hashable, str]) -> bool:
        """Whether these texts in the cells would give two columns the same name or a column an invalid one."""
        names = [texts.get(label.key, label.text).casefold() for label in self.labels if label.attribute == "name"]
        return len({*names}) < len(names) or not all(name.strip() and len(name) <= LONGEST_NAME for name in names)


def settle(tables: Sequence[Table], texts: Mapping[Hashable, str]) -> set[Hashable]:
    """The keys of texts that must not change, so that no table gets clashing column names; `texts` are the new texts by key.

    If a table's names clash, none of them change, nor do those of tables that share texts with it, and so on.
    """
    sharing: dict[Hashable, list[Table]] = {}
    for table in tables:
        for label in table.labels:
            if label.key is not None:
                sharing.setdefault(label.key, []).append(table)
    stay: set[Hashable] = set()
    queue = [table for table in tables if table.clashes(texts)]
    while queue:
        for label in queue.pop().labels:
            if label.key is not None and label.key not in stay:
                stay.add(label.key)
                queue += sharing[label.key]
    return stay
