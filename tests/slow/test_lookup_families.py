"""The methods that look sentences up, over the hub's families besides Marian, in single and in half precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.base import BaseModel, LanguagePair
from engine.base.decoding_options import Decoding
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.methods import get_method
from engine.plugins import Plugin
from tests.bases import SENTENCES
from tests.hub_models import make_hub_model
from tests.retrieval_methods import batch_of, trained_module

FAST = Decoding(beam=2, max_length_ratio=0.5)
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("ngram_memory", {"neighbours": 2, "neighbours_translating": 2, "retrieval": "idf_ngram"}),
    ("ngram_memory", {"neighbours": 2, "neighbours_translating": 2, "retrieval": "dense_ngram"}),
    ("translation_memory", {"warm_updates": 2, "memory_layers": 1, "retriever_layers": 1, "neighbours": 2}),
]


@pytest.fixture(scope="module", params=["m2m100", "nllb", "mbart50"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hub_model(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def pair(folder: Path) -> LanguagePair:
    return LanguagePair.load(folder, "en", "zh", device="cpu")


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_it_starts_as_the_base_learns_and_changes_it(
    name: str, options: dict[str, Any], pair: LanguagePair, tmp_path: Path
) -> None:
    base, method = pair.forward, get_method(name)
    sources = [source for source, _ in SENTENCES]
    before, scores = translate(base, sources, decoding=FAST), score(base, SENTENCES)
    plugin = Plugin(method, trained_module(name, base, tmp_path / "new", moved=False, **options), {})
    assert translate(base, sources, plugin, decoding=FAST) == before
    assert score(base, SENTENCES, plugin) == scores

    module = trained_module(name, base, tmp_path / "moved", **options)
    assert score(base, SENTENCES, Plugin(method, module, {})) != scores
    module.train()
    batch = batch_of(base)
    with method.attach(base, module):
        method.set_source(base, module, batch.sources, batch)
        method.loss(base, module, batch).total.backward()
    assert all(p.grad is not None for p in module.parameters() if p.requires_grad)
    method.prepare_for_inference(module)
    assert score(base, SENTENCES) == scores


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_over_a_base_in_half_precision(name: str, options: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    base, method = BaseModel.load(folder, "en", "zh", device="cpu", precision="bfloat16"), get_method(name)
    module = trained_module(name, base, tmp_path, **options)
    module.train()
    batch = batch_of(base)
    with method.attach(base, module):
        method.set_source(base, module, batch.sources, batch)
        loss = method.loss(base, module, batch).total
        loss.backward()
    assert torch.isfinite(loss)
    method.prepare_for_inference(module)
    module.to(base.dtype)
    translations = translate(base, [source for source, _ in SENTENCES], Plugin(method, module, {}), decoding=FAST)
    assert len(translations) == len(SENTENCES)
