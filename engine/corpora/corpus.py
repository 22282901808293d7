"""A corpus on disk: corpus.jsonl (one sentence per line) and import_report.json, written atomically, read defensively."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core.atomic_files import read_jsonl
from engine.corpora.report import ImportReport
from engine.corpora.types import Segment
from engine.errors import CorpusError, storage_errors
from engine.messages import Message, pack, unpack

CORPUS_FILE = "corpus.jsonl"
REPORT_FILE = "import_report.json"
SKIPPED_FILE = "skipped.jsonl"
NOTICED_FILE = "noticed.jsonl"
AGAIN = Message("import the samples again")


@dataclass
class Corpus:
    """The user's sentences in the target language, in the order of their files, with the report on their import."""

    language: str
    segments: list[Segment]
    report: ImportReport

    def __len__(self) -> int:
        return len(self.segments)

    def texts(self) -> list[str]:
        """The texts of the sentences."""
        return [segment.text for segment in self.segments]

    def save(self, folder: Path) -> Path:
        """Write corpus.jsonl and import_report.json into `folder` (created if missing); returns the path of the corpus file.

        Each file is written completely or not at all. The report is written last, so a corpus without a report is
        unfinished. Raises StorageError if the disk is full or the folder is not writable.
        """
        folder = Path(folder)
        with storage_errors("the corpus", folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / REPORT_FILE).unlink(missing_ok=True)
            for name in (SKIPPED_FILE, NOTICED_FILE):  # left by another import: only `import_to` writes them
                (folder / name).unlink(missing_ok=True)
            rows = (json.dumps(segment_row(segment), ensure_ascii=False) for segment in self.segments)
            _write(folder / CORPUS_FILE, rows)
            report = json.dumps(pack(self.report.to_mapping()), ensure_ascii=False, indent=1)
            _write(folder / REPORT_FILE, [report])
        return folder / CORPUS_FILE

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Read the files written by `save`. Raises CorpusError, naming the file and line, if one is missing or damaged."""
        folder = Path(folder)
        report_path, path = folder / REPORT_FILE, folder / CORPUS_FILE
        for needed in (path, report_path):
            if not needed.is_file():
                raise CorpusError("{needed} is missing; {again}.", needed=needed, again=AGAIN)
        try:
            values = json.loads(report_path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                "{report_path} is not valid JSON ({error}); {again}.", report_path=report_path, error=error, again=AGAIN
            ) from None
        if not isinstance(values, dict):
            raise CorpusError("{report_path} holds no import report; {again}.", report_path=report_path, again=AGAIN)
        report = ImportReport.from_mapping(unpack(values))
        segments = list(_segments(path))
        if len(segments) != report.kept:
            raise CorpusError(
                "{path} holds {count:,} sentences, but its report says {kept:,}: one of the two files is from "
                "another import; {again}.",
                path=path, count=len(segments), kept=report.kept, again=AGAIN,
            )  # fmt: skip
        return cls(language=report.language, segments=segments, report=report)


def noticed_rows(folder: Path, reason: str) -> set[int]:
    """The rows (from 0) of the sentences in the corpus that have a warning with this reason."""
    path = folder / NOTICED_FILE
    rows = read_jsonl(path) if path.exists() else ()
    return {row["row"] for row in rows if row.get("reason") == reason}


def segment_row(segment: Segment) -> dict[str, object]:
    """The segment as a row of corpus.jsonl."""
    row: dict[str, object] = {"text": segment.text}
    if segment.source is not None:
        row["source"] = segment.source
    row |= {"file": segment.file, "line": segment.line}
    if segment.domain:
        row["domain"] = segment.domain
    return row


def _segments(path: Path) -> Iterator[Segment]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                row = json.loads(raw.decode("utf-8"))
            except (ValueError, RecursionError) as error:
                raise CorpusError(
                    "{path}, line {number}: not valid JSON ({error}); {again}.", path=path, number=number, error=error, again=AGAIN
                ) from None
            yield _segment(row, path, number)


def _segment(row: Any, path: Path, number: int) -> Segment:
    def bad(what: str) -> CorpusError:
        return CorpusError("{path}, line {number}: {what}; {again}.", path=path, number=number, what=what, again=AGAIN)

    if not isinstance(row, dict):
        raise bad("not an object")
    unknown = set(row) - {"text", "source", "file", "line", "domain"}
    if unknown:
        raise bad(f"unknown key {sorted(unknown)[0]!r}")
    text, source = row.get("text"), row.get("source")
    file, line, domain = row.get("file", ""), row.get("line", 0), row.get("domain", "")
    if not isinstance(text, str) or not text:
        raise bad("no text")
    if source is not None and not isinstance(source, str):
        raise bad("source is not text")
    if not isinstance(file, str) or not isinstance(domain, str):
        raise bad("file or domain is not text")
    if isinstance(line, bool) or not isinstance(line, int) or line < 0:
        raise bad("line is not a line number")
    return Segment(text=text, source=source, file=file, line=line, domain=domain)


def _write(path: Path, lines: Iterable[str]) -> None:
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
