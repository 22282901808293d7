"""Watching a training by translations: what is told, and that it changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.evaluation.general_text import general_pairs
from engine.memory import PhrasePair, record
from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.training import TrainingOptions
from engine.training.loop import Trainer
from engine.training.metrics_log import Meter, read_metrics
from engine.training.probe import TranslationProbe
from tests.bases import ROOT, SENTENCES, tiny_base, tiny_pair

OPTIONS = TrainingOptions(max_updates=6, tokens_per_batch=64, learning_rate=3e-3, warmup=2, validate_every=3, patience=0)


@pytest.fixture(scope="module")
def base() -> Any:
    return tiny_base()


@pytest.fixture(scope="module")
def artefacts(base: Any, tmp_path_factory: pytest.TempPathFactory) -> Artefacts:
    pairs = [PhrasePair(i % 3, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    return Artefacts(memory=record(base, pairs, tmp_path_factory.mktemp("m") / "memory.safetensors"))


def run(base: Any, artefacts: Artefacts, folder: Path, watch: TranslationProbe | None) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    method = get_method("memory_adapter")
    module = method.build(base, artefacts, method.config_class(memory_dropout=0.4, shrink=0.75))
    pairs = Pairs.encode(base, SENTENCES)
    Trainer(base, method, module, pairs, Pairs.encode(base, SENTENCES[:3]), OPTIONS, folder, precision="float32").run(watch=watch)
    return {key: value.clone() for key, value in module.state_dict().items()}


def test_every_validation_tells_bleu_on_both_kinds_and_a_sentence(base: Any, artefacts: Artefacts, tmp_path: Path) -> None:
    run(base, artefacts, tmp_path, TranslationProbe(base, SENTENCES[:3], SENTENCES[3:6]))
    rows = [row for row in read_metrics(tmp_path / "metrics.jsonl") if "valid_loss" in row]
    assert [row["step"] for row in rows] == [0, 3, 6]
    for row in rows:
        assert 0 <= row["style_bleu"] <= 100
        assert 0 <= row["general_bleu"] <= 100
        assert (row["sample_source"], row["sample_reference"]) in SENTENCES[:3]
    # Before the first update it is what the base says.
    watched = TranslationProbe(base, SENTENCES[:3], SENTENCES[3:6])
    method = get_method("memory_adapter")
    assert rows[0]["sample_translation"] == watched.row(method, None, Progress())["sample_translation"]


def test_a_watched_training_ends_with_the_same_weights(base: Any, artefacts: Artefacts, tmp_path: Path) -> None:
    alone = run(base, artefacts, tmp_path / "alone", None)
    watched = run(base, artefacts, tmp_path / "watched", TranslationProbe(base, SENTENCES[:3], SENTENCES[3:6]))
    assert alone.keys() == watched.keys()
    assert all(torch.equal(alone[key], watched[key]) for key in alone)
    assert not any(module._forward_hooks for module in base.model.modules())


def test_general_pairs_are_the_bundled_ones_always_the_same_and_none_of_the_users(tmp_path: Path) -> None:
    backward, settings = tiny_pair().backward, Settings(home=str(tmp_path))
    result = general_pairs(backward, settings, 6)
    bundled = (ROOT / "assets/samples/general-zh/general-zh.txt").read_text(encoding="utf-8").splitlines()
    assert len(result) == 6
    assert {target for _, target in result} <= set(bundled)
    assert result == general_pairs(backward, settings, 6)
    mine = [result[0][1]]
    assert [target for _, target in general_pairs(backward, settings, 6, exclude=mine)[:5]] == [target for _, target in result[1:]]
    assert general_pairs(backward, settings.replace(assets=str(tmp_path)), 6) == []


def test_a_rest_does_not_count_as_time_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("engine.training.metrics_log.time.monotonic", lambda: now[0])
    meter = Meter()
    now[0] = 2.0
    meter.add(100, 1.0, {})
    now[0] = 12.0  # ten seconds of validation
    meter.skip_elapsed()
    now[0] = 14.0
    meter.add(100, 1.0, {})
    assert meter.row()["tokens_per_second"] == 50.0
