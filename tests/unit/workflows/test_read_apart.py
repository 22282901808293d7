"""Files that people bring are read in a process of its own: sentences to compare, terms, documents of which a segment is edited."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.corpora.formats import read
from engine.corpora.formats.documents.model import Context, DocumentError
from engine.errors import CorpusError, InputError
from engine.store import ProjectRow
from engine.workflows import document_segments
from engine.workflows.compare import input as compare_input
from engine.workflows.read_apart import edit_apart
from studio.services.comparisons import Comparisons
from studio.services.new_project import language_of
from studio.services.service import Service
from studio.services.terminology import read_file


@pytest.fixture(autouse=True)
def nothing_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a file is read outside the process for that")

    for name in read.READERS:
        monkeypatch.setitem(read.READERS, name, read.Format("", read.READERS[name].endings, refuse))  # type: ignore[arg-type]
    monkeypatch.setattr("engine.evaluation.read_lines", refuse)
    monkeypatch.setattr("engine.corpora.terminology.read_terms", refuse)
    monkeypatch.setattr(document_segments, "open_document", refuse)


@pytest.fixture
def project(service: Service) -> ProjectRow:
    return service.store.projects.create("Rain", "en", "zh", "/models/en-zh")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_sentences_to_compare(service: Service, project: ProjectRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write(tmp_path / "a.tsv", "source\ttarget\nThe rain had not stopped.\t雨还没有停。\n")
    sheet, _ = Comparisons(service).opened(project, [table])
    assert sheet is not None
    assert [(line.source, line.reference) for line in service.store.sheets.lines(sheet.comparison_id)] == [
        ("The rain had not stopped.", "雨还没有停。")
    ]
    sources = write(tmp_path / "a.en.txt", "The rain had not stopped.\n\nHe opened the door.\n")
    references = write(tmp_path / "a.zh.txt", "雨还没有停。\n\n他开了门。\n")
    both = compare_input.read_sentences([sources, references], "en", "zh", apart=True)
    assert both.lines == [("The rain had not stopped.", "雨还没有停。"), ("He opened the door.", "他开了门。")]
    with pytest.raises(CorpusError, match=r"^broken\.tmx") as caught:
        Comparisons(service).opened(project, [write(tmp_path / "broken.tmx", "<tmx><body><tu>")])
    assert str(tmp_path) not in caught.value.message
    assert language_of([sources], ["en", "zh"]) == "en"
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CorpusError, match=r"a\.tsv ended the process that read it"):
        Comparisons(service).opened(project, [table])


def test_terms(project: ProjectRow, tmp_path: Path) -> None:
    assert read_file(project, write(tmp_path / "a.csv", "rain,雨\ndoor,门\n")) == "rain\t雨\ndoor\t门"
    with pytest.raises(InputError, match=r"broken\.tbx") as caught:
        read_file(project, write(tmp_path / "broken.tbx", "<tbx>"))
    assert str(tmp_path) not in caught.value.message


def test_a_segment_that_is_edited(tmp_path: Path) -> None:
    source, output = write(tmp_path / "source.txt", "The rain stopped."), write(tmp_path / "a.zh.txt", "雨停了。")
    row = {"place": "line 1", "source": "The rain stopped.", "parts": ["雨停了。"], "doubt": ""}
    segments, context = write(tmp_path / "segments.jsonl", json.dumps(row) + "\n"), Context("a.txt", "en", "zh")
    edit_apart(segments, source, output, context, 0, "雨住了。")
    assert output.read_text(encoding="utf-8") == "雨住了。"
    with pytest.raises(DocumentError, match=r"a\.txt has no segment 8"):
        edit_apart(segments, source, output, context, 7, "雨住了。")
