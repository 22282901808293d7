"""OpenDocument texts: paragraphs and headings, including those in tables, notes, headers and frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from engine.core.numerals import whole_number
from engine.corpora.formats.documents.files import parse_xml, read_archive, rebuilt_archive, xml_bytes
from engine.corpora.formats.documents.model import Context, DocumentError, PackedDocument, Result, Unit, changed, names
from engine.corpora.formats.documents.xmltext import Content, Role, local
from engine.corpora.formats.tagged_text import text_of

MEMBERS = re.compile(r"(?:content|styles)\.xml")
SKIPPED = names("annotation tracked-changes deletion")  # not part of the visible text
PAIRS = names("span a meta meta-field")
BESIDE = names(
    "note bookmark bookmark-start bookmark-end reference-mark reference-mark-start reference-mark-end "
    "soft-page-break annotation annotation-end change change-start change-end alphabetical-index-mark toc-mark "
    "frame line rect custom-shape control g"
)


class Odt(PackedDocument):
    """An OpenDocument text (ODT)."""

    title: ClassVar[str] = "OpenDocument text"

    def __init__(self, path: Path, context: Context) -> None:
        super().__init__(path, context)
        self.original = read_archive(path, context, MEMBERS.fullmatch)
        if "content.xml" not in self.original:
            raise DocumentError("{context} is not an OpenDocument text: it has no content. Save it as ODT.", context=context.name)
        self.trees = {name: parse_xml(data, f"{context.name}: {name}") for name, data in sorted(self.original.items())}
        self.paragraphs: list[tuple[str, Any, Content]] = []
        for name, tree in self.trees.items():
            number = 0
            for element in tree.getroot().iter():
                if local(element) not in ("p", "h") or not element.tag.endswith(f"text:1.0}}{local(element)}"):
                    continue
                number += 1
                if any(local(ancestor) in SKIPPED for ancestor in element.iterancestors()):
                    continue
                content = Content(element, _role)
                if not text_of(content.parts).strip():
                    continue
                self.paragraphs.append((name, element, content))
                position = f"paragraph {number}" if name == "content.xml" else f"styles, paragraph {number}"
                self.units.append(Unit(content.parts, position, words=frozenset(content.words), breaks=frozenset(content.breaks)))

    def build(self, results: Sequence[Result | None]) -> bytes:
        written = set()
        for (name, element, content), parts in changed(self.paragraphs, self.units, results):
            content.write(element, parts, copies=False)
            written.add(name)
        members = {name: xml_bytes(self.trees[name], self.original[name]) for name in written}
        return rebuilt_archive(self.path, members) if members else self.path.read_bytes()


def _role(element: Any) -> Role:
    name = local(element)
    if name == "s":
        count = next((value for key, value in element.attrib.items() if key.endswith("}c")), "1")
        return Role("text", " " * min(100, whole_number(count) or 1))
    if name in ("tab", "line-break"):
        return Role("break")
    if name == "ruby":
        return Role("text", "".join("".join(child.itertext()) for child in element if local(child) == "ruby-base"))
    if name in PAIRS:
        return Role("pair")
    return Role("word" if name and name not in BESIDE and "".join(element.itertext()).strip() else "alone")
