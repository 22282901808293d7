"""The document formats, and opening a document. To add a format, add its class to FORMATS."""

from __future__ import annotations

import importlib
from pathlib import Path

from engine.corpora.formats.documents.model import Context, Document, DocumentError
from engine.corpora.formats.encoding import check_file

MOST_BYTES = 200 << 20
MOST_CHARACTERS = 20_000_000  # of text to translate; a long novel has two million
# module -> (class, file endings); imported when the first such document is opened.
FORMATS = {
    "docx": ("Docx", ".docx .docm .dotx"),
    "pptx": ("Pptx", ".pptx .pptm .potx .ppsx"),
    "xlsx": ("Xlsx", ".xlsx .xlsm .xltx"),
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
    """Whether this is the name of a document in a format with a layout to preserve, not plain text."""
    return ENDINGS.get(Path(path).suffix.lower(), "text") != "text"


def open_document(path: Path, context: Context, *, most_bytes: int = MOST_BYTES) -> Document:
    """Read a document in the format of its ending. Raises DocumentError, or CorpusError if the file cannot be read at all."""
    name = ENDINGS.get(Path(context.name).suffix.lower())
    if name is None:
        extensions = ", ".join(sorted({endings.split()[0].lstrip(".") for _, endings in FORMATS.values()}))
        raise DocumentError(
            "{context} is in no format that can be translated here. Known: {known}.", context=context.name, known=extensions
        )
    size = check_file(path)
    if size > most_bytes:
        raise DocumentError(
            "{context} has {size:,.0f} MiB, more than the {most_bytes:,} MiB allowed. Split it.",
            context=context.name, size=size / 2 ** 20, most_bytes=most_bytes >> 20,
        )  # fmt: skip
    reader: type[Document] = getattr(importlib.import_module(f"engine.corpora.formats.documents.{name}"), FORMATS[name][0])
    try:
        document = reader.read(path, context)
    except RecursionError:
        raise DocumentError("{context} is nested too deep to be read.", context=context.name) from None
    characters = sum(len(unit.text) for unit in document.units)
    if characters > MOST_CHARACTERS:
        raise DocumentError(
            "{context} has {characters:,} characters to translate, more than the {most_characters:,} allowed. Split "
            "it.",
            context=context.name, characters=characters, most_characters=MOST_CHARACTERS,
        )  # fmt: skip
    if not document.units and not document.skipped:
        raise DocumentError("{context} has no text to translate.", context=context.name)
    return document
