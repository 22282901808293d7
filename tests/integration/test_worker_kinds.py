"""What "prepare" and "customize" leave in the store, around a pipeline that reads real samples and trains nothing."""

from __future__ import annotations

import shutil
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest

import engine.plugins
import engine.workflows.customize
from engine.core.atomic_files import write_json
from engine.core.progress import Progress
from engine.core.settings import ROOT, Settings
from engine.core.step_cache import StepCache
from engine.corpora import import_corpus
from engine.errors import Cancelled, CorpusError, InputError, OptionError
from engine.jobs import JobContext, enqueue
from engine.jobs.paths import job_folder, job_workspace, workspace_folder
from engine.jobs.registry import KINDS
from engine.phrases import PhraseSet
from engine.phrases.types import Phrase
from engine.store import JobRow, ProjectRow, Store
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.maintenance.rows import missing_files

SAMPLES = ROOT / "assets" / "samples" / "literary-zh" / "literary-zh.txt"


def read_alone(request: CustomizeRequest, workspace: Path, progress: Progress) -> None:
    corpus = import_corpus([Path(path) for path in request.samples], request.target, progress=progress)
    corpus.save(workspace)


def prepare(request: CustomizeRequest, workspace: Path, progress: Progress, settings: Settings, **named: object) -> None:
    read_alone(request, workspace, progress)
    PhraseSet([Phrase("月光", 1, 3, "NP", 0)], "Tried with a stand-in.").save(workspace / "phrases.jsonl")


def customize(request: CustomizeRequest, workspace: Path, progress: Progress, settings: Settings, *, run: Path) -> dict[str, Any]:
    prepare(request, workspace, progress, settings)
    with zipfile.ZipFile(request.output, "w") as bundle:
        bundle.writestr("README.md", "a plugin")
    return {"method": "memory_adapter", "metrics": {"BLEU": 21.3}}


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("engine.workflows.customize.pipeline")
    vars(module).update(read_alone=read_alone, prepare=prepare, customize=customize)
    monkeypatch.setitem(sys.modules, "engine.workflows.customize.pipeline", module)
    monkeypatch.setattr(engine.workflows.customize, "pipeline", module, raising=False)
    monkeypatch.setattr(engine.plugins, "read_bundle_card", lambda path: {"base_fingerprint": "f1"}, raising=False)
    return module


@pytest.fixture
def project(store: Store, pipeline: types.ModuleType) -> ProjectRow:
    return store.projects.create("鲁迅 / Lu Xun", "en", "zh", str(ROOT / "assets" / "models" / "en-zh"))


def _run(store: Store, settings: Settings, job: JobRow) -> dict[str, Any]:
    return KINDS[job.kind].run(JobContext(job, store, settings, job_workspace(settings, job), Progress()))


def test_reading_fills_the_corpus_and_the_job_after_it_the_phrase_set_once(
    store: Store, settings: Settings, project: ProjectRow, tmp_path: Path
) -> None:
    job = enqueue(store, "prepare", {"samples": [str(SAMPLES)]}, project_id=project.id)
    result = _run(store, settings, job)
    (corpus,) = store.corpora.list(project.id)
    assert (corpus.state, corpus.name, corpus.folder) == ("ready", "literary-zh.txt", str(tmp_path / "projects" / str(project.id)))
    assert corpus.kept == result["kept"] > 100
    assert corpus.report["files"][0]["name"].endswith("literary-zh.txt")
    assert corpus.skipped == corpus.report["skipped"]
    assert store.phrase_sets.list(corpus.id) == []
    (after,) = [row for row in store.jobs.list(project.id) if row.kind == "preview"]
    _run(store, settings.replace(first_look=False), after)
    (phrases,) = store.phrase_sets.list(corpus.id)
    assert (phrases.count, phrases.parser) == (1, "Tried with a stand-in.")
    _run(store, settings, job)  # again, after more samples: the same rows
    _run(store, settings.replace(first_look=False), store.jobs.list(project.id)[0])
    assert len(store.corpora.list()) == len(store.phrase_sets.list()) == 1


def test_a_look_that_fails_does_not_keep_the_phrases_back(
    store: Store, settings: Settings, project: ProjectRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object, **named: object) -> None:
        raise CorpusError("The samples are too similar.")

    monkeypatch.setattr("engine.workflows.preview.preview", fails)
    _run(store, settings, enqueue(store, "prepare", {"samples": [str(SAMPLES)]}, project_id=project.id))
    with pytest.raises(CorpusError, match="too similar"):
        _run(store, settings.replace(first_look=True), store.jobs.list(project.id)[0])
    (corpus,) = store.corpora.list(project.id)
    assert corpus.state == "ready"
    assert [row.count for row in store.phrase_sets.list(corpus.id)] == [1]


def test_prepare_fills_the_named_corpus(store: Store, settings: Settings, project: ProjectRow) -> None:
    mine = store.corpora.create(project.id, "my samples")
    store.corpora.create(project.id, "another")
    arguments = {"samples": [str(SAMPLES)], "corpus_id": mine.id}
    _run(store, settings, enqueue(store, "prepare", arguments, project_id=project.id))
    done = store.corpora.get(mine.id)
    assert (done.state, done.name) == ("ready", "my samples")


def test_a_corpus_that_cannot_be_read_says_so(store: Store, settings: Settings, project: ProjectRow, tmp_path: Path) -> None:
    (tmp_path / "gone.txt").touch()
    job = enqueue(store, "prepare", {"samples": [str(tmp_path / "gone.txt")]}, project_id=project.id)
    with pytest.raises(InputError):
        _run(store, settings, job)
    assert store.corpora.list(project.id)[0].state == "failed"


def test_a_cancelled_reading_leaves_the_corpus_as_it_was(
    store: Store, settings: Settings, project: ProjectRow, pipeline: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = enqueue(store, "prepare", {"samples": [str(SAMPLES)]}, project_id=project.id)
    _run(store, settings, job)

    def stops(*args: object, **named: object) -> None:
        assert store.corpora.list(project.id)[0].state == "reading"
        raise Cancelled("stop")

    monkeypatch.setattr(pipeline, "read_alone", stops)
    with pytest.raises(Cancelled):
        _run(store, settings, job)
    assert store.corpora.list(project.id)[0].state == "ready"


def test_customize_adds_a_plugin_and_a_second_run_of_the_job_none(store: Store, settings: Settings, project: ProjectRow) -> None:
    first = enqueue(store, "customize", {"samples": [str(SAMPLES)]}, project_id=project.id)
    result = _run(store, settings, first)
    (plugin,) = store.plugins.list(project.id)
    assert plugin.id == result["plugin_id"]
    assert (plugin.name, plugin.method, plugin.base_fingerprint) == ("鲁迅 / Lu Xun", "memory_adapter", "f1")
    assert plugin.metrics == {"BLEU": 21.3}
    assert plugin.exists
    assert store.corpora.list(project.id)[0].state == "ready"
    _run(store, settings, first)
    assert len(store.plugins.list()) == 1
    second = enqueue(store, "customize", {"samples": [str(SAMPLES)], "name": "two"}, project_id=project.id)
    _run(store, settings, second)
    assert [row.name for row in store.plugins.list()] == ["two", "鲁迅 / Lu Xun"]
    assert len({row.path for row in store.plugins.list()}) == 2  # neither bundle overwrote the other


def test_a_run_that_continues_another_begins_with_what_that_has_trained(
    store: Store, settings: Settings, project: ProjectRow, pipeline: types.ModuleType
) -> None:
    begun_with: list[str] = []

    def trained(*args: Any, run: Path) -> dict[str, Any]:
        state = run / "training" / "checkpoint" / "state.json"
        begun_with.append(state.read_text(encoding="utf-8") + StepCache(run).get("training") if state.exists() else "")
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text("41", encoding="utf-8")
        StepCache(run).mark_done("training", " made so")
        return customize(*args, run=run) | {"stopped_by": "max_updates" if begun_with[-1] else "max_minutes"}

    vars(pipeline).update(customize=trained)
    first = enqueue(store, "customize", {"samples": [str(SAMPLES)]}, project_id=project.id)
    _run(store, settings, first)
    again = enqueue(store, "customize", {"samples": [str(SAMPLES)], "continues": first.id}, project_id=project.id)
    _run(store, settings, again)
    assert begun_with == ["", "41 made so"]
    folders = [job_folder(workspace_folder(settings, project.id), job) / "training" for job in (first, again)]
    assert [(folder / "checkpoint").exists() for folder in folders] == [True, False], "what may go on is kept, what is done is not"


def test_a_job_works_on_the_samples_that_its_project_holds_when_it_starts(
    store: Store, settings: Settings, project: ProjectRow, pipeline: types.ModuleType
) -> None:
    requests: list[Any] = []

    def trained(request: Any, *args: Any, run: Path) -> dict[str, Any]:
        requests.append(request)
        return customize(request, *args, run=run)

    vars(pipeline).update(customize=trained)
    workspace = workspace_folder(settings, project.id)
    (workspace / "samples").mkdir()
    names = [workspace / "samples" / name for name in ("a.txt", "b.txt", "c.txt")]
    for path in names[:2]:
        shutil.copy(SAMPLES, path)
    arguments = {"samples": [str(path) for path in names[:2]], "domains": ["A", "B"]}
    waiting = enqueue(store, "customize", arguments, project_id=project.id)
    names[0].rename(names[2])
    assert not [row for row in missing_files(settings, store) if row.place == str(names[0])]
    write_json(workspace / "domains.json", {"c.txt": "C"}, "the labels")
    _run(store, settings, waiting)
    elsewhere = enqueue(store, "customize", {"samples": [str(SAMPLES)]}, project_id=project.id)
    _run(store, settings, elsewhere)
    assert requests[0].samples == (str(names[1]), str(names[2]))
    assert requests[0].domains == ("", "C")
    assert requests[1].samples == (str(SAMPLES),), "files that are named elsewhere stay named"


def test_a_bad_setting_is_refused_before_it_is_queued_and_paths_become_absolute(
    store: Store, project: ProjectRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match="Did you mean samples"):
        enqueue(store, "prepare", {"sample": ["x"]}, project_id=project.id)
    with pytest.raises(OptionError, match="budget: 'huge' is not one of"):
        enqueue(store, "customize", {"budget": "huge"}, project_id=project.id)
    assert store.jobs.list() == []
    monkeypatch.chdir(SAMPLES.parent)  # the worker may run in another folder
    arguments = {"samples": [SAMPLES.name], "base": "Helsinki-NLP/opus-mt-en-zh", "corpus_id": 4}
    job = enqueue(store, "prepare", arguments, project_id=project.id)
    assert job.arguments == arguments | {"samples": [str(SAMPLES)]}
