"""The formats, and writing one to a file that appears whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.comparison.export.content import Content
from engine.comparison.export.data import as_json
from engine.comparison.export.page import as_html
from engine.comparison.export.sheet import write_xlsx
from engine.comparison.export.tables import as_tsv
from engine.comparison.export.tools import as_tmx, as_xliff
from engine.errors import InputError
from engine.files import replacing

__all__ = ["FORMATS", "FileFormat", "write"]


@dataclass(frozen=True)
class FileFormat:
    """A format: its name for users, its file ending, its type for browsers, and who writes it."""

    title: str
    ending: str
    media: str
    write: Callable[[Content, Path], None]


def text(make: Callable[[Content], Iterator[str]], encoding: str = "utf-8") -> Callable[[Content, Path], None]:
    def write_text(content: Content, path: Path) -> None:
        with path.open("w", encoding=encoding, newline="\n") as file:
            file.writelines(make(content))

    return write_text


FORMATS: dict[str, FileFormat] = {
    "tsv": FileFormat("Table (TSV)", ".tsv", "text/tab-separated-values; charset=utf-8", text(as_tsv, "utf-8-sig")),
    "xlsx": FileFormat(
        "Excel (XLSX)", ".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", write_xlsx
    ),
    "tmx": FileFormat("Translation memory (TMX)", ".tmx", "application/x-tmx+xml", text(as_tmx)),
    "xliff": FileFormat("Translation tool (XLIFF)", ".xlf", "application/xliff+xml", text(as_xliff)),
    "html": FileFormat("Report (HTML)", ".html", "text/html; charset=utf-8", text(as_html)),
    "json": FileFormat("Data (JSON)", ".json", "application/json", text(as_json)),
}


def write(content: Content, path: Path, form: str = "") -> FileFormat:
    """Write the comparison in a format of FORMATS, by default the one of the file's ending. Raises InputError on an unknown
    one, StorageError.
    """
    found = FORMATS.get(form) or next((one for one in FORMATS.values() if one.ending == path.suffix.lower()), None)
    if found is None:
        endings = ", ".join(one.ending for one in FORMATS.values())
        raise InputError(f"A comparison cannot be written as {form or path.name}. Its file may end in {endings}.")
    with replacing(path, "the comparison") as temporary:
        found.write(content, temporary)
    return found
