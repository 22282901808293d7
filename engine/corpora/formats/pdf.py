"""The text of PDF files, read by pypdf: lines are joined into paragraphs, without running heads and page numbers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.corpora.clean import TOO_LONG
from engine.corpora.formats.encoding import check_file
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.errors import Cancelled, CorpusError
from engine.messages import Message

MOST_PAGES = 5000
ENDS = re.compile(r"[.!?…。！？:：;；][\"'”’»)\]』」）]*$")
HYPHEN = re.compile(r"[^\W\d_][-\u00ad\u2010]$")
PAGE_NUMBER = re.compile(r"^\W*(?:(?:page|seite|第)\s*)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of|von|页|頁)\s*\d{0,4})?\W*$", re.I)
SHORT = 0.7  # of the usual width; a shorter line is the last of its paragraph


def read_pdf(path: Path, request: Request) -> Reading:
    """Reader of PDF files with text; pages without text are mentioned in the report. Raises CorpusError if no page has text."""
    size = check_file(path)
    reader = _open(path)
    pages = _count(path, reader)
    position = [0]
    notes: list[str] = []

    def items() -> Iterator[Record | SkippedLine]:
        blank = 0
        before: tuple[int, str] | None = None
        full = False  # whether the previous page ended with a full line
        for number, lines in _without_running_heads(_pages(path, reader, pages, position)):
            blank += not lines
            for order, text in enumerate(paragraphs(lines)):
                going_on = text[:1].islower() or (full and before and _wide(before[1][-1:], text[:1]))
                if before and order == 0 and going_on and not ENDS.search(before[1]):
                    before = (before[0], _joined(before[1], text))  # the paragraph continues on the next page
                    continue
                if before:
                    yield _item(*before, request)
                before = (number, text)
            full = bool(lines) and len(lines[-1]) >= SHORT * _width(lines)
        if before:
            yield _item(*before, request)
        if blank == pages:
            raise CorpusError(
                "{path} contains no text, only pictures of pages; run it through text recognition (OCR) first.", path=path
            )
        if blank:
            notes.append(
                Message(
                    "{file}: {count} of {all} pages hold no text; they may be pictures.", file=path.name, count=blank, all=pages
                )
            )

    return Reading("", items(), lambda: position[0], lambda: size * position[0] // max(1, pages), notes, unit="page")


def _item(number: int, text: str, request: Request) -> Record | SkippedLine:
    return SkippedLine(number, TOO_LONG, text) if len(text) > request.max_line_chars else Record(number, text)


def _open(path: Path) -> Any:
    import logging

    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every oddity; serious problems are raised
    try:
        reader = pypdf.PdfReader(path, strict=False)
        locked = reader.is_encrypted and not reader.decrypt("")
    except Exception as error:  # damaged files can raise any exception
        raise _damaged(path, error) from None
    if locked:
        raise CorpusError("{path} is protected by a password. Save it without one.", path=path)
    return reader


def _count(path: Path, reader: Any) -> int:
    try:
        pages = len(reader.pages)
    except Exception as error:
        raise _damaged(path, error) from None
    if pages > MOST_PAGES:
        raise CorpusError(
            "{path} has {pages:,} pages; up to {most_pages:,} are read. Split it into parts.",
            path=path, pages=pages, most_pages=MOST_PAGES,
        )  # fmt: skip
    if not pages:
        raise CorpusError("{path} has no pages; choose another file.", path=path)
    return pages


def _damaged(path: Path, error: Exception, page: int = 0) -> CorpusError:
    where = f"{path}, page {page}" if page else str(path)
    name = type(error).__name__
    return CorpusError(
        "{where}: the PDF is damaged ({name}). Print it to a new PDF, or save its text as a text file.", where=where, name=name
    )


def _pages(path: Path, reader: Any, pages: int, current_page: list[int]) -> Iterator[tuple[int, list[str]]]:
    for number in range(1, pages + 1):
        try:
            text = reader.pages[number - 1].extract_text() or ""
        except (Cancelled, MemoryError):
            raise
        except Exception as error:
            raise _damaged(path, error, number) from None
        current_page[0] = number
        lines = [line.strip() for line in text.splitlines()]
        while lines and (not lines[-1] or PAGE_NUMBER.match(lines[-1])):
            lines.pop()
        while lines and (not lines[0] or PAGE_NUMBER.match(lines[0])):
            lines.pop(0)
        yield number, lines


def _without_running_heads(pages: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """Pages without a first or last line that recurs, apart from digits, on one of the two pages before or after."""
    before: deque[tuple[str, str]] = deque(maxlen=2)
    ahead: deque[tuple[int, list[str]]] = deque()

    def bare() -> tuple[int, list[str]]:
        number, lines = ahead.popleft()
        head, foot = _edges(lines)
        around = [*before, *(_edges(other_lines) for _, other_lines in ahead)]
        before.append((head, foot))
        if head and any(head == other for other, _ in around):
            lines = lines[1:]
        if foot and lines and any(foot == other for _, other in around):
            lines = lines[:-1]
        return number, lines

    for page in pages:
        ahead.append(page)
        if len(ahead) > 2:
            yield bare()
    while ahead:
        yield bare()


def _edges(lines: list[str]) -> tuple[str, str]:
    """The first and the last line, normalised for comparison."""
    return (_edge(lines[0]), _edge(lines[-1])) if lines else ("", "")


def _edge(line: str) -> str:
    return re.sub(r"\d+", "#", line) if len(line) <= 120 else ""


def paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """The paragraphs of a page's lines; a blank or short line ends a paragraph."""
    width = _width(lines)
    text = ""
    for line in lines:
        if line:
            text = _joined(text, line) if text else line
        if text and (not line or (len(line) < SHORT * width and not HYPHEN.search(line))):
            yield text
            text = ""
    if text:
        yield text


def _width(lines: Sequence[str]) -> int:
    """The usual length of a full line."""
    lengths = sorted(len(line) for line in lines if line)
    return lengths[min(len(lengths) - 1, int(0.9 * len(lengths)))] if lengths else 0


def _joined(before: str, line: str) -> str:
    if HYPHEN.search(before) and line[:1].islower():
        return before[:-1] + line
    return before + ("" if _wide(before[-1:], line[:1]) else " ") + line


def _wide(left: str, right: str) -> bool:
    """Whether both characters are of scripts without spaces between words."""
    return left > "\u2e7f" and right > "\u2e7f"
