"""Tables: CSV and TSV, with or without a header, monolingual or bilingual."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from engine.corpora.clean import TOO_LONG, clean
from engine.corpora.formats.columns import Columns, columns_of_header, looks_like_header
from engine.corpora.formats.csv_dialect import Dialect, parse_record, sniff
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.textfile import Line, TextFile
from engine.corpora.language import base_language, identify, language_name
from engine.errors import CorpusError
from engine.messages import Message

WRONG_WIDTH = "wrong number of columns"
PEEK = 200  # rows examined to determine what the columns hold
CELLS = 60  # cells of a column by which its language is identified
OPEN_LINES = 100  # lines that a quoted cell may span before its quote counts as unclosed


@dataclass(frozen=True)
class TableRow:
    line: int
    cells: list[str]
    raw: str


def read_csv(path: Path, request: Request) -> Reading:
    """Reader of tables separated by commas, semicolons, tabs or bars."""
    return _read_table(path, request, ",;\t|")


def read_tsv(path: Path, request: Request) -> Reading:
    """Reader of tables separated by tabs."""
    return _read_table(path, request, "\t")


def _read_table(path: Path, request: Request, delimiters: str) -> Reading:
    file = TextFile(path, request)
    ahead = file.look_ahead()
    text = re.fullmatch(r"sep=(.)", ahead[0].text) if ahead else None
    if text:  # Excel's own first line
        next(file)
        delimiters = text[1]
    dialect = sniff([line.text for line in file.look_ahead() if not line.cut], delimiters)
    rows = _rows(file, dialect)
    first: deque[TableRow | SkippedLine] = deque()
    for row in rows:
        first.append(row)
        if len(first) >= PEEK:
            break
    notes: list[str] = []
    columns = _columns(path, first, request, notes)
    return Reading(file.encoding, _items(chain(first, rows), columns), lambda: file.lines, file.position, notes)


def _rows(file: TextFile, dialect: Dialect) -> Iterator[TableRow | SkippedLine]:
    for line in file:
        if line.cut:
            yield SkippedLine(line.number, TOO_LONG, line.text)
            continue
        consumed = [line]
        cells = parse_record(_continued(file, consumed), dialect)
        if cells is None:
            # The quote is part of the text or unclosed: split this line as it is and restart at the next one.
            file.put_back(consumed[1:])
            consumed = consumed[:1]
            cells = line.text.split(dialect.delimiter)
        yield TableRow(line.number, cells, line.text)


def _continued(file: TextFile, consumed: list[Line]) -> Iterator[str]:
    """The lines that an open quote may span, up to a limit; each is appended to `consumed`."""
    size = len(consumed[0].text)
    yield consumed[0].text
    while len(consumed) < OPEN_LINES and (line := next(file, None)) is not None:
        size += len(line.text)
        if line.cut or size > file.limit:
            file.put_back([line])
            return
        consumed.append(line)
        yield line.text


def _columns(path: Path, first: deque[TableRow | SkippedLine], request: Request, notes: list[str]) -> Columns:
    """The meaning of the columns; a header is removed from `first`."""
    rows = [row for row in first if isinstance(row, TableRow) and any(cell.strip() for cell in row.cells)]
    if not rows:
        return Columns(1, 0)
    names = [clean(cell) for cell in rows[0].cells]
    if looks_like_header(names):
        columns = columns_of_header(names, request.language, request.source_language)
        if columns is None:
            raise CorpusError(
                "{path} has the columns {names}, but none for the target language; name that column target or "
                "{language} in the first line.",
                path=path, names=", ".join(names), language=request.language,
            )  # fmt: skip
        first.remove(rows[0])
        return columns
    width = Counter(len(row.cells) for row in rows).most_common(1)[0][0]
    if width == 1:
        return Columns(1, 0)
    table = [row.cells for row in rows if len(row.cells) == width]
    columns = _by_language(table, width, request)
    source = "" if columns.source is None else Message(", column {column} as its source", column=columns.source + 1)
    notes.append(
        Message(
            "{file} has no header; column {column} of {all} was taken as the {language} text{source}.",
            file=path.name,
            column=columns.text + 1,
            all=width,
            language=Message(language_name(request.language)),
            source=source,
        )
    )
    return columns


def _by_language(table: Sequence[Sequence[str]], width: int, request: Request) -> Columns:
    """The columns by language: the text is the column with most of the target language, its source one in another language."""
    language = base_language(request.language)
    shares = [identify([clean(row[i]) for row in table], *request.languages, max_texts=CELLS) or {} for i in range(width)]
    text = max(range(width), key=lambda i: (shares[i].get(language, 0.0), i))
    other_columns = [i for i in range(width) if i != text]
    if request.source_language:
        source_language = base_language(request.source_language)
        source = max(other_columns, key=lambda i: shares[i].get(source_language, 0.0))
        return Columns(width, text, source if shares[source].get(source_language, 0.0) >= 0.3 else None)
    for i in other_columns:
        code, share = next(iter(shares[i].items()), ("", 0.0))
        # A column with many repetitions holds labels or names, so its language is uncertain.
        varied = len({row[i] for row in table}) * 2 > len(table)
        if share >= 0.5 and varied and code not in (language, "unknown"):
            return Columns(width, text, i)
    return Columns(width, text)


def _items(rows: Iterator[TableRow | SkippedLine], columns: Columns) -> Iterator[Record | SkippedLine]:
    needed = max(columns.text, columns.source or 0) + 1
    for row in rows:
        if isinstance(row, SkippedLine):
            yield row
            continue
        cells = row.cells
        if not any(cell.strip() for cell in cells):
            yield Record(row.line, "")
        elif len(cells) < needed or any(cell.strip() for cell in cells[columns.width :]):
            yield SkippedLine(row.line, WRONG_WIDTH, row.raw)
        else:
            domain = cells[columns.domain] if columns.domain is not None and columns.domain < len(cells) else ""
            source = None if columns.source is None else cells[columns.source]
            yield Record(row.line, cells[columns.text], source, domain.strip())
