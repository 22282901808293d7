"""The texts of cells and comments in SpreadsheetML (ISO/IEC 29500-1, 18.4.8 and 18.7): plain text, or runs with styles."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

from engine.corpora.formats.documents.model import names
from engine.corpora.formats.documents.runs import SPACE, Piece, RunParagraph, RunStyle, text_pieces
from engine.corpora.formats.documents.xmltext import local
from engine.corpora.formats.tagged_text import TaggedText, text_of

ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def readable(text: str) -> str:
    """A text of a workbook with the escapes of characters that XML cannot hold (ST_Xstring) resolved and LF line ends."""
    return ESCAPED.sub(lambda match: chr(int(match[1], 16)), text).replace("\r\n", "\n")


def text_key(element: Any) -> str | bytes:
    """A key that is equal for texts with the same words and styles."""
    if element.find("{*}r") is None:
        return "".join(child.text or "" for child in element.iterfind("{*}t"))
    from lxml import etree

    return bytes(etree.tostring(element, encoding="utf-8", with_tail=False))


class CellText(RunParagraph):
    """One `si`, `is` or `text` element. Reading aids (phonetic runs) are dropped if its text changes."""

    noise = names("charset family extLst")

    def __init__(self, element: Any) -> None:
        self.plain = element.find("{*}r") is None
        super().__init__(element)

    def plain_text(self, parts: TaggedText) -> str:
        """The text, including the content of standalone tags such as tabs."""
        return "".join(
            part
            if isinstance(part, str)
            else "".join(text for element in self.payload["alone", part.id].elements for text in element.itertext())
            for part in parts
            if isinstance(part, str) or part.kind == "alone"
        )

    def _pieces(self, children: Sequence[Any]) -> Iterator[Piece]:
        for child in children:
            if local(child) == "t":
                yield from text_pieces(child.text or "", RunStyle("", None), self._made)
            elif local(child) == "r":
                yield from self._run(child)

    def _fresh(self, text: str, look: RunStyle | None) -> Any:
        if self.plain:
            return self._made("t", text)
        run = self.element.makeelement(f"{self.space}r")
        if look is not None and look.properties is not None:
            run.append(copy.deepcopy(look.properties))
        run.append(self._made("t", text))
        return run

    def _made(self, name: str, text: str) -> Any:
        element = super()._made(name, text)
        element.set(SPACE, "preserve")
        return element

    def write(self, parts: TaggedText) -> None:
        """Replace the content by `parts`; plain text stays plain."""
        super().write([self.plain_text(parts)] if self.plain else parts)


class ThreadText:
    """The text of a threaded comment, which has no styles."""

    def __init__(self, element: Any) -> None:
        self.element = element
        self.parts: TaggedText = [element.text or ""]
        self.words: set[int] = set()
        self.breaks: set[int] = set()

    def write(self, parts: TaggedText) -> None:
        """Replace the text by `parts`."""
        self.element.text = text_of(parts)
