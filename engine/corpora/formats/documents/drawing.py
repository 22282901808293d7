"""DrawingML text (ISO/IEC 29500-1, 21): the paragraphs of slides and of drawings, charts and diagrams in any document."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from engine.corpora.formats.documents.model import names
from engine.corpora.formats.documents.runs import Piece, RunParagraph, RunStyle
from engine.corpora.formats.documents.xmltext import local
from engine.corpora.formats.tagged_text import text_of

DRAWING = (
    "{http://schemas.openxmlformats.org/drawingml/2006/main}",
    "{http://purl.oclc.org/ooxml/drawingml/main}",  # in files of the strict variant of the standard
)
# Relationships to the parts drawn in a slide or sheet, with the patterns of their locations.
DRAWN = {
    "chart": "{}, chart",
    "chartUserShapes": "{}",
    "diagramData": "{}, diagram",
    "diagramDrawing": "{}, diagram",  # the diagram as last rendered
}


class DrawnParagraph(RunParagraph):
    """One a:p element; text written into it is in the language `target`."""

    last = names("endParaRPr")
    # Languages, traces of the spelling checker, letter spacing.
    noise = names("lang altLang noProof dirty err smtClean smtId bmk kern spc extLst")

    def __init__(self, element: Any, target: str) -> None:
        self.target = target
        super().__init__(element)

    def _pieces(self, children: Sequence[Any]) -> Iterator[Piece]:
        for child in children:
            name = local(child)
            if name == "r":
                yield from self._run(child)
            elif name and not name.endswith("Pr"):
                # Fields (slide numbers, dates) and formulas are treated as words.
                yield Piece(elements=[child], kind="break" if name == "br" else "word")

    def _fresh(self, text: str, look: RunStyle | None) -> Any:
        run = self._made("r", "")
        run.text = None
        if look is not None and look.properties is not None:
            properties = copy.deepcopy(look.properties)
            if "lang" in properties.attrib:
                properties.set("lang", self.target)  # else the spelling checker marks every word of the translation
            for name in ("altLang", "err"):
                properties.attrib.pop(name, None)
            run.append(properties)
        run.append(self._made("t", text))
        return run


def drawn_paragraphs(tree: Any, target: str) -> Iterator[tuple[int, DrawnParagraph]]:
    """(number, paragraph) of the paragraphs with text in a part; text written into them is in the language `target`."""
    for number, element in enumerate(tree.getroot().iter(*(f"{space}p" for space in DRAWING)), 1):
        paragraph = DrawnParagraph(element, target)
        if text_of(paragraph.parts).strip():
            yield number, paragraph
