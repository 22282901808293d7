"""Which sentences a plugin's domain filter leaves to the base, and that they are the base's to the letter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.base.piece_probabilities import piece_probabilities
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError
from engine.methods import Artefacts, get_method
from engine.plugins import Plugin, PluginStack
from engine.plugins.bundle import DOMAIN_FILTER
from engine.plugins.domain_filter import SHARE, DomainFilter, encoded, log_ratios, plain
from engine.plugins.mixed_batch import translate_mixed
from tests.bases import EN_ZH, SAMPLES


def lines(name: str) -> list[str]:
    return (SAMPLES / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    help_, general = lines("it-help-en/it-help.txt"), lines("general-en/general-en.txt")
    rest = [line for i, line in enumerate(general) if i % 4]
    return {"own": help_[80:], "held out": help_[:80:2], "tests": help_[1:80:2], "general": rest, "other": general[::4]}


@pytest.fixture(scope="module")
def learned(base: BaseModel, texts: dict[str, list[str]]) -> DomainFilter:
    result = DomainFilter.learn(base, texts["own"], texts["general"], texts["held out"])
    assert result is not None
    return result


@pytest.fixture(scope="module")
def plugin(base: BaseModel, learned: DomainFilter) -> Plugin:
    """One that changes every translation, but for its filter."""
    method = get_method("houlsby_adapter")
    torch.manual_seed(1)
    module = method.build(base, Artefacts(), method.config_class(bottleneck=8))
    for parameter in module.parameters():
        parameter.data += torch.randn_like(parameter) * 0.03
    method.prepare_for_inference(module)
    return Plugin(method, module, {"name": "help"}, domain_filter=learned)


@pytest.mark.slow
def test_unseen_sentences_of_the_domain_are_accepted_and_general_ones_are_not(
    base: BaseModel, learned: DomainFilter, texts: dict[str, list[str]]
) -> None:
    accepted = {name: sum(learned.accepts(base, texts[name])) / len(texts[name]) for name in ("tests", "other")}
    assert accepted["tests"] > 0.8, accepted
    assert accepted["other"] < 0.2, accepted


def test_too_little_text_makes_no_filter(base: BaseModel, texts: dict[str, list[str]]) -> None:
    assert DomainFilter.learn(base, texts["own"][:5], texts["general"], texts["held out"]) is None
    assert DomainFilter.learn(base, texts["own"], [], texts["held out"]) is None


@pytest.mark.slow
@pytest.mark.parametrize("half_like", [0, 2])
def test_what_is_not_accepted_is_the_bases_translation_to_the_letter(
    base: BaseModel, plugin: Plugin, learned: DomainFilter, texts: dict[str, list[str]], half_like: int
) -> None:
    sentences = [*texts["tests"][:4], *texts["other"][:4], ""]
    lower = float(
        np.sort(learned.scores(base, sentences)[[not accepted for accepted in learned.accepts(base, sentences)]])[-half_like:][0]
    )
    domain_filter = replace(learned, lower=lower if half_like else learned.threshold)
    shares = domain_filter.shares(base, sentences)
    assert sorted(set(shares)) == ([0.0, SHARE, 1.0] if half_like else [0.0, 1.0])
    plugin = plugin.with_filter(domain_filter)
    greedy = Decoding(beam=1, guard=False)
    unfiltered, alone = plugin.unfiltered, translate(base, sentences, decoding=greedy)
    at = {share: translate(base, sentences, unfiltered, strength=share, decoding=greedy) for share in (SHARE, 1.0)} | {0.0: alone}
    expected = [at[share][i] for i, share in enumerate(shares)]
    assert expected not in at.values()
    assert translate_mixed(base, sentences, [plugin] * len(sentences), decoding=greedy) == expected
    assert translate_mixed(base, sentences, [plugin, *[None] * 8], decoding=greedy) == [expected[0], *alone[1:]]
    for stack in (plugin, PluginStack([plugin]), PluginStack([plugin, unfiltered], [1.0, 0.0])):
        assert translate(base, sentences, stack, decoding=greedy) == expected
    assert translate(base, sentences, plugin, strength=0.0, decoding=greedy) == alone
    pairs = list(zip(sentences, alone, strict=True))[:8]
    scores = {share: score(base, pairs, unfiltered, strength=share) for share in (0.0, SHARE, 1.0)}
    for i, result in enumerate(score(base, pairs, plugin)):
        assert result == pytest.approx(scores[shares[i]][i], rel=1e-5)


def test_a_method_without_strengths_acts_on_what_is_like_the_samples_alone(
    base: BaseModel, learned: DomainFilter, texts: dict[str, list[str]]
) -> None:
    sentences = [*texts["tests"][:4], *texts["other"][:4]]
    everything = replace(learned, lower=-1e9)
    for name, weakest in (("houlsby_adapter", SHARE), ("rewrite", 0.0)):
        plugin = Plugin(get_method(name), torch.nn.Module(), {}, domain_filter=everything)
        assert set(plugin.shares(base, sentences)) == {weakest, 1.0}


@pytest.mark.slow
def test_where_the_threshold_gave_way_more_of_the_samples_are_half_like_them(
    base: BaseModel, texts: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.plugins.domain_filter.MISTAKEN", 0.0)
    general = [*texts["general"], *texts["own"][:200]]  # no threshold can tell it from the samples
    strict = DomainFilter.learn(base, texts["own"], general, texts["held out"])
    assert strict is not None
    shares = strict.shares(base, texts["held out"])
    assert shares.count(1.0) / len(shares) == pytest.approx(0.7, abs=0.04)
    assert shares.count(SHARE) / len(shares) == pytest.approx(0.1, abs=0.04)


@pytest.mark.slow
def test_a_filter_is_read_as_it_was_written_and_damage_is_said(
    base: BaseModel, learned: DomainFilter, texts: dict[str, list[str]], tmp_path: Path
) -> None:
    assert DomainFilter.open(tmp_path, base.d_model) is None
    file = learned.save(tmp_path)
    again = DomainFilter.open(tmp_path, base.d_model)
    assert again is not None
    assert again.accepts(base, texts["other"]) == learned.accepts(base, texts["other"])
    assert (again.threshold, again.lower) == pytest.approx((learned.threshold, learned.lower))
    reopened = DomainFilter.open(replace(learned, lower=learned.threshold).save(tmp_path / "one").parent, base.d_model)
    assert reopened is not None
    assert reopened.lower == reopened.threshold, "as filters of bundles that were made before"
    with pytest.raises(BundleError, match="does not fit its base"):
        DomainFilter.open(tmp_path, base.d_model + 1)
    save_file({name: value for name, value in load_file(file).items() if name != "ratios"}, file)
    with pytest.raises(BundleError, match="ratios"):
        DomainFilter.open(tmp_path, base.d_model)
    (tmp_path / DOMAIN_FILTER).write_bytes(b"no")
    with pytest.raises(BundleError, match="damaged"):
        DomainFilter.open(tmp_path, base.d_model)


def test_usual_words_that_a_little_general_text_lacks_are_not_taken_for_the_samples(base: BaseModel) -> None:
    samples = ["The government said that the catheter needs a suture."] * 2
    domain, other = (plain(base, encoded(base, texts)) for texts in (samples, ["He did not come."] * 2))
    probabilities = piece_probabilities(base)
    features, without = log_ratios(domain, other, {})
    _, ratios = log_ratios(domain, other, probabilities)
    shares = {i: probabilities.get(int(feature) - 1, 0.0) for i, feature in enumerate(features)}
    seen = [i for i in shares if shares[i] and without[i] == without.max()]  # once a sample, and never in general text
    usual, rare = (pick(seen, key=lambda i: shares[i]) for pick in (max, min))
    assert without[usual] == without[rare]
    assert ratios[usual] < ratios[rare] - 2
