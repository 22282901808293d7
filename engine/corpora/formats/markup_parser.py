"""Parsing a text with tags into a tree with texts as leaves; every tag is preserved verbatim."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from engine.errors import InputError
from engine.messages import Message

Kind = Literal["xml", "html", "short"]
NAME = r"[A-Za-z_:\u0080-\U0010ffff][-\w.:\u0080-\U0010ffff]*+"
ATTRIBUTE = rf"""\s+{NAME}\s*=\s*(?:"[^"<]*"|'[^'<]*')"""
# An unclosed comment or section extends to the end of the text, so that every character is scanned only once.
TOKEN = {
    "xml": re.compile(
        rf"(?P<opaque><!--[^-]*+(?:-[^-]++)*-->|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
        rf"|<!DOCTYPE[^<>\[]*+(?:\[[^\]]*+(?:\]\s*+>|\Z)|>))"
        rf"|<(?P<close>/)(?P<closed>{NAME})\s*>|<(?P<name>{NAME})(?P<rest>(?:{ATTRIBUTE})*)\s*(?P<empty>/?)>",
        re.DOTALL,
    ),
    "html": re.compile(
        rf"(?P<opaque><!--.*?(?:-->|\Z)|<![A-Za-z][^<>]*+>|<\?[^<>]*+>|<!\[CDATA\[.*?(?:\]\]>|\Z))"
        rf"|<(?P<close>/)(?P<closed>{NAME})[^<>]*+>|<(?P<name>{NAME})(?P<rest>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*?)(?P<empty>/?)>",
        re.DOTALL,
    ),
    # Short tags with which CAT tools replace those of a format, in otherwise plain text: <g1>, </g1>, <x2/>.
    "short": re.compile(r"(?P<opaque>(?!))|<(?P<close>/)(?P<closed>[a-z]\d+)>|<(?P<name>[a-z]\d+)(?P<rest>)(?P<empty>/?)>"),
}
VOIDS = "area base br col embed hr img input link meta param source track wbr"
# Parts of a sentence in HTML; inline elements of XLIFF 1.2 and 2, and of TMX.
INLINES = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark nobr q s samp small span strike "
    "strong sub sup time tt u var wbr g x bx ex bpt ept ph it mrk pc sc ec cp sm em hi ut"
)
CODES = "script style bpt ept ph it ut"  # their content is code, not text
DEEPEST = 200  # levels of nested elements
OPTIONALS = "p li dt dd tr td th thead tbody tfoot option colgroup"  # their end tags are optional in HTML
VOID, INLINE, CODE, OPTIONAL = (frozenset(names.split()) for names in (VOIDS, INLINES, CODES, OPTIONALS))


@dataclass(eq=False)
class MarkupNode:
    """An element, or a piece of text (with an empty `name`)."""

    name: str = ""
    before: str = ""
    after: str = ""
    text: str = ""
    opaque: bool = False  # written without escaping
    children: list[MarkupNode] = field(default_factory=list)

    def says(self) -> bool:
        return bool(self.text.strip()) if not self.name else any(child.says() for child in self.children)

    def raw(self, kind: Kind = "xml") -> str:
        if not self.name:
            return self.text if self.opaque else escape(self.text, kind)
        return self.before + "".join(child.raw(kind) for child in self.children) + self.after


def escape(text: str, kind: Kind = "xml") -> str:
    """The text escaped for use among tags."""
    return text if kind == "short" else html.escape(text, quote=False)


def has_short_tags(text: str) -> bool:
    """Whether the text has short tags, as CAT tools show them instead of those of a format."""
    return "<" in text and TOKEN["short"].search(text) is not None


def texts_of(node: MarkupNode) -> Iterator[str]:
    if not node.name:
        yield "" if node.opaque else node.text
    for child in node.children:
        yield from texts_of(child)


def parsed(text: str, kind: Kind) -> MarkupNode:
    """The tree of a text. Raises InputError if XML is not well-formed or if tags are nested too deeply."""
    root = MarkupNode(name="#")
    stack = [root]
    at = 0
    for token in TOKEN[kind].finditer(text):
        if token.start() < at:  # inside a script or style
            continue
        _text(stack[-1], text[at : token.start()], kind)
        at = token.end()
        if token["opaque"]:
            if kind == "xml" and not token[0].endswith(">"):
                raise InputError("The XML is not well-formed: {before} is never closed.", before=token[0][:40])
            stack[-1].children.append(MarkupNode(text=token[0], opaque=True))
        elif token["close"]:
            _close(stack, token["closed"], token[0], kind)
        elif token["empty"] or (kind == "html" and token["name"].lower() in VOID):
            stack[-1].children.append(MarkupNode(name=token["name"], before=token[0]))
        else:
            if kind == "html":
                _end_open(stack, token["name"].lower())
            node = MarkupNode(name=token["name"], before=token[0])
            stack[-1].children.append(node)
            if kind == "html" and token["name"].lower() in ("script", "style"):
                end = re.compile(rf"</{token['name']}\s*>", re.IGNORECASE).search(text, at)
                stop = end.start() if end else len(text)
                node.children.append(MarkupNode(text=text[at:stop], opaque=True))
                node.after, at = (end[0], end.end()) if end else ("", len(text))
            else:
                stack.append(node)
                if len(stack) > DEEPEST:
                    raise InputError("Tags are nested more than {most} deep. Add the missing closing tags.", most=DEEPEST)
    _text(stack[-1], text[at:], kind)
    if len(stack) > 1 and kind == "xml":
        raise InputError("The XML is not well-formed: {before} is never closed.", before=stack[-1].before[:40])
    return root


def _text(parent: MarkupNode, text: str, kind: Kind) -> None:
    if not text:
        return
    if kind == "xml" and "<" in text:
        position = text[text.index("<") :][:40]
        raise InputError("The XML is not well-formed at {place!r}. Write < as &lt; where it begins no tag.", place=position)
    parent.children.append(MarkupNode(text=text if kind == "short" else html.unescape(text)))


def _close(stack: list[MarkupNode], name: str, written: str, kind: Kind) -> None:
    """End the innermost open element of that name; in HTML, elements still open inside it end without a tag."""
    if kind == "xml":
        if len(stack) == 1 or stack[-1].name != name:
            opened = Message(" where {tag} is open", tag=stack[-1].before[:40]) if len(stack) > 1 else ""
            raise InputError(
                "The XML is not well-formed: unexpected {written}{opened}.",
                written=written[:40],
                opened=opened or " where nothing is open",
            )
        stack.pop().after = written
        return
    names = [node.name.lower() for node in stack]
    if name.lower() not in names[1:]:
        stack[-1].children.append(MarkupNode(text=written, opaque=True))
        return
    while stack[-1].name.lower() != name.lower():
        stack.pop()
    stack.pop().after = written


def _end_open(stack: list[MarkupNode], name: str) -> None:
    """End an open paragraph, item or cell when the next one begins, since its end tag is optional."""
    if name in OPTIONAL and len(stack) > 1 and stack[-1].name.lower() == name:
        stack.pop()
