"""Which sentences a plugin's domain filter leaves to the base, and that they are the base's to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
from engine.plugins.domain_filter import DomainFilter, encoded, log_ratios, plain
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
    made = DomainFilter.learn(base, texts["own"], texts["general"], texts["held out"])
    assert made is not None
    return made


@pytest.fixture(scope="module")
def plugin(base: BaseModel, learned: DomainFilter) -> Plugin:
    """One that changes every translation, but for its filter."""
    method = get_method("houlsby_adapter")
    torch.manual_seed(1)
    module = method.build(base, Artefacts(), method.config_class(bottleneck=8))
    for parameter in module.parameters():
        parameter.data += torch.randn_like(parameter) * 0.1
    method.finish(module)
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
def test_what_is_not_accepted_is_the_bases_translation_to_the_letter(
    base: BaseModel, plugin: Plugin, learned: DomainFilter, texts: dict[str, list[str]]
) -> None:
    some = [*texts["tests"][:4], *texts["other"][:4], ""]
    accepted = learned.accepts(base, some)
    assert any(accepted)
    assert not all(accepted)
    greedy = Decoding(beam=1, guard=False, max_length_ratio=0.5)  # what the random plugin writes has no end
    alone, every = (translate(base, some, one, decoding=greedy) for one in (None, plugin.unfiltered))
    wanted = [b if acts else a for a, b, acts in zip(alone, every, accepted, strict=True)]
    assert wanted not in (alone, every)
    assert translate_mixed(base, some, [plugin] * len(some), decoding=greedy) == wanted
    assert translate_mixed(base, some, [plugin, *[None] * 8], decoding=greedy) == [wanted[0], *alone[1:]]
    for stack in (plugin, PluginStack([plugin]), PluginStack([plugin, plugin.unfiltered], [1.0, 0.0])):
        assert translate(base, some, stack, decoding=greedy) == wanted
    assert translate(base, some, plugin, strength=0.0, decoding=greedy) == alone
    pairs = list(zip(some, alone, strict=True))[:8]
    systems: list[Any] = [plugin, None, plugin.unfiltered]
    filtered, base_alone, unfiltered = (score(base, pairs, one) for one in systems)
    for result, acts, a, b in zip(filtered, accepted, base_alone, unfiltered, strict=False):
        assert result == pytest.approx(b if acts else a, rel=1e-5)


@pytest.mark.slow
def test_a_filter_is_read_as_it_was_written_and_damage_is_said(
    base: BaseModel, learned: DomainFilter, texts: dict[str, list[str]], tmp_path: Path
) -> None:
    assert DomainFilter.open(tmp_path, base.d_model) is None
    file = learned.save(tmp_path)
    again = DomainFilter.open(tmp_path, base.d_model)
    assert again is not None
    assert again.accepts(base, texts["other"]) == learned.accepts(base, texts["other"])
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
    own, other = (plain(base, encoded(base, texts)) for texts in (samples, ["He did not come."] * 2))
    probabilities = piece_probabilities(base)
    features, without = log_ratios(own, other, {})
    _, ratios = log_ratios(own, other, probabilities)
    shares = {i: probabilities.get(int(feature) - 1, 0.0) for i, feature in enumerate(features)}
    seen = [i for i in shares if shares[i] and without[i] == without.max()]  # once a sample, and never in general text
    usual, rare = (pick(seen, key=lambda i: shares[i]) for pick in (max, min))
    assert without[usual] == without[rare]
    assert ratios[usual] < ratios[rare] - 2
