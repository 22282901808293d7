"""Plain text: one sentence or paragraph per line, or paragraphs wrapped at a fixed width and separated by blank lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.corpora.clean import TOO_LONG
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.textfile import Line, TextFile
from engine.messages import Message

ENDS = tuple(".!?…:;。！？”\"’'」』)")


def read_plain(path: Path, request: Request) -> Reading:
    """Reader of plain text."""
    file = TextFile(path, request)
    notes: list[str] = []
    warnings: list[str] = []
    ahead = [line.text for line in file.look_ahead()]
    nonblank = [text for text in ahead if text.strip()]
    if len(nonblank) >= 5 and sum(text.count("\t") == 1 for text in nonblank) >= 0.9 * len(nonblank):
        warnings.append(
            Message("{file} looks like a table with tabs; to use its columns, change the file's ending to .tsv.", file=path.name)
        )
    if request.join_wrapped_lines and is_wrapped(ahead):
        notes.append(Message("{file} is wrapped at a fixed width; its lines were joined to paragraphs.", file=path.name))
        items = _paragraphs(file)
    else:
        items = (SkippedLine(line.number, TOO_LONG, line.text) if line.cut else Record(line.number, line.text) for line in file)
    return Reading(file.encoding, items, lambda: file.lines, file.position, notes, warnings)


def is_wrapped(lines: list[str]) -> bool:
    """Whether these lines look like paragraphs wrapped at a fixed width: blank lines, few sentence ends, similar lengths.

    Verse (short, uneven lines) and text with one sentence per line (sentence ends) do not.
    """
    nonblank = [line.rstrip() for line in lines if line.strip()]
    if len(nonblank) < 20 or len(nonblank) > 0.97 * len(lines):
        return False
    width = sorted(map(len, nonblank))[int(0.95 * len(nonblank))]
    if not 50 <= width <= 120 or max(map(len, nonblank)) > width + 15:
        return False
    full = sum(len(line) >= 0.8 * width for line in nonblank)
    ended = sum(line.endswith(ENDS) for line in nonblank)
    return full >= 0.6 * len(nonblank) and ended <= 0.4 * len(nonblank)


def _paragraphs(file: TextFile) -> Iterator[Record | SkippedLine]:
    waiting: list[Line] = []
    size = 0
    for line in file:
        blank = not line.text.strip()
        if waiting and (blank or line.cut or size + len(line.text) > file.limit):
            yield _joined(waiting)
            waiting, size = [], 0
        if line.cut:
            yield SkippedLine(line.number, TOO_LONG, line.text)
        elif not blank:
            waiting.append(line)
            size += len(line.text) + 1
    if waiting:
        yield _joined(waiting)


def _joined(lines: list[Line]) -> Record:
    text = lines[0].text.rstrip()
    for line in lines[1:]:
        more = line.text.strip()
        # Scripts without spaces between words (Chinese, Japanese) are joined without one.
        gap = "" if text[-1:] > "\u2e7f" and more[:1] > "\u2e7f" else " "
        text = f"{text}{gap}{more}".rstrip()
    return Record(lines[0].number, text)
