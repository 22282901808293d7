"""The lines of a text file of any size and encoding: a line longer than the limit is cut, never held in memory whole."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.corpora.formats.encoding import detect_encoding
from engine.corpora.formats.records import Request


@dataclass(frozen=True)
class Line:
    """One line without its end; `cut` when it was longer than the limit and `text` is only its start."""

    number: int
    text: str
    cut: bool = False


class TextFile:
    """An iterator over the lines, with a look ahead. Raises CorpusError when the file is no readable text."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self.limit = request.max_line_chars
        self.encoding = detect_encoding(path, request.languages)
        self.lines = 0
        self._bytes = io.FileIO(path)
        # "replace": the broken characters show as U+FFFD, and the lines that hold them are skipped by that reason.
        self._text = io.TextIOWrapper(
            io.BufferedReader(self._bytes), encoding=self.encoding, errors="replace", newline=None
        )
        self._ahead: deque[Line] = deque()

    def position(self) -> int:
        """Bytes read so far; the size of the file at its end."""
        return self._bytes.tell() if not self._bytes.closed else self.path.stat().st_size

    def _next(self) -> Line | None:
        if self._text.closed:
            return None
        text = self._text.readline(self.limit + 1)
        if not text:
            self._text.close()
            return None
        self.lines += 1
        if text.endswith("\n"):
            return Line(self.lines, text[:-1])
        if len(text) <= self.limit:
            return Line(self.lines, text)  # the last line, without an end
        while (rest := self._text.readline(1 << 16)) and not rest.endswith("\n"):
            pass
        return Line(self.lines, text[: self.limit], cut=True)

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        line = self._ahead.popleft() if self._ahead else self._next()
        if line is None:
            raise StopIteration
        return line

    def put_back(self, lines: list[Line]) -> None:
        """Give these lines (in their order) again."""
        self._ahead.extendleft(reversed(lines))

    def look_ahead(self, lines: int = 500, chars: int = 1_000_000) -> list[Line]:
        """The next lines, at most so many lines and characters, without consuming them."""
        seen: list[Line] = []
        while len(seen) < lines and chars > 0 and (line := next(self, None)) is not None:
            seen.append(line)
            chars -= len(line.text)
        self.put_back(seen)
        return seen
