"""Paragraphs of runs, as written by Word, PowerPoint and Excel: pieces of text, each with its properties.

Runs of a paragraph that look the same are joined. The style of most of its text is the ground style; text in other styles
(bold, a link) is enclosed by pairs of tags, which are put back by alignment. Pictures, notes and marks are moved, never copied.
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from engine.core.numerals import whole_number
from engine.corpora.formats.documents.model import Result, Unit, changed
from engine.corpora.formats.documents.xmltext import local
from engine.corpora.formats.tagged_text import Tag, TaggedText, add_text

SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass
class RunStyle:
    """The style of a run of text: its properties, and a key for comparing styles."""

    key: str
    properties: Any


@dataclass
class Piece:
    """A text with its style, or elements that stay together."""

    text: str = ""
    look: RunStyle | None = None
    elements: list[Any] = field(default_factory=list)
    kind: str = "alone"  # alone, word, break, open, close
    shell: Any = None  # if open: the element that receives the content
    run: Any = None  # the run that contains the elements

    def placed(self) -> list[Any]:
        """The elements as children of a paragraph. They are moved, not copied, so that text in them can still be written."""
        if self.run is None:
            return self.elements
        alone = self.run.makeelement(self.run.tag, dict(self.run.attrib))
        for child in self.run:
            if local(child) == "rPr":
                alone.append(copy.deepcopy(child))
        alone.extend(self.elements)
        return [alone]


# Tabs and escaped characters that XML cannot hold (ST_Xstring), which separate sentences.
CONTROL = re.compile(r"(\t|_x[0-9A-Fa-f]{4}_)")


def text_pieces(text: str, look: RunStyle, create: Callable[[str, str], Any], run: Any = None) -> Iterator[Piece]:
    """The pieces of a run's text; `create` makes an element from its name and text, and `run` contains such elements."""
    for index, piece in enumerate(CONTROL.split(text)):
        if index % 2:
            yield Piece(run=run, elements=[create("t", piece)], kind="break")
        elif piece:
            yield Piece(piece, look)


class RunParagraph(ABC):
    """One paragraph: its parts, and writing others into it. Subclasses define the pieces and how a run is written."""

    last: ClassVar[frozenset[str]] = frozenset()  # elements of a paragraph that stay after its text
    noise: ClassVar[frozenset[str]] = frozenset()  # properties of a run that are not visible

    def __init__(self, element: Any) -> None:
        self.element = element
        self.space = "".join(element.tag.rpartition("}")[:2])  # the namespace, in braces
        self.parts: TaggedText = []
        self.words: set[int] = set()
        self.breaks: set[int] = set()
        self.payload: dict[tuple[str, int], Piece] = {}
        self.grounds: dict[int, RunStyle | None] = {}  # by the id of the wrapper; -1 is the paragraph
        self._count = 0
        self._read(element, -1)

    # -- reading

    def _read(self, container: Any, owner: int) -> None:
        pieces = list(self._pieces(list(container)))
        sizes: Counter[str] = Counter()
        looks: dict[str, RunStyle] = {}
        for piece in pieces:
            if piece.look is not None:
                sizes[piece.look.key] += len(piece.text.strip())
                looks.setdefault(piece.look.key, piece.look)
        base_style = looks[max(looks, key=lambda key: sizes[key])] if looks else None
        self.grounds[owner] = base_style
        current = base_style.key if base_style else ""
        opened: int | None = None
        fields: list[int] = []

        def close() -> None:
            nonlocal opened, current
            if opened is not None:
                self.parts.append(Tag("close", opened))
            opened, current = None, base_style.key if base_style else ""

        for piece in pieces:
            if piece.look is not None:
                blank = not piece.text.strip()
                if not blank and piece.look.key != current:
                    close()
                    if base_style is not None and piece.look.key != base_style.key:
                        opened = self._tag("open", Piece(look=piece.look))
                        current = piece.look.key
                add_text(self.parts, piece.text)
            elif piece.kind == "open":
                close()
                id = self._tag("open", piece)
                if piece.shell is not None:
                    self._read(piece.shell, id)
                    self.parts.append(Tag("close", id))
                else:
                    fields.append(id)
            elif piece.kind == "close":
                close()
                self.payload["close", fields[-1]] = piece
                self.parts.append(Tag("close", fields.pop()))
            else:
                id = self._tag("alone", piece)
                if piece.kind == "word":
                    self.words.add(id)
                elif piece.kind == "break":
                    self.breaks.add(id)
        close()
        self._settle()

    def _settle(self) -> None:
        """Move the end of a style before standalone tags at its end: tags after the last text are not part of the pair."""
        parts = self.parts
        for position in range(len(parts) - 1, 0, -1):
            part = parts[position]
            if isinstance(part, Tag) and part.kind == "close" and ("close", part.id) not in self.payload:
                if self.payload["open", part.id].look is None:
                    continue
                at = position
                while at and isinstance(parts[at - 1], Tag) and parts[at - 1].kind == "alone":  # type: ignore[union-attr]
                    at -= 1
                parts.insert(at, parts.pop(position))

    def _tag(self, kind: str, piece: Piece) -> int:
        id = self._count
        self._count += 1
        self.payload[kind, id] = piece
        self.parts.append(Tag("open" if kind == "open" else "alone", id))
        return id

    @abstractmethod
    def _pieces(self, children: Sequence[Any]) -> Iterator[Piece]:
        """The pieces of the children of a paragraph or wrapper."""

    def _in_run(self, child: Any, run: Any, look: RunStyle) -> Iterator[Piece]:
        """The pieces of one element in a run; `t` holds text."""
        if local(child) == "t":
            yield from text_pieces(child.text or "", look, self._made, run)
        else:
            yield Piece(run=run, elements=[child])

    @abstractmethod
    def _fresh(self, text: str, look: RunStyle | None) -> Any:
        """A new element with a text in that style."""

    def _run(self, run: Any) -> Iterator[Piece]:
        properties = run.find(f"{self.space}rPr")
        look = RunStyle(_look(properties, self.noise), properties)
        raised = _raised(properties)
        for child in list(run):
            if child is properties:
                continue
            if raised and local(child) == "t" and not any(map(str.isalpha, child.text or "")):
                yield Piece(run=run, elements=[child])  # the number of a note, m²
            else:
                yield from self._in_run(child, run, look)

    # -- writing

    def write(self, parts: TaggedText) -> None:
        """Replace the paragraph's content by `parts`."""
        last = [child for child in self.element if local(child) in self.last]
        for child in list(self.element):
            if not local(child).endswith("pPr"):
                self.element.remove(child)
        stack: list[tuple[Any, int, RunStyle | None]] = [(self.element, -1, self.grounds[-1])]
        for part in parts:
            parent, owner, look = stack[-1]
            if isinstance(part, str):
                if part:
                    parent.append(self._fresh(part, look))
                continue
            piece = self.payload.get((part.kind, part.id))
            if part.kind == "close":
                if piece is not None:
                    parent.extend(piece.placed())
                if len(stack) > 1:
                    stack.pop()
                continue
            assert piece is not None
            if part.kind == "alone":
                parent.extend(piece.placed())
            elif piece.look is not None:
                stack.append((parent, owner, piece.look))
            elif piece.shell is not None:
                for child in list(piece.shell):
                    if not local(child).endswith("Pr"):
                        piece.shell.remove(child)
                parent.extend(piece.elements)
                stack.append((piece.shell, part.id, self.grounds.get(part.id) or look))
            else:
                parent.extend(piece.elements)
                stack.append((parent, owner, look))
        self.element.extend(last)

    def _made(self, name: str, text: str) -> Any:
        """A new element in the paragraph's namespace."""
        element = self.element.makeelement(f"{self.space}{name}")
        element.text = text
        return element


class Writable(Protocol):
    """A text from which a unit is made, and into which its result is written."""

    parts: TaggedText
    words: set[int]
    breaks: set[int]

    def write(self, parts: TaggedText) -> None:
        """Replace the content by `parts`."""


def unit_of(paragraph: Writable, location: str, *, keep_lines: bool = False) -> Unit:
    """The unit of a paragraph; `location` is its location for messages."""
    return Unit(
        paragraph.parts, location, words=frozenset(paragraph.words), breaks=frozenset(paragraph.breaks), keep_lines=keep_lines
    )


def write_changed(paragraphs: Sequence[tuple[str, Writable]], units: Sequence[Unit], results: Sequence[Result | None]) -> set[str]:
    """Write the changed results into their paragraphs; returns the names of the parts that contain them."""
    names = set()
    for (name, paragraph), parts in changed(paragraphs, units, results):
        paragraph.write(parts)
        names.add(name)
    return names


def _raised(properties: Any) -> bool:
    """Whether these properties make a run superscript."""
    if properties is None:
        return False
    if whole_number(properties.get("baseline"), 1) is not None:  # DrawingML; the other two have an element
        return True
    return any(local(child) == "vertAlign" and "superscript" in child.attrib.values() for child in properties)


def _look(properties: Any, noise: frozenset[str]) -> str:
    """A key that is equal for properties with the same appearance."""
    if properties is None:
        return ""
    from lxml import etree

    def written(child: Any) -> bytes:
        try:
            return bytes(etree.tostring(child, method="c14n", with_tail=False))
        except etree.C14NError:  # a namespace that is not an absolute URI
            return bytes(etree.tostring(child, encoding="utf-8", with_tail=False))

    attributes = [f"{key}={value};" for key, value in sorted(properties.items()) if key not in noise]
    inner = sorted(written(child) for child in properties if local(child) not in noise)
    return "".join(attributes) + b"".join(inner).decode("utf-8", "replace")
