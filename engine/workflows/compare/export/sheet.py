"""An Excel workbook: the sentences, and the figures on a separate sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.errors import MissingError
from engine.workflows.compare.export.content import Content, printable, remarks
from engine.workflows.compare.metric_rows import figure_rows, share_rows

LONGEST = 32_767  # characters per cell, Excel's limit


def write_xlsx(content: Content, path: Path) -> None:
    """Write the workbook. Texts are never formulas, even if they begin with =. Raises MissingError without openpyxl."""
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Alignment, Font
    except ImportError:
        raise MissingError("Writing XLSX needs openpyxl: pip install openpyxl.") from None

    book = Workbook(write_only=True)
    page = book.create_sheet("Sentences")
    bold, wrapped = Font(bold=True), Alignment(wrap_text=True, vertical="top")
    systems = range(len(content.systems))
    heads = ["", content.source, *(["reference"] if content.references else []), *map(content.label, systems)]
    numbers = ["difference", *([f"chrF {content.label(i)}" for i in systems] if content.references else [])]
    for index, width in enumerate([6, *[42] * (len(heads) - 1), *[12] * len(numbers), 42]):
        page.column_dimensions[letter(index)].width = width
    page.freeze_panes = "A2"
    page.append([cell(page, head, font=bold) for head in [*heads, *numbers, "to check"]])
    for line in content.lines():
        texts = [line.source, *([line.reference] if content.references else []), *line.texts]
        scores = line.scores if content.references else []
        noted = cell(page, remarks(content, line), alignment=wrapped)
        page.append([line.place + 1, *(cell(page, text, alignment=wrapped) for text in texts), line.difference, *scores, noted])
    if content.figures:
        add_figures(book, content, bold)
    book.save(path)


def add_figures(book: Any, content: Content, bold: Any) -> None:
    page = book.create_sheet("Figures")
    for index, width in enumerate([28, 28, 10, 10, 10, 10, 14, 24]):
        page.column_dimensions[letter(index)].width = width
    heads = ["figure", "system", "score", "95 % from", "to", "change", "p against vanilla", "p, approximate randomisation"]
    page.append([cell(page, head, font=bold) for head in heads])
    for row in figure_rows(content.figures):
        change = None if row.before is None else round(row.score - row.before, 2)
        page.append(
            [
                cell(page, row.title), cell(page, row.system), round(row.score, 2), round(row.low, 2),
                round(row.high, 2), change, row.p, row.p_ar,
            ]
        )  # fmt: skip
    for share in share_rows(content.figures):
        page.append([cell(page, share.title), cell(page, share.system), round(share.share, 3)])
    page.append([])
    for kind in ("text", "general"):
        for name, signature in ((content.figures.get(kind) or {}).get("signatures") or {}).items():
            page.append([cell(page, f"{name}{', general text' if kind == 'general' else ''}"), cell(page, signature)])
    for note in content.figures.get("notes", []):
        page.append([cell(page, note)])


def cell(page: Any, value: str | None, **look: Any) -> Any:
    from openpyxl.cell import WriteOnlyCell

    result = WriteOnlyCell(page, value=printable(value)[:LONGEST])
    result.data_type = "s"
    for name, attribute in look.items():
        setattr(result, name, attribute)
    return result


def letter(index: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(index + 1))
