"""Word documents: the text of all paragraphs (also in tables, headers, footnotes, text boxes), with the styles of its runs."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from engine.core.languages import primary_language
from engine.corpora.formats.documents.files import parse_xml, read_archive, rebuilt_archive, xml_bytes
from engine.corpora.formats.documents.model import Context, DocumentError, PackedDocument, Result, names
from engine.corpora.formats.documents.runs import SPACE, Piece, RunParagraph, RunStyle, unit_of, write_changed
from engine.corpora.formats.documents.xmltext import local
from engine.corpora.formats.tagged_text import text_of

MEMBERS = re.compile(r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes)\.xml")
STYLES = re.compile(r"word/styles\.xml")
WRAPPERS = names("hyperlink ins moveTo smartTag sdt sdtContent customXml bdo dir")
BREAKS = names("br cr tab ptab")
DROPPED = names("lastRenderedPageBreak softHyphen proofErr")
# Properties with no or negligible effect on a run's appearance: languages for the spelling checker, traces of a conversion.
NOISE = names("lang noProof spacing kern w szCs bCs iCs webHidden")


class Paragraph(RunParagraph):
    """One w:p element."""

    noise = NOISE

    def _pieces(self, children: Sequence[Any]) -> Iterator[Piece]:
        position, ends = 0, self._field_ends(children)
        while position < len(children):
            child = children[position]
            name = local(child)
            if name == "r":
                after = ends.get(position)
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
                yield (Piece(kind="open", elements=[child], shell=content) if content is not None else Piece(elements=[child]))
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

    def _field_ends(self, children: Sequence[Any]) -> dict[int, int]:
        """{position at which a field begins: position at which it ends}."""
        open_: list[int] = []
        ends = {}
        for position, child in enumerate(children):
            kind = self._field(child)
            if kind == "begin":
                open_.append(position)
            elif kind == "end" and open_:
                ends[open_.pop()] = position
        return ends

    def _field_code(self, children: Sequence[Any], start: int, end: int) -> tuple[int | None, str]:
        """(position of the separator between field code and result or None, field code)."""
        code, depth = "", 0
        for position in range(start, end):
            kind = self._field(children[position])
            depth += {"begin": 1, "end": -1}.get(kind, 0)
            if kind == "separate" and depth == 1:
                return position, code
            if depth == 1:
                code += "".join(text.text or "" for text in children[position].iter(f"{self.space}instrText"))
        return None, code

    def _in_run(self, child: Any, run: Any, look: RunStyle) -> Iterator[Piece]:
        name = local(child)
        if name in ("t", "noBreakHyphen"):
            yield Piece("\u2011" if name == "noBreakHyphen" else child.text or "", look)
        elif name == "ruby":  # without the reading aid
            yield Piece("".join(text.text or "" for text in child.iterfind(f"{self.space}rubyBase//{self.space}t")), look)
        elif name not in DROPPED:
            kind = "break" if name in BREAKS else "word" if name == "sym" else "alone"
            yield Piece(run=run, elements=[child], kind=kind)

    def _fresh(self, text: str, look: RunStyle | None) -> Any:
        run = self.element.makeelement(f"{self.space}r")
        if look is not None and look.properties is not None:
            properties = copy.deepcopy(look.properties)
            for child in list(properties):
                if local(child) == "lang":  # otherwise the spelling checker marks every word of the translation
                    properties.remove(child)
            run.append(properties)
        element = self._made("t", text)
        element.set(SPACE, "preserve")
        run.append(element)
        return run


class Docx(PackedDocument):
    """A Word document (DOCX)."""

    title: ClassVar[str] = "Word document"

    def __init__(self, path: Path, context: Context) -> None:
        super().__init__(path, context)
        self.original = read_archive(path, context, MEMBERS.fullmatch)
        if not any(name.startswith("word/document") for name in self.original):
            raise DocumentError("{context} is not a Word document: it contains no text. Save it as DOCX.", context=context.name)
        self.paragraphs: list[tuple[str, RunParagraph]] = []
        # The document comes first, so that its sentences are displayed first.
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
                self.units.append(unit_of(paragraph, position))

    def build(self, results: Sequence[Result | None]) -> bytes:
        changed = write_changed(self.paragraphs, self.units, results)
        members = {name: xml_bytes(self.trees[name], self.original[name]) for name in changed}
        return rebuilt_archive(self.path, members | self._styles()) if members else self.path.read_bytes()

    def _styles(self) -> dict[str, bytes]:
        """{file name: styles with the translation's language}, for correct spelling checks; empty if they cannot be read."""
        try:
            ((name, original),) = read_archive(self.path, self.context, STYLES.fullmatch).items()
            tree = parse_xml(original, name)
        except (ValueError, DocumentError):
            return {}
        east = primary_language(self.context.target) in ("zh", "ja", "ko")
        result = False
        for element in tree.getroot().iter():
            if local(element) == "lang" and "docDefaults" in {local(ancestor) for ancestor in element.iterancestors()}:
                space = element.tag.rpartition("}")[0] + "}"
                element.set(f"{space}{'eastAsia' if east else 'val'}", self.context.target)
                result = True
        return {name: xml_bytes(tree, original)} if result else {}


def _paragraphs(root: Any) -> list[Any]:
    space = root.tag.rpartition("}")[0] + "}"
    return [
        element for element in root.iter(f"{space}p") if not any(local(ancestor) == "del" for ancestor in element.iterancestors())
    ]
