"""Documents of a project: taken in, translated by a job, stopped and gone on with, given back, deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.corpora.formats.documents.model import DocumentError
from engine.decoding.translate import translate
from engine.errors import Cancelled, InputError, OptionError
from engine.jobs import KINDS, JobContext
from engine.jobs.handlers.documents import Documents
from engine.store import PluginRow, ProjectRow, Store
from engine.store.queue import ASKED, LONG

PAGE = "<html lang=en><p>The rain stopped. He said <b>nothing</b>.<p>I waited for a letter."


@pytest.fixture
def documents(settings: Settings) -> Documents:
    return Documents(Store(settings.store_url), settings)


@pytest.fixture
def project(documents: Documents, tiny: Path) -> ProjectRow:
    return documents.store.projects.create("Rain", "en", "zh", str(tiny))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "Rain & snow.html"
    file.write_text(PAGE, encoding="utf-8")
    return file


def work(documents: Documents, progress: Progress | None = None) -> dict[str, Any]:
    """Do the next job, as a worker does."""
    job = documents.store.jobs.claim("test")
    assert job is not None
    folder = documents.settings.home_dir / "projects" / str(job.project_id)
    try:
        result = KINDS[job.kind].run(JobContext(job, documents.store, documents.settings, folder, progress or Progress()))
    except Cancelled:
        documents.store.jobs.cancelled(job.id, job.attempt)
        raise
    documents.store.jobs.finish(job.id, job.attempt, result)
    return result


def plugin_row(documents: Documents, project: ProjectRow, bundle: Path) -> PluginRow:
    return documents.store.plugins.create(project.id, "Style", method="memory_adapter", path=str(bundle))


def test_a_short_document_is_waited_for_and_a_long_one_waits(documents: Documents, project: ProjectRow, tmp_path: Path) -> None:
    """A training goes on after what takes a minute; a book waits for the training."""
    short, long = tmp_path / "a.txt", tmp_path / "b.txt"
    short.write_text("The rain stopped.\n", encoding="utf-8")
    long.write_text("The rain stopped.\n" * 2_000, encoding="utf-8")
    assert [documents.add(project, file).job.priority for file in (short, long)] == [ASKED, LONG]


def test_a_document_is_translated_and_given_back(
    documents: Documents, project: ProjectRow, page: Path, base: Any, bundle: Path
) -> None:
    paper = documents.add(project, page)
    page.unlink()  # a copy was taken
    assert (paper.name, paper.plugin, paper.output) == ("Rain & snow.html", "", None)
    result = work(documents)
    (done,) = documents.list(project.id)
    assert done.output is not None
    assert done.output.name == "Rain & snow.zh.html"
    html = done.output.read_text(encoding="utf-8")
    expected = translate(base, ["The rain stopped.", "He said nothing.", "I waited for a letter."])
    assert html.startswith(f"<html lang=zh><p>{expected[0]}")
    assert html.endswith(f"<p>{expected[2]}")
    assert (result["units"], done.report["title"]) == (2, "HTML file")
    assert [path.name for path in done.output.parent.glob("*.jsonl")] == ["segments.jsonl"]

    row = plugin_row(documents, project, bundle)
    page.write_text(PAGE, encoding="utf-8")
    zero = documents.add(project, page, plugin=row, strength=0.0)
    work(documents)
    assert documents.get(zero.job.id).output.read_text(encoding="utf-8") == html, "strength 0 is the base"  # type: ignore[union-attr]
    assert [document.plugin for document in documents.list(project.id)] == ["Style", ""]


def test_a_stopped_job_goes_on_and_a_document_can_be_deleted(documents: Documents, project: ProjectRow, page: Path) -> None:
    class Stopped(Progress):
        def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
            if self.step == "Translating":
                raise Cancelled("stop")

    paper = documents.add(project, page)
    with pytest.raises(Cancelled):
        work(documents, Stopped())
    assert documents.get(paper.job.id).job.state == "cancelled"
    documents.resume(paper.job.id)
    work(documents)
    output = documents.get(paper.job.id).output
    assert output is not None
    documents.delete(paper.job.id)
    assert not output.parent.exists()
    assert documents.list(project.id) == []
    with pytest.raises(InputError):
        documents.get(paper.job.id)


def test_what_cannot_be_is_said_before_anything_is_queued(
    documents: Documents, project: ProjectRow, page: Path, tmp_path: Path, bundle: Path
) -> None:
    (tmp_path / "a.docx").write_bytes(b"no document")
    with pytest.raises(DocumentError, match=r"a\.docx cannot be opened"):
        documents.add(project, tmp_path / "a.docx")
    with pytest.raises(DocumentError, match="in no format"):
        documents.add(project, page, name="a.exe")
    with pytest.raises(OptionError, match="strength"):
        documents.add(project, page, strength=3)
    other = documents.store.projects.create("Other", "en", "zh", project.base)
    with pytest.raises(InputError, match="another project"):
        documents.add(project, page, plugin=plugin_row(documents, other, bundle))
    assert documents.list(project.id) == []
    assert not (documents.settings.home_dir / "projects" / str(project.id) / "documents").exists()
    paper = documents.add(project, page, name="../../..\\etc/<b>\x00.html")
    assert paper.name == "_b_.html"
    assert work(documents)["output"].endswith("/_b_.zh.html")


def test_a_document_at_work_cannot_be_deleted(documents: Documents, project: ProjectRow, page: Path) -> None:
    paper = documents.add(project, page)
    documents.store.jobs.claim("test")
    with pytest.raises(InputError, match="Cancel that first"):
        documents.delete(paper.job.id)
    assert documents.cancel(paper.job.id).job.cancel_requested
