"""Writing an import to disk: sentences, skipped text and warnings, each in a file that is replaced atomically.

    corpus.jsonl          {"text", "source"?, "file", "line", "domain"?}
    skipped.jsonl         {"file", "line", "reason", "text", "source"?, "usable"?}   usable: the user may keep it nevertheless
    noticed.jsonl         {"row", "reason", "note"?, "like"?}                        row, like: lines of corpus.jsonl from 0
    import_report.json    written last

The corpus is never held in memory, so it may be larger than that.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from engine.core.atomic_files import read_jsonl
from engine.core.json_object import Json
from engine.corpora.corpus import CORPUS_FILE, NOTICED_FILE, REPORT_FILE, SKIPPED_FILE, segment_row
from engine.corpora.report import ImportReport
from engine.corpora.types import Segment
from engine.errors import storage_errors
from engine.messages import pack

LONGEST = 2000  # characters stored of a skipped text
MOST_OF_A_REASON = 20_000  # skipped lines listed per reason; the report counts all


class CorpusWriter:
    """Writes next to the files of an earlier import and replaces them at `commit`; until then they do not change."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.count = 0
        self._mark = uuid.uuid4().hex
        self._listed: Counter[str] = Counter()
        self._files: dict[str, IO[str]] = {}

    def __enter__(self) -> Self:
        with storage_errors("the corpus", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in (CORPUS_FILE, SKIPPED_FILE, NOTICED_FILE):
                self._files[name] = self.part(name).open("x", encoding="utf-8", errors="replace", newline="\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._files.values():
            file.close()
        for name in (CORPUS_FILE, SKIPPED_FILE, NOTICED_FILE, REPORT_FILE):
            self.part(name).unlink(missing_ok=True)

    def part(self, name: str) -> Path:
        """The temporary path at which a file is written."""
        return self.folder / f".{name}.{self._mark}.part"

    def add(self, segment: Segment) -> int:
        """Write one sentence; returns its row."""
        self._write(CORPUS_FILE, segment_row(segment))
        self.count += 1
        return self.count - 1

    def skip(self, file: str, line: int, reason: str, text: str, source: str | None = None, *, usable: bool = False) -> None:
        """Write one skipped segment."""
        self._listed[reason] += 1
        if self._listed[reason] > MOST_OF_A_REASON:
            return
        row: Json = {"file": file, "line": line, "reason": reason}
        # A truncated text cannot be found again by its key, so it is not usable.
        row["text"], complete = text[:LONGEST], len(text) <= LONGEST
        if source is not None:
            row["source"] = source[:LONGEST]
        if usable and complete:
            row["usable"] = True
        self._write(SKIPPED_FILE, row)

    def notice(self, row: int, reason: str, note: str = "", like: int | None = None) -> None:
        """Write a warning about an imported sentence."""
        value: Json = {"row": row, "reason": reason}
        if note:
            value["note"] = note
        if like is not None:
            value["like"] = like
        self._write(NOTICED_FILE, value)

    def segments(self) -> Iterator[Segment]:
        """The sentences written so far."""
        for row in self._rows(CORPUS_FILE):
            yield Segment(row["text"], row.get("source"), row["file"], row["line"], row.get("domain", ""))

    def notices(self) -> Iterator[Json]:
        """The warnings written so far, in order."""
        return self._rows(NOTICED_FILE)

    def thin(self, max_sentences: int) -> Iterator[Segment]:
        """Keep `max_sentences` evenly spaced sentences with their warnings; yields the removed sentences."""
        total = self.count
        if total <= max_sentences:
            return
        selected = {index * total // max_sentences: index for index in range(max_sentences)}
        segments, notices = self.segments(), self.notices()
        files: dict[str, IO[str]] = {}
        for name in (CORPUS_FILE, NOTICED_FILE):
            files[name] = self.part(f"{name}.thin").open("w", encoding="utf-8", errors="replace", newline="\n")
        try:
            for row, segment in enumerate(segments):
                if row in selected:
                    files[CORPUS_FILE].write(json.dumps(segment_row(segment), ensure_ascii=False) + "\n")
                else:
                    yield segment
            for value in notices:
                if value["row"] in selected:
                    files[NOTICED_FILE].write(json.dumps(value | {"row": selected[value["row"]]}, ensure_ascii=False) + "\n")
            for name, file in files.items():
                file.close()
                self._files[name].close()
                os.replace(self.part(f"{name}.thin"), self.part(name))
                self._files[name] = self.part(name).open("a", encoding="utf-8", errors="replace", newline="\n")
            self.count = max_sentences
        finally:
            for name, file in files.items():
                file.close()
                self.part(f"{name}.thin").unlink(missing_ok=True)

    def commit(self, report: ImportReport) -> None:
        """Replace the old files with the new ones, the report last: a corpus without a report is unfinished."""
        with storage_errors("the corpus", self.folder):
            text = json.dumps(pack(report.to_mapping()), ensure_ascii=False, indent=1)
            self.part(REPORT_FILE).write_text(text + "\n", encoding="utf-8", errors="replace")
            for file in self._files.values():
                file.flush()
                os.fsync(file.fileno())
                file.close()
            (self.folder / REPORT_FILE).unlink(missing_ok=True)
            for name in (SKIPPED_FILE, NOTICED_FILE, CORPUS_FILE, REPORT_FILE):
                os.replace(self.part(name), self.folder / name)

    def _write(self, name: str, row: Json) -> None:
        with storage_errors("the corpus", self.folder):
            self._files[name].write(json.dumps(row, ensure_ascii=False) + "\n")

    def _rows(self, name: str) -> Iterator[Json]:
        self._files[name].flush()
        return read_jsonl(self.part(name))
