"""Texts with XML or HTML tags: cut into sentences without tags, and put together again with every tag in its place.

    markup = Markup(["Press <b>Continue</b> to go on."], "xml", "en", "zh")
    markup.pieces                                 # ["Press Continue to go on."]
    aligned = align(base, markup.to_align(translations))
    markup.join(translations, aligned)            # ["按<b>继续</b>往下。"]

Tags are kept letter by letter. Tags that hold whole texts (paragraphs, titles, cells) split a document into blocks, others
(bold, links, placeholders) go with the words of a sentence; see `Markup` for how they are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.languages import unspaced
from engine.tagged import CODE, INLINE, VOID, Kind, Node, escape, parsed, texts_of

if TYPE_CHECKING:
    from engine.decoding.align import Alignment
    from engine.decoding.tags import Parts

__all__ = ["Markup"]

KEPT = re.compile(r"""\btranslate\s*=\s*["']?no\b|\bclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE)


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
    """`kind` says how tags are read: XML must be well-formed, HTML is taken as browsers do, "short" is plain text with such tags
    as CAT tools show in place of a format's own (<g1>, <x2/>), where everything else is text.

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
            self._walk(parsed(text, kind), parts)
            self._texts.append(parts)

    def _name(self, name: str) -> str:
        return name.lower() if self._kind == "html" else name

    # -- into blocks

    def _splits(self, node: Node, parent: Node) -> bool:
        name = self._name(node.name)
        if name in self._splitting:
            return True
        if name in self._inline or name in self._ignored:
            return False
        if self._kind == "short":
            return False
        if self._kind == "html":
            return self._outline and name not in INLINE and (name not in VOID or name in ("br", "hr"))
        if not self._outline or name.lower() in INLINE:
            return False
        return not any(child.text.strip() for child in parent.children if not child.name and not child.opaque)

    def _walk(self, parent: Node, parts: list[str | _Block]) -> None:
        """Blocks and what stands between them, in order."""
        run: list[Node] = []
        for child in parent.children:
            inside = child.name and not child.opaque
            if inside and (self._splits(child, parent) or self._holds_split(child)):
                self._block(run, parts)
                run = []
                parts.append(child.before)
                if self._kept(child):
                    parts.append("".join(one.raw(self._kind) for one in child.children))
                else:
                    self._walk(child, parts)
                parts.append(child.after)
            else:
                run.append(child)
        self._block(run, parts)

    def _holds_split(self, node: Node) -> bool:
        """Does an inline element hold one that splits, as a link around paragraphs?"""
        if self._kept(node):
            return False
        return any(
            child.name and not child.opaque and (self._splits(child, node) or self._holds_split(child))
            for child in node.children
        )

    def _kept(self, node: Node) -> bool:
        """Is what it holds not to be translated?"""
        name = self._name(node.name)
        return name in self._ignored or name.lower() in CODE or bool(KEPT.search(node.before))

    def _block(self, nodes: Sequence[Node], parts: list[str | _Block]) -> None:
        if not any(node.says() for node in nodes):
            parts.append("".join(node.raw(self._kind) for node in nodes))
            return
        from engine.decoding.tags import text_of

        block = _Block()
        self._fill(nodes, block)
        stripped = _stripped(block.parts)
        body = text_of(stripped)
        if not any(map(str.isalnum, body)):
            parts.append("".join(node.raw(self._kind) for node in nodes))
            return
        first, last = nodes[0].text, nodes[-1].text  # blank space around a block is layout
        start, end = first[: len(first) - len(first.lstrip())], last[len(last.rstrip()) :]
        block.parts = stripped
        block.first = len(self.pieces)
        for begin, stop in self._sentences(body):
            block.sentences.append((begin, stop))
            self.pieces.append(body[begin:stop])
        parts += [start if not nodes[0].name else "", block, end if not nodes[-1].name else ""]

    def _fill(self, nodes: Sequence[Node], block: _Block) -> None:
        """Text and tags into the block; runs of blank space become one space."""
        from engine.decoding.tags import Tag

        for node in nodes:
            number = len(block.written)
            if not node.name and not node.opaque:
                block.parts.append(re.sub(r"\s+", " ", node.text))
                continue
            if node.opaque or not (node.says() or node.children):
                block.written.append(_Written(node.raw(self._kind)))
                block.parts.append(Tag("alone", number))
                continue
            words: str | None = None
            if self._kept(node):
                words = re.sub(r"\s+", " ", "".join(texts_of(node))).strip()
                content = "".join(one.raw(self._kind) for one in node.children)
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
            return escape(self._space.join(filter(None, own)), self._kind)
        whole, text = Alignment([], [], []), ""
        for (start, _), translation in zip(block.sentences, own, strict=True):
            one, column = next(known), len(whole.source)
            if text and translation:
                text += self._space
            whole.source.extend((a + start, b + start) for a, b in one.source)
            whole.target.extend((a + len(text), b + len(text)) for a, b in one.target)
            whole.weights.extend({i + column: weight for i, weight in row.items()} for row in one.weights)
            text += translation
        return _rendered(project(block.parts, text, whole), block.written, self._kind)


def _rendered(parts: Parts, written: Sequence[_Written], kind: Kind) -> str:
    shown: list[str] = []
    skipping: int | None = None
    for part in parts:
        if isinstance(part, str):
            shown.append(escape(part, kind) if skipping is None else "")
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
