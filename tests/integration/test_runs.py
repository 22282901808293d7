"""A first look, and several runs of one project: what they share, and that none destroys what another has made."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.core.step_cache import StepCache
from engine.core.workspace import latest_file
from engine.errors import Cancelled
from engine.jobs import enqueue
from engine.jobs.paths import job_folder, job_workspace
from engine.jobs.registry import KINDS, JobContext
from engine.methods.knn.build import make_knn
from engine.plugins import Plugin, read_bundle_card
from engine.plugins.replace_samples import swap_bundle
from engine.store import JobRow, Store
from engine.training.metrics_log import read_metrics
from engine.workflows.customize.pipeline import customize
from engine.workflows.customize.request import CANDIDATES
from engine.workflows.customize.run import Trial
from engine.workflows.customize.selection import chosen
from engine.workflows.customize.steps import read_samples
from engine.workflows.preview import FILE, preview
from tests.bases import make_base

TRAINING = {
    "max_updates": 8, "tokens_per_batch": 256, "learning_rate": 0.003, "warmup": 2, "validate_every": 4, "checkpoint_every": 2,
    "patience": 0, "watch": 2,
}  # fmt: skip


class StopAt(Progress):
    """Wants to stop at an update of the training."""

    def __init__(self, update: int) -> None:
        super().__init__()
        self.update = update

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        if self.step == "Training" and done >= self.update:
            raise Cancelled("Stopped.")


class Steps(Progress):
    """Remembers the steps, and how far each report says that it all is."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.places: list[float] = []
        self.starts: list[float] = []
        self.numbers: dict[str, tuple[int, int]] = {}  # place and count, by step

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        if self.step not in self.seen:
            self.seen.append(self.step)
        self.numbers[self.step] = (self.index, self.steps)
        self.starts.append(self.index / self.steps)
        self.places.append((self.index + (done / total if total else 0)) / self.steps)


@pytest.fixture
def asked(request_for: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    def make(name: str, **changes: Any) -> Any:
        options = changes.pop("training", {})
        if changes.get("method", "memory_adapter") != "memory_adapter":
            changes["method_options"] = {}
        return request_for(tmp_path / f"{name}.zip", training_options={**TRAINING, **options}, **changes)

    return make


def test_a_first_look_shows_sentences_before_anything_is_chosen_and_leaves_its_work_to_the_runs(
    asked: Callable[..., Any], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.workflows.throughput.SHORTEST", 0.0)  # the tiny base filters a few pairs in no time
    work, steps, settings = tmp_path / "work", Steps(), Settings(home=str(home), device="cpu")
    result = preview(asked("look"), work, steps, settings)
    kinds = {row["kind"] for row in result["rows"]}
    assert kinds == {"plain", "held out"}
    held_out = [row for row in result["rows"] if row["kind"] == "held out"]
    assert all(row["vanilla"] is not None and row["customized"] is not None for row in result["rows"])
    assert all(row["reference"] for row in held_out)
    assert result["differ"] == sum(row["vanilla"] != row["customized"] for row in result["rows"])
    assert result["loss"] <= result["loss_base"]
    assert json.loads((work / FILE).read_text(encoding="utf-8")) == result
    assert steps.places == sorted(steps.places), "the bar never goes back"
    assert "Translating a few sentences" in steps.seen
    again = Steps()
    assert preview(asked("look"), work, again, settings) == result
    assert "Writing source sentences" not in again.seen
    # A run takes over the source sentences.
    later = Steps()
    customize(asked("run", method="lhuc"), work, later, settings, run=work / "runs" / "1")
    assert "Filtering synthetic pairs" in later.seen
    assert "Writing source sentences" not in later.seen
    assert not (work / "sources.jsonl").exists(), "the pairs hold them now"
    paces = json.loads((home / "paces.json").read_text(encoding="utf-8"))
    ((pace,),) = [list(shapes.values()) for shapes in paces.values()]
    assert {"start", "sources", "weighing", "training lhuc", "evaluation lhuc", "peak lhuc 256"} <= set(pace)


def test_a_first_look_uses_no_sentence_in_another_language_and_none_that_is_its_own_source(
    asked: Callable[..., Any], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, used = asked("look"), []
    english = ["The committee will publish its annual report before the end of this month."]
    english += [f"Please send the signed contract back to our office on the {n}th of June." for n in range(4, 14)]
    copied = "这句话没有翻译，所以两边一样。"
    other = tmp_path / "other.tsv"
    rows = [f"Line {n}\t{line}" for n, line in enumerate(english)]
    other.write_text("\n".join(["source\ttarget", *rows, f"{copied}\t{copied}"]), encoding="utf-8")

    def noted(base: Any, learn: Any, valid: Any, *more: Any, **named: Any) -> Any:
        used.extend(pair.target for pair in (*learn, *valid))
        return make_knn(base, learn, valid, *more, **named)

    monkeypatch.setattr("engine.methods.knn.build.make_knn", noted)
    request = request.replace(samples=[*request.samples, str(other)])
    result = preview(request, tmp_path / "work", None, Settings(home=str(home), device="cpu"))
    read = (tmp_path / "work" / "corpus.jsonl").read_text(encoding="utf-8")
    assert all(line in read for line in (*english, copied))
    assert used
    assert not {*english, copied} & {*used, *(row.get("reference") for row in result["rows"])}


def test_runs_in_a_row_share_the_samples_and_keep_their_own(asked: Callable[..., Any], tmp_path: Path, home: Path) -> None:
    work, settings = tmp_path / "work", Settings(home=str(home), device="cpu")
    run_one, run_two = work / "runs" / "1", work / "runs" / "2"
    first = StopAt(5)
    with pytest.raises(Cancelled):
        customize(asked("one", method="lhuc"), work, first, settings, run=run_one)
    stopped = read_metrics(run_one / "training" / "metrics.jsonl")
    selected = {path: path.stat().st_mtime_ns for path in run_one.rglob("*") if path.is_file()}
    pairs = (work / "pairs.jsonl").stat().st_mtime_ns
    other = customize(asked("two", method="extreme"), work, None, settings, run=run_two)
    assert {path: path.stat().st_mtime_ns for path in selected} == selected, "the first run's checkpoint and curve are as they were"
    assert (work / "pairs.jsonl").stat().st_mtime_ns == pairs
    assert other["updates"] == 8
    steps = Steps()
    resumed = customize(asked("one", method="lhuc"), work, steps, settings, run=run_one)
    assert resumed["updates"] == 8
    assert steps.numbers["Training"] == (first.index, first.steps), "a step keeps its number when it is resumed"
    assert len({count for _, count in steps.numbers.values()}) == 1
    assert steps.starts == sorted(steps.starts), "the bar never goes back to an earlier step"
    rows = read_metrics(run_one / "training" / "metrics.jsonl")
    assert rows[: len(stopped) - 1] == stopped[: len(stopped) - 1], "its curve goes on where it was"
    assert [row["step"] for row in rows if "valid_loss" in row] == [0, 4, 8]
    assert "Writing source sentences" not in steps.seen
    assert json.loads((run_two / "summary.json").read_text(encoding="utf-8"))["method"] == "extreme"
    assert resumed["metrics"]["general_sentences"] > 10
    assert {"general_bleu", "general_bleu_vanilla", "general_bleu_p", "general_chrf"} <= set(resumed["metrics"])


def test_a_method_that_needs_held_out_pairs_alone_uses_those_that_are_there(
    asked: Callable[..., Any], tmp_path: Path, home: Path
) -> None:
    work, settings = tmp_path / "work", Settings(home=str(home), device="cpu")
    alone = Steps()
    customize(asked("alone", method="density_ratio"), tmp_path / "other", alone, settings, run=tmp_path / "other" / "1")
    parts = [json.loads(line)["part"] for line in (tmp_path / "other" / "pairs.jsonl").read_text("utf-8").splitlines()]
    assert "Writing source sentences" in alone.seen
    assert set(parts) == {"valid"}
    customize(asked("one", method="lhuc"), work, None, settings, run=work / "runs" / "1")
    written, steps = (work / "pairs.jsonl").stat().st_mtime_ns, Steps()
    customize(asked("two", method="density_ratio"), work, steps, settings, run=work / "runs" / "2")
    assert "Writing source sentences" not in steps.seen
    assert (work / "pairs.jsonl").stat().st_mtime_ns == written


def test_a_run_over_another_base_leaves_the_pairs_of_the_first(asked: Callable[..., Any], tmp_path: Path, home: Path) -> None:
    work, settings = tmp_path / "work", Settings(home=str(home), device="cpu")
    customize(asked("one", method="extreme"), work, None, settings, run=work / "runs" / "1")
    pairs = (work / "pairs.jsonl").read_bytes()
    other = make_base(tmp_path / "other-base", d=16)
    customize(asked("two", method="extreme", base=str(other)), work, None, settings, run=work / "runs" / "2")
    assert (work / "pairs.jsonl").read_bytes() == pairs
    assert len(list(work.glob("shared/pairs-written-*/pairs.jsonl"))) == 1
    steps = Steps()
    customize(asked("three", method="extreme"), work, steps, settings, run=work / "runs" / "3")
    assert "Filtering synthetic pairs" not in steps.seen


def test_jobs_of_a_project_have_folders_of_their_own_and_tidy_them(asked: Callable[..., Any], tmp_path: Path, home: Path) -> None:
    settings = Settings(home=str(home), device="cpu")
    store = Store(settings.store_url)
    request = asked("x")
    project = store.projects.create("Style", "en", "zh", request.base)

    def run(job: JobRow) -> dict[str, Any]:
        return KINDS[job.kind].run(JobContext(job, store, settings, job_workspace(settings, job), Progress()))

    common = {"samples": list(request.samples), "phrase_options": request.phrase_options, "budget": "quick"}
    run(enqueue(store, "prepare", common, project_id=project.id))
    look = next(job for job in store.jobs.list(project.id) if job.kind == "preview")
    assert look.state == "queued"
    assert run(look)["sentences"] > 20
    options = {"method_options": request.method_options, "training_options": request.training_options}
    jobs = [enqueue(store, "customize", {**common, **options, "name": name}, project_id=project.id) for name in "ab"]
    results = [run(job) for job in jobs]
    rows = store.plugins.list(project.id)
    assert {row.job_id for row in rows} == {job.id for job in jobs}
    assert len({result["plugin"] for result in results}) == 2
    workspace = job_workspace(settings, jobs[0])
    for job in jobs:
        folder = job_folder(workspace, job)
        assert (folder / "training" / "metrics.jsonl").exists()
        assert (folder / "summary.json").exists()
        assert not (folder / "training" / "checkpoint").exists()
    assert latest_file(workspace, "method/phrase_pairs.jsonl").parent.parent == job_folder(workspace, jobs[1])


def test_a_cancelled_run_that_read_the_samples_anew_leaves_their_new_number(
    asked: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.workflows.customize import pipeline

    settings = Settings(home=str(home), device="cpu")
    store = Store(settings.store_url)
    request = asked("x")
    project = store.projects.create("Style", "en", "zh", request.base)
    file = home / "short.txt"

    def run(kind: str) -> None:
        job = enqueue(store, kind, {"samples": [str(file)]}, project_id=project.id)
        KINDS[kind].run(JobContext(job, store, settings, job_workspace(settings, job), Progress()))

    def read_and_stop(request: Any, workspace: Path, progress: Progress, *_: Any, **__: Any) -> None:
        pipeline.read_alone(request, workspace, progress)
        raise Cancelled

    lines = Path(request.samples[0]).read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:20]), encoding="utf-8")
    run("prepare")
    assert [row.kept for row in store.corpora.list(project.id)] == [20]
    file.write_text("".join(lines[:30]), encoding="utf-8")
    monkeypatch.setattr(pipeline, "customize", read_and_stop)
    with pytest.raises(Cancelled):
        run("customize")
    assert [(row.kept, row.state) for row in store.corpora.list(project.id)] == [(30, "ready")]


def test_a_look_gives_way_to_samples_that_are_about_to_be_read_again(asked: Callable[..., Any], home: Path) -> None:
    settings = Settings(home=str(home), device="cpu")
    store = Store(settings.store_url)
    request = asked("x")
    project = store.projects.create("Style", "en", "zh", request.base)
    look = enqueue(store, "preview", {"samples": list(request.samples)}, project_id=project.id)
    enqueue(store, "prepare", {"samples": list(request.samples)}, project_id=project.id)
    context = JobContext(look, store, settings, job_workspace(settings, look), Progress())
    assert "skipped" in KINDS["preview"].run(context)
    assert not (context.workspace / FILE).exists()


def test_a_look_that_starts_by_itself_reads_no_files_again_after_one_was_removed(asked: Callable[..., Any], home: Path) -> None:
    settings = Settings(home=str(home), device="cpu")
    store = Store(settings.store_url)
    request = asked("x")
    project = store.projects.create("Style", "en", "zh", request.base)
    work = job_workspace(settings, enqueue(store, "preview", {}, project_id=project.id))
    (folder := work / "samples").mkdir()
    files = [Path(shutil.copy(request.samples[0], folder)), folder / "extra.txt"]
    files[1].write_text("一句别处没有的话，写在另一个文件里。\n", encoding="utf-8")
    read_samples(request.replace(samples=list(map(str, files))), work, StepCache(work, shared=True), Progress())
    read = (work / "corpus.jsonl").read_bytes()
    look = enqueue(store, "preview", {"samples": list(map(str, files))}, project_id=project.id)
    context = JobContext(look, store, settings, work, Progress())
    files[1].unlink()
    assert KINDS["preview"].run(context)["sentences"] > 20
    assert (work / "corpus.jsonl").read_bytes() == read
    files[0].unlink()
    assert "skipped" in KINDS["preview"].run(context)


def test_auto_tries_methods_and_stacks_keeps_the_best_and_goes_on_where_it_was_stopped(
    asked: Callable[..., Any], tmp_path: Path, home: Path
) -> None:
    work, settings = tmp_path / "work", Settings(home=str(home), device="cpu")
    run, request = work / "runs" / "1", asked("auto", method="auto")
    with pytest.raises(Cancelled):
        customize(request, work, StopAt(5), settings, run=run)
    steps = Steps()
    summary = customize(request, work, steps, settings, run=run)
    assert "Recording the datastore" not in steps.seen[: steps.seen.index("Training")], "kNN alone was done before"
    assert steps.starts == sorted(steps.starts), "the bar never goes back to an earlier step"
    tried = {(trial["method"], trial["knn"]): trial for trial in summary["tried"]}
    trained = {("memory_adapter", knn) for knn in (False, True)}
    assert set(tried) == {("base", False), ("knn", False), *trained}
    (chosen,) = [trial for trial in summary["tried"] if trial["chosen"]]
    assert summary["method"] == chosen["method"] != "base"
    assert bool(summary.get("knn")) is chosen["knn"]
    assert all(trial["general_bleu"] is not None and trial["bleu"] >= 0 for trial in summary["tried"])
    assert json.loads((run / "summary.json").read_text(encoding="utf-8"))["tried"] == summary["tried"]
    assert not (run / "tried").exists()
    assert (run / ("training" if chosen["method"] != "knn" else "method")).is_dir()
    card = read_bundle_card(Path(request.output))
    assert "memory_adapter + knn" in card["provenance"]["chosen_from"]


def test_the_method_that_auto_chose_goes_on_from_what_it_has_learned(
    asked: Callable[..., Any], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CANDIDATES, "quick", ("memory_adapter", "houlsby_adapter"))
    work, settings = tmp_path / "work", Settings(home=str(home), device="cpu")
    first, second = work / "runs" / "1", work / "runs" / "2"
    short = asked("auto", method="auto", budget="quick", training={"max_minutes": 1e-6})
    summary = customize(short, work, Progress(), settings, run=first)
    assert (summary["stopped_by"], summary["updates"]) == ("max_minutes", 1)
    shutil.copytree(first / "training", second / "training")
    StepCache(second).mark_done("training", StepCache(first).get("training"))
    (best,) = [trial for trial in summary["tried"] if trial["chosen"]]
    alone = short.replace(method=best["method"], knn=best["knn"], training_options=TRAINING)
    assert customize(alone, work, Progress(), settings, run=second)["updates"] == TRAINING["max_updates"]
    begun, full = (read_metrics(run / "training" / "metrics.jsonl") for run in (first, second))
    assert begun == full[: len(begun)]


def test_a_method_that_costs_general_text_too_much_is_tried_behind_a_domain_filter(
    asked: Callable[..., Any], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.plugins.domain_filter.FEWEST_HELD_OUT", 4)
    monkeypatch.setattr("engine.workflows.customize.selection.COST", -100.0)  # nothing is harmless
    monkeypatch.setitem(CANDIDATES, "quick", ("knn", "houlsby_adapter"))
    settings = Settings(home=str(home), device="cpu")
    summary = customize(asked("auto", method="auto"), tmp_path / "work", settings=settings)
    tried = [(trial["method"], trial["knn"], trial["domain_filter"]) for trial in summary["tried"]]
    knn, trained = [("knn", False, False), ("knn", False, True)], "houlsby_adapter"
    # What is trained without replay, since a filter leaves general text alone, is not tried without the filter.
    assert tried == [("base", False, False), *knn, (trained, False, True), (trained, True, True)]
    off = asked("off", method="auto", training={"domain_filter": "off"})
    assert not any(trial["domain_filter"] for trial in customize(off, tmp_path / "work", settings=settings)["tried"])


def test_a_method_that_costs_general_text_too_much_without_a_filter_is_tried_weakened(
    asked: Callable[..., Any], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CANDIDATES, "quick", ("knn", "fine_tuning"))
    monkeypatch.setattr("engine.workflows.customize.selection.loss", lambda trial, base: 0.0 if trial.shrink else 1.0)
    settings = Settings(home=str(home), device="cpu")
    request = asked("weak", method="auto", training={"domain_filter": "off"})
    summary = customize(request, tmp_path / "work", settings=settings)
    ways = [(trial["method"], trial["knn"], trial["shrink"], trial["chosen"]) for trial in summary["tried"]]
    weaker = ("fine_tuning", False, 0.4, True)
    full = [("fine_tuning", knn, None, False) for knn in (False, True)]
    assert ways == [("base", False, None, False), ("knn", False, None, False), full[0], weaker, full[1]]
    card = read_bundle_card(Path(request.output))
    assert card["config"]["shrink"] == 0.4
    assert "shrink = 0.4" in card["provenance"]["unlike_the_paper"]
    assert "fine_tuning (shrink 0.4)" in card["provenance"]["chosen_from"]
    base = BaseModel.load(request.base, "en", "zh", device="cpu")
    weak = Plugin.load(request.output, base, cache=tmp_path / "cache").module.state_dict()
    alone = asked("whole", method="fine_tuning", training={"domain_filter": "off"})
    customize(alone, tmp_path / "work", settings=settings)
    whole_way = Plugin.load(alone.output, base, cache=tmp_path / "cache").module.state_dict()
    original = base.model.state_dict()
    for key, tuned in whole_way.items():
        change = tuned - original[key]
        rounded = change.abs().amax(-1, keepdim=True) / 127 + 1e-6  # both are, by less than half of this
        assert ((weak[key] - original[key] - change * 0.4).abs() <= rounded).all(), key


@pytest.mark.parametrize("method", ["knn", "density_ratio"])  # the second one needs no sources itself
def test_a_plugin_keeps_its_domain_filter_and_learns_another_with_other_samples(
    method: str, asked: Callable[..., Any], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, sample: Path
) -> None:
    monkeypatch.setattr("engine.plugins.domain_filter.FEWEST_HELD_OUT", 4)
    settings = Settings(home=str(home), device="cpu")
    request = asked("on", method=method, training={"domain_filter": "on"})
    customize(request, tmp_path / "work", settings=settings)
    base = BaseModel.load(request.base, "en", "zh", device="cpu")
    plugin = Plugin.load(request.output, base, cache=tmp_path / "cache")
    assert plugin.domain_filter is not None
    assert "left to the base" in read_bundle_card(Path(request.output))["provenance"]["domain_filter"]
    others = tmp_path / "others.txt"
    others.write_text("\n".join(sample.read_text(encoding="utf-8").splitlines()[:44]), encoding="utf-8")
    swap_bundle(Path(request.output), tmp_path / "other.zip", [str(others)], base=request.base, settings=settings)
    other = Plugin.load(tmp_path / "other.zip", base, cache=tmp_path / "cache")
    assert other.domain_filter is not None
    assert len(other.domain_filter.features) != len(plugin.domain_filter.features)


def test_auto_keeps_the_best_that_leaves_general_text_alone() -> None:
    def trial(method: str, bleu: float, general: float, knn: bool = False) -> Trial:
        return Trial(method, knn, bleu, bleu, general, 1.0)

    base, knn = trial("base", 10, 40), trial("knn", 14, 39.9)
    forgetful, better = trial("houlsby_adapter", 20, 30), trial("houlsby_adapter", 15, 39.8, True)
    assert chosen([base, knn, forgetful, better]) is better
    assert chosen([base, knn, forgetful, trial("houlsby_adapter", 14.2, 40)]) is knn, "chance does not choose"
    adapter, stacked = trial("memory_adapter", 16, 40), trial("memory_adapter", 15, 40, True)
    assert chosen([base, knn, adapter, stacked]) is adapter
    likelier = dataclasses.replace(stacked, gain=0.05)
    assert chosen([base, knn, adapter, likelier]) is likelier, "likelihood tells more than the BLEU of few sentences"
    assert chosen([base, knn, adapter, dataclasses.replace(stacked, gain=0.01)]) is adapter
    assert chosen([base, trial("knn", 16, 40), trial("memory_adapter", 14, 40), likelier]).method == "knn"
    assert chosen([base, trial("knn", 9, 39), forgetful]).method == "knn", "where all cost too much, the one that costs least"
