"""DOCX (ISO/IEC 29500) and ODT (ISO/IEC 26300): their paragraphs, streamed from the archive.

Tracked deletions, field codes, comments, tables of contents and reading aids above characters are left out. Tracked insertions
are kept even if not yet accepted, and so are footnotes.

A table with a column in each of the project's languages is read as pairs, row by row; other paragraphs stay monolingual.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from engine.core.numerals import whole_number
from engine.corpora.clean import TOO_LONG
from engine.corpora.formats.archive import document
from engine.corpora.formats.columns import Columns
from engine.corpora.formats.pairs import PEEK, Cell, as_pairs, columns_of_rows
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.xmlstream import Handler, local_name, parse, xml_encoding
from engine.errors import CorpusError
from engine.messages import Message

CONTENTS = "table of contents"
WORD = ("http://schemas.openxmlformats.org/wordprocessingml/2006/main", "http://purl.oclc.org/ooxml/wordprocessingml/main")
WORD_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
WORD_HIDDEN = ("moveFrom", "del", "rt", "rPr")
ODF_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
ODF_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
ODF_HIDDEN = ("annotation", "tracked-changes", "note-citation", "ruby-text", "title", "desc", "binary-data", "object", "script")


def read_docx(path: Path, request: Request) -> Reading:
    """Reader of Word documents: body, then footnotes and endnotes. Raises CorpusError if the archive is not one."""
    with document(path, "Word document") as archive:
        parts = [name for name in WORD_PARTS if name in archive.namelist()]
    if "word/document.xml" not in parts:
        raise CorpusError("{path} is not a Word document: word/document.xml is missing inside.", path=path)
    return _read(path, "Word document", parts, Docx, request)


def read_odt(path: Path, request: Request) -> Reading:
    """Reader of OpenDocument texts. Raises CorpusError if the archive is not one or has a password."""
    with document(path, "OpenDocument text") as archive:
        names = archive.namelist()
        if "content.xml" not in names:
            raise CorpusError("{path} is not an OpenDocument text: content.xml is missing inside.", path=path)
        if "META-INF/manifest.xml" in names and b"encryption-data" in _head(archive, "META-INF/manifest.xml", 1 << 20):
            raise CorpusError("{path} is protected by a password. Save it without one.", path=path)
    return _read(path, "OpenDocument text", ["content.xml"], Odt, request)


def _read(path: Path, what: str, parts: list[str], kind: type[Paragraphs], request: Request) -> Reading:
    size, notes = path.stat().st_size, list[str]()
    columns = _columns(path, what, parts, kind, request) if request.source_language else None
    handler = kind(request.max_line_chars, columns)
    if columns is not None and columns.source is not None:
        notes.append(
            Message(
                "A table of {count} columns was read as pairs: column {source} as the source of column {target}.",
                count=columns.width,
                source=columns.source + 1,
                target=columns.text + 1,
            )
        )
    done = [0, 1]  # bytes unpacked so far, bytes in total

    def count(read: int) -> None:
        done[0] += read

    def items() -> Iterator[Record | SkippedLine]:
        with document(path, what) as archive:
            done[1] = max(1, sum(archive.getinfo(name).file_size for name in parts))
            for name in parts:
                encoding = xml_encoding(_head(archive, name, 1024))
                with archive.open(name) as member:
                    yield from parse(member, handler, f"{path} ({name})", encoding=encoding, read=count)

    return Reading("utf-8", items(), lambda: handler.count, lambda: min(size, size * done[0] // done[1]), notes, unit="paragraph")


def _columns(path: Path, what: str, parts: list[str], kind: type[Paragraphs], request: Request) -> Columns | None:
    """The columns in the project's two languages, by the first rows of the document's tables; None if there are none."""
    rows: list[list[str]] = []
    handler = kind(request.max_line_chars, None, rows)
    with document(path, what) as archive:
        for name in parts:
            with archive.open(name) as member:
                for _ in parse(member, handler, f"{path} ({name})", encoding=xml_encoding(_head(archive, name, 1024))):
                    if len(rows) >= PEEK:
                        return columns_of_rows(rows, request)
    return columns_of_rows(rows, request)


def _head(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    with archive.open(name) as member:
        return member.read(size)


class Paragraphs(Handler[Record | SkippedLine]):
    """Paragraphs in the order of their ends; one inside another (a text box, a footnote) is separate.

    With `columns`, table rows that have these are returned as pairs. The texts of table rows are appended to `rows`, if given.
    """

    def __init__(self, limit: int, columns: Columns | None = None, rows: list[list[str]] | None = None) -> None:
        super().__init__()
        self.limit = limit
        self.columns = columns
        self.rows = rows
        self.cells: list[Cell] | None = None  # of the current row; a table inside a cell belongs to the cell
        self.row = 0  # depth at which the row began
        self.count = 0
        self.path: list[str] = []
        self.hidden = 0  # depth at which hidden content began, 0 for none
        self.paragraphs: list[Paragraph] = []

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        """Whether this element holds no text to be read."""
        raise NotImplementedError

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        """Called at the start of an element that is not hidden."""
        raise NotImplementedError

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.path.append(name)
        if self.hidden:
            return
        tag = local_name(name)
        if self.hides(tag, attributes):
            self.hidden = len(self.path)
            return
        part = self.table_part(name)
        if part == "row" and self.cells is None:
            self.cells, self.row = [], len(self.path)
        elif part == "cell" and self.cells is not None and self._own_cell():
            self.cells.append([])
        else:
            self.start_element(tag, attributes)

    def end(self, name: str) -> None:
        if self.hidden:
            if self.hidden == len(self.path):
                self.hidden = 0
        elif self.is_paragraph(name) and self.paragraphs:
            item = self.paragraphs.pop().item(self.limit)
            if self.cells:
                self.cells[-1].append(item)
            else:
                self.items.append(item)
        elif self.cells is not None and self.row == len(self.path):
            if self.rows is not None:
                self.rows.append([" ".join(item.text for item in cell).strip() for cell in self.cells])
            self.items.extend(as_pairs(self.cells, self.columns))
            self.cells = None
        self.path.pop()

    def _own_cell(self) -> bool:
        """Whether the cell that begins belongs to the current row, not to a table inside it."""
        return not any(self.table_part(name) for name in self.path[self.row : -1])

    def table_part(self, name: str) -> str:
        """`row` or `cell` for these parts of a table, otherwise an empty string."""
        raise NotImplementedError

    def is_paragraph(self, name: str) -> bool:
        raise NotImplementedError

    def begin(self, contents: bool = False) -> None:
        self.count += 1
        self.paragraphs.append(Paragraph(self.count, contents))

    def write(self, text: str) -> None:
        if self.paragraphs:
            self.paragraphs[-1].add(text, self.limit)


class Paragraph:
    """One paragraph while it is read; pieces after the limit is exceeded are not stored."""

    def __init__(self, number: int, contents: bool) -> None:
        self.number, self.contents = number, contents
        self.parts: list[str] = []
        self.size = 0

    def add(self, text: str, limit: int) -> None:
        if self.size <= limit:
            self.parts.append(text[: limit + 1])
        self.size += len(text)

    def item(self, limit: int) -> Record | SkippedLine:
        text = "".join(self.parts)
        if self.size > limit:
            return SkippedLine(self.number, TOO_LONG, text)
        return SkippedLine(self.number, CONTENTS, text) if self.contents and text.strip() else Record(self.number, text)


class Docx(Paragraphs):
    """word/document.xml and its notes."""

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        return (tag in WORD_HIDDEN and self.path[-1].startswith(WORD)) or tag == "Fallback"

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.path[-1].startswith(WORD):
            return
        if tag == "p":
            self.begin()
        elif tag == "pStyle" and self.paragraphs:
            style = next((value for key, value in attributes.items() if local_name(key) == "val"), "")
            self.paragraphs[-1].contents = style.upper().startswith("TOC")
        elif tag in ("tab", "br", "cr") and len(self.path) > 1 and local_name(self.path[-2]) == "r":
            self.write(" ")
        elif tag == "noBreakHyphen":
            self.write("-")

    def is_paragraph(self, name: str) -> bool:
        return name.startswith(WORD) and local_name(name) == "p"

    def table_part(self, name: str) -> str:
        return {"tr": "row", "tc": "cell"}.get(local_name(name), "") if name.startswith(WORD) else ""

    def text(self, data: str) -> None:
        if not self.hidden and self.path and local_name(self.path[-1]) == "t" and self.path[-1].startswith(WORD):
            self.write(data)


class Odt(Paragraphs):
    """content.xml."""

    def __init__(self, limit: int, columns: Columns | None = None, rows: list[list[str]] | None = None) -> None:
        super().__init__(limit, columns, rows)
        self.contents = 0

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        return tag in ODF_HIDDEN or (tag == "meta" and "office" in self.path[-1])

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if self.is_paragraph(self.path[-1]):
            inside = any(local_name(name).endswith("-index") or "table-of-content" in name for name in self.path)
            self.begin(contents=inside)
        elif not self.path[-1].startswith(ODF_TEXT):
            return
        elif tag == "s":
            count = next((value for key, value in attributes.items() if local_name(key) == "c"), "1")
            self.write(" " * min(whole_number(count) or 1, 100))
        elif tag in ("tab", "line-break"):
            self.write(" ")

    def is_paragraph(self, name: str) -> bool:
        return name in (f"{ODF_TEXT} p", f"{ODF_TEXT} h")

    def table_part(self, name: str) -> str:
        return {f"{ODF_TABLE} table-row": "row", f"{ODF_TABLE} table-cell": "cell"}.get(name, "")

    def text(self, data: str) -> None:
        # The text of notes is in separate paragraphs; between layout elements there are only spaces.
        if not self.hidden and self.paragraphs:
            self.write(data)
