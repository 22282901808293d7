"""Which formats of documents there are, and opening one. A new format is one class in FORMATS."""

from __future__ import annotations

import importlib
from pathlib import Path

from engine.corpora.encoding import check_file
from engine.documents.model import Context, Document, DocumentError

__all__ = ["ENDINGS", "MOST_BYTES", "MOST_CHARACTERS", "is_document", "open_document"]

MOST_BYTES = 200 << 20
MOST_CHARACTERS = 20_000_000  # of text to translate; a thick novel has two million
# ending -> module and class; imported when the first such document is opened.
FORMATS = {
    "docx": ("Docx", ".docx .docm .dotx"),
    "odt": ("Odt", ".odt .ott"),
    "xliff": ("Xliff", ".xlf .xliff .sdlxliff .mxliff .mqxliff"),
    "po": ("Po", ".po .pot"),
    "srt": ("Subtitles", ".srt .vtt"),
    "html": ("Html", ".html .htm .xhtml"),
    "markdown": ("Markdown", ".md .markdown"),
    "text": ("PlainText", ".txt .text"),
}
ENDINGS = {ending: name for name, (_, endings) in FORMATS.items() for ending in endings.split()}


def is_document(path: str | Path) -> bool:
    """Is this the name of a document in a format with a layout to keep, and not of plain text?"""
    return ENDINGS.get(Path(path).suffix.lower(), "text") != "text"


def open_document(path: Path, context: Context, *, most_bytes: int = MOST_BYTES) -> Document:
    """Read a document by its ending. Raises DocumentError, or CorpusError where the file cannot be read at all."""
    name = ENDINGS.get(Path(context.name).suffix.lower())
    if name is None:
        known = ", ".join(sorted({endings.split()[0].lstrip(".") for _, endings in FORMATS.values()}))
        raise DocumentError(f"{context.name} is in no format that can be translated here. Known: {known}.")
    size = check_file(path)
    if size > most_bytes:
        raise DocumentError(
            f"{context.name} has {size / 2**20:,.0f} MiB, more than the {most_bytes >> 20:,} MiB allowed. Split it."
        )
    reader: type[Document] = getattr(importlib.import_module(f"engine.documents.{name}"), FORMATS[name][0])
    try:
        document = reader.read(path, context)
    except RecursionError:
        raise DocumentError(f"{context.name} is nested too deep to be read.") from None
    characters = sum(len(unit.text) for unit in document.units)
    if characters > MOST_CHARACTERS:
        raise DocumentError(
            f"{context.name} has {characters:,} characters to translate, more than the {MOST_CHARACTERS:,} allowed. Split it."
        )
    if not document.units and not document.kept:
        raise DocumentError(f"{context.name} has no text to translate.")
    return document
