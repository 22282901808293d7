"""What a run is said to take: sizes that are right, times that follow what this machine measured, and words that say so."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as trials
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import ModelError
from engine.methods import Artefacts, get_method, method_names
from engine.methods.cost import Shape, Workload
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.estimate import CorpusStats, Estimate, estimate, estimate_each
from engine.workflows.throughput import NumberedProgress, ThroughputLog, TimedProgress, machine, shape_key
from tests.bases import EN_ZH, tiny_base

COUNTS = CorpusStats(sentences=487, characters=13_600, phrases=6_000, language="zh")
SHAPE = shape_key(json.loads((EN_ZH / "config.json").read_text(encoding="utf-8")))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path), device="cpu", threads=2)


def estimated(settings: Settings, *, counts: CorpusStats = COUNTS, done: Collection[str] = (), **more: Any) -> Estimate:
    request = {"base": str(EN_ZH), "method": "memory_adapter", "budget": "quick", **more}
    return estimate(CustomizeRequest.from_mapping(request), counts, settings, done)


@pytest.mark.parametrize("name", [name for name in method_names() if get_method(name).capabilities.trains])
def test_weights_are_counted_without_a_model(name: str, tmp_path: Path) -> None:
    base, method = tiny_base(), get_method(name)
    config = method.config_class()
    shape = Shape.of(base.model.config.to_dict(), sum(p.numel() for p in base.model.parameters()))
    if name == "domain_mixing":
        pytest.skip("its module needs a fitted start; the bench compares it")
    module = method.build(base, Artefacts(), config)
    real = sum(p.numel() for p in module.parameters() if p.requires_grad)
    work = Workload(shape, 100, 20.0, 2000.0, 2000.0, 1600.0, 500.0, 1)
    assert method.cost(config, work).weights == pytest.approx(real, rel=0.15)


@pytest.mark.parametrize("which", ["decoder", "cross_attention"])
def test_a_part_of_the_base_is_counted_as_what_it_holds(which: str) -> None:
    base, method = tiny_base(), get_method("fine_tuning")
    shape = Shape.of(base.model.config.to_dict(), sum(p.numel() for p in base.model.parameters()))
    config = method.config_class.from_mapping({"which": which})
    real = sum(p.numel() for p in method.build(base, Artefacts(), config).parameters())
    work = Workload(shape, 100, 20.0, 2000.0, 2000.0, 1600.0, 500.0, 1)
    assert method.cost(config, work).weights == pytest.approx(real, rel=0.15)


@pytest.mark.parametrize(("method", "setting", "less"), [("fine_tuning", "which", 4), ("memory_adapter", "fine_tune", 2)])
def test_sentences_without_sources_are_said_to_tune_the_decoder(settings: Settings, method: str, setting: str, less: float) -> None:
    pairs = CorpusStats(sentences=487, characters=13_600, phrases=6_000, language="zh", sourced=1.0)
    alone = estimated(settings, method=method)
    assert alone == estimated(settings, method=method, method_options={setting: "decoder"})
    assert alone.bundle < estimated(settings, method=method, counts=pairs).bundle / less


@pytest.mark.parametrize("name", method_names())
@pytest.mark.parametrize("budget", ["quick", "balanced", "best"])
def test_every_method_has_an_estimate_before_anything_was_measured(settings: Settings, name: str, budget: str) -> None:
    result = estimated(settings, method=name, budget=budget)
    assert 0 < result.low < result.seconds < result.high
    assert result.memory > 300 * 2**20
    assert result.device == "CPU, 2 threads"
    assert result.sure == "guessed" or "nothing was measured" not in result.sentence
    assert sum(result.parts.values()) == pytest.approx(result.seconds, abs=1)


def test_the_estimates_of_a_page_are_those_of_its_requests(settings: Settings) -> None:
    ThroughputLog(settings, SHAPE).note_all({"weighing": 5000.0, "training memory_adapter": 900.0})
    requests = {name: CustomizeRequest(method=name, base=str(EN_ZH), budget="quick") for name in ("auto", *method_names())}
    impossible = requests["auto"].replace(method="memory_adapter", method_options={"gate": 3})
    estimates = estimate_each(requests | {"impossible": impossible}, COUNTS, settings, {"phrases"})
    assert estimates == {name: estimate(request, COUNTS, settings, {"phrases"}) for name, request in requests.items()}
    with pytest.raises(ModelError):
        estimate_each({"one": requests["auto"].replace(base=settings.home)}, COUNTS, settings)


def test_more_work_takes_longer(settings: Settings) -> None:
    many = CorpusStats(sentences=4870, characters=136_000, phrases=60_000, language="zh")
    assert estimated(settings, counts=many).seconds > estimated(settings).seconds
    assert estimated(settings, budget="best").seconds > 10 * estimated(settings).seconds
    assert estimated(settings, knn=True).seconds > estimated(settings).seconds
    assert estimated(settings, knn=True).bundle > estimated(settings).bundle
    done = frozenset({"phrases", "sources", "pairs"})
    assert estimated(settings, done=done).seconds < estimated(settings).seconds
    big = estimated(settings, training_options={"tokens_per_batch": 8192})
    assert big.memory > estimated(settings).memory


KINDS = (
    "start", "phrases", "sources", "filtering", "datastore", "translations",
    *(f"{kind} {name}" for kind in ("method", "training", "evaluation") for name in ("memory_adapter", "houlsby_adapter", "knn")),
)  # fmt: skip
SHARES = [f"share {name} {budget}" for name in ("memory_adapter", "houlsby_adapter") for budget in ("quick", "balanced", "best")]


@trials(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    paces=st.dictionaries(st.sampled_from(KINDS), st.floats(1.0, 1e6)),
    shares=st.dictionaries(st.sampled_from(SHARES), st.floats(0.01, 1.0)),
    sentences=st.integers(20, 50_000),
    sourced=st.floats(0, 1),
    method=st.sampled_from(["auto", "memory_adapter", "houlsby_adapter", "knn"]),
    minutes=st.none() | st.floats(0.1, 600),
)
@example(paces={"evaluation houlsby_adapter": 1.0}, shares={}, sentences=1615, sourced=0.0, method="auto", minutes=1.0)
def test_a_larger_budget_is_never_said_to_take_less(
    settings: Settings, paces: dict[str, float], shares: dict[str, float], sentences: int, sourced: float, method: str,
    minutes: float | None,
) -> None:  # fmt: skip
    log = ThroughputLog(settings, SHAPE)
    log.file.unlink(missing_ok=True)
    log.note_all({**paces, **shares})
    counts = CorpusStats(sentences=sentences, characters=28 * sentences, sourced=sourced, language="zh")
    options = {} if minutes is None else {"training_options": {"max_minutes": minutes}}
    quick, balanced, best = (
        estimated(settings, counts=counts, method=method, budget=budget, **options) for budget in ("quick", "balanced", "best")
    )
    for end in ("low", "seconds", "high"):
        assert getattr(quick, end) <= getattr(balanced, end) <= getattr(best, end)
    for result in (quick, balanced, best):
        assert result.low <= result.seconds <= result.high


def test_minutes_at_most_bound_the_training(settings: Settings) -> None:
    result = estimated(settings, training_options={"max_updates": 20_000, "max_epochs": None, "max_minutes": 3})
    assert result.parts["training"] == 180
    assert "Training stops after 3 min at the latest." in result.notes


def test_what_was_measured_here_counts(settings: Settings) -> None:
    paces = ThroughputLog(settings, SHAPE)
    guessed = estimated(settings)
    assert guessed.sure == "guessed"
    paces.note("weighing", 1000.0)
    scaled = estimated(settings)
    assert scaled.sure == "scaled"
    assert scaled.high / scaled.low < guessed.high / guessed.low
    paces.note_all(
        {"start": 5.0, "phrases": 3000.0, "sources": 2000.0, "method memory_adapter": 200.0, "training memory_adapter": 2000.0,
         "evaluation memory_adapter": 300.0, "peak memory_adapter 1024": 1.5e9, "share memory_adapter quick": 0.5}
    )  # fmt: skip
    measured = estimated(settings, training_options={"max_updates": 200, "max_epochs": None})
    assert measured.sure == "measured"
    assert measured.memory == 1_500_000_000
    assert measured.parts["training"] == pytest.approx(0.5 * 200 * 1024 / 2000, rel=0.01)
    assert "earlier runs" in measured.sentence
    other = Settings(home=settings.home, device="cuda")
    assert estimated(other).sure == "guessed", "another device has speeds of its own"


def test_a_new_figure_counts_half(settings: Settings) -> None:
    paces = ThroughputLog(settings, SHAPE)
    paces.note("weighing", 100.0)
    paces.note("weighing", 300.0)
    paces.note("weighing", 0.0)
    result = paces.get("weighing")
    assert result is not None
    assert (result.value, result.times) == (200.0, 2)
    paces.file.write_text("{", encoding="utf-8")
    assert paces.get("weighing") is None
    paces.note("weighing", 100.0)
    assert paces.get("weighing") is not None


def test_a_machine_is_named_by_host_device_and_threads(settings: Settings) -> None:
    assert machine(settings).endswith(", cpu, 2 threads")
    assert machine(Settings(home=settings.home, device="cuda:1")).endswith(", cuda")


def test_a_clock_knows_each_step_and_passes_everything_on() -> None:
    seen: list[Any] = []

    class Listening(Progress):
        def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
            seen.append((self.step, done))

        def metrics(self, row: dict[str, Any]) -> None:
            seen.append(row)

    clock = TimedProgress(Listening())
    clock.begin("One", 0, 2)
    clock.advance(1, 2)
    clock.begin("Two", 1, 2)
    clock.metrics({"loss": 1})
    clock.stop()
    assert set(clock.seconds) == {"One", "Two"}
    assert seen == [("One", 0), ("One", 1), ("Two", 0), {"loss": 1}]


def test_a_step_has_its_number_whatever_was_skipped_before_it() -> None:
    def attempt(*steps: str) -> list[tuple[int, int]]:
        inner, seen = Progress(), []
        progress = NumberedProgress(inner, ("Reading", "Parsing", "Training", "Scoring"))
        for step in steps:
            progress.begin(step, progress.index, progress.steps)
            seen.append((inner.index, inner.steps))
        return seen

    assert attempt("Reading", "Parsing", "Aligning", "Training") == [(0, 4), (1, 4), (1, 4), (2, 4)]
    assert attempt("Training", "Scoring") == [(2, 4), (3, 4)], "what an earlier attempt did counts as done"
    assert attempt("Training", "Parsing", "Scoring") == [(2, 4), (2, 4), (3, 4)], "it never goes back"


def test_the_command_reads_the_samples_and_does_nothing_else(
    tailormt: Any, sample: Path, tiny: Path, home: Path, tmp_path: Path
) -> None:
    line = ["estimate", "--base", tiny, "--source", "en", "--target", "zh", "--samples", sample, "--budget", "quick"]
    ran = tailormt(*line, "--json")
    assert ran.code == 0, ran.err
    data = json.loads(ran.out)
    assert data["low"] < data["seconds"] < data["high"]
    assert set(data["parts"]) >= {"start", "sources", "method", "training", "evaluation"}
    by_phrase = ("--method", "memory_adapter", "--method-option", "retrieval=global")
    by_phrase = (*by_phrase, "--training-option", "keep_pairs=0.6")
    filtered = json.loads(tailormt(*line, *by_phrase, "--json").out)
    assert set(filtered["parts"]) >= {"start", "phrases", "sources", "filtering", "training", "evaluation"}
    assert "GiB" in tailormt(*line).out
    assert not (home / "work").exists()
    assert "no method" in tailormt(*line, "--method", "memory_adaptor").sentence
