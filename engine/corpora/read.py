"""The formats that samples can be in: one reader a format, chosen by the file's ending. A new format is one entry here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.corpora.jsonl import read_jsonl
from engine.corpora.plain import read_plain
from engine.corpora.records import Reader, Reading, Request
from engine.corpora.table import read_csv, read_tsv

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
}


def format_of(path: Path) -> str:
    """The name of the format in READERS; plain text for an ending that none of them has (corpora end in .en or .zh)."""
    ending = path.suffix.lower()
    return next((name for name, item in READERS.items() if ending in item.endings), "txt")


def open_samples(path: Path, request: Request) -> Reading:
    """Open a file of samples in the reader of its format. Raises CorpusError when it cannot be read."""
    return READERS[format_of(path)].reader(path, request)
