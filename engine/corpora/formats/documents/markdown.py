"""Markdown (CommonMark with tables, and GitHub's footnotes, tasks, alerts and emoji): text blocks, and texts of images and links.

Code, addresses and layout are preserved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from markdown_it.token import Token

from engine.core.languages import unspaced
from engine.corpora.formats.documents.files import TextDocument, TextFile
from engine.corpora.formats.documents.github_markdown import DEFINITION, EMOJI, SIGNS, github_parser
from engine.corpora.formats.documents.markdown_text import Address, Spelling, Written, escaped, markdown_of
from engine.corpora.formats.documents.model import Context, Result, Unit, changed
from engine.corpora.formats.tagged_text import Tag, TaggedText, add_text, text_of
from engine.messages import Message

FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)


@dataclass
class Block:
    """The text of one block: the (begin, end) of its lines in the file, its parts, and the markup of its tags."""

    lines: list[tuple[int, int]]
    cell: bool
    parts: TaggedText = field(default_factory=list)
    marks: dict[tuple[str, int], str | Address] = field(default_factory=dict)
    emphasis: set[int] = field(default_factory=set)  # pairs of *, _ or ~~
    words: set[int] = field(default_factory=set)
    breaks: set[int] = field(default_factory=set)


class Markdown(TextDocument):
    """A Markdown file."""

    title: ClassVar[str] = "Markdown file"

    def __init__(self, file: TextFile, context: Context) -> None:
        super().__init__(file, context)
        # The place of each unit: the text of a block, or the "alt" or "title" text of an address in it.
        self.places: list[tuple[Block, tuple[str, int] | None, str]] = []
        front = FRONT_MATTER.match(file.text)
        self.offset = front.end() if front else 0
        body = file.text[self.offset :]
        self.starts = [self.offset, *(self.offset + m.end() for m in re.finditer(r"\r\n|\n|\r", body))]
        self.at = self.offset  # end of the text read so far
        self.parser = github_parser()
        self.known: dict[str, Any] = {}  # the parser's environment, including link references
        tokens = self.parser.parse(body, self.known)
        for index, token in enumerate(tokens):
            if token.type == "inline" and token.map and token.content.strip():
                self._add(token, tokens[index - 2].type if index > 1 and token.content else "", tokens[index - 1].type)

    def _add(self, token: Token, around: str, opener: str) -> None:
        """Add the block of a token; `opener` is the type of the token that opens it, `around` that of the token before."""
        cell = opener in ("th_open", "td_open")
        lines = self._lines(token, cell)
        if lines is None:
            self.skipped[Message("not found again")] += 1
            return
        children = list(token.children or [])
        spelling = Spelling(token.content, self.known.get("references", {}))
        sign = SIGNS[around].match(children[0].content) if around in SIGNS and children[0].type == "text" else None
        if sign and self.file.text.startswith(sign[0], lines[0][0]):
            children[0].content = children[0].content[sign.end() :]
            lines[0] = (lines[0][0] + sign.end(), lines[0][1])
            first = next((k for k, child in enumerate(children) if child.type in ("softbreak", "hardbreak")), 0)
            if around == "blockquote_open" and first and not any("\n" in child.content for child in children[:first]):
                self._read(Block(lines[:1], cell), children[:first], spelling)  # the title of an alert
                lines, children = lines[1:], children[first + 1 :]
        self._read(Block(lines, cell), children, spelling)

    def _read(self, block: Block, children: Sequence[Token], spelling: Spelling) -> None:
        """Add the units of a block: its text, and the texts of its addresses."""
        parts, marks = block.parts, block.marks
        stack: list[int] = []
        inside: Iterator[Token] = iter(children)
        for child in inside:
            id = len(marks)
            if child.type == "text":
                _add_text(block, child.content)
            elif child.type == "softbreak":
                add_text(parts, " ")
            elif child.type == "link_open" and child.markup == "autolink":  # <https://…>: its text is the address
                address = "".join(token.content for token in (next(inside), next(inside)))
                marks["alone", id] = f"<{spelling.autolinks.get(str(child.attrGet('href')), address)}>"
                block.words.add(id)
                parts.append(Tag("alone", id))
            elif child.nesting == 1:
                stack.append(id)
                marks["open", id] = marks["close", id] = child.markup
                if child.type == "link_open":
                    marks["open", id] = "["
                    marks["close", id] = spelling.address(child.attrs.get("href"), child.attrs.get("title"))
                else:
                    block.emphasis.add(id)
                    if unspaced(self.context.target):  # between letters, _ does not mark emphasis
                        marks["open", id] = marks["close", id] = child.markup.replace("_", "*")
                parts.append(Tag("open", id))
            elif child.nesting == -1:
                parts.append(Tag("close", stack.pop()))
            else:
                marks["alone", id] = _written(child, spelling)
                if child.type in ("code_inline", "formula") and "\n" not in child.content:
                    block.words.add(id)
                elif child.type in ("hardbreak", "formula") or re.fullmatch(r"<br\s*/?>", child.content, re.IGNORECASE):
                    block.breaks.add(id)
                parts.append(Tag("alone", id))
        line = f"line {self.file.text.count(chr(10), 0, block.lines[0][0]) + 1}"
        if text_of(parts).strip():
            self.places.append((block, None, ""))
            self.units.append(Unit(parts, line, words=frozenset(block.words), breaks=frozenset(block.breaks)))
        if self.context.options.attributes:
            self._read_addresses(block, children, line)

    def _read_addresses(self, block: Block, children: Sequence[Token], line: str) -> None:
        """Add units for the alternative texts of images and the titles of images and links."""
        images = iter([child for child in children if child.type == "image"])
        for key, mark in block.marks.items():
            if not isinstance(mark, Address):
                continue
            texts = {"title": mark.title}
            if mark.alt is not None:
                texts = {"alt": _shown(next(images).children or []), **texts}
            for name, text in texts.items():
                if text.strip():
                    self.places.append((block, key, name))
                    self.units.append(Unit([text], f"{line}, {name}"))

    def _lines(self, token: Token, cell: bool) -> list[tuple[int, int]] | None:
        """(begin, end) of the lines of a block's text in the file, without prefixes (`> `, `- `); None if they are not found."""
        assert token.map is not None
        text = self.file.text
        results = []
        at = max(self.at, self.starts[token.map[0]])
        end = self._line(token.map[1])
        mark = DEFINITION.search(text, at, self._line(token.map[0] + 1))
        if mark and not text[at : mark.start()].strip(" \t>-*+"):
            at = mark.end()
        for number, line in enumerate(token.content.split("\n"), token.map[0]):
            stripped = line.strip()
            file_line = text[self._line(number) : self._line(number + 1)].rstrip()
            position = self._line(number) + len(file_line) - len(stripped)
            if cell or not file_line.endswith(stripped) or position < at:
                forms = (stripped, stripped.replace("|", "\\|")) if cell else (stripped,)
                position, stripped = next(((k, form) for form in forms if (k := text.find(form, at, end)) >= 0), (-1, ""))
            if position < 0 or not stripped:
                return None
            at = position + len(stripped)
            results.append((position, at))
        self.at = at
        return results

    def _line(self, number: int) -> int:
        """The position at which a line of the body begins; after the last line, the end of the file."""
        return self.starts[number] if number < len(self.starts) else len(self.file.text)

    def build(self, results: Sequence[Result | None]) -> bytes:
        text = self.file.text
        blocks: dict[int, Block] = {}  # the changed blocks, by position
        for (block, key, name), parts in changed(self.places, self.units, results):
            blocks[block.lines[0][0]] = block
            address = block.marks.get(key) if key else None
            if isinstance(address, Address):
                setattr(address, name, escaped(text_of(parts)) if name == "alt" else " ".join(text_of(parts).split()))
            else:
                block.parts = parts
        done, at = [], 0
        for begin in sorted(blocks):
            block = blocks[begin]
            done += [text[at:begin], _block(block).replace("\n", self._prefix(block))]
            at = block.lines[-1][1]
        return self.file.encoded("".join([*done, text[at:]]))

    def _prefix(self, block: Block) -> str:
        """A line end with the prefix of continuation lines in a block, as before its second line if it has one."""
        text = self.file.text
        if len(block.lines) > 1:
            return text[block.lines[0][1] : block.lines[1][0]].lstrip(" \t\\")
        start = max(text.rfind("\n", 0, block.lines[0][0]), text.rfind("\r", 0, block.lines[0][0])) + 1
        head = text[start : block.lines[0][0]]
        return ("\r\n" if "\r\n" in text else "\n") + re.sub(r"[^\s>]", " ", head)


def _block(block: Block) -> str:
    pieces = []
    for part in block.parts:
        if isinstance(part, str):
            pieces.append(Written("text", part))
        elif part.id in block.emphasis and part.kind != "alone":
            pieces.append(Written(part.kind, str(block.marks[part.kind, part.id])))
        else:
            pieces.append(Written("mark", str(block.marks[part.kind, part.id])))
    return markdown_of(pieces, cell=block.cell)


def _add_text(block: Block, text: str) -> None:
    """Add text to a block, with emoji as tags."""
    at = 0
    for match in EMOJI.finditer(text):
        add_text(block.parts, text[at : match.start()])
        at = match.end()
        id = len(block.marks)
        block.marks["alone", id] = match[0]
        block.parts.append(Tag("alone", id))
    add_text(block.parts, text[at:])


def _shown(children: Sequence[Token]) -> str:
    """The alternative text of an image, without markup."""
    return "".join(" " if child.type in ("softbreak", "hardbreak") else child.content for child in children)


def _written(child: Token, spelling: Spelling) -> str | Address:
    """The Markdown of a standalone inline element."""
    if child.type == "image":
        return replace(spelling.address(child.attrs.get("src"), child.attrs.get("title")), alt=child.content)
    if child.type == "code_inline":
        inside = child.content
        padded = inside.strip() and inside[0] == inside[-1] == " "
        space = " " if inside.startswith("`") or inside.endswith("`") or padded else ""
        return f"{child.markup}{space}{inside}{space}{child.markup}"
    if child.type == "hardbreak":
        return spelling.line_break
    return child.content
