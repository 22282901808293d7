"""Texts with XML or HTML tags: split into units with inline tags, and joined again with every tag in its position.

    markup = TaggedMarkup(["<p>Press <b>Continue</b> to go on.</p>"], "xml")
    markup.units                             # one unit: the text "Press Continue to go on." with a pair of tags
    markup.join(results)                     # ["<p>按<b>继续</b>往下。</p>"]

Tags are preserved verbatim. Tags around whole texts (paragraphs, titles, cells) split a document; other tags (bold, links,
placeholders) move with the words of a sentence. `TaggedMarkup` describes how they are distinguished. The units are translated
by `engine.serving.units`, which places tags and placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from engine.core.flagged import flagged
from engine.corpora.formats.documents.model import Result, Unit
from engine.corpora.formats.markup_parser import CODE, INLINE, VOID, Kind, MarkupNode, escape, parsed, texts_of
from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of

UNTRANSLATED = re.compile(r"""\btranslate\s*=\s*["']?no\b|\bclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE)


@dataclass(eq=False)
class _Block:
    """A text with inline tags: the index of its unit, and its tags as written, by number."""

    unit: int
    written: list[tuple[str, str]]  # (opening tag, closing tag), or (standalone tag, "")


class TaggedMarkup:
    """Texts with tags, as units and back.

    `kind` is how tags are read: "xml" must be well-formed, "html" is read leniently as by browsers, and "short" is plain text
    with the short tags of CAT tools (<g1>, <x2/>).

    Tags in `splitting_tags` split the text. Any other tag does unless it is a usual inline tag, is in `non_splitting_tags` or
    `ignore_tags`, or (in XML) has text beside it in its parent. If `outline` is False, or in "short" texts, only
    `splitting_tags` split. The content of `ignore_tags` is not translated. `split` is as in `PlainTextLayout`, but line breaks
    count as white space. Raises InputError if XML is not well-formed.
    """

    def __init__(
        self,
        texts: Sequence[str],
        kind: Kind,
        split: str = "1",
        *,
        non_splitting_tags: Iterable[str] = (),
        splitting_tags: Iterable[str] = (),
        ignore_tags: Iterable[str] = (),
        outline: bool = True,
    ) -> None:
        self.units: list[Unit] = []
        self._kind: Kind = kind
        self._whole = split == "0"
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

    def _splits(self, node: MarkupNode, parent: MarkupNode) -> bool:
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

    def _walk(self, parent: MarkupNode, parts: list[str | _Block]) -> None:
        """Add the blocks in `parent` and the text between them to `parts`, in order."""
        run: list[MarkupNode] = []
        for child in parent.children:
            inside = child.name and not child.opaque
            if inside and (self._splits(child, parent) or self._holds_split(child)):
                self._block(run, parts)
                run = []
                parts.append(child.before)
                if self._is_untranslated(child):
                    parts.append("".join(node.raw(self._kind) for node in child.children))
                else:
                    self._walk(child, parts)
                parts.append(child.after)
            else:
                run.append(child)
        self._block(run, parts)

    def _holds_split(self, node: MarkupNode) -> bool:
        """Whether an inline element contains one that splits, such as a link around paragraphs."""
        if self._is_untranslated(node):
            return False
        return any(
            child.name and not child.opaque and (self._splits(child, node) or self._holds_split(child)) for child in node.children
        )

    def _is_untranslated(self, node: MarkupNode) -> bool:
        """Whether the content of the element is not to be translated."""
        name = self._name(node.name)
        return name in self._ignored or name.lower() in CODE or bool(UNTRANSLATED.search(node.before))

    def _block(self, nodes: Sequence[MarkupNode], parts: list[str | _Block]) -> None:
        if not any(node.says() for node in nodes):
            parts.append("".join(node.raw(self._kind) for node in nodes))
            return
        written: list[tuple[str, str]] = []
        words: set[int] = set()
        tagged: TaggedText = []
        self._fill(nodes, tagged, written, words)
        stripped = _stripped(tagged, words)
        if not any(map(str.isalnum, text_of(stripped))):
            parts.append("".join(node.raw(self._kind) for node in nodes))
            return
        first, last = nodes[0].text, nodes[-1].text  # white space around a block is layout
        start, end = first[: len(first) - len(first.lstrip())], last[len(last.rstrip()) :]
        block = _Block(len(self.units), written)
        self.units.append(Unit(stripped, words=frozenset(words), whole=self._whole))
        parts += [start if not nodes[0].name else "", block, end if not nodes[-1].name else ""]

    def _fill(self, nodes: Sequence[MarkupNode], parts: TaggedText, written: list[tuple[str, str]], words: set[int]) -> None:
        """Add the text and tags of a block to `parts`, with white space collapsed.

        An untranslated element that contains words, unless it is code, is treated as a word of its sentence.
        """
        for node in nodes:
            number = len(written)
            if not node.name and not node.opaque:
                parts.append(re.sub(r"\s+", " ", node.text))
            elif node.opaque or not (node.says() or node.children):
                written.append((node.raw(self._kind), ""))
                parts.append(Tag("alone", number))
            elif self._is_untranslated(node):
                written.append((node.raw(self._kind), ""))
                parts.append(Tag("alone", number))
                if self._name(node.name).lower() not in CODE and any(map(str.isalnum, "".join(texts_of(node)))):
                    words.add(number)
            else:
                written.append((node.before, node.after))
                parts.append(Tag("open", number))
                self._fill(node.children, parts, written, words)
                parts.append(Tag("close", number))

    def join(self, results: Sequence[Result]) -> list[str]:
        """The texts with tags, with the results in place of the units. Raises ValueError if their numbers differ."""
        if len(results) != len(self.units):
            raise ValueError(f"{len(results)} results for {len(self.units)} units")
        return [
            flagged(
                "".join(
                    part if isinstance(part, str) else _rendered(results[part.unit].parts, part.written, self._kind)
                    for part in parts
                ),
                [results[part.unit].flag for part in parts if isinstance(part, _Block)],
            )
            for parts in self._texts
        ]


def _rendered(parts: TaggedText, written: Sequence[tuple[str, str]], kind: Kind) -> str:
    return "".join(escape(part, kind) if isinstance(part, str) else written[part.id][part.kind == "close"] for part in parts)


def _stripped(parts: TaggedText, words: Container[int]) -> TaggedText:
    """The parts without white space at either end of the text and without double spaces around tags."""
    results: TaggedText = []
    space = True  # at the start or after a space
    for part in parts:
        if isinstance(part, str):
            results.append(part.lstrip() if space else part)
            space = part.endswith(" ") if part else space
        else:
            results.append(part)
            space = space and part.id not in words
    for position in range(len(results) - 1, -1, -1):
        part = results[position]
        if not isinstance(part, str) and part.id in words:
            break
        if isinstance(part, str) and part:
            results[position] = part.rstrip()
            if part.strip():
                break
    return [part for part in results if part != ""]
