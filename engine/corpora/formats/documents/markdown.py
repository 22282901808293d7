"""Markdown (CommonMark with tables): headings, paragraphs, lists, quotes, cells; code, links' addresses and layout stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from engine.corpora.formats.documents.files import TextDocument, TextFile
from engine.corpora.formats.documents.model import Context, Result, Unit, changed
from engine.corpora.formats.tagged_text import Tag, TaggedText, add_text, text_of

if TYPE_CHECKING:
    from markdown_it.token import Token

FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
SPECIAL = re.compile(r"([\\`*\[\]]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?]))")
STARTS = re.compile(r"^(#{1,6}(?=\s)|[-+>](?=\s)|\d{1,9}(?=[.)]\s)|={2,}|-{2,}|~~~)")


@dataclass
class Block:
    """The text of one block: where its lines stand in the file (begin, end), and the marks of its tags."""

    lines: list[tuple[int, int]]
    marks: dict[tuple[str, int], str]
    cell: bool


class Markdown(TextDocument):
    """A Markdown file."""

    title: ClassVar[str] = "Markdown file"

    def __init__(self, file: TextFile, context: Context) -> None:
        from markdown_it import MarkdownIt

        super().__init__(file, context)
        self.blocks: list[Block] = []
        front = FRONT_MATTER.match(file.text)
        self.offset = front.end() if front else 0
        body = file.text[self.offset :]
        self.starts = [self.offset, *(self.offset + m.end() for m in re.finditer(r"\r\n|\n|\r", body))]
        self.at = self.offset  # what is before it has been read
        parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 60}).enable(["table", "strikethrough"])
        cell = False
        for token in parser.parse(body):
            if token.type in ("th_open", "td_open"):
                cell = True
            elif token.type in ("th_close", "td_close"):
                cell = False
            elif token.type == "inline" and token.map and token.content.strip():
                self._add(token, cell)

    def _add(self, token: Token, cell: bool) -> None:
        assert token.map is not None
        lines = self._lines(token, token.map[0])
        if lines is None:
            self.skipped["not found again"] += 1
            return
        parts: TaggedText = []
        marks: dict[tuple[str, int], str] = {}
        words: set[int] = set()
        breaks: set[int] = set()
        stack: list[int] = []
        for child in token.children or []:
            if child.type == "text":
                add_text(parts, child.content)
                continue
            if child.type == "softbreak":
                add_text(parts, " ")
                continue
            id = len(marks)
            if child.type == "link_open" and child.markup != "autolink":
                stack.append(id)
                marks["open", id] = "["
                title = child.attrGet("title")
                href = str(child.attrGet("href") or "")
                href = f"<{href}>" if re.search(r"[\s()]", href) else href
                marks["close", id] = f"]({href}" + (f' "{title}")' if title else ")")
                parts.append(Tag("open", id))
            elif child.nesting == 1 and child.type != "link_open":
                stack.append(id)
                marks["open", id] = marks["close", id] = child.markup
                parts.append(Tag("open", id))
            elif child.nesting == -1:
                if child.type == "link_close" and child.markup == "autolink":
                    marks["alone", stack.pop()] += ">"
                    continue
                parts.append(Tag("close", stack.pop()))
            elif child.type == "link_open":  # <https://…>: its text is the address
                stack.append(id)
                marks["alone", id] = "<"
                words.add(id)
                parts.append(Tag("alone", id))
            else:
                marks["alone", id] = _written(child)
                (breaks if child.type == "hardbreak" else words if child.type == "code_inline" else set()).add(id)
                parts.append(Tag("alone", id))
        parts = self._autolinks(parts, marks)
        if not text_of(parts).strip():
            return
        self.blocks.append(Block(lines, marks, cell))
        line = self.file.text.count("\n", 0, lines[0][0]) + 1
        self.units.append(Unit(parts, f"line {line}", words=frozenset(words), breaks=frozenset(breaks)))

    def _autolinks(self, parts: TaggedText, marks: dict[tuple[str, int], str]) -> TaggedText:
        """Move the address that follows an autolink's tag into it."""
        done: TaggedText = []
        for part in parts:
            before = done[-1] if done else None
            if isinstance(part, str) and isinstance(before, Tag) and marks.get(("alone", before.id)) == "<>":
                match = re.match(r"\S*", part)
                address = match[0] if match else ""
                marks["alone", before.id] = f"<{address}>"
                part = part[len(address) :]  # noqa: PLW2901
            if part != "":
                done.append(part)
        return done

    def _lines(self, token: Token, first: int) -> list[tuple[int, int]] | None:
        """Where the lines of a block's text stand in the file, without what is before them (`> `, `- `)."""
        results = []
        at = max(self.at, self.starts[first])
        for line in token.content.split("\n"):
            bare = line.strip()
            end = self._block_end(token)
            for written in (bare, bare.replace("|", "\\|")):  # in a cell of a table
                position = self.file.text.find(written, at, end)
                if position >= 0:
                    break
            if position < 0 or not bare:
                return None
            at = position + len(written)
            results.append((position, at))
        self.at = at
        return results

    def _block_end(self, token: Token) -> int:
        """The end of the block that holds the token, so that no text is found in a later one."""
        assert token.map is not None
        last = token.map[1]
        return self.starts[last] if last < len(self.starts) else len(self.file.text)

    def build(self, results: Sequence[Result | None]) -> bytes:
        text = self.file.text
        done, at = [], 0
        for block, parts in changed(self.blocks, self.units, results):
            begin, end = block.lines[0][0], block.lines[-1][1]
            prefix = self._prefix(block)
            done += [text[at:begin], self._shown(block, parts).replace("\n", prefix)]
            at = end
        return self.file.encoded("".join([*done, text[at:]]))

    def _prefix(self, block: Block) -> str:
        """What a further line of a block begins with: as its second line, where it has one."""
        text = self.file.text
        if len(block.lines) > 1:
            return text[block.lines[0][1] : block.lines[1][0]]
        start = text.rfind("\n", 0, block.lines[0][0]) + 1
        head = text[start : block.lines[0][0]]
        return "\n" + re.sub(r"[^\s>]", " ", head)

    def _shown(self, block: Block, parts: TaggedText) -> str:
        result = ""
        for part in parts:
            if isinstance(part, Tag):
                result += block.marks[part.kind, part.id]
                continue
            shown = SPECIAL.sub(r"\\\1", part)
            result += shown.replace("|", "\\|") if block.cell else shown
        return STARTS.sub(
            lambda m: ("" if m[0][0].isdigit() else "\\") + m[0] + ("\\" if m[0][0].isdigit() else ""), result
        )


def _written(child: Token) -> str:
    """A lone piece of Markdown as it is written."""
    if child.type == "code_inline":
        space = " " if child.content.startswith("`") or child.content.endswith("`") else ""
        return f"{child.markup}{space}{child.content}{space}{child.markup}"
    if child.type == "hardbreak":
        return "\\\n"
    if child.type == "image":
        title = child.attrGet("title")
        return f"![{child.content}]({child.attrGet('src')}" + (f' "{title}")' if title else ")")
    return child.content
