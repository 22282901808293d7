"""Excel workbooks: the distinct texts of cells, comments, and texts in drawings and charts.

Numbers, dates, formulas and sheet names are preserved, and so are texts to which something in the workbook refers verbatim.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from engine.corpora.formats.documents.cells import CellText, ThreadText, readable
from engine.corpora.formats.documents.drawing import DRAWN, drawn_paragraphs
from engine.corpora.formats.documents.model import Context, DocumentError, PackedDocument, Result, changed, names
from engine.corpora.formats.documents.package import Package
from engine.corpora.formats.documents.runs import Writable, unit_of, write_changed
from engine.corpora.formats.documents.sheets import Sheets
from engine.corpora.formats.documents.tables import settle
from engine.corpora.formats.documents.xmltext import local
from engine.corpora.formats.tagged_text import text_of
from engine.messages import Message

COMMENTS = ("comments", "threadedComment")
THREAD = "tc="  # prefix of the author of a copy of a threaded comment, which is made for older programs
BEFORE_CALCULATION = names(  # elements that precede calcPr in the workbook part
    "fileVersion fileSharing workbookPr AlternateContent revisionPtr absPath workbookProtection bookViews sheets "
    "functionGroups externalReferences definedNames"
)


class Xlsx(PackedDocument):
    """An Excel workbook (XLSX)."""

    title: ClassVar[str] = "Excel workbook"

    def __init__(self, path: Path, context: Context) -> None:
        super().__init__(path, context)
        self.package = Package(path, context)
        self.main = self.package.main("workbook")
        if not self.main:
            raise DocumentError("{context} is not an Excel workbook: it has no sheets. Save it as XLSX.", context=context.name)
        self.sheets = Sheets(self.package, self.main)
        self.keys: list[Hashable] = []  # of the units for texts of cells, which come first
        self.paragraphs: list[tuple[str, Writable]] = []  # of the other units
        for key, text in self.sheets.texts.items():
            if not text_of(text.paragraph.parts).strip():
                continue
            if readable(text.plain_text).casefold() in self.sheets.fixed:
                self.skipped[Message("named by a formula, a filter, a table or a pivot table")] += 1
                continue
            self.keys.append(key)
            self.units.append(unit_of(text.paragraph, text.location, keep_lines=True))
        self._read_beside()

    def _read_beside(self) -> None:
        """Add the units of comments and drawings."""
        links = {sheet: self.package.links(sheet, "drawing", *COMMENTS) for sheet in self.sheets.sheets}
        self.package.fetch(link.part for group in links.values() for link in group)
        drawings: dict[str, str] = {}
        for sheet, name in self.sheets.sheets.items():
            for link in links[sheet]:
                if link.kind == "drawing":
                    drawings.setdefault(link.part, f"{name}, drawing")
                elif link.part in self.package:
                    self._read_comments(link.part, name)
        for part, location in self.package.follow(drawings, DRAWN).items():
            for number, paragraph in drawn_paragraphs(self.package.tree(part), self.context.target):
                self._add(part, paragraph, f"{location}, paragraph {number}")

    def _read_comments(self, part: str, sheet: str) -> None:
        root = self.package.tree(part).getroot()
        authors = [element.text or "" for element in root.iterfind("{*}authors/{*}author")]
        copies = {str(number) for number, author in enumerate(authors) if author.startswith(THREAD)}
        threads = local(root) == "ThreadedComments"
        for comment in root.iterfind("{*}threadedComment" if threads else "{*}commentList/{*}comment"):
            text = comment.find("{*}text")
            # Mentions in a threaded comment are stored by their positions in the text, so it must not change.
            if text is None or comment.get("authorId") in copies or comment.find("{*}mentions") is not None:
                continue
            location = f"{sheet}!{comment.get('ref') or ''}, comment"
            self._add(part, ThreadText(text) if threads else CellText(text), location, keep_lines=True)

    def _add(self, part: str, paragraph: Writable, location: str, *, keep_lines: bool = False) -> None:
        if text_of(paragraph.parts).strip():
            self.paragraphs.append((part, paragraph))
            self.units.append(unit_of(paragraph, location, keep_lines=keep_lines))

    def build(self, results: Sequence[Result | None]) -> bytes:
        count = len(self.keys)
        translated = dict(changed(self.keys, self.units[:count], results[:count]))
        texts = {key: self.sheets.texts[key].paragraph.plain_text(parts) for key, parts in translated.items()}
        for key in settle(self.sheets.tables, texts):
            translated.pop(key, None)
        parts_changed = write_changed(self.paragraphs, self.units[count:], results[count:])
        for key, parts in translated.items():
            for part, element in self.sheets.texts[key].homes:
                CellText(element).write(parts)
                parts_changed.add(part)
        for table in self.sheets.tables:
            for label in table.labels:
                if label.key in translated:
                    label.set(texts[label.key])
                    parts_changed.add(table.part)
        if translated and self.sheets.calculated:
            _recalculate(self.package.tree(self.main).getroot())
            parts_changed.add(self.main)
        return self.package.rebuilt(parts_changed)


def _recalculate(root: Any) -> None:
    """Have formulas recalculated when the workbook is opened, since their stored results are based on the old texts."""
    element = root.find("{*}calcPr")
    if element is None:
        element = root.makeelement("".join((*root.tag.rpartition("}")[:2], "calcPr")))
        before = [index for index, child in enumerate(root, 1) if local(child) in BEFORE_CALCULATION]
        root.insert(max(before, default=0), element)
    element.set("fullCalcOnLoad", "1")
