"""Texts with XML or HTML tags: cut into sentences without tags, and put together again with every tag in its place.

    markup = Markup(["Press <b>Continue</b> to go on."], "xml", "en", "zh")
    markup.pieces                                 # ["Press Continue to go on."]
    aligned = align(base, markup.to_align(translations))
    markup.join(translations, aligned)            # ["按<b>继续</b>往下。"]

Tags are kept letter by letter. Tags that hold whole texts (paragraphs, titles, cells) split a document into blocks, others
(bold, links, placeholders) go with the words of a sentence; see `Markup` for how they are told apart.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from engine.errors import InputError
from engine.languages import unspaced

if TYPE_CHECKING:
    from engine.decoding.align import Alignment
    from engine.decoding.tags import Parts

__all__ = ["INLINE", "Markup"]

Kind = Literal["xml", "html"]
NAME = r"[A-Za-z_:\u0080-\U0010ffff][-\w.:\u0080-\U0010ffff]*"
ATTRIBUTE = rf"""\s+{NAME}\s*=\s*(?:"[^"<]*"|'[^'<]*')"""
TOKEN = {
    "xml": re.compile(
        rf"(?P<opaque><!--(?:(?!--).)*-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)"
        rf"|<(?P<close>/)(?P<closed>{NAME})\s*>|<(?P<name>{NAME})(?P<rest>(?:{ATTRIBUTE})*)\s*(?P<empty>/?)>",
        re.DOTALL,
    ),
    "html": re.compile(
        rf"(?P<opaque><!--.*?-->|<![A-Za-z][^>]*>|<\?[^>]*>|<!\[CDATA\[.*?\]\]>)"
        rf"|<(?P<close>/)(?P<closed>{NAME})[^>]*>|<(?P<name>{NAME})(?P<rest>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*?)(?P<empty>/?)>",
        re.DOTALL,
    ),
}  # fmt: skip
VOIDS = "area base br col embed hr img input link meta param source track wbr"
# Parts of a sentence in HTML; inline elements of XLIFF 1.2 and 2, and of TMX.
INLINES = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark nobr q s samp small span strike "
    "strong sub sup time tt u var wbr g x bx ex bpt ept ph it mrk pc sc ec cp sm em hi ut"
)
CODES = "script style bpt ept ph it ut"  # what they hold is code, not text
OPTIONALS = "p li dt dd tr td th thead tbody tfoot option colgroup"  # HTML lets their ends be left out
VOID, INLINE, CODE, OPTIONAL = (frozenset(names.split()) for names in (VOIDS, INLINES, CODES, OPTIONALS))
KEPT = re.compile(r"""\btranslate\s*=\s*["']?no\b|\bclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE)


@dataclass(eq=False)
class _Node:
    """An element, or a piece of text (`name` empty)."""

    name: str = ""
    before: str = ""
    after: str = ""
    text: str = ""
    opaque: bool = False  # written as it is
    children: list[_Node] = field(default_factory=list)

    def says(self) -> bool:
        return bool(self.text.strip()) if not self.name else any(child.says() for child in self.children)

    def raw(self) -> str:
        if not self.name:
            return self.text if self.opaque else _escape(self.text)
        return self.before + "".join(child.raw() for child in self.children) + self.after


@dataclass(frozen=True)
class _Written:
    """What a tag, or a pair of them, is written as. `content` of a pair, where given, stands between them in place of whatever
    the words there became: what must not be translated.
    """

    before: str
    after: str = ""
    content: str | None = None


@dataclass(eq=False)
class _Block:
    """A stretch of text with the tags in it, and which of the pieces are its sentences."""

    parts: Parts = field(default_factory=list)
    written: list[_Written] = field(default_factory=list)  # by the tags' numbers
    sentences: list[tuple[int, int]] = field(default_factory=list)  # as characters of the text
    first: int = 0  # of the pieces


class Markup:
    """`kind` says how tags are read: XML must be well-formed, HTML is taken as browsers do.

    A tag goes with the words around it when it is a usual inline one, when it is in `non_splitting_tags`, or when its parent
    has words of its own beside it; all others split the text, as do those in `splitting_tags`. `outline` False leaves the
    guessing out: then only `splitting_tags` split. What is in `ignore_tags` is not translated. `split` is `Layout`'s, except
    that line breaks count as blank space. Raises InputError on XML that is not well-formed.
    """

    def __init__(
        self,
        texts: Sequence[str],
        kind: Kind,
        source: str,
        target: str,
        split: str = "1",
        *,
        non_splitting_tags: Iterable[str] = (),
        splitting_tags: Iterable[str] = (),
        ignore_tags: Iterable[str] = (),
        outline: bool = True,
    ) -> None:
        self.pieces: list[str] = []
        self._kind: Kind = kind
        self._source = source
        self._split = split
        self._space = "" if unspaced(target) else " "
        self._inline = frozenset(map(self._name, non_splitting_tags))
        self._splitting = frozenset(map(self._name, splitting_tags))
        self._ignored = frozenset(map(self._name, ignore_tags))
        self._outline = outline
        self._texts: list[list[str | _Block]] = []
        for text in texts:
            parts: list[str | _Block] = []
            self._walk(_parsed(text, kind), parts)
            self._texts.append(parts)

    def _name(self, name: str) -> str:
        return name.lower() if self._kind == "html" else name

    # -- into blocks

    def _splits(self, node: _Node, parent: _Node) -> bool:
        name = self._name(node.name)
        if name in self._splitting:
            return True
        if name in self._inline or name in self._ignored:
            return False
        if self._kind == "html":
            return self._outline and name not in INLINE and (name not in VOID or name in ("br", "hr"))
        if not self._outline or name.lower() in INLINE:
            return False
        return not any(child.text.strip() for child in parent.children if not child.name and not child.opaque)

    def _walk(self, parent: _Node, parts: list[str | _Block]) -> None:
        """Blocks and what stands between them, in order."""
        run: list[_Node] = []
        for child in parent.children:
            inside = child.name and not child.opaque
            if inside and (self._splits(child, parent) or self._holds_split(child)):
                self._block(run, parts)
                run = []
                parts.append(child.before)
                if self._kept(child):
                    parts.append("".join(one.raw() for one in child.children))
                else:
                    self._walk(child, parts)
                parts.append(child.after)
            else:
                run.append(child)
        self._block(run, parts)

    def _holds_split(self, node: _Node) -> bool:
        """Does an inline element hold one that splits, as a link around paragraphs?"""
        if self._kept(node):
            return False
        return any(
            child.name and not child.opaque and (self._splits(child, node) or self._holds_split(child))
            for child in node.children
        )

    def _kept(self, node: _Node) -> bool:
        """Is what it holds not to be translated?"""
        name = self._name(node.name)
        return name in self._ignored or name.lower() in CODE or bool(KEPT.search(node.before))

    def _block(self, nodes: Sequence[_Node], parts: list[str | _Block]) -> None:
        if not any(node.says() for node in nodes):
            parts.append("".join(node.raw() for node in nodes))
            return
        from engine.decoding.tags import text_of

        block = _Block()
        self._fill(nodes, block)
        stripped = _stripped(block.parts)
        body = text_of(stripped)
        if not any(map(str.isalnum, body)):
            parts.append("".join(node.raw() for node in nodes))
            return
        first, last = nodes[0].text, nodes[-1].text  # blank space around a block is layout
        start, end = first[: len(first) - len(first.lstrip())], last[len(last.rstrip()) :]
        block.parts = stripped
        block.first = len(self.pieces)
        for begin, stop in self._sentences(body):
            block.sentences.append((begin, stop))
            self.pieces.append(body[begin:stop])
        parts += [start if not nodes[0].name else "", block, end if not nodes[-1].name else ""]

    def _fill(self, nodes: Sequence[_Node], block: _Block) -> None:
        """Text and tags into the block; runs of blank space become one space."""
        from engine.decoding.tags import Tag

        for node in nodes:
            number = len(block.written)
            if not node.name and not node.opaque:
                block.parts.append(re.sub(r"\s+", " ", node.text))
                continue
            if node.opaque or not (node.says() or node.children):
                block.written.append(_Written(node.raw()))
                block.parts.append(Tag("alone", number))
                continue
            words: str | None = None
            if self._kept(node):
                words = re.sub(r"\s+", " ", "".join(_texts(node))).strip()
                content = "".join(one.raw() for one in node.children)
                if self._name(node.name).lower() in CODE or not any(map(str.isalnum, words)):
                    block.written.append(_Written(node.before + content + node.after))
                    block.parts.append(Tag("alone", number))
                    continue
                block.written.append(_Written(node.before, node.after, content))
            else:
                block.written.append(_Written(node.before, node.after))
            block.parts.append(Tag("open", number))
            if words is None:
                self._fill(node.children, block)
            else:
                block.parts.append(words)  # a name helps the sentence around it
            block.parts.append(Tag("close", number))

    def _sentences(self, text: str) -> Iterator[tuple[int, int]]:
        """The sentences as stretches of the text."""
        from engine.corpora.sentences import split_sentences

        at = 0
        for sentence in [text] if self._split == "0" else split_sentences(text, self._source):
            while at < len(text) and text[at].isspace():
                at += 1
            start, letters = at, len("".join(sentence.split()))
            while letters and at < len(text):
                letters -= not text[at].isspace()
                at += 1
            if at > start:
                yield start, at

    # -- and back

    def _blocks(self) -> Iterator[_Block]:
        for parts in self._texts:
            for part in parts:
                if isinstance(part, _Block):
                    yield part

    def to_align(self, translations: Sequence[str]) -> list[tuple[str, str]]:
        """The sentences, with their translations, whose words must be told apart to place tags."""
        return [
            (self.pieces[k], translations[k])
            for block in self._blocks()
            if block.written
            for k in range(block.first, block.first + len(block.sentences))
        ]

    def join(self, translations: Sequence[str], aligned: Sequence[Alignment]) -> list[str]:
        """The texts with their tags; `aligned` are the alignments of `to_align`'s pairs."""
        if len(translations) != len(self.pieces):
            raise ValueError(f"{len(translations)} translations for {len(self.pieces)} pieces")
        known = iter(aligned)
        return [
            "".join(part if isinstance(part, str) else self._rebuilt(part, translations, known) for part in parts)
            for parts in self._texts
        ]

    def _rebuilt(self, block: _Block, translations: Sequence[str], known: Iterator[Alignment]) -> str:
        from engine.decoding.align import Alignment
        from engine.decoding.tags import project

        own = translations[block.first : block.first + len(block.sentences)]
        if not block.written:
            return _escape(self._space.join(filter(None, own)))
        whole, text = Alignment([], [], []), ""
        for (start, _), translation in zip(block.sentences, own, strict=True):
            one, column = next(known), len(whole.source)
            if text and translation:
                text += self._space
            whole.source.extend((a + start, b + start) for a, b in one.source)
            whole.target.extend((a + len(text), b + len(text)) for a, b in one.target)
            whole.weights.extend({i + column: weight for i, weight in row.items()} for row in one.weights)
            text += translation
        return _rendered(project(block.parts, text, whole), block.written)


def _rendered(parts: Parts, written: Sequence[_Written]) -> str:
    shown: list[str] = []
    skipping: int | None = None
    for part in parts:
        if isinstance(part, str):
            shown.append(_escape(part) if skipping is None else "")
        elif part.kind == "close":
            skipping = None if skipping == part.id else skipping
            shown.append(written[part.id].after if skipping is None else "")
        elif skipping is None:
            shown.append(written[part.id].before)
            content = written[part.id].content
            if content is not None and part.kind == "open":
                shown.append(content)
                skipping = part.id
    return "".join(shown)


def _stripped(parts: Parts) -> Parts:
    """Without blank space at the ends of the text, and without two spaces where a tag stands between them."""
    found: Parts = []
    space = True  # nothing yet, or a space before
    for part in parts:
        if isinstance(part, str):
            found.append(part.lstrip() if space else part)
            space = part.endswith(" ") if part else space
        else:
            found.append(part)
    for place in range(len(found) - 1, -1, -1):
        part = found[place]
        if isinstance(part, str) and part:
            found[place] = part.rstrip()
            if part.strip():
                break
    return [part for part in found if part != ""]


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


def _texts(node: _Node) -> Iterator[str]:
    if not node.name:
        yield "" if node.opaque else node.text
    for child in node.children:
        yield from _texts(child)


# -- reading tags


def _parsed(text: str, kind: Kind) -> _Node:
    root = _Node(name="#")
    stack = [root]
    at = 0
    for token in TOKEN[kind].finditer(text):
        if token.start() < at:  # inside what was taken whole
            continue
        _text(stack[-1], text[at : token.start()], kind)
        at = token.end()
        if token["opaque"]:
            stack[-1].children.append(_Node(text=token[0], opaque=True))
        elif token["close"]:
            _close(stack, token["closed"], token[0], kind)
        elif token["empty"] or (kind == "html" and token["name"].lower() in VOID):
            stack[-1].children.append(_Node(name=token["name"], before=token[0]))
        else:
            if kind == "html":
                _end_open(stack, token["name"].lower())
            node = _Node(name=token["name"], before=token[0])
            stack[-1].children.append(node)
            if kind == "html" and token["name"].lower() in ("script", "style"):
                end = re.compile(rf"</{token['name']}\s*>", re.IGNORECASE).search(text, at)
                stop = end.start() if end else len(text)
                node.children.append(_Node(text=text[at:stop], opaque=True))
                node.after, at = (end[0], end.end()) if end else ("", len(text))
            else:
                stack.append(node)
    _text(stack[-1], text[at:], kind)
    if len(stack) > 1 and kind == "xml":
        raise InputError(f"The XML is not well-formed: {stack[-1].before[:40]} is never closed.")
    return root


def _text(parent: _Node, text: str, kind: Kind) -> None:
    if not text:
        return
    if kind == "xml" and "<" in text:
        place = text[text.index("<") :][:40]
        raise InputError(f"The XML is not well-formed at {place!r}. Write < as &lt; where it begins no tag.")
    parent.children.append(_Node(text=html.unescape(text)))


def _close(stack: list[_Node], name: str, written: str, kind: Kind) -> None:
    """The innermost open element of that name ends; what HTML left open in it ends without a tag."""
    if kind == "xml":
        if len(stack) == 1 or stack[-1].name != name:
            opened = f" where {stack[-1].before[:40]} is open" if len(stack) > 1 else ""
            raise InputError(f"The XML is not well-formed: {written[:40]} stands{opened or ' where nothing is open'}.")
        stack.pop().after = written
        return
    names = [node.name.lower() for node in stack]
    if name.lower() not in names[1:]:
        stack[-1].children.append(_Node(text=written, opaque=True))
        return
    while stack[-1].name.lower() != name.lower():
        stack.pop()
    stack.pop().after = written


def _end_open(stack: list[_Node], name: str) -> None:
    """A new paragraph, item or cell ends the one before, whose end may be left out."""
    if name in OPTIONAL and len(stack) > 1 and stack[-1].name.lower() == name:
        stack.pop()
