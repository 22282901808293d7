"""Leakage: sentences of the samples that also occur in test files. A plugin trained on its test set looks better than it is.

test_files/…    in a workspace: copies of the test files that the user chose
leaks.json      {"stamp", "files": [{"name", "sentences", "leaked", "error"?}], "samples"}
leaks.jsonl     {"row", "text", "source"?, "file", "line", "test", "same"}   row: line of corpus.jsonl from 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.core.atomic_files import read_json, write_json, write_jsonl
from engine.core.progress import Progress
from engine.core.step_cache import content_hash, digest_files
from engine.corpora.clean import clean
from engine.corpora.corpus import CORPUS_FILE, REPORT_FILE, Corpus
from engine.corpora.formats.read import open_samples
from engine.corpora.formats.records import Record, Request
from engine.corpora.inline_tags import without_tags
from engine.corpora.near_duplicates import NearIndex
from engine.corpora.types import Segment
from engine.errors import CorpusError

TEST_FOLDER = "test_files"
LEAKS_FILE = "leaks.json"
LEAK_ROWS = "leaks.jsonl"
MOST = 50_000  # sentences per test file
SHORTEST = 8  # letters; shorter sentences such as "Thank you." occur everywhere and are no leaks
EVERY = 500


def test_files(workspace: Path) -> list[Path]:
    """The test files of a workspace, sorted by name."""
    folder = workspace / TEST_FOLDER
    return sorted(path for path in folder.glob("*") if path.is_file() and not path.name.startswith("."))


def read_test(path: Path, language: str, source_language: str | None = None) -> list[Record]:
    """The lines of a test file: their cleaned text in the target language and, if the file has it, their source.

    Raises CorpusError if the file cannot be read or is too large.
    """
    request = Request(language=language, source_language=source_language, join_wrapped_lines=False)
    results = []
    for item in open_samples(path, request).items:
        if isinstance(item, Record):
            text = clean(without_tags(item.text))
            source = None if item.source is None else clean(without_tags(item.source))
            if text:
                results.append(Record(item.line, text, source))
        if len(results) > MOST:
            raise CorpusError(
                "{path} contains more than {most:,} sentences; a test set is smaller. Choose the test set alone.",
                path=path.name,
                most=MOST,
            )
    return results


def find_leaks(
    segments: Sequence[Segment], tests: Sequence[tuple[str, Record]], progress: Progress | None = None
) -> Iterator[dict[str, object]]:
    """Yield a row of leaks.jsonl per segment that is near-identical to a line of the tests, which are (file name, record).

    Test lines are compared in both languages, since a file that holds only sources is read as target-language text.
    """
    progress = progress or Progress()
    sides = [(position, text) for position, (_, record) in enumerate(tests) for text in (record.text, record.source) if text]
    index = NearIndex([text for _, text in sides])
    for row, segment in enumerate(segments):
        if row % EVERY == 0:
            progress.advance(row, len(segments))
        for text in filter(None, (segment.text, segment.source)):
            result = index.find(text) if _telling(text) else None
            if result is not None:
                file, record = tests[sides[result[0]][0]]
                source = {} if segment.source is None else {"source": segment.source}
                yield {
                    "row": row, "text": segment.text, **source, "file": file, "line": record.line,
                    "test": sides[result[0]][1], "same": result[1],
                }  # fmt: skip
                break


def _telling(text: str) -> bool:
    wide = sum(c > "\u2e7f" for c in text)
    return sum(c.isalpha() for c in text) + 2 * wide >= SHORTEST


def check_leaks(
    workspace: Path, language: str, source_language: str | None = None, progress: Progress | None = None
) -> dict[str, object]:
    """Compare the corpus of a workspace with its test files and write leaks.json and leaks.jsonl (neither without test files).

    Repeated only if the samples or test files have changed. For a test file that cannot be read, its entry states the error.
    """
    progress = progress or Progress()
    files = test_files(workspace)
    if not files or not (workspace / REPORT_FILE).exists():
        for name in (LEAKS_FILE, LEAK_ROWS):
            (workspace / name).unlink(missing_ok=True)
        return {}
    key = content_hash(1, [path.name for path in files], digest_files(map(str, [*files, workspace / CORPUS_FILE])))
    cached = read_json(workspace / LEAKS_FILE)
    if cached.get("stamp") == key:
        return cached
    progress.begin("Comparing with the test files", 0, 1)
    tests: list[tuple[str, Record]] = []
    entries: list[dict[str, object]] = []
    for path in files:
        try:
            records = read_test(path, language, source_language)
        except CorpusError as error:
            entries.append({"name": path.name, "sentences": 0, "leaked": 0, "error": error.message.naming(str(path), path.name)})
            continue
        tests += [(path.name, record) for record in records]
        entries.append({"name": path.name, "sentences": len(records), "leaked": 0})
    segments = Corpus.load(workspace).segments
    rows = list(find_leaks(segments, tests, progress))
    for entry in entries:
        entry["leaked"] = len({row["line"] for row in rows if row["file"] == entry["name"]})
    result = {"stamp": key, "files": entries, "samples": len(rows)}
    write_jsonl(workspace / LEAK_ROWS, rows, "the leaked sentences")
    write_json(workspace / LEAKS_FILE, result, "the leaked sentences")
    return result
