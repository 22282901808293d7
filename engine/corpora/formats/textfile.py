"""The lines of a text file of any size and encoding; a line longer than the limit is cut, so memory is bounded."""

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
    """One line without its line end; `cut` means that it is longer than the limit and `text` is only its start."""

    number: int
    text: str
    cut: bool = False


class TextFile:
    """An iterator over lines with lookahead. Raises CorpusError if the file is not readable text."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self.limit = request.max_line_chars
        self.encoding = detect_encoding(path, request.languages)
        self.lines = 0
        self._bytes = io.FileIO(path)
        # "replace": broken characters become U+FFFD, for which their lines are skipped later.
        self._text = io.TextIOWrapper(io.BufferedReader(self._bytes), encoding=self.encoding, errors="replace", newline=None)
        self._ahead: deque[Line] = deque()

    def position(self) -> int:
        """Bytes read so far; at the end, the size of the file."""
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
            return Line(self.lines, text)  # the last line, without a line end
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
        """Return these lines, in this order, to the front of the iterator."""
        self._ahead.extendleft(reversed(lines))

    def look_ahead(self, lines: int = 500, chars: int = 1_000_000) -> list[Line]:
        """The next lines, without consuming them, up to about `lines` lines or `chars` characters."""
        ahead: list[Line] = []
        while len(ahead) < lines and chars > 0 and (line := next(self, None)) is not None:
            ahead.append(line)
            chars -= len(line.text)
        self.put_back(ahead)
        return ahead
