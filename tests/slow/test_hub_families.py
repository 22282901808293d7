"""Every family of the hub as a base: small models with their real classes and tokenizer files do the whole main job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.base import BaseModel, LanguagePair, read_card
from engine.base.decoding_options import Decoding
from engine.core.settings import load_settings
from engine.decoding.greedy_search import back_translate
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import ModelError, OptionError
from engine.memory import PhrasePair, record
from engine.methods import Artefacts, get_method
from engine.methods.memory_adapter.module import SPEED
from engine.plugins import Plugin, verify_bundle
from engine.workflows.customize.pipeline import customize
from tests.bases import SENTENCES
from tests.hub_models import HUB_MODELS, make_hub_model

SOURCES = [source for source, _ in SENTENCES]
FAST = Decoding(beam=2, max_length_ratio=0.5)
FORWARD = [name for name in HUB_MODELS if name != "opus-zh-en"]  # which is the backward model of opus-en-zh


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a small model once; tests only read it."""
    root = tmp_path_factory.mktemp("hub")

    def made(name: str) -> Path:
        return root / name if (root / name / "config.json").exists() else make_hub_model(name, root / name)

    return made


@pytest.fixture(scope="module", params=FORWARD)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, hub: Callable[[str], Path]) -> Path:
    return hub(name)


@pytest.fixture(scope="module")
def backward(name: str, hub: Callable[[str], Path]) -> str:
    """The base of the other direction, where the base has one only."""
    other = HUB_MODELS[name].backward
    return str(hub(other)) if other else ""


@pytest.fixture(scope="module")
def pair(folder: Path, backward: str) -> LanguagePair:
    return LanguagePair.load(folder, "en", "zh", backward=backward)


def test_its_card_tells_the_languages(name: str, folder: Path) -> None:
    card = read_card(folder)
    assert len(card["languages"]) == HUB_MODELS[name].languages
    assert {"en", "zh"} <= set(card["languages"])
    assert card["parameters"] > 60_000
    assert card["bytes"] > 4 * card["parameters"]


def test_it_translates_both_ways(pair: LanguagePair) -> None:
    forward = translate(pair.forward, [*SOURCES, ""], decoding=FAST)
    assert len(forward) == len(SOURCES) + 1
    assert forward[-1] == ""
    assert forward[:2] == [target for _, target in SENTENCES[:2]]  # it was trained on these
    assert back_translate(pair.backward, [SENTENCES[0][1]]) == [SENTENCES[0][0]]
    assert all(score < 0 for score, _ in score(pair.forward, SENTENCES))


def test_text_survives_its_tokenizer(pair: LanguagePair) -> None:
    base = pair.forward
    targets = [target for _, target in SENTENCES]
    assert [text.replace(" ", "") for text in base.decode(base.encode_target(targets))] == targets
    assert not set(base.encode_target(targets)[0]) & {base.tokenizer.unk_token_id}


def test_languages_are_tags_in_any_shape(folder: Path, pair: LanguagePair) -> None:
    vanilla = translate(pair.forward, SOURCES[:3], decoding=FAST)
    for source, target in (("en-US", "zh-CN"), ("ENG", "zho_Hans"), ("en_GB", "cmn")):
        base = BaseModel.load(folder, source, target)
        assert (base.source, base.target) == ("en", "zh")
        assert translate(base, SOURCES[:3], decoding=FAST) == vanilla


@pytest.mark.parametrize(("source", "target"), [("en", "tlh"), ("en", "en"), ("en", "no language")])
def test_languages_that_it_does_not_know(folder: Path, source: str, target: str) -> None:
    with pytest.raises(ModelError, match=r"does not support the language|two different languages|to Chinese only, not from"):
        BaseModel.load(folder, source, target)


def test_a_memory_adapter_starts_as_the_base_and_then_changes_it(pair: LanguagePair, tmp_path: Path) -> None:
    base = pair.forward
    pairs = [PhrasePair(i % 2, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    memory = record(base, pairs, tmp_path / "memory.safetensors")
    assert memory.sizes == [4, 4]
    assert all(memory.target(i).float().norm(dim=1).min() > 0 for i in range(2))
    method = get_method("memory_adapter")
    module = method.build(base, Artefacts(memory=memory), method.config_class())
    before, scores = translate(base, SOURCES, decoding=FAST), score(base, SENTENCES)
    with method.attach(base, module):
        assert translate(base, SOURCES, decoding=FAST) == before
        assert score(base, SENTENCES) == scores
    for name, parameter in module.named_parameters():
        if name.endswith("scale"):
            parameter.data += 1.0 / SPEED
    with method.attach(base, module):
        assert score(base, SENTENCES) != scores
    assert score(base, SENTENCES) == scores


@pytest.fixture(scope="module")
def plugin_file(folder: Path, backward: str, request_for: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin made by the whole main job on this base, whose languages are named as people name them."""
    position = tmp_path_factory.mktemp("plugin")
    request = request_for(position / "style.zip", base=str(folder), backward=backward, source="en-US", target="zh-CN")
    summary = customize(request, position / "workspace")
    assert summary["updates"] == 4
    assert sum(summary["memory"]) > 20
    return position / "style.zip"


def test_the_whole_main_job(folder: Path, plugin_file: Path, pair: LanguagePair) -> None:
    card = verify_bundle(plugin_file)
    assert (card["source"], card["target"]) == ("en", "zh")
    base = BaseModel.load(folder, "en", "zh")
    vanilla, scores = translate(base, SOURCES, decoding=FAST), score(base, SENTENCES)
    plugin = Plugin.load(plugin_file, base)
    assert score(base, SENTENCES, plugin) != scores
    assert len(translate(base, SOURCES, plugin, decoding=FAST)) == len(SOURCES)
    assert translate(base, SOURCES, plugin, strength=0.0, decoding=FAST) == vanilla
    assert score(base, SENTENCES) == scores  # to the last bit
    assert translate(base, SOURCES, decoding=FAST) == vanilla == translate(pair.forward, SOURCES, decoding=FAST)
    assert plugin.attributions(base, *SENTENCES[0])


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_half_precision(folder: Path, plugin_file: Path, pair: LanguagePair, precision: str) -> None:
    """Held in half precision a base keeps its fingerprint, takes the same plugin, and translates nearly as before."""
    base = BaseModel.load(folder, "en", "zh", precision=precision)
    assert base.dtype == getattr(torch, precision)
    assert base.fingerprint() == pair.forward.fingerprint()
    plugin = Plugin.load(plugin_file, base)
    assert {p.dtype for p in plugin.module.parameters()} == {base.dtype}
    exact = [total for total, _ in score(pair.forward, SENTENCES, Plugin.load(plugin_file, pair.forward))]
    near = [total for total, _ in score(base, SENTENCES, plugin)]
    assert near == pytest.approx(exact, rel=0.05, abs=0.5)
    vanilla = translate(base, SOURCES, decoding=FAST)
    assert vanilla[0] == SENTENCES[0][1]
    assert len(translate(base, SOURCES, plugin, decoding=FAST)) == len(SOURCES)
    assert translate(base, SOURCES, plugin, strength=0.0, decoding=FAST) == vanilla


@pytest.mark.parametrize(
    "changes", [{}, {"method": "fine_tuning", "method_options": {"which": "decoder"}}], ids=["memory", "decoder"]
)
def test_training_over_half_precision(
    hub: Callable[[str], Path], request_for: Callable[..., Any], tmp_path: Path, changes: dict[str, Any]
) -> None:
    """bfloat16 is trained on, and the plugin fits the base in float32 too; float16 is refused in a sentence."""
    request = request_for(tmp_path / "style.zip", base=str(hub("m2m100")), **changes)
    summary = customize(request, tmp_path / "work", settings=load_settings().replace(base_precision="bfloat16"))
    assert summary["updates"] == 4
    base = BaseModel.load(hub("m2m100"), "en", "zh")
    assert score(base, SENTENCES, Plugin.load(tmp_path / "style.zip", base)) != score(base, SENTENCES)
    with pytest.raises(OptionError, match="cannot be trained on a base held in float16"):
        customize(request, tmp_path / "other", settings=load_settings().replace(base_precision="float16"))


def test_a_base_of_one_direction_asks_for_the_other(hub: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"from English to Chinese only, not from English to German\. Choose a base for that direction"
    ):
        BaseModel.load(hub("opus-en-zh"), "en", "de")
    pair = LanguagePair.load(hub("opus-en-zh"), "en", "zh", settings=load_settings())
    assert pair.backward.name == "en-zh"  # the one on the shelf that translates back
    nothing = load_settings().replace(assets=str(tmp_path))
    with pytest.raises(ModelError, match=r"cannot translate back from Chinese to English.*--backward"):
        LanguagePair.load(hub("opus-en-zh"), "en", "zh", settings=nothing)


def test_a_region_chooses_among_tags(hub: Callable[[str], Path]) -> None:
    folder = hub("opus-mul")
    ids = {}
    for target in ("pt", "pt-BR", "pt-PT", "zh", "zh-TW"):
        base = BaseModel.load(folder, "en", target)
        ids[base.target] = base.tokenizer.convert_ids_to_tokens(base.encode(["The rain stopped."])[0])[0]
    assert ids == {"pt": ">>por<<", "pt-BR": ">>pob<<", "zh": ">>cmn_Hans<<", "zh-Hant": ">>cmn_Hant<<"}
    with pytest.raises(ModelError, match=r"does not support the language gl\. It supports en, pt, pt-BR, zh, zh-Hant"):
        BaseModel.load(folder, "en", "gl")
