"""Writing text with marks as Markdown that is parsed as intended: escapes, and emphasis next to any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from markdown_it.common.normalize_url import normalizeLink
from markdown_it.common.utils import normalizeReference, unescapeAll

SPECIAL = re.compile(r"([\\`*\[\]]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<=~)~)")
# Characters that would begin another block at the start of a line; a number is escaped after it.
STARTS = re.compile(
    r"^(?:(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|=+(?=[ \t]*$)|-{2,}(?=[ \t]*$)|~~~)|(\d{1,9})(?=[.)](?:\s|$)))", re.MULTILINE
)


DESTINATION = re.compile(r"\]\(\s*(<[^<>\n]*>|[^\s()<>]+(?:\([^\s()]*\)[^\s()]*)*)")
LABEL = re.compile(r"\[([^\[\]]+)\]")
AUTOLINK = re.compile(r"<([^<>\s]+)>")


@dataclass
class Written:
    """A piece of a text to be written: unescaped text, a mark, or the opening or closing mark of emphasis."""

    kind: Literal["text", "mark", "open", "close"]
    text: str


@dataclass
class Address:
    """The end of a link, or an image (which has an escaped `alt` text); `target` is `[label]` or an address."""

    target: str
    title: str = ""
    alt: str | None = None

    def __str__(self) -> str:
        head = "]" if self.alt is None else f"![{self.alt}]"
        if self.target.startswith("["):
            return head + self.target
        title = re.sub(r'["\\]|&(?=#?\w+;)', r"\\\g<0>", self.title)
        return f'{head}({self.target} "{title}")' if title else f"{head}({self.target})"


class Spelling:
    """The spelling of addresses and line breaks in a block, which the parser drops; `references` are the parsed link references."""

    def __init__(self, content: str, references: Mapping[str, Mapping[str, Any]]) -> None:
        self.content, self.references = content, references

    @cached_property
    def line_break(self) -> str:
        return "\\\n" if "\\\n" in self.content else "  \n"

    @cached_property
    def autolinks(self) -> dict[str, str]:
        """{address: its spelling between < and >}."""
        addresses = [match[1] for match in AUTOLINK.finditer(self.content)]
        return {normalizeLink(prefix + address): address for prefix in ("mailto:", "") for address in addresses}

    @cached_property
    def destinations(self) -> dict[str, str]:
        """{address: its spelling after a text in brackets}."""
        addresses = [match[1] for match in DESTINATION.finditer(self.content)]
        return {normalizeLink(unescapeAll(address.strip("<>"))): address for address in addresses}

    @cached_property
    def labels(self) -> dict[tuple[str, str], str]:
        """{(address, title): the first label in brackets that refers to it}."""
        labelled = [(match[0], self.references.get(normalizeReference(match[1]))) for match in LABEL.finditer(self.content)]
        return {(reference["href"], reference["title"]): label for label, reference in reversed(labelled) if reference}

    def address(self, href: object, title: object) -> Address:
        """The address of a link or an image, or its label if it is a reference."""
        address, title = str(href or ""), str(title or "")
        if address in self.destinations:
            return Address(self.destinations[address], title)
        if (address, title) in self.labels:
            return Address(self.labels[address, title])
        return Address(f"<{address}>" if re.search(r"[\s()]", address) or not address else address, title)


def markdown_of(pieces: Sequence[Written], *, cell: bool) -> str:
    """The pieces as Markdown; in a table cell, with bars escaped."""
    pieces = _flanked([Written(piece.kind, piece.text) for piece in pieces if piece.text])
    result = ""
    for index, piece in enumerate(pieces):
        if piece.kind != "text":
            result += piece.text
            continue
        after = pieces[index + 1].text if index + 1 < len(pieces) else ""
        text = SPECIAL.sub(r"\\\1", piece.text)
        result += f"{text[:-1]}\\!" if text.endswith("!") and after.startswith("[") else text
    if cell:
        return re.sub(r"(?<!\\)\|", r"\\|", result)
    return STARTS.sub(lambda match: f"\\{match[1]}" if match[1] else f"{match[2]}\\", result)


def _flanked(pieces: list[Written]) -> list[Written]:
    """Change the pieces so that CommonMark recognises their emphasis.

    Its marks must touch a letter inside, unless there is a space or punctuation outside. In text without spaces between words,
    `**停。**然后` is not emphasis, so the punctuation is moved out: `**停**。然后`. Adjacent emphases are merged.
    """
    for index in range(len(pieces) - 3, -1, -1):
        opened, inner, closed = pieces[index : index + 3]
        if (opened.kind, inner.kind, closed.kind) == ("open", "text", "close") and _in_brackets(inner.text):
            before = pieces[index - 1].text[-1] if index else ""
            after = pieces[index + 3].text[0] if index + 3 < len(pieces) else ""
            if _stray(inner.text, before) or _stray(inner.text[::-1], after):
                first, middle, last = inner.text[0], inner.text[1:-1], inner.text[-1]
                pieces[index : index + 3] = [Written("text", first), opened, Written("text", middle), closed, Written("text", last)]
    for index in range(len(pieces) - 2, -1, -1):
        if pieces[index].kind == "open" and pieces[index + 1].kind == "text":
            outside = pieces[index - 1].text[-1] if index else ""
            if size := _stray(pieces[index + 1].text, outside):
                text = pieces[index + 1].text
                pieces[index : index + 2] = [Written("text", text[:size]), pieces[index], Written("text", text[size:])]
    index = 1
    while index < len(pieces):
        if pieces[index].kind == "close" and pieces[index - 1].kind == "text":
            outside = pieces[index + 1].text[0] if index + 1 < len(pieces) else ""
            if size := _stray(pieces[index - 1].text[::-1], outside):
                text = pieces[index - 1].text
                pieces[index - 1 : index + 1] = [Written("text", text[:-size]), pieces[index], Written("text", text[-size:])]
        index += 1
    done: list[Written] = []
    for piece in pieces:
        if done and (done[-1].kind, piece.kind) == ("close", "open") and done[-1].text == piece.text:
            done.pop()
        else:
            done.append(piece)
    return done


def _stray(text: str, outside: str) -> int:
    """The number of characters at the start of emphasised text that must be moved out; `outside` is the character before it."""
    if not text[0].isspace() and (not _sign(text[0]) or not outside or outside.isspace() or _sign(outside)):
        return 0
    size = next((k for k, character in enumerate(text) if not (character.isspace() or _sign(character))), len(text))
    return size if size < len(text) else 0


def _in_brackets(text: str) -> bool:
    return len(text) > 2 and unicodedata.category(text[0]) in ("Ps", "Pi") and unicodedata.category(text[-1]) in ("Pe", "Pf")


def _sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def escaped(text: str) -> str:
    """A text escaped for use within a line, such as that of an image."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
