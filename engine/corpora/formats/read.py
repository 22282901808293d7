"""The file formats of samples: one reader per format, selected by the file's ending. To add a format, add an entry to READERS."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from engine.corpora.formats.docx_odt import read_docx, read_odt
from engine.corpora.formats.jsonl import read_jsonl
from engine.corpora.formats.pdf import read_pdf
from engine.corpora.formats.plain import read_plain
from engine.corpora.formats.po import read_po
from engine.corpora.formats.records import Reader, Reading, Record, Request
from engine.corpora.formats.srt import read_srt
from engine.corpora.formats.table import read_csv, read_tsv
from engine.corpora.formats.tmx import read_tmx
from engine.corpora.formats.xliff import read_xliff


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
    "jsonl": Format("one JSON object per line", (".jsonl", ".ndjson", ".jsonlines"), read_jsonl),
    "tmx": Format("translation memory", (".tmx",), read_tmx),
    "xliff": Format("file of a translation tool", (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), read_xliff),
    "po": Format("messages of a program", (".po",), read_po),
    "docx": Format("Word document", (".docx",), read_docx),
    "odt": Format("OpenDocument text", (".odt",), read_odt),
    "srt": Format("subtitles", (".srt",), read_srt),
    "pdf": Format("PDF with text", (".pdf",), read_pdf),
}


def format_of(path: Path) -> str:
    """The name in READERS of a file's format; plain text for unknown endings (corpora end in .en or .zh)."""
    ending = path.suffix.lower()
    return next((name for name, item in READERS.items() if ending in item.endings), "txt")


def open_samples(path: Path, request: Request) -> Reading:
    """Open a file of samples with the reader of its format. Raises CorpusError if it cannot be read."""
    return READERS[format_of(path)].reader(path, request)


def all_records(path: Path, request: Request, max_records: int | None = None) -> list[Record]:
    """The first `max_records` records (all by default) of a file of samples, without skipped lines."""
    items = open_samples(path, request).items
    return list(islice((item for item in items if isinstance(item, Record)), max_records))
