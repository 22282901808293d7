"""Plain text, line by line; text wrapped at a fixed width is joined into paragraphs and wrapped at that width again."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.corpora.formats.documents.files import TextDocument, TextFile
from engine.corpora.formats.documents.model import Context, Result, Unit, changed
from engine.corpora.formats.tagged_text import text_of
from engine.corpora.words import word_spans

LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
SPACES = re.compile(r"[^\S\t]+")  # tabs between texts are preserved, as in a table
ENDS = re.compile(r"[.!?…。！？:：][\"'”’»)\]]*$")
WIDEST = 120  # columns of a line of wrapped text


@dataclass
class Block:
    """The lines of one unit, with their indentation."""

    first: int
    last: int
    indents: list[str]


class PlainText(TextDocument):
    """A text file."""

    title: ClassVar[str] = "text file"

    def __init__(self, file: TextFile, context: Context) -> None:
        super().__init__(file, context)
        self.lines = [line for line in LINE.findall(file.text) if line]
        self.blocks: list[Block] = []
        wrapped = context.options.wrapped
        self.width = self._width() if wrapped == "auto" else max(map(columns, self.lines), default=0) * (wrapped == "yes")
        for first, last in self._paragraphs():
            lines = self.lines[first:last]
            bodies = [line.strip() for line in lines]
            self.blocks.append(Block(first, last, [line[: len(line) - len(line.lstrip())] for line in lines]))
            self.units.append(Unit([" ".join(bodies)], f"line {first + 1}", keep_tabs=True))

    def _paragraphs(self) -> list[tuple[int, int]]:
        """The (first, last) ranges of lines that form a paragraph: a single line, except in wrapped text."""
        results: list[tuple[int, int]] = []
        for number, line in enumerate(self.lines):
            if not line.strip():
                continue
            joins = (
                self.width > 0
                and bool(results)
                and results[-1][1] == number
                and columns(self.lines[number - 1]) > self.width * 0.6
                and not re.match(r"\s*(?:[-*•]|\d+[.)])\s", line)
            )
            if joins:
                results[-1] = (results[-1][0], number + 1)
            else:
                results.append((number, number + 1))
        return results

    def _width(self) -> int:
        """The width at which the text is wrapped; 0 if its lines are separate sentences or paragraphs.

        Wrapped lines are close to a width that none exceeds, and most of them end in the middle of a sentence.
        """
        lines = [line.rstrip() for line in self.lines]
        inner = [line for line, after in itertools.pairwise(lines) if line and after.strip()]
        if len(inner) < 3:
            return 0
        sizes = [columns(line) for line in inner]
        width = max(columns(line) for line in lines)
        full = sum(size > width * 0.7 for size in sizes)
        midst = sum(not ENDS.search(line) for line in inner)
        return width if 30 <= width <= WIDEST and full > 0.7 * len(inner) and midst > 0.6 * len(inner) else 0

    def build(self, results: Sequence[Result | None]) -> bytes:
        done: list[str] = []
        at = 0
        for block, parts in changed(self.blocks, self.units, results):
            done += self.lines[at : block.first]
            at = block.last
            text = SPACES.sub(" ", text_of(parts)).strip()
            last = self.lines[block.last - 1]
            end = last[len(last.rstrip()) :]
            between = self.lines[block.first][len(self.lines[block.first].rstrip("\r\n")) :] or "\n"
            lines = [text]
            if block.last - block.first > 1:
                next_indent = block.indents[1] if len(block.indents) > 1 else ""
                lines = wrap_text(text, self.width - columns(next_indent))
            indents = [block.indents[0], *[block.indents[-1]] * (len(lines) - 1)]
            done.append(between.join(indent + line for indent, line in zip(indents, lines, strict=True)) + end)
        return self.file.encoded("".join([*done, *self.lines[at:]]))


def columns(text: str) -> int:
    """The width of a text in terminal columns; a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text.rstrip("\r\n"))


def wrap_text(text: str, width: int) -> list[str]:
    """A text in lines of at most `width` columns, broken at spaces or, in scripts without spaces, between characters."""
    lines: list[str] = []
    start = end = 0
    for a, b in word_spans(text):
        opens = text[b - 1] in "([{“‘「『（《"
        if columns(text[start:b]) > width and end > start and not (len(text[a:b]) == 1 and not text[a].isalnum()):
            lines.append(text[start:end].rstrip())
            start = a if end <= a else end
        end = end if opens else b
    return [*lines, text[start:].strip()] if text[start:].strip() or not lines else lines
