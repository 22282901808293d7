"""The dialect of a table: its delimiter, and whether quotes wrap cells or are part of the text.

Spreadsheets wrap a cell in quotes if it contains the delimiter, a quote or a line break. Tab-separated translation tables are
mostly written without quoting, so a quote is part of the text. The two cases are distinguished by writing the parsed sample
again: quotes wrap cells if some quoting rule reproduces the same text.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.corpora.formats.columns import looks_like_header


@dataclass(frozen=True)
class Dialect:
    """How cells are written: `delimiter` None means one cell per line; `quoted` means that quotes wrap cells."""

    delimiter: str | None
    quoted: bool


def parse_record(lines: Iterator[str], dialect: Dialect) -> list[str] | None:
    """The cells of the next record, which consumes further lines while a quote is open; None if its quotes are malformed."""
    if dialect.delimiter is None:
        return [next(lines)]
    if not dialect.quoted:
        return next(lines).split(dialect.delimiter)
    # csv needs line ends to preserve line breaks inside a cell.
    reader = csv.reader((line + "\n" for line in lines), delimiter=dialect.delimiter, strict=True)
    try:
        return next(reader)
    except csv.Error:
        return None


def sniff(lines: Sequence[str], delimiters: str) -> Dialect:
    """The dialect of a table with these first lines, with one of the given delimiters."""
    best: tuple[bool, float, int, Dialect] | None = None
    for delimiter in delimiters:
        dialect = Dialect(delimiter, _is_quoted(lines, delimiter))
        rows = _parse(lines, dialect)
        if not rows or _is_prose(lines, delimiter):
            continue
        width, count = Counter(map(len, rows)).most_common(1)[0]
        share = count / len(rows)
        header = looks_like_header(rows[0])
        # Tabs and column names indicate a table even if many rows are ragged.
        if width < 2 or share < (0.4 if header or delimiter == "\t" else 0.8):
            continue
        result = (header, share, width, dialect)
        if best is None or result[:3] > best[:3]:
            best = result
    if best:
        return best[3]
    quoted = Dialect(delimiters[0], True)
    records = [row for row in _parse(lines, quoted) if row]
    wrapped = any(line.startswith('"') and line.endswith('"') for line in lines)
    if wrapped and records and all(len(row) == 1 for row in records) and _is_quoted(lines, delimiters[0]):
        return quoted
    return Dialect(None, False)


def _parse(lines: Sequence[str], dialect: Dialect) -> list[list[str]]:
    rows = []
    pending = list(lines)
    while pending:
        source = iter(pending)
        cells = parse_record(source, dialect)
        remaining = list(source)
        if cells is None:  # malformed quotes: split this line as it is and restart at the next one
            cells, remaining = pending[0].split(dialect.delimiter), pending[1:]
        pending = remaining
        if any(cell.strip() for cell in cells):
            rows.append(cells)
    return rows


def _is_prose(lines: Sequence[str], delimiter: str) -> bool:
    """Whether the delimiters are punctuation, as commas followed by spaces are."""
    if delimiter not in ",;":
        return False
    total = sum(line.count(delimiter) for line in lines)
    return total > 0 and sum(line.count(delimiter + " ") for line in lines) > 0.8 * total and '"' not in "".join(lines)


def _is_quoted(lines: Sequence[str], delimiter: str) -> bool:
    """Whether quotes wrap cells: in tables with tabs, if the sample, parsed that way and written again, is unchanged."""
    if not any('"' in line for line in lines):
        return delimiter != "\t"
    rules: tuple[Callable[[str], bool], ...] = (
        lambda cell: any(c in cell for c in (delimiter, '"', "\n")),
        lambda cell: any(c in cell for c in (delimiter, '"', "\n", ",")),  # Excel, in tables with tabs too
        lambda cell: True,
        bool,
        lambda cell: not cell.replace(".", "").isdigit(),
    )
    dialect = Dialect(delimiter, True)
    same = [0] * len(rules)
    quoted = broken = spanned = 0
    pending = list(lines)
    while pending:
        source = iter(pending)
        cells = parse_record(source, dialect)
        remaining = list(source)
        if cells is None:
            # Malformed quotes, or the sample ends inside a cell with line breaks.
            broken += 1
            remaining = pending[1:]
        elif '"' in (raw := "\n".join(pending[: len(pending) - len(remaining)])):
            quoted += 1
            spanned += "\n" in raw
            for index, rule in enumerate(rules):
                same[index] += raw == delimiter.join(_written(cell, rule) for cell in cells)
        pending = remaining
    if delimiter == "\t":
        widths = {line.count("\t") for line in lines if line.strip()}
        if spanned and len(widths) == 1 and widths != {0}:
            return False  # every line is a complete row: single quotes at the ends of cells only look like a pair
        return quoted > 0 and max(same) >= 0.95 * (quoted + broken)
    # In comma tables quoting is the standard, unless many quotes are malformed.
    return broken <= 0.1 * (quoted + broken)


def _written(cell: str, rule: Callable[[str], bool]) -> str:
    return '"' + cell.replace('"', '""') + '"' if rule(cell) else cell
