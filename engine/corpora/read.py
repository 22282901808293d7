"""The formats that samples can be in: one reader a format, chosen by the file's ending. A new format is one entry here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.corpora.jsonl import read_jsonl
from engine.corpora.office import read_docx, read_odt
from engine.corpora.pdf import read_pdf
from engine.corpora.plain import read_plain
from engine.corpora.po import read_po
from engine.corpora.records import Reader, Reading, Request
from engine.corpora.srt import read_srt
from engine.corpora.table import read_csv, read_tsv
from engine.corpora.tmx import read_tmx
from engine.corpora.xliff import read_xliff

__all__ = ["READERS", "Format", "format_of", "open_samples"]


@dataclass(frozen=True)
class Format:
    """A file format: its name for users, its file endings, its reader."""

    title: str
    endings: tuple[str, ...]
    reader: Reader


READERS: dict[str, Format] = {
    "txt": Format("plain text, one sentence or paragraph a line", (".txt", ".text"), read_plain),
    "csv": Format("table with commas or semicolons", (".csv",), read_csv),
    "tsv": Format("table with tabs", (".tsv", ".tab"), read_tsv),
    "jsonl": Format("one JSON object a line", (".jsonl", ".ndjson", ".jsonlines"), read_jsonl),
    "tmx": Format("translation memory", (".tmx",), read_tmx),
    "xliff": Format("file of a translation tool", (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), read_xliff),
    "po": Format("messages of a program", (".po",), read_po),
    "docx": Format("Word document", (".docx",), read_docx),
    "odt": Format("OpenDocument text", (".odt",), read_odt),
    "srt": Format("subtitles", (".srt",), read_srt),
    "pdf": Format("PDF with text", (".pdf",), read_pdf),
}


def format_of(path: Path) -> str:
    """The name of the format in READERS; plain text for an ending that none of them has (corpora end in .en or .zh)."""
    ending = path.suffix.lower()
    return next((name for name, item in READERS.items() if ending in item.endings), "txt")


def open_samples(path: Path, request: Request) -> Reading:
    """Open a file of samples in the reader of its format. Raises CorpusError when it cannot be read."""
    return READERS[format_of(path)].reader(path, request)
