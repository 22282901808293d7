"""The sheets of a workbook, read once: the texts of their cells, and those that formulas, filters or tables refer to."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.core.numerals import whole_number
from engine.corpora.formats.documents.cells import CellText, readable, text_key
from engine.corpora.formats.documents.model import DocumentError
from engine.corpora.formats.documents.package import Package
from engine.corpora.formats.documents.tables import AREA, Label, Table, column_letters, column_number

SHEETS = ("worksheet", "chartsheet", "dialogsheet", "xlMacrosheet", "xlIntlMacrosheet")
CACHES = ("pivotCacheDefinition", "slicerCache", "timelineCache")
FILTERS = ("filter", "customFilter")
LONGEST = 8192  # characters of a formula in Excel
# In a formula: a bracket, a text, the name of a sheet
OUTSIDE = re.compile(r"""\[|"([^"]*(?:""[^"]*)*)"|'[^']*(?:''[^']*)*'""")
INSIDE = re.compile(r"'.|[\[\]]", re.DOTALL)  # a bracket, or a special sign escaped by '
SPECIAL = re.compile(r"'(.)", re.DOTALL)
FORMULAS = ("f", "formula", "formula1", "formula2", "calculatedColumnFormula", "totalsRowFormula", "definedName")


@dataclass
class Text:
    """A text of cells: the location of the first such cell, and all elements that hold the text, with their parts."""

    location: str
    paragraph: CellText
    homes: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def plain_text(self) -> str:
        return self.paragraph.plain_text(self.paragraph.parts)


class Sheets:
    """The contents of a workbook's sheets. Raises DocumentError if a sheet is missing or damaged."""

    def __init__(self, package: Package, main: str) -> None:
        self.package = package
        self.texts: dict[Hashable, Text] = {}
        self.tables: list[Table] = []
        self.fixed: set[str] = set()  # casefolded texts to which something in the workbook refers verbatim
        self.calculated = False  # whether there are formulas that result in text
        self.sheets = self._sheets(main)
        self._shared_part, self._shared = self._shared_texts(main)
        self._keys: dict[int, Hashable] = {}  # of shared texts, by number
        self._find_names(main)
        for part, name in self.sheets.items():
            self._read(part, name)

    def _sheets(self, main: str) -> dict[str, str]:
        """{part: name} of the sheets, in order."""
        parts = {link.id: link.part for link in self.package.links(main, *SHEETS)}
        result: dict[str, str] = {}
        elements = list(self.package.tree(main).getroot().iterfind("{*}sheets/{*}sheet"))
        ids = [next((value for key, value in element.attrib.items() if key.endswith("}id")), "") for element in elements]
        self.package.fetch(parts.get(id, "") for id in ids)
        for element, id in zip(elements, ids, strict=True):
            part, name = parts.get(id, ""), str(element.get("name") or "")
            if part not in self.package:
                raise DocumentError(
                    '{context} is damaged: the sheet “{name}” is missing. Save it again in your editor.',
                    context=self.package.context.name, name=name,
                )  # fmt: skip
            result.setdefault(part, name)
        return result

    def _shared_texts(self, main: str) -> tuple[str, list[Any]]:
        for link in self.package.links(main, "sharedStrings"):
            self.package.fetch([link.part])
            if link.part in self.package:
                return link.part, list(self.package.tree(link.part).getroot().iterfind("{*}si"))
        return "", []

    def _find_names(self, main: str) -> None:
        """Mark as fixed the texts to which the workbook, its tables, pivot tables and slicers refer by name."""
        caches = [link.part for link in self.package.links(main, *CACHES)]
        tables = [link.part for sheet in self.sheets for link in self.package.links(sheet, "table")]
        self.package.fetch([*caches, *tables])
        self._find_calls(self.package.tree(main).getroot())
        for part in filter(self.package.__contains__, caches):
            root = self.package.tree(part).getroot()
            self._fix(str(root.get("sourceName") or ""))
            for field_ in root.iterfind("{*}cacheFields/{*}cacheField"):
                self._fix(str(field_.get("name") or ""))
        for part in filter(self.package.__contains__, tables):
            self._find_calls(self.package.tree(part).getroot())

    def _fix(self, text: str) -> None:
        self.fixed.add(readable(text).casefold())

    def _find_calls(self, root: Any) -> None:
        """Mark as fixed the texts in the formulas, validations and filters of a part."""
        for element in root.iter(*(f"{{*}}{name}" for name in FORMULAS)):
            if element.text and ('"' in element.text or "[" in element.text):
                for text in texts_in(element.text):
                    self._fix(text)
        for element in root.iter(*(f"{{*}}{name}" for name in FILTERS)):
            self._fix(str(element.get("val") or ""))

    def _read(self, part: str, name: str) -> None:
        links = self.package.links(part, "table")
        tables = [Table.read(link.part, self.package.tree(link.part).getroot()) for link in links if link.part in self.package]
        labels: dict[str, list[Label]] = {}
        for label in (label for table in tables for label in table.labels):
            labels.setdefault(label.cell, []).append(label)
        root = self.package.tree(part).getroot()
        self._find_calls(root)
        inline = False
        for reference, cell in _cells(root):
            key = self._text_of(part, cell, f"{name}!{reference}")
            if key is not None:
                inline |= cell.get("t") == "inlineStr"
                for label in labels.get(reference, ()):
                    label.key = key
        for table in tables:
            self._check(table)
        self.tables += tables
        if not inline:
            self.package.forget(part)

    def _text_of(self, part: str, cell: Any, location: str) -> Hashable | None:
        """The key of the text in a cell; None if the cell holds something else."""
        kind = cell.get("t")
        if kind == "s":
            number = whole_number(cell.findtext("{*}v"))
            if number is None or number >= len(self._shared):
                raise DocumentError(
                    "{context} is damaged: the text of {place} is missing. Save it again in your editor.",
                    context=self.package.context.name, place=location,
                )  # fmt: skip
            if number not in self._keys:
                self._keys[number] = self._add(self._shared_part, self._shared[number], location)
            return self._keys[number]
        if kind == "inlineStr":
            element = cell.find("{*}is")
            return None if element is None else self._add(part, element, location)
        self.calculated |= kind == "str"
        return None

    def _add(self, part: str, element: Any, location: str) -> Hashable:
        key = text_key(element)
        if key not in self.texts:
            self.texts[key] = Text(location, CellText(element))
        self.texts[key].homes.append((part, element))
        return key

    def _check(self, table: Table) -> None:
        """Mark as fixed the texts of cells that differ from their labels, and those of all labelled cells in a query's table."""
        for label in table.labels:
            if label.key is not None:
                text = readable(self.texts[label.key].plain_text)
                if table.fixed or text != readable(label.text):
                    self.fixed.add(text.casefold())


def _cells(root: Any) -> Iterator[tuple[str, Any]]:
    """(reference, cell) of a sheet's cells; references (B3) that the file omits are computed."""
    row = 0
    for line in root.iterfind("{*}sheetData/{*}row"):
        row = whole_number(line.get("r")) or row + 1
        before = ""
        for cell in line.iterfind("{*}c"):
            reference = cell.get("r")
            if not reference:
                area = AREA.fullmatch(before)
                reference = f"{column_letters(column_number(area[1]) + 1 if area else 1)}{row}"
            before = reference
            yield reference, cell


def texts_in(formula: str) -> Iterator[str]:
    """The texts in a formula, their entries if they are comma-separated lists, and column names as in `Prices[Old one]`."""
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
