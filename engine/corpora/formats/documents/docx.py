"""Word documents: the text of paragraphs, wherever they stand (tables, headers, footnotes, text boxes), with its runs' looks.

A paragraph's runs are joined where they look alike; what most of its text looks like is the ground, and stretches that look
otherwise (bold, a link) are pairs of tags, put back by alignment. Pictures, notes and marks are moved, never copied.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from engine.core.languages import primary_language
from engine.corpora.formats.documents.files import parse_xml, read_archive, rebuilt_archive, xml_bytes
from engine.corpora.formats.documents.model import Context, Document, DocumentError, Result, Unit, names
from engine.corpora.formats.documents.xmltext import local
from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of

MEMBERS = re.compile(r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes)\.xml")
STYLES = re.compile(r"word/styles\.xml")
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
WRAPPERS = names("hyperlink ins moveTo smartTag sdt sdtContent customXml bdo dir")
BREAKS = names("br cr tab ptab")
DROPPED = names("lastRenderedPageBreak softHyphen proofErr")
# What does not change how a run looks to a reader: languages for the speller, traces of a conversion.
NOISE = names("lang noProof spacing kern w szCs bCs iCs webHidden")


@dataclass
class RunStyle:
    """How a stretch of text looks: its properties, and a text by which two are compared."""

    key: str
    properties: Any


@dataclass
class Piece:
    """A text with its look, or elements that stay together."""

    text: str = ""
    look: RunStyle | None = None
    elements: list[Any] = field(default_factory=list)
    kind: str = "alone"  # alone, word, break, open, close
    shell: Any = None  # of an open one: the element that its content goes into
    run: Any = None  # the run that the elements are parts of

    def placed(self) -> list[Any]:
        """The elements as they stand in a paragraph. They are moved, so that what is in them can still be written."""
        if self.run is None:
            return self.elements
        alone = self.run.makeelement(self.run.tag, dict(self.run.attrib))
        for child in self.run:
            if local(child) == "rPr":
                alone.append(copy.deepcopy(child))
        alone.extend(self.elements)
        return [alone]


class Paragraph:
    """One w:p: its parts, and how to write others into it."""

    def __init__(self, element: Any) -> None:
        self.element = element
        self.space = element.tag.rpartition("}")[0] + "}"
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
        ground = looks[max(looks, key=lambda key: sizes[key])] if looks else None
        self.grounds[owner] = ground
        current = ground.key if ground else ""
        opened: int | None = None
        fields: list[int] = []

        def close() -> None:
            nonlocal opened, current
            if opened is not None:
                self.parts.append(Tag("close", opened))
            opened, current = None, ground.key if ground else ""

        for piece in pieces:
            if piece.look is not None:
                blank = not piece.text.strip()
                if not blank and piece.look.key != current:
                    close()
                    if ground is not None and piece.look.key != ground.key:
                        opened = self._tag("open", Piece(look=piece.look))
                        current = piece.look.key
                self._text(piece.text)
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
        """A look that ends behind a lone tag ends before it: what follows the last text is not in the pair."""
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

    def _text(self, text: str) -> None:
        if self.parts and isinstance(self.parts[-1], str):
            self.parts[-1] += text
        else:
            self.parts.append(text)

    def _tag(self, kind: str, piece: Piece) -> int:
        id = self._count
        self._count += 1
        self.payload[kind, id] = piece
        self.parts.append(Tag("open" if kind == "open" else "alone", id))
        return id

    def _pieces(self, children: Sequence[Any]) -> Iterator[Piece]:
        position = 0
        while position < len(children):
            child = children[position]
            name = local(child)
            if name == "r":
                kind = self._field(child)
                after = self._field_end(children, position) if kind == "begin" else None
                if after is not None:
                    separate, code = self._field_code(children, position, after)
                    if separate is not None and code.strip().upper().startswith("HYPERLINK"):
                        yield Piece(kind="open", elements=list(children[position : separate + 1]))
                        yield from self._pieces(children[separate + 1 : after])
                        yield Piece(kind="close", elements=[children[after]])
                    else:
                        yield Piece(kind="word", elements=list(children[position : after + 1]))
                    position = after + 1
                    continue
                yield from self._run(child)
            elif name == "sdt":
                content = child.find(f"{self.space}sdtContent")
                yield (
                    Piece(kind="open", elements=[child], shell=content)
                    if content is not None
                    else Piece(elements=[child])
                )
            elif name in WRAPPERS:
                yield Piece(kind="open", elements=[child], shell=child)
            elif name in ("oMath", "fldSimple"):
                yield Piece(kind="word", elements=[child])
            elif name not in DROPPED and not name.endswith("Pr"):
                yield Piece(elements=[child])
            position += 1

    def _field(self, run: Any) -> str:
        result = run.find(f"{self.space}fldChar")
        return "" if result is None else str(result.get(f"{self.space}fldCharType") or "")

    def _field_end(self, children: Sequence[Any], start: int) -> int | None:
        depth = 0
        for position in range(start, len(children)):
            depth += {"begin": 1, "end": -1}.get(self._field(children[position]), 0)
            if not depth:
                return position
        return None

    def _field_code(self, children: Sequence[Any], start: int, end: int) -> tuple[int | None, str]:
        """(place of the mark between code and result, the code)"""
        code, depth = "", 0
        for position in range(start, end):
            kind = self._field(children[position])
            depth += {"begin": 1, "end": -1}.get(kind, 0)
            if kind == "separate" and depth == 1:
                return position, code
            if depth == 1:
                code += "".join(text.text or "" for text in children[position].iter(f"{self.space}instrText"))
        return None, code

    def _run(self, run: Any) -> Iterator[Piece]:
        properties = run.find(f"{self.space}rPr")
        look = RunStyle(_look(properties), properties)
        for child in list(run):
            name = local(child)
            if child is properties or name in DROPPED:
                continue
            raised = properties is not None and any(_raised(one) for one in properties)
            if name == "t" and raised and not any(map(str.isalpha, child.text or "")):
                yield Piece(run=run, elements=[child])  # the number of a note, m²
                continue
            if name in ("t", "noBreakHyphen"):
                yield Piece("\u2011" if name == "noBreakHyphen" else child.text or "", look)
                continue
            kind = "break" if name in BREAKS else "word" if name == "sym" else "alone"
            yield Piece(run=run, elements=[child], kind=kind)

    # -- writing

    def write(self, parts: TaggedText) -> None:
        """Make `parts` the paragraph's content."""
        for child in list(self.element):
            if not local(child).endswith("pPr"):
                self.element.remove(child)
        stack: list[tuple[Any, int, RunStyle | None]] = [(self.element, -1, self.grounds[-1])]
        for part in parts:
            here, owner, look = stack[-1]
            if isinstance(part, str):
                if part:
                    here.append(self._fresh(part, look))
                continue
            piece = self.payload.get((part.kind, part.id))
            if part.kind == "close":
                if piece is not None:
                    here.extend(piece.placed())
                if len(stack) > 1:
                    stack.pop()
                continue
            assert piece is not None
            if part.kind == "alone":
                here.extend(piece.placed())
            elif piece.look is not None:
                stack.append((here, owner, piece.look))
            elif piece.shell is not None:
                for child in list(piece.shell):
                    if not local(child).endswith("Pr"):
                        piece.shell.remove(child)
                here.extend(piece.elements)
                stack.append((piece.shell, part.id, self.grounds.get(part.id) or look))
            else:
                here.extend(piece.elements)
                stack.append((here, owner, look))

    def _fresh(self, text: str, look: RunStyle | None) -> Any:
        run = self.element.makeelement(f"{self.space}r")
        if look is not None and look.properties is not None:
            properties = copy.deepcopy(look.properties)
            for child in list(properties):
                if local(child) == "lang":  # the speller would mark every word of the translation
                    properties.remove(child)
            run.append(properties)
        element = run.makeelement(f"{self.space}t")
        element.text = text
        element.set(SPACE, "preserve")
        run.append(element)
        return run


def _raised(element: Any) -> bool:
    return local(element) == "vertAlign" and "superscript" in element.attrib.values()


def _look(properties: Any) -> str:
    if properties is None:
        return ""
    from lxml import etree

    def written(child: Any) -> bytes:
        try:
            return bytes(etree.tostring(child, method="c14n", with_tail=False))
        except etree.C14NError:  # a namespace that is no address
            return bytes(etree.tostring(child, encoding="utf-8", with_tail=False))

    return b"".join(sorted(written(child) for child in properties if local(child) not in NOISE)).decode(
        "utf-8", "replace"
    )


class Docx(Document):
    """A Word document (DOCX)."""

    title: ClassVar[str] = "Word document"

    def __init__(self, path: Path, context: Context) -> None:
        self.path, self.context = path, context
        self.original = read_archive(path, context, MEMBERS)
        if not any(name.startswith("word/document") for name in self.original):
            raise DocumentError(
                "{context} is no Word document: it has no text in it. Save it as DOCX.", context=context.name
            )
        self.units: list[Unit] = []
        self.kept: Counter[str] = Counter()
        self.paragraphs: list[tuple[str, Paragraph]] = []
        # The document first, so that its sentences come first in what is shown.
        names = sorted(self.original, key=lambda name: ("document" not in name, name))
        self.trees = {name: parse_xml(self.original[name], f"{context.name}: {name}") for name in names}
        for name, tree in self.trees.items():
            part = name.removeprefix("word/").removesuffix(".xml")
            for number, element in enumerate(_paragraphs(tree.getroot()), 1):
                paragraph = Paragraph(element)
                if not text_of(paragraph.parts).strip():
                    continue
                self.paragraphs.append((name, paragraph))
                position = f"paragraph {number}" if part.startswith("document") else f"{part}, paragraph {number}"
                self.units.append(
                    Unit(
                        paragraph.parts, position, words=frozenset(paragraph.words), breaks=frozenset(paragraph.breaks)
                    )
                )

    @classmethod
    def read(cls, path: Path, context: Context) -> Self:
        return cls(path, context)

    def build(self, results: Sequence[Result | None]) -> bytes:
        changed = set()
        for (name, paragraph), unit, result in zip(self.paragraphs, self.units, results, strict=True):
            if result is not None and result.parts != unit.parts:
                paragraph.write(result.parts)
                changed.add(name)
        fresh = {name: xml_bytes(self.trees[name], self.original[name]) for name in changed}
        return rebuilt_archive(self.path, fresh | self._styles()) if fresh else self.path.read_bytes()

    def _styles(self) -> dict[str, bytes]:
        """The styles with the translation's language, so that the editor checks its spelling by the right words; nothing where
        they cannot be read, and so stay as they are.
        """
        try:
            ((name, original),) = read_archive(self.path, self.context, STYLES).items()
            tree = parse_xml(original, name)
        except (ValueError, DocumentError):
            return {}
        east = primary_language(self.context.target) in ("zh", "ja", "ko")
        result = False
        for element in tree.getroot().iter():
            if local(element) == "lang" and "docDefaults" in {local(one) for one in element.iterancestors()}:
                space = element.tag.rpartition("}")[0] + "}"
                element.set(f"{space}{'eastAsia' if east else 'val'}", self.context.target)
                result = True
        return {name: xml_bytes(tree, original)} if result else {}


def _paragraphs(root: Any) -> list[Any]:
    space = root.tag.rpartition("}")[0] + "}"
    return [
        element for element in root.iter(f"{space}p") if not any(local(one) == "del" for one in element.iterancestors())
    ]
