"""`tailormt reproduce`: the papers' experiments over small texts of our own; every experiment's settings are real ones."""

from __future__ import annotations

import gzip
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.errors import OptionError, TailorError
from engine.methods import get_method
from engine.phrases import PhraseOptions
from engine.workflows.benchmark.experiments import EXPERIMENTS, Experiment, Variant, layer_variants
from engine.workflows.benchmark.reproduce import SCALES, comparison_text, reproduce
from engine.workflows.benchmark.results import put_part
from engine.workflows.benchmark.row import BenchmarkRow, Plan, Scale
from engine.workflows.benchmark.tasks import TASKS
from tests.bases import SAMPLES
from tests.bundles import weights
from tests.conftest import SHORT

SMALL = Scale(sentences=40, lines=4, budget="quick")


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_experiment_is_made_of_settings_that_exist(name: str) -> None:
    experiment = EXPERIMENTS[name]
    variants = experiment.variants or layer_variants(4)
    assert variants
    assert len({variant.label for variant in variants}) == len(variants)
    assert set(experiment.tasks) <= set(TASKS)
    for variant in variants:
        assert set(variant.paper) <= set(experiment.tasks)
        for scores in variant.paper.values():
            assert set(scores) <= set(experiment.measures)
        if variant.system == "vanilla":
            continue
        method = get_method(variant.system.removesuffix("+knn"))
        flags = dict(zip(variant.flags[::2], variant.flags[1::2], strict=True))
        assert set(flags) <= {"--method-option", "--phrase-option"}
        for flag, pair in zip(variant.flags[::2], variant.flags[1::2], strict=True):
            config_class = method.config_class if flag == "--method-option" else PhraseOptions
            option, _, value = pair.partition("=")
            assert config_class.from_mapping({option: value})


def test_layers_of_table_six_go_from_below_and_then_from_above() -> None:
    six = layer_variants(6)
    assert [variant.label for variant in six][:3] == ["L1", "L1 to L2", "L1 to L3"]
    assert [variant.label for variant in six][5:7] == ["L1 to L6", "L2 to L6"]
    assert [variant.paper["luxun"]["bleu"] for variant in six] == [15.1, 15.5, 15.6, 16.2, 16.9, 18.6, 17.5, 17.2, 17.2, 17.2, 16.4]
    assert [bool(variant.paper) for variant in layer_variants(4)] == [False, False, False, True, False, False, False]


def test_a_timed_experiment_without_its_data_says_so_in_each_row(
    tiny: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Experiment("Timed", ("luxun",), (Variant("Vanilla", "vanilla"),), ("bleu", "seconds@2"))
    monkeypatch.setitem(EXPERIMENTS, "timed", timed)
    (row,) = reproduce("timed", Plan(tmp_path / "nothing", tmp_path / "out", SMALL, str(tiny)), load_settings())
    assert row["error"]


@pytest.mark.usefixtures("benches_in_this_process")
def test_rows_are_made_once_shown_beside_the_papers_and_shared(
    data: Path, tiny: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Variant("Ours", "memory_adapter", SHORT, {"luxun": {"bleu": 18.6}})
    lost = Variant("Lost", "lhuc", ("--training-option", "max_updates=none of them"))
    small = Experiment(
        "A small one", ("luxun",), (Variant("Vanilla", "vanilla"), ours, lost), ("bleu", "valid_loss"), text="dev",
        differs="It is small.",
    )  # fmt: skip
    timed = Experiment("Timed", ("luxun",), (Variant("Vanilla", "vanilla"), ours), ("bleu", "seconds@2"))
    monkeypatch.setitem(EXPERIMENTS, "small", small)
    monkeypatch.setitem(EXPERIMENTS, "timed", timed)
    plan = Plan(data, tmp_path / "out", SMALL, str(tiny))
    rows = reproduce("small", plan, load_settings())
    assert [row["label"] for row in rows] == ["Vanilla", "Ours", "Lost"]
    assert "error" not in rows[0], rows[0]
    assert "error" not in rows[1], rows[1]
    assert "max_updates" in rows[2]["error"]
    assert rows[1]["paper"] == {"bleu": 18.6}
    assert rows[1]["found"]["valid_loss"] == min(loss for _, loss in rows[1]["valid_loss"])
    assert 0 <= rows[1]["p"] <= 1
    text = comparison_text("small", rows, str(tiny), SMALL)
    assert "(18.6)" in text
    assert rows[2]["error"] in text
    assert "What differs: It is small." in text
    assert "alpha = 0, beta = 0, phrases_per_layer = 40, label_smoothing = 0.1" in text
    assert len((tmp_path / "out/luxun/dev.en.txt").read_text(encoding="utf-8").splitlines()) == 4

    bundle = Path(rows[1]["bundle"])
    before = bundle.stat().st_mtime_ns
    again = reproduce("timed", plan, load_settings())
    assert bundle.stat().st_mtime_ns == before, "the plugin is that of the other experiment"
    assert again[1]["valid_loss"] == rows[1]["valid_loss"], "known of a plugin that was there already"
    assert all(row["found"]["seconds@2"] > 0 for row in again)
    assert json.loads(json.dumps(again)) == again


def test_the_clock_ends_no_training_but_where_a_row_asks_for_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[str] = []

    def refuse(progress: Progress, *flags: str) -> None:
        received.extend(flags)
        raise TailorError("that is all")

    monkeypatch.setattr("engine.workflows.benchmark.row.tailormt", refuse)
    options = ("--training-option", "max_minutes=2")
    variant = Variant("Ours", "lhuc", options)
    small = Experiment("A small one", ("luxun",), (variant,))
    row = BenchmarkRow("luxun", variant, small, Plan(data, tmp_path / "out", SMALL), Progress()).load_or_make()
    assert row["error"] == "that is all"
    minutes = [flag for flag in received if flag.startswith("max_minutes=")]
    assert minutes == ["max_minutes=none", "max_minutes=2"], "a busy machine would give other figures; the last counts"


@pytest.mark.usefixtures("benches_in_this_process")
def test_a_plugin_of_other_domains_gets_the_tasks_own_pairs_and_its_proportions_are_measured(
    data: Path, tiny: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = TASKS["it_python"]
    (data / "domains/en-zh").mkdir(parents=True)
    sides = [(SAMPLES / name / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in ("general-en", "literary-zh")]
    pairs = [f"{a}\t{b}\n" for a, b in zip(*sides, strict=False)]
    (data / python.samples).write_bytes(gzip.compress("".join(pairs[:40]).encode()))
    for file, rows in (("domains/en-zh/other.tsv", pairs[40:80]), (python.test, pairs[80:90]), (python.dev, pairs[90:100])):
        (data / file).write_text("".join(rows), encoding="utf-8")
    monkeypatch.setitem(TASKS, "other", replace(python, title="Other", samples="domains/en-zh/other.tsv"))
    brief = tuple(
        part for flag, pair in zip(SHORT[::2], SHORT[1::2], strict=True) if flag == "--training-option" for part in (flag, pair)
    )
    swapped = Variant("Swapped", "ngram_memory", brief, learn=("other",), swap=True)
    unswapped = Variant("Own", "ngram_memory", brief)
    mixed = Variant("Mixed", "domain_mixing", brief, learn=("it_python", "other"))
    tried = Experiment(
        "Pairs", ("it_python",), (Variant("Base", "vanilla"), swapped, unswapped, mixed), ("bleu", "own@encoder", "own@decoder"),
        pairs=True,
    )  # fmt: skip
    monkeypatch.setitem(EXPERIMENTS, "tried", tried)
    plan = Plan(data, tmp_path / "out", SMALL, str(tiny))
    rows = reproduce("tried", plan, load_settings())
    assert [row.get("error") for row in rows] == [None] * 4
    bundles = [Path(row["bundle"]) for row in rows[1:]]
    assert [file.parent.name for file in bundles] == ["it_python", "it_python", "it_python+other"]
    texts = []
    for file in bundles[:2]:
        with zipfile.ZipFile(file) as bundle:
            texts.append(b"".join(bundle.read(name) for name in bundle.namelist() if name.endswith(".jsonl")))
    assert all(sides[1][3].encode() in text for text in texts)
    assert not any(sides[1][43].encode() in text for text in texts), "the pairs are the task's own"
    assert weights(bundles[0]) != weights(bundles[1]), "and the weights those learnt from the others"
    assert 0 < rows[3]["found"]["own@encoder"] < 1
    assert 0 < rows[3]["found"]["own@decoder"] < 1
    assert "own@encoder" not in rows[1]["found"]
    assert "| Mixed |" in comparison_text("tried", rows, str(tiny), SMALL)

    again = reproduce("tried", plan, load_settings())
    assert [row["found"] for row in again] == [row["found"] for row in rows]


def test_pairs_are_asked_for_where_there_are_none(data: Path, tiny: Path, home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    experiment = Experiment("Pairs", ("luxun",), (Variant("Memory", "ngram_memory"),), pairs=True)
    monkeypatch.setitem(EXPERIMENTS, "asked", experiment)
    (row,) = reproduce("asked", Plan(data, tmp_path / "out", SMALL, str(tiny)), load_settings())
    assert row["error"] == "The samples of Lu Xun have no sources."


def test_the_table_goes_into_a_file_beside_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "RESULTS.md"
    put_part(file, "table4", "first")
    put_part(file, "table5", "another")
    put_part(file, "table4", "second")
    text = file.read_text(encoding="utf-8")
    assert "first" not in text
    assert text.index("second") < text.index("another")
    assert text.count("<!-- table4: begin -->") == 1


def test_a_difference_that_chance_does_not_explain_is_marked() -> None:
    row = {"task": "luxun", "label": "Ours", "paper": {"bleu": 18.6}, "found": {"bleu": 8.0}, "p": 0.01}
    assert "| Ours |  | 8.0* (18.6) |" in comparison_text("table5", [row], "", SMALL)
    assert "| Ours |  | 8.0 (18.6) |" in comparison_text("table5", [{**row, "p": 0.2}], "", SMALL)
    assert "| Ours |  | 8.0 (18.6) |" in comparison_text("table5", [{**row, "p": None}], "", SMALL)


def test_what_is_not_known_is_a_sentence(data: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no experiment table9\. Known: table1"):
        reproduce("table9", Plan(data, tmp_path, SMALL), load_settings())
    with pytest.raises(OptionError, match="table4 is not about shake"):
        reproduce("table4", Plan(data, tmp_path, SCALES["quick"]), load_settings(), tasks=["shake"])
