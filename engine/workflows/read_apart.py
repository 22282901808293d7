"""Reading untrusted user files in a separate process, so that a malicious file cannot harm the program.

python -m engine.workflows.read_apart < request.json
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from engine.core.json_object import Json
from engine.core.limited_process import answer_of, serve_one
from engine.corpora.formats.documents.model import Context, DocumentError, DocumentOptions
from engine.corpora.formats.read import all_records
from engine.corpora.formats.records import Record, Request
from engine.errors import CorpusError, InputError, StorageError


def records_apart(path: Path, request: Request, max_records: int | None = None) -> list[Record]:
    """The first `max_records` records of a file of sentences. Raises CorpusError or InputError if it cannot be read."""
    task = {"work": "records", "file": str(path.absolute()), "request": asdict(request), "most": max_records}
    rows = answer_of(__name__, task, [path], CorpusError, InputError)["records"]
    return [Record(**row) for row in rows]


def lines_apart(path: Path) -> list[str]:
    """The lines of a text, as returned by `engine.evaluation.read_lines`. Raises CorpusError."""
    task = {"work": "lines", "file": str(path.absolute())}
    return answer_of(__name__, task, [path], CorpusError, InputError)["lines"]


def terms_apart(path: Path, language: str, source_language: str) -> list[tuple[str, str]]:
    """(source term, target term) of a file, as read by `engine.corpora.terminology.read_terms`. Raises InputError."""
    task = {"work": "terms", "file": str(path.absolute()), "target": language, "source": source_language}
    return [(source, target) for source, target in answer_of(__name__, task, [path], InputError, CorpusError)["terms"]]


def edit_apart(segments: Path, file: Path, output: Path, context: Context, index: int, text: str) -> None:
    """`engine.workflows.document_segments.edit_segment` in a separate process. Raises DocumentError or StorageError."""
    task = {
        "work": "edit", "segments": str(segments), "file": str(file), "output": str(output), "name": context.name,
        "source": context.source, "target": context.target, "options": context.options.to_mapping(), "index": index,
        "text": text,
    }  # fmt: skip
    answer_of(__name__, task, [file], DocumentError, StorageError, name=context.name)


def _records(task: Json) -> Json:
    records = all_records(Path(task["file"]), Request(**task["request"]), task["most"])
    return {"records": [asdict(record) for record in records]}


def _lines(task: Json) -> Json:
    from engine.evaluation import read_lines

    return {"lines": read_lines(task["file"])}


def _terms(task: Json) -> Json:
    from engine.corpora.terminology import read_terms

    terms = read_terms(Path(task["file"]), task["target"], task["source"])
    return {"terms": [(term.source, term.target) for term in terms]}


def _edit(task: Json) -> Json:
    from engine.workflows.document_segments import edit_segment

    options = DocumentOptions.from_mapping(task["options"])
    context = Context(task["name"], task["source"], task["target"], options)
    segments, file, output = (Path(task[name]) for name in ("segments", "file", "output"))
    edit_segment(segments, file, output, context, task["index"], task["text"])
    return {}


WORK: dict[str, Callable[[Json], Json]] = {"records": _records, "lines": _lines, "terms": _terms, "edit": _edit}

if __name__ == "__main__":
    serve_one(lambda task: WORK[task["work"]](task))
