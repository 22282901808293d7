"""PowerPoint presentations: the slides in order with tables, groups, charts, diagrams and notes, then their layouts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from engine.corpora.formats.documents.drawing import DRAWN, drawn_paragraphs
from engine.corpora.formats.documents.model import Context, DocumentError, PackedDocument, Result
from engine.corpora.formats.documents.package import Package
from engine.corpora.formats.documents.runs import RunParagraph, unit_of, write_changed

NOTES = {"notesSlide": "{}, notes"}
DESIGN = {"slideLayout": "layout", "slideMaster": "master"}


class Pptx(PackedDocument):
    """A PowerPoint presentation (PPTX)."""

    title: ClassVar[str] = "PowerPoint presentation"

    def __init__(self, path: Path, context: Context) -> None:
        super().__init__(path, context)
        self.package = Package(path, context)
        self.paragraphs: list[tuple[str, RunParagraph]] = []
        slides = self._slides()
        for part, location in self.package.follow(slides, DRAWN | NOTES).items():
            self._read(part, location)
        for part, location in self.package.follow(dict.fromkeys(slides, ""), DESIGN).items():
            if part not in slides:
                self._read(part, location, design=True)

    def _slides(self) -> dict[str, str]:
        """{part: location} of the slides, in order."""
        main = self.package.main("presentation")
        if not main:
            raise DocumentError(
                "{context} is not a PowerPoint presentation: it has no slides. Save it as PPTX.", context=self.context.name
            )
        parts = {link.id: link.part for link in self.package.links(main, "slide")}
        listed = [
            parts.get(next((value for key, value in element.attrib.items() if key.endswith("}id")), ""), "")
            for element in self.package.tree(main).getroot().iterfind("{*}sldIdLst/{*}sldId")
        ]
        self.package.fetch(listed)
        result: dict[str, str] = {}
        for number, part in enumerate(listed, 1):
            if part not in self.package:
                raise DocumentError(
                    "{context} is damaged: slide {number} is missing. Save it again in your editor.",
                    context=self.context.name, number=number,
                )  # fmt: skip
            result.setdefault(part, f"slide {number}")
        return result

    def _read(self, part: str, location: str, *, design: bool = False) -> None:
        tree = self.package.tree(part)
        hints = _placeholders(tree) if design else set()
        for number, paragraph in drawn_paragraphs(tree, self.context.target):
            if hints and any(ancestor in hints for ancestor in paragraph.element.iterancestors()):
                continue
            self.paragraphs.append((part, paragraph))
            self.units.append(unit_of(paragraph, f"{location}, paragraph {number}"))

    def build(self, results: Sequence[Result | None]) -> bytes:
        return self.package.rebuilt(write_changed(self.paragraphs, self.units, results))


def _placeholders(tree: Any) -> set[Any]:
    """The placeholder shapes of a layout, whose texts are only prompts for the author; slides show all other shapes."""
    shapes = (next(mark.iterancestors("{*}sp", "{*}graphicFrame"), None) for mark in tree.getroot().iter("{*}ph"))
    return {shape for shape in shapes if shape is not None}
