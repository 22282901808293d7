"""Tables inside documents: which columns are a text and its source, and the records of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from engine.corpora.clean import clean
from engine.corpora.formats.columns import Columns, columns_of_header, looks_like_header
from engine.corpora.formats.records import Record, Request, SkippedLine
from engine.corpora.language import base_language, identify

PEEK = 300  # rows examined
FEWEST = 3  # rows with both texts that a table of pairs must have
SURE = 0.6  # share of a column's cells in its language

Cell = list[Record | SkippedLine]  # its paragraphs


def columns_of_rows(rows: Sequence[Sequence[str]], request: Request) -> Columns | None:
    """The columns in the target and in the source language; None if there are no such columns.

    They are identified by a first row that names them (`English | Chinese`), otherwise by the language of their cells.
    """
    width = Counter(len(row) for row in rows if len(row) > 1).most_common(1)
    if not width:
        return None
    table = [row for row in rows if len(row) == width[0][0]]
    if looks_like_header([clean(cell) for cell in table[0]]):
        named = columns_of_header([clean(cell) for cell in table[0]], request.language, request.source_language)
        if named is not None and named.source is not None:
            return Columns(len(table[0]), named.text, named.source)
        table = table[1:]
    shares = [
        identify([cell for row in table if (cell := clean(row[position]))], *request.languages) or {}
        for position in range(width[0][0])
    ]

    def likeliest(code: str) -> tuple[float, int]:
        return max((share.get(base_language(code), 0.0), position) for position, share in enumerate(shares))

    (of_text, text), (of_source, source) = map(likeliest, request.languages)
    sure = min(of_text, of_source) >= SURE
    pair_count = sum(bool(row[text].strip() and row[source].strip()) for row in table)
    return Columns(len(shares), text, source) if sure and text != source and pair_count >= FEWEST else None


def as_pairs(cells: Sequence[Cell], columns: Columns | None) -> Iterator[Record | SkippedLine]:
    """The pairs of a row with these columns (per paragraph if both cells have as many, otherwise one), or else all paragraphs."""
    flat = [item for cell in cells for item in cell]
    if columns is None or columns.source is None or len(cells) != columns.width:
        yield from flat
        return
    texts, sources = cells[columns.text], cells[columns.source]
    skipped = [item for item in (*texts, *sources) if isinstance(item, SkippedLine)]
    if skipped:
        yield skipped[0]
    elif not any(item.text.strip() for item in texts):
        yield Record(flat[0].line if flat else 0, "")
    elif len(texts) == len(sources):
        yield from (Record(item.line, item.text, source.text) for item, source in zip(texts, sources, strict=True))
    else:
        yield Record(texts[0].line, " ".join(item.text for item in texts), " ".join(item.text for item in sources))
