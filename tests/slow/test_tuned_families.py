"""Tuned weights, low-rank changes, language models and rewriting over the hub's other families, small and random."""

from __future__ import annotations

import pytest
import torch

from engine.base import LanguagePair
from engine.base.decoding_options import Decoding
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.methods import Artefacts, get_method
from engine.methods.rewrite.texts import check_rewriter, rewriter_of
from engine.plugins import Plugin
from tests.bases import SENTENCES
from tests.hub_models import make_hub_model

SOURCES = [source for source, _ in SENTENCES[:3]]
FAST = Decoding(beam=2, max_length_ratio=0.5)


@pytest.fixture(scope="module", params=["m2m100", "nllb", "mbart50"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguagePair:
    folder = make_hub_model(request.param, tmp_path_factory.mktemp(request.param))
    return LanguagePair.load(folder, "en", "zh", device="cpu")


def plugin_for(pair: LanguagePair, name: str, moved: float, **options: object) -> Plugin:
    method = get_method(name)
    torch.manual_seed(2)
    module = method.build(pair.forward, Artefacts(), method.config_class(**options))
    for parameter in module.parameters():
        parameter.data += moved * torch.randn_like(parameter)
    method.prepare_for_inference(module)
    return Plugin(method, module, {})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fine_tuning", {}),
        ("fine_tuning", {"which": "decoder"}),
        ("fine_tuning", {"kind": "lora", "target_modules": ("q_proj", "fc1")}),
        ("dexperts", {"weight": 3.0}),
    ],
)
def test_it_starts_as_the_base_changes_it_and_leaves_it_alone(pair: LanguagePair, name: str, options: dict[str, object]) -> None:
    base = pair.forward
    translations, scores = translate(base, SOURCES, decoding=FAST), score(base, SENTENCES)
    start = plugin_for(pair, name, 0.0, **options)
    assert translate(base, SOURCES, start, decoding=FAST) == translations
    assert score(base, SENTENCES, start) == scores
    moved = plugin_for(pair, name, 0.2, **options)
    assert score(base, SENTENCES, moved) != scores
    assert len(translate(base, SOURCES, moved, decoding=FAST)) == len(SOURCES)
    assert translate(base, SOURCES, decoding=FAST) == translations
    assert score(base, SENTENCES) == scores
    assert all(torch.isfinite(torch.tensor(total)) for total, _ in score(base, SENTENCES, moved))


def test_search_and_scoring_see_the_same_mixture(pair: LanguagePair) -> None:
    base, plugin = pair.forward, plugin_for(pair, "dexperts", 0.2, weight=1.5)
    sources = base.pad_batch(base.encode(SOURCES[:1]))
    prefix = base.shift_right(base.pad_batch(base.encode_target([SENTENCES[0][1]])))[:, :4]  # (1, 4)
    mixture = plugin.logits_processors(base)[0]
    with torch.no_grad():
        plain = base.model(input_ids=sources, decoder_input_ids=prefix, use_cache=False).logits[:, -1]
        with plugin.attached(base):
            hooked = base.model(input_ids=sources, decoder_input_ids=prefix, use_cache=False).logits[:, -1]
        assert torch.allclose(mixture(prefix, plain), hooked.log_softmax(-1), atol=1e-4)


def test_a_rewriting_model_reads_the_target_language(pair: LanguagePair) -> None:
    base, targets = pair.forward, [target for _, target in SENTENCES]
    check_rewriter(base, targets)
    rewriter = rewriter_of(base)
    assert rewriter.encode(targets) == base.family.encode(targets, "zh", "zh")
    assert rewriter.encode(targets) != base.encode(targets)  # another language code at the start
    plugin = plugin_for(pair, "rewrite", 0.1)
    before = translate(base, SOURCES, decoding=FAST)
    assert len(translate(base, SOURCES, plugin, decoding=FAST)) == len(SOURCES)
    assert translate(base, SOURCES, decoding=FAST) == before
