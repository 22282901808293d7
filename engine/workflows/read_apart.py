"""Reading untrusted user files in a process of its own, so that a malicious file cannot harm the program.

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
    """The first `max_records` records of a file of sentences. Raises CorpusError or InputError where it cannot be read."""
    asked = {"work": "records", "file": str(path.absolute()), "request": asdict(request), "most": max_records}
    rows = answer_of(__name__, asked, [path], CorpusError, InputError)["records"]
    return [Record(**row) for row in rows]


def lines_apart(path: Path) -> list[str]:
    """The lines of a text, as `engine.evaluation.read_lines` gives them. Raises CorpusError."""
    asked = {"work": "lines", "file": str(path.absolute())}
    return answer_of(__name__, asked, [path], CorpusError, InputError)["lines"]


def terms_apart(path: Path, language: str, source_language: str) -> list[tuple[str, str]]:
    """(source term, target term) of a file, as `engine.corpora.terminology.read_terms` reads it. Raises InputError."""
    asked = {"work": "terms", "file": str(path.absolute()), "target": language, "source": source_language}
    return [(source, target) for source, target in answer_of(__name__, asked, [path], InputError, CorpusError)["terms"]]


def edit_apart(segments: Path, file: Path, output: Path, context: Context, index: int, text: str) -> None:
    """`engine.workflows.document_segments.edit_segment`. Raises DocumentError or StorageError."""
    asked = {
        "work": "edit", "segments": str(segments), "file": str(file), "output": str(output), "name": context.name,
        "source": context.source, "target": context.target, "options": context.options.to_mapping(), "index": index,
        "text": text,
    }  # fmt: skip
    answer_of(__name__, asked, [file], DocumentError, StorageError, name=context.name)


def _records(asked: Json) -> Json:
    records = all_records(Path(asked["file"]), Request(**asked["request"]), asked["most"])
    return {"records": [asdict(one) for one in records]}


def _lines(asked: Json) -> Json:
    from engine.evaluation import read_lines

    return {"lines": read_lines(asked["file"])}


def _terms(asked: Json) -> Json:
    from engine.corpora.terminology import read_terms

    terms = read_terms(Path(asked["file"]), asked["target"], asked["source"])
    return {"terms": [(term.source, term.target) for term in terms]}


def _edit(asked: Json) -> Json:
    from engine.workflows.document_segments import edit_segment

    options = DocumentOptions.from_mapping(asked["options"])
    context = Context(asked["name"], asked["source"], asked["target"], options)
    segments, file, output = (Path(asked[name]) for name in ("segments", "file", "output"))
    edit_segment(segments, file, output, context, asked["index"], asked["text"])
    return {}


WORK: dict[str, Callable[[Json], Json]] = {"records": _records, "lines": _lines, "terms": _terms, "edit": _edit}

if __name__ == "__main__":
    serve_one(lambda asked: WORK[asked["work"]](asked))
