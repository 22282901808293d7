"""DOCX (ISO/IEC 29500) and ODT (ISO/IEC 26300): their paragraphs, streamed out of the archive.

What is no text of the author is left out: what tracked changes deleted, field codes, comments, tables of contents, the
reading aids above characters. What he added is kept, also where changes are not accepted yet, and so are footnotes.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from engine.corpora.archive import document
from engine.corpora.clean import TOO_LONG
from engine.corpora.records import Reading, Record, Request, Skip
from engine.corpora.xmlstream import Handler, local_name, parse, xml_encoding
from engine.errors import CorpusError

__all__ = ["read_docx", "read_odt"]

CONTENTS = "table of contents"
WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
WORD_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
WORD_HIDDEN = ("moveFrom", "del", "rt", "rPr")
ODF_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
ODF_HIDDEN = (
    "annotation",
    "tracked-changes",
    "note-citation",
    "ruby-text",
    "title",
    "desc",
    "binary-data",
    "object",
    "script",
)


def read_docx(path: Path, request: Request) -> Reading:
    """Reader of Word documents: body, then footnotes and endnotes."""
    with document(path, "Word document") as archive:
        parts = [name for name in WORD_PARTS if name in archive.namelist()]
    if "word/document.xml" not in parts:
        raise CorpusError(f"{path} is no Word document: word/document.xml is missing inside.")
    return _read(path, "Word document", parts, Docx(request.max_line_chars))


def read_odt(path: Path, request: Request) -> Reading:
    """Reader of OpenDocument texts."""
    with document(path, "OpenDocument text") as archive:
        names = archive.namelist()
        if "content.xml" not in names:
            raise CorpusError(f"{path} is no OpenDocument text: content.xml is missing inside.")
        if "META-INF/manifest.xml" in names and b"encryption-data" in _head(archive, "META-INF/manifest.xml", 1 << 20):
            raise CorpusError(f"{path} is protected by a password. Save it without one.")
    return _read(path, "OpenDocument text", ["content.xml"], Odt(request.max_line_chars))


def _read(path: Path, what: str, parts: list[str], handler: Paragraphs) -> Reading:
    size = path.stat().st_size
    done = [0, 1]  # bytes unpacked, and all of them

    def count(read: int) -> None:
        done[0] += read

    def items() -> Iterator[Record | Skip]:
        with document(path, what) as archive:
            done[1] = max(1, sum(archive.getinfo(name).file_size for name in parts))
            for name in parts:
                encoding = xml_encoding(_head(archive, name, 1024))
                with archive.open(name) as member:
                    yield from parse(member, handler, f"{path} ({name})", encoding=encoding, read=count)

    return Reading(
        "utf-8", items(), lambda: handler.count, lambda: min(size, size * done[0] // done[1]), unit="paragraph"
    )


def _head(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    with archive.open(name) as member:
        return member.read(size)


class Paragraphs(Handler[Record | Skip]):
    """Paragraphs in the order of their ends; one inside another (a text box, a footnote) is one of its own."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.count = 0
        self.path: list[str] = []
        self.hidden = 0  # depth at which hidden content began, 0 for none
        self.paragraphs: list[Paragraph] = []

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        """Does this element hold nothing of the text?"""
        raise NotImplementedError

    def seen(self, tag: str, attributes: dict[str, str]) -> None:
        """An element of the text begins."""
        raise NotImplementedError

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.path.append(name)
        if self.hidden:
            return
        tag = local_name(name)
        if self.hides(tag, attributes):
            self.hidden = len(self.path)
        else:
            self.seen(tag, attributes)

    def end(self, name: str) -> None:
        if self.hidden:
            if self.hidden == len(self.path):
                self.hidden = 0
        elif self.is_paragraph(name) and self.paragraphs:
            self.found.append(self.paragraphs.pop().item(self.limit))
        self.path.pop()

    def is_paragraph(self, name: str) -> bool:
        raise NotImplementedError

    def begin(self, contents: bool = False) -> None:
        self.count += 1
        self.paragraphs.append(Paragraph(self.count, contents))

    def write(self, text: str) -> None:
        if self.paragraphs:
            self.paragraphs[-1].add(text, self.limit)


class Paragraph:
    """One paragraph while it is read, at most `limit` characters and one more."""

    def __init__(self, number: int, contents: bool) -> None:
        self.number, self.contents = number, contents
        self.parts: list[str] = []
        self.size = 0

    def add(self, text: str, limit: int) -> None:
        if self.size <= limit:
            self.parts.append(text[: limit + 1])
        self.size += len(text)

    def item(self, limit: int) -> Record | Skip:
        text = "".join(self.parts)
        if self.size > limit:
            return Skip(self.number, TOO_LONG, text)
        return Skip(self.number, CONTENTS, text) if self.contents and text.strip() else Record(self.number, text)


class Docx(Paragraphs):
    """word/document.xml and its notes."""

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        return (tag in WORD_HIDDEN and self.path[-1].startswith(WORD)) or tag == "Fallback"

    def seen(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.path[-1].startswith(WORD):
            return
        if tag == "p":
            self.begin()
        elif tag == "pStyle" and self.paragraphs:
            style = next((value for key, value in attributes.items() if local_name(key) == "val"), "")
            self.paragraphs[-1].contents = style.upper().startswith("TOC")
        elif tag in ("tab", "br", "cr") and self._inside("r"):
            self.write(" ")
        elif tag == "noBreakHyphen":
            self.write("-")

    def _inside(self, parent: str) -> bool:
        return len(self.path) > 1 and local_name(self.path[-2]) == parent

    def is_paragraph(self, name: str) -> bool:
        return name.startswith(WORD) and local_name(name) == "p"

    def text(self, data: str) -> None:
        if not self.hidden and self.path and local_name(self.path[-1]) == "t" and self.path[-1].startswith(WORD):
            self.write(data)


class Odt(Paragraphs):
    """content.xml."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.contents = 0

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        return tag in ODF_HIDDEN or (tag == "meta" and "office" in self.path[-1])

    def seen(self, tag: str, attributes: dict[str, str]) -> None:
        if self.is_paragraph(self.path[-1]):
            inside = any(local_name(one).endswith("-index") or "table-of-content" in one for one in self.path)
            self.begin(contents=inside)
        elif not self.path[-1].startswith(ODF_TEXT):
            return
        elif tag == "s":
            count = next((value for key, value in attributes.items() if local_name(key) == "c"), "1")
            self.write(" " * min(int(count) if count.isdigit() else 1, 100))
        elif tag in ("tab", "line-break"):
            self.write(" ")

    def is_paragraph(self, name: str) -> bool:
        return name in (f"{ODF_TEXT} p", f"{ODF_TEXT} h")

    def text(self, data: str) -> None:
        # Characters of a note stand in paragraphs of their own; between elements of the layout there are only spaces.
        if not self.hidden and self.paragraphs:
            self.write(data)
