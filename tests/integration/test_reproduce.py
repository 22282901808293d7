"""`tailormt reproduce`: the papers' experiments over small texts of our own; every experiment's settings are real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.benching.experiments import EXPERIMENTS, Experiment, Variant, layer_variants
from engine.benching.reproduce import SCALES, Scale, comparison_text, reproduce
from engine.benching.tasks import TASKS
from engine.errors import OptionError
from engine.methods import get_method
from engine.phrases import PhraseOptions
from engine.settings import load_settings
from tests.bases import SAMPLES, SENTENCES
from tests.conftest import SHORT

SMALL = Scale(sentences=40, lines=4, budget="quick")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The layout of the public data, with texts of our own."""
    folder = tmp_path / "data"
    (folder / "mtsc").mkdir(parents=True)
    (folder / "heldout").mkdir()
    style = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:80]
    (folder / "mtsc/train.luxun.random.zh").write_text("\n".join(style[:60]) + "\n", encoding="utf-8")
    (folder / "mtsc/dev.luxun.random.zh").write_text("\n".join(style[60:]) + "\n", encoding="utf-8")
    for place, language in enumerate(("en", "zh")):
        text = "".join(f"{pair[place]}\n" for pair in SENTENCES)
        (folder / f"mtsc/test.luxun.{language}").write_text(text, encoding="utf-8")
    pairs = "".join(f"{a}\t{b}\n" for a, b in SENTENCES)
    (folder / "heldout/ntrex.en-zh.tsv").write_text(pairs, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_experiment_is_made_of_settings_that_exist(name: str) -> None:
    experiment = EXPERIMENTS[name]
    variants = experiment.variants or layer_variants(4)
    assert variants
    assert len({one.label for one in variants}) == len(variants)
    assert set(experiment.tasks) <= set(TASKS)
    for variant in variants:
        assert set(variant.paper) <= set(experiment.tasks)
        for figures in variant.paper.values():
            assert set(figures) <= set(experiment.measures)
        if variant.system == "vanilla":
            continue
        method = get_method(variant.system.removesuffix("+knn"))
        given = dict(zip(variant.flags[::2], variant.flags[1::2], strict=True))
        assert set(given) <= {"--method-option", "--phrase-option"}
        for flag, pair in zip(variant.flags[::2], variant.flags[1::2], strict=True):
            known = method.config_class if flag == "--method-option" else PhraseOptions
            option, _, value = pair.partition("=")
            assert known.from_mapping({option: value})


def test_layers_of_table_six_go_from_below_and_then_from_above() -> None:
    six = layer_variants(6)
    assert [one.label for one in six][:3] == ["L1", "L1 to L2", "L1 to L3"]
    assert [one.label for one in six][5:7] == ["L1 to L6", "L2 to L6"]
    assert [one.paper["luxun"]["bleu"] for one in six] == [
        15.1, 15.5, 15.6, 16.2, 16.9, 18.6, 17.5, 17.2, 17.2, 17.2, 16.4,
    ]  # fmt: skip
    assert [bool(one.paper) for one in layer_variants(4)] == [False, False, False, True, False, False, False]


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
    asked: dict[str, Any] = dict(base=str(tiny), scale=SMALL)
    rows = reproduce("small", data, tmp_path / "out", load_settings(), **asked)
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
    assert len((tmp_path / "out/luxun/dev.en.txt").read_text(encoding="utf-8").splitlines()) == 4

    bundle = Path(rows[1]["bundle"])
    before = bundle.stat().st_mtime_ns
    again = reproduce("timed", data, tmp_path / "out", load_settings(), **asked)
    assert bundle.stat().st_mtime_ns == before, "the plugin is that of the other experiment"
    assert again[1]["valid_loss"] == rows[1]["valid_loss"], "known of a plugin that was there already"
    assert all(row["found"]["seconds@2"] > 0 for row in again)
    assert json.loads(json.dumps(again)) == again


def test_what_is_not_known_is_a_sentence(data: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no experiment table9\. Known: table1"):
        reproduce("table9", data, tmp_path, load_settings())
    with pytest.raises(OptionError, match="table4 is not about shake"):
        reproduce("table4", data, tmp_path, load_settings(), tasks=["shake"], scale=SCALES["quick"])
