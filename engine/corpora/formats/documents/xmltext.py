"""The content of an XML element as tagged text, and back, for formats with elements inside sentences."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lxml import etree

from engine.corpora.formats.tagged_text import Tag, TaggedText, add_text

SPACE = "{http://www.w3.org/XML/1998/namespace}space"
# The role of an element in a text: around text (pair), beside it (alone), in place of a word (word), the end of a sentence
# (break), text itself (text), one of two elements that form a pair (open, close), to be removed (drop).
Kind = Literal["pair", "alone", "word", "break", "open", "close", "text", "drop"]


@dataclass(frozen=True)
class Role:
    """An element's kind; `key` is shared by open and close of a pair, and is the text of a text."""

    kind: Kind
    key: str = ""


def local(element: Any) -> str:
    """The name without its namespace; empty for comments and processing instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def space_preserved(element: Any) -> bool:
    """Whether white space is preserved, by xml:space of the element or the nearest ancestor that has it."""
    nearest = (node.get(SPACE) for node in (element, *element.iterancestors()) if node.get(SPACE) is not None)
    return next(nearest, "default") == "preserve"


class Content:
    """The content of one element; `role` returns the role of each element in it."""

    def __init__(self, element: etree._Element, role: Callable[[Any], Role]) -> None:
        self.parts: TaggedText = []
        self.words: set[int] = set()
        self.breaks: set[int] = set()
        self._elements: dict[tuple[str, int], Any] = {}
        self._open: dict[str, int] = {}
        self._read(element, role)
        self._pair_up()

    def _read(self, element: Any, role: Callable[[Any], Role]) -> None:
        add_text(self.parts, element.text or "")
        for child in element:
            result = role(child)
            if result.kind == "pair":
                id = self._tag("open", child)
                self._read(child, role)
                self.parts.append(Tag("close", id))
            elif result.kind == "open":
                self._open[result.key] = self._tag("open", child)
            elif result.kind == "close" and result.key in self._open:
                id = self._open.pop(result.key)
                self._elements["close", id] = child
                self.parts.append(Tag("close", id))
            elif result.kind == "text":
                add_text(self.parts, result.key)
            elif result.kind != "drop":
                id = self._tag("alone", child)
                if result.kind == "word":
                    self.words.add(id)
                elif result.kind == "break":
                    self.breaks.add(id)
            add_text(self.parts, child.tail or "")

    def _tag(self, kind: Literal["open", "alone"], element: Any) -> int:
        id = len(self._elements)
        self._elements[kind, id] = element
        self.parts.append(Tag(kind, id))
        return id

    def _pair_up(self) -> None:
        """Make tags without their counterpart, and pairs that cross another, standalone."""
        stack: list[int] = []
        crossing: set[int] = set(self._open.values())
        for part in self.parts:
            if isinstance(part, Tag) and part.kind == "open":
                stack.append(part.id)
            elif isinstance(part, Tag) and part.kind == "close":
                if ("close", part.id) in self._elements and stack[-1:] != [part.id]:
                    crossing.add(part.id)  # of two crossing pairs, the one of two elements becomes standalone
                    stack = [id for id in stack if id != part.id]
                    continue
                while stack and stack.pop() != part.id:
                    pass
        for id in crossing:
            if ("open", id) in self._elements:
                self._elements["alone", id] = self._elements.pop(("open", id))
            if ("close", id) in self._elements:
                new_id = -1 - id
                self._elements["alone", new_id] = self._elements.pop(("close", id))
        self.parts = [
            Tag("alone", -1 - part.id if part.kind == "close" else part.id)
            if isinstance(part, Tag) and part.id in crossing
            else part
            for part in self.parts
        ]

    @property
    def elements(self) -> dict[int, Any]:
        """The elements of standalone tags, by tag id."""
        return {id: element for (kind, id), element in self._elements.items() if kind == "alone"}

    def write(self, target: etree._Element, parts: Sequence[str | Tag], *, copies: bool) -> None:
        """Replace the content of `target` by `parts`, with the elements that were read or with copies of them."""
        selected = {key: copy.deepcopy(element) if copies else element for key, element in self._elements.items()}
        _empty(target)
        stack = [target]
        for part in parts:
            parent = stack[-1]
            if isinstance(part, str):
                if len(parent):
                    parent[-1].tail = (parent[-1].tail or "") + part
                else:
                    parent.text = (parent.text or "") + part
                continue
            element = selected.get((part.kind, part.id))
            if element is None:  # the end of an opened element
                if len(stack) > 1:
                    stack.pop()
                continue
            element.tail = None
            parent.append(element)
            if part.kind == "open" and ("close", part.id) not in selected:
                _empty(element)
                stack.append(element)


def _empty(element: Any) -> None:
    """Remove the content of an element; the removed children stay intact."""
    element.text = None
    for child in list(element):
        child.tail = None
        element.remove(child)
