"""A document is first read in a process of its own: whatever it does there, the process that asked goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.core import limited_process
from engine.corpora.formats.documents import characters
from engine.corpora.formats.documents.model import Context, Document, DocumentError
from engine.errors import TransientError
from engine.jobs.handlers.documents import Documents
from tests.documents import docx, word_paragraph

TEXT = "The rain stopped."


@pytest.fixture(autouse=True)
def nothing_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a document is read outside the process for that")

    for subclass in Document.__subclasses__():
        monkeypatch.setattr(subclass, "read", refuse)
    monkeypatch.setattr(characters, "open_document", refuse)


def count(file: Path) -> int:
    return characters.first_reading(file, Context(file.name, "en", "de"), 1 << 20).characters


def test_the_characters_are_those_that_are_translated(tmp_path: Path) -> None:
    file = docx(word_paragraph(TEXT) * 3, tmp_path / "a.docx")
    assert count(file) == 3 * len(TEXT)


def test_a_document_is_queued_without_being_read_here(store: Any, settings: Any, tmp_path: Path) -> None:
    project = store.projects.create("Rain", "en", "de", "base")
    file = docx(word_paragraph(TEXT), tmp_path / "a.docx")
    assert Documents(store, settings).add(project, file).job.state == "queued"
    (tmp_path / "b.docx").write_bytes(file.read_bytes()[:200])
    with pytest.raises(DocumentError, match=r"b\.docx cannot be opened") as caught:
        Documents(store, settings).add(project, tmp_path / "b.docx")
    assert "b.docx" in caught.value.params.values(), "a message with its values, which has a translation"


@pytest.mark.parametrize(
    ("seconds", "memory", "words"),
    [
        (0.02, 2 << 30, r"a\.txt could not be read within 0 s"),
        (60, 60 << 20, r"a\.txt (needs more than 60 MiB of memory|ended the process that read it)"),
    ],
)
def test_what_takes_too_much_is_refused(
    seconds: float, memory: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited_process, "SECONDS", seconds)
    monkeypatch.setattr(limited_process, "SECONDS_PER_MIB", 0.0)
    monkeypatch.setattr(limited_process, "MEMORY", memory)
    (tmp_path / "a.txt").write_text(f"{TEXT}\n" * 50_000, encoding="utf-8")
    before, children = psutil.Process().memory_info().rss, psutil.Process().children()
    with pytest.raises(DocumentError, match=words):
        count(tmp_path / "a.txt")
    assert psutil.Process().memory_info().rss - before < 20 << 20
    assert psutil.Process().children() == children


def test_a_document_that_ends_its_reader_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(DocumentError, match=r"a\.docx ended the process that read it"):
        count(docx(word_paragraph(TEXT), tmp_path / "a.docx"))


def test_a_few_documents_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_process, "SECONDS", 0.0)
    monkeypatch.setattr(limited_process, "answers", lambda *_: pytest.fail("another one is read"))
    with limited_process.TURNS, limited_process.TURNS, pytest.raises(TransientError, match="Other files are being read"):
        count(docx(word_paragraph(TEXT), tmp_path / "a.docx"))
