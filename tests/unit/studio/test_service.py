"""What the pages ask the service: projects, uploads, files in a workspace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from engine.core.settings import Settings
from engine.errors import InputError
from engine.jobs import enqueue
from engine.jobs.processes import HOST
from engine.store import ProjectRow
from engine.store.queue import Jobs
from engine.store.repositories import Plugins, Projects
from engine.workflows.customize.request import CustomizeRequest
from studio.services.catalog import language_name
from studio.services.files import read_rows, slug
from studio.services.projects import project_summaries
from studio.services.service import Service

BASE = Path(__file__).resolve().parents[3] / "assets" / "models" / "en-zh"


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(Settings(home=str(tmp_path / "home"), max_upload_mib=1))


@pytest.fixture
def project(service: Service) -> ProjectRow:
    return service.create_project("Lu Xun", "en", "zh", str(BASE))


def test_the_bundled_base_is_listed_with_what_a_user_needs_to_know(service: Service) -> None:
    result = {card["name"]: card for card in service.catalog.bases()}
    assert result["en-zh"]["languages"] == ["en", "zh"]
    assert result["en-zh"]["decoder_layers"] > 0


def test_a_folder_that_is_no_model_is_passed_over(service: Service) -> None:
    (service.settings.home_dir / "models" / "holiday photos").mkdir(parents=True)
    assert "holiday photos" not in [card["name"] for card in service.catalog.bases()]


def test_bundled_samples_have_title_language_and_card(service: Service) -> None:
    result = {sample.name: sample for sample in service.catalog.samples()}
    assert result["literary-zh"].title == "Literary Chinese"
    assert result["literary-zh"].target == "zh"
    assert "prose" in result["literary-zh"].card.summary
    assert result["literary-zh"].card.license_line == "Licence: CC0 1.0. Free for any use."
    assert len(service.catalog.demo_lines("en").splitlines()) >= 5
    assert service.catalog.demo_lines("xx") == ""
    with pytest.raises(InputError, match="no longer exists"):
        service.catalog.sample("../../etc")


def test_projects_are_checked_before_they_are_made(service: Service) -> None:
    with pytest.raises(InputError, match="same language"):
        service.create_project("x", "zh", "zh", str(BASE))
    with pytest.raises(InputError, match="does not support German; it supports English, Chinese"):
        service.create_project("x", "en", "de", str(BASE))
    assert service.store.projects.list() == []


def test_the_project_of_an_address(service: Service, project: ProjectRow) -> None:
    assert service.project(str(project.id)) == project
    assert service.project("") == project
    for wrong in ("new", "999", "x", "-1", "1; drop table project"):
        assert service.project(wrong) is None
    with pytest.raises(InputError, match="no project yet"):
        service.need("999")


@pytest.mark.parametrize(
    ("upload", "words"), [(("photo.png", 10), "photo.png cannot be read as samples"), (("big.txt", 2**20 + 1), "larger than 1 MiB")]
)
def test_uploads_that_cannot_be_taken_are_listed_beside_those_that_are(
    service: Service, project: ProjectRow, tmp_path: Path, upload: tuple[str, int], words: str
) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / upload[0]
    good.write_text("雨还在下。\n", encoding="utf-8")
    bad.write_bytes(b"x" * upload[1])
    with pytest.raises(InputError, match=words):
        service.add_samples(project, [bad])
    assert service.store.jobs.list() == [], "nothing is read where nothing came in"
    job = service.add_samples(project, [good, bad])
    assert [Path(str(path)).name for path in job.arguments["samples"]] == ["good.txt"]
    assert words in service.refused(project.id)[bad.name]
    assert str(tmp_path) not in service.refused(project.id)[bad.name]
    service.dismiss(project, bad.name)
    assert service.refused(project.id) == {}


def test_every_refused_upload_has_its_reason_until_a_file_of_its_name_is_taken(
    service: Service, project: ProjectRow, tmp_path: Path
) -> None:
    files = {"photo.png": b"x", "big.txt": b"x" * (2**20 + 1), "empty.txt": b"", "essay.docx": b"PK\x03\x04 no document"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in files]
    with pytest.raises(InputError, match="None of the 4 files can be read") as caught:
        service.add_samples(project, paths)
    assert all(name in str(caught.value) for name in files)
    assert set(service.refused(project.id)) == set(files)
    (tmp_path / "empty.txt").write_text("雨还在下。\n", encoding="utf-8")
    service.add_samples(project, [tmp_path / "empty.txt"])
    assert set(service.refused(project.id)) == set(files) - {"empty.txt"}
    service.add_tests(project, [tmp_path / "empty.txt", tmp_path / "photo.png"])
    assert set(service.refused(project.id, "test_files")) == {"photo.png"}
    assert [path.name for path in service.test_files(project.id)] == ["empty.txt"]
    assert set(service.refused(project.id)) == set(files) - {"empty.txt"}, "each list is its own"


def test_overview_without_anything(service: Service) -> None:
    seen = service.overview("")
    assert seen.project is None
    assert seen.active is None
    assert "GiB" in seen.device


def test_overview_counts_what_is_there(service: Service, project: ProjectRow) -> None:
    corpus = service.store.corpora.create(project.id, "x", state="reading")
    assert service.overview(project.id).sentences is None
    service.store.corpora.update(corpus.id, state="ready", kept=480)
    service.store.phrase_sets.create(corpus.id, "phrases.jsonl", "statistical", 6000)
    first = service.store.jobs.enqueue("customize", {}, project_id=project.id)
    service.store.jobs.enqueue("prepare", {}, project_id=project.id)
    seen = service.overview(project.id)
    assert (seen.sentences, seen.phrases, seen.runs) == (480, 6000, 1)
    assert seen.active is not None
    assert seen.active.id == first.id, "the oldest waiting job is the next"
    assert seen.waiting == 1


def test_rows_of_a_file_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_rows(path) == []
    path.write_text('{"step": 1}\n[1]\n{"step": 2}\n{"st', encoding="utf-8")
    assert read_rows(path) == [{"step": 1}, {"step": 2}]
    path.write_text('{"step": 1}\n[1]\n{"step": 2}\n{"step": 3}\n', encoding="utf-8")
    assert len(read_rows(path)) == 3


def test_runs_need_samples_and_wait_for_each_other(service: Service, project: ProjectRow) -> None:
    with pytest.raises(InputError, match="no samples yet"):
        service.start_run(project, CustomizeRequest(method="memory_adapter", budget="quick"))
    folder = service.workspace(project.id) / "samples"
    folder.mkdir()
    (folder / "a.txt").write_text("雨还在下。\n", encoding="utf-8")
    first = service.start_run(project, CustomizeRequest(method="memory_adapter", budget="quick"))
    second = service.start_run(
        project, CustomizeRequest(method="lhuc", budget="best", training_options={"max_updates": 7}, knn=True)
    )
    assert [job.id for job in service.runs(project.id)] == [second.id, first.id]
    assert {first.state, second.state} == {"queued"}
    assert second.arguments["training_options"] == {"max_updates": 7}
    assert second.arguments["knn"] is True
    assert first.arguments["name"] != second.arguments["name"]


def test_each_run_has_a_curve_of_its_own(service: Service, project: ProjectRow) -> None:
    jobs = [service.store.jobs.enqueue("customize", {}, project_id=project.id) for _ in range(2)]
    for job in jobs:
        folder = service.workspace(project.id) / "runs" / str(job.id) / "training"
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text(f'{{"step": {job.id}}}\n', encoding="utf-8")
    assert service.curve(project.id, jobs[0]) == [{"step": jobs[0].id}]
    assert service.curve(project.id) == [{"step": jobs[1].id}], "without one named, the newest"


def test_parser_is_what_the_extraction_noted(service: Service, project: ProjectRow) -> None:
    assert service.parser(project.id) == ""
    info = {"parser": "Constituents by stanza.", "phrases": 3}
    (service.workspace(project.id) / "phrases.info.json").write_text(json.dumps(info), encoding="utf-8")
    assert service.parser(project.id) == "Constituents by stanza."


@given(st.text(max_size=200))
def test_a_slug_is_a_safe_file_name(name: str) -> None:
    file_name = slug(name)
    assert 0 < len(file_name) <= 60
    assert not set(file_name) & set('/\\:*?"<>|. \n\t\x00')


def test_language_names() -> None:
    assert language_name("zh") == "Chinese"
    assert language_name("zh_CN") == "Chinese"
    assert language_name("en-GB") == "English"
    assert language_name("tlh") == "tlh"


def test_only_a_job_on_this_machine_shares_its_cores(service: Service, project: ProjectRow) -> None:
    job = enqueue(service.store, "proportions", {}, project_id=project.id)
    service.store.workers.beat("idle", HOST, 1)
    service.store.workers.beat("elsewhere", "another-machine", 2, job.id)
    assert not service.job_at_work_here()
    service.store.workers.beat("here", HOST, 3, job.id)
    assert service.job_at_work_here()
    service.store.workers.beat("here", HOST, 3)
    assert not service.job_at_work_here()


def statements(service: Service, call: Callable[[], object]) -> int:
    """How many statements the store runs."""
    run: list[str] = []
    event.listen(service.store._engine, "before_cursor_execute", lambda *arguments: run.append(arguments[2]))
    call()
    return len(run)


def test_the_frame_of_a_page_reads_no_jobs_that_are_done_and_no_plugins(
    service: Service, project: ProjectRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        job = service.store.jobs.enqueue("customize", {}, project_id=project.id)
        claimed = service.store.jobs.claim("w")
        assert claimed is not None
        service.store.jobs.finish(job.id, claimed.attempt)
        service.store.plugins.create(project.id, f"p{number}", method="lhuc", path="/gone")
    waiting = [service.store.jobs.enqueue("prepare", {}, project_id=project.id) for _ in range(4)]
    read: list[int] = []
    out = Jobs._out
    monkeypatch.setattr(Jobs, "_out", lambda jobs, record: read.append(record.id) or out(jobs, record))  # type: ignore[func-returns-value]
    monkeypatch.setattr(Plugins, "list", None)
    monkeypatch.setattr(Projects, "list", None)
    seen = service.overview(project.id)
    assert (seen.runs, seen.plugins, seen.waiting, seen.active) == (6, 6, 3, waiting[0])
    assert read == [waiting[0].id]
    assert service.store.jobs.claim("w") is not None
    seen = service.overview(project.id)
    assert (seen.waiting, seen.active and seen.active.state) == (3, "running")


def test_the_first_page_asks_the_store_as_often_for_many_projects_as_for_one(service: Service, project: ProjectRow) -> None:
    service.store.jobs.enqueue("count", {}, project_id=project.id)
    project_summaries(service)  # the first look makes a project's folder
    before = statements(service, lambda: project_summaries(service))
    for name in "abc":
        other = service.create_project(name, "en", "zh", str(BASE))
        failed = service.store.jobs.enqueue("prepare", {}, project_id=other.id)
        service.store.jobs.cancel(failed.id)
    summaries = {summary.project.name: summary for summary in project_summaries(service)}
    assert statements(service, lambda: project_summaries(service)) == before
    assert len(summaries) == 4
    assert summaries["Lu Xun"].busy
    assert not summaries["a"].busy


def test_the_default_plugin_is_the_newest_that_is_still_there(service: Service, project: ProjectRow) -> None:
    make = service.store.plugins.create
    there = make(project.id, "there", method="lhuc", path=str(BASE / "config.json"))
    for number in range(25):  # more than are read at once
        make(project.id, f"gone {number}", method="lhuc", path="/gone")
    assert service.store.defaults.get(project.id) == there
    other = service.create_project("Other", "en", "zh", str(BASE))
    assert service.store.plugins.by_numbers(other.id, [there.id]) == {}
    assert service.store.plugins.count(other.id) == 0
