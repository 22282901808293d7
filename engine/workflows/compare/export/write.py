"""The export formats, and atomic writing of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.core.atomic_files import atomic_write
from engine.errors import InputError
from engine.messages import mark
from engine.workflows.compare.export.content import Content
from engine.workflows.compare.export.data import as_json
from engine.workflows.compare.export.page import as_html
from engine.workflows.compare.export.sheet import write_xlsx
from engine.workflows.compare.export.tmx import as_tmx


@dataclass(frozen=True)
class FileFormat:
    """A format: its name for users, its file extension, its media type, and its writer."""

    title: str
    ending: str
    media: str
    write: Callable[[Content, Path], None]


def text(make: Callable[[Content], Iterator[str]]) -> Callable[[Content, Path], None]:
    def write_text(content: Content, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(make(content))

    return write_text


FORMATS: dict[str, FileFormat] = {
    "xlsx": FileFormat(
        mark("Excel (XLSX)"), ".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", write_xlsx
    ),
    "tmx": FileFormat(mark("Translation memory (TMX)"), ".tmx", "application/x-tmx+xml", text(as_tmx)),
    "html": FileFormat(mark("Report (HTML)"), ".html", "text/html; charset=utf-8", text(as_html)),
    "json": FileFormat(mark("Data (JSON)"), ".json", "application/json", text(as_json)),
}


def write(content: Content, path: Path, form: str = "") -> FileFormat:
    """Write the comparison in a format of FORMATS, by default that of the file's extension. Raises InputError on an unknown format,
    StorageError.
    """
    result = FORMATS.get(form) or next(
        (file_format for file_format in FORMATS.values() if file_format.ending == path.suffix.lower()), None
    )
    if result is None:
        endings = ", ".join(file_format.ending for file_format in FORMATS.values())
        raise InputError(
            "A comparison cannot be written as {form}. Supported file extensions: {endings}.",
            form=form or path.name,
            endings=endings,
        )
    with atomic_write(path, "the comparison") as temporary:
        result.write(content, temporary)
    return result
