"""Sentences of one batch with plugins of their own, against each plugin alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.corpora.types import SentencePair
from engine.decoding import translate as decoding_room
from engine.decoding.translate import translate
from engine.memory import PhrasePair, record
from engine.memory.sentence_memory import record_sentences
from engine.methods import Artefacts, get_method
from engine.plugins import Plugin, PluginStack
from engine.plugins.mixed_batch import MixedBatch
from tests.bases import EN_ZH, SAMPLES, SENTENCES, tiny_base

METHODS = {
    "memory_adapter": {},
    "residual_adapter": {"bottleneck": 8},
    "houlsby_adapter": {"bottleneck": 8, "layer_norms": True},
    "lhuc": {},
}
BY_SENTENCE = {"retrieval": "sentence", "key_size": 8, "shortlist": 3, "alpha": 0, "beta": 0, "bottleneck": 4}


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    lines = (SAMPLES / "it-help-en/it-help.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if 15 < len(line) < 60][:12]


def plugin_for(base: BaseModel, name: str, seed: int, folder: Any, size: float = 0.1) -> Plugin:
    """A plugin that changes the base's output, in a way of its own."""
    if name == "by_sentence":
        return plugin_by_sentence(base, seed, folder / f"sentences-{seed}", size)
    method = get_method(name)
    memory = None
    if name == "memory_adapter":
        layers = len(base.decoder_layers)
        pairs = [PhrasePair(i % layers, zh[seed % 3 :], en, 1, 1) for i, (en, zh) in enumerate(SENTENCES * 3)]
        memory = record(base, pairs, folder / f"memory-{seed}.safetensors")
    torch.manual_seed(seed)
    module = method.build(base, Artefacts(memory=memory), method.config_class(**METHODS[name]))
    for key, parameter in module.named_parameters():
        parameter.data += torch.randn_like(parameter) * (0.02 if key.endswith("scale") else size)
    method.prepare_for_inference(module)
    return Plugin(method, module, {"name": f"{name} {seed}"})


def plugin_by_sentence(base: BaseModel, seed: int, folder: Any, size: float) -> Plugin:
    method = get_method("memory_adapter")
    config = method.config_class(**BY_SENTENCE)
    last = len(base.decoder_layers) - 1
    places = [(layer, attention) for layer in (last - 1, last) for attention in ("self_attn", "encoder_attn")]
    folder.mkdir()
    record_sentences(base, [SentencePair(*pair) for pair in SENTENCES[seed % 3 :]], places, 8).save(folder)
    torch.manual_seed(seed)
    module = method.build(base, method.open(folder, base, config), config)
    for parameter in module.parameters():
        parameter.data += torch.randn_like(parameter) * size
    method.prepare_for_inference(module)
    return Plugin(method, module, {"name": f"by sentence {seed}"})


@pytest.fixture(scope="module")
def plugins(base: BaseModel, tmp_path_factory: pytest.TempPathFactory) -> list[Plugin]:
    folder = tmp_path_factory.mktemp("mixed")
    return [plugin_for(base, name, seed, folder, 0.03) for seed in (1, 2) for name in (*METHODS, "by_sentence")]


@pytest.mark.parametrize("settings", [{}, {"beam": 1}, {"beam": 3, "batch_tokens": 60}], ids=["beam", "greedy", "batches"])
@pytest.mark.parametrize("strength", [1.0, 0.5])
@pytest.mark.slow
def test_each_sentence_is_as_with_its_plugin_alone(
    base: BaseModel, plugins: list[Plugin], texts: list[str], settings: dict[str, Any], strength: float
) -> None:
    from engine.plugins.mixed_batch import translate_mixed

    chosen: list[Plugin | None] = [*plugins, None, plugins[0]]
    decoding = Decoding(**settings)
    assert MixedBatch.of(base, chosen, strength) is not None
    result = translate_mixed(base, texts, chosen, strength=strength, decoding=decoding)
    alone = [
        translate(base, [text], plugin, strength=strength, decoding=decoding)[0] for text, plugin in zip(texts, chosen, strict=True)
    ]
    assert result == alone
    assert result != translate(base, texts, decoding=decoding), "the plugins do something"
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in base.model.modules())


def test_hidden_states_are_those_of_each_plugin_alone(tmp_path: Any) -> None:
    base = tiny_base()
    plugins = [plugin_for(base, name, 5, tmp_path) for name in METHODS]
    sources = base.pad_batch(base.encode(["The rain stopped."] * 4))
    labels = base.pad_batch(base.encode_target(["雨停了。"] * 4))

    def logits(rows: slice) -> torch.Tensor:
        result: torch.Tensor = base.model(input_ids=sources[rows], decoder_input_ids=base.shift_right(labels)[rows]).logits
        return result

    mixed = MixedBatch(list(plugins), [2, 0, 3, 1])
    assert mixed.arrange([0, 1, 2, 3]) == [1, 3, 0, 2]
    with torch.no_grad():
        with mixed.attached(base):
            together = logits(slice(None))
        for number, plugin in enumerate(plugins):
            with plugin.attached(base):
                torch.testing.assert_close(together[number : number + 1], logits(slice(0, 1)), atol=1e-5, rtol=1e-4)


def test_plugins_that_read_by_sentence_share_a_batch(
    base: BaseModel, plugins: list[Plugin], texts: list[str], tmp_path: Any
) -> None:
    from engine.plugins.mixed_batch import translate_mixed

    first, second = (plugin_for(base, "by_sentence", seed, tmp_path) for seed in (1, 2))
    chosen = [first, second, None, second, first, plugins[1]]
    assert MixedBatch.of(base, chosen, 1.0) is not None
    similar = SENTENCES[6][0]  # all samples that share a word with it are read
    mixed = [" ".join(texts[:3]), similar, texts[4], texts[5], similar, texts[6]]  # done at different times, so that some leave
    result = translate_mixed(base, mixed, chosen)
    assert result == [translate(base, [text], plugin)[0] for text, plugin in zip(mixed, chosen, strict=True)]
    vanilla = translate(base, mixed)
    changed = [a != b for a, b in zip(result, vanilla, strict=True)]
    assert changed[0] or changed[4]
    assert changed[1] or changed[3]
    assert not changed[2]


def test_texts_of_any_length_and_empty_ones_keep_their_places(base: BaseModel, plugins: list[Plugin], texts: list[str]) -> None:
    from engine.plugins.mixed_batch import translate_mixed

    many = [texts[0], "", " ".join(texts[:4]), texts[1]]
    chosen = [plugins[1], plugins[0], plugins[1], plugins[2]]
    decoding = Decoding(longest=16)
    result = translate_mixed(base, many, chosen, decoding=decoding)
    assert result == [translate(base, [a], b, decoding=decoding)[0] for a, b in zip(many, chosen, strict=True)]
    assert result[1] == ""


def test_what_cannot_share_a_batch_goes_by_plugin(
    base: BaseModel, plugins: list[Plugin], texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.plugins.mixed_batch import translate_mixed

    stack = PluginStack([plugins[0], plugins[1]])
    chosen = [stack, plugins[0], None]
    assert MixedBatch.of(base, chosen, 1.0) is None
    assert MixedBatch.of(base, [plugins[0], plugins[0]], 1.0) is None, "one plugin needs no mixing"
    result = translate_mixed(base, texts[:3], chosen)
    assert result == [translate(base, [a], b)[0] for a, b in zip(texts[:3], chosen, strict=True)]
    calls: list[Any] = []
    real = decoding_room.search
    monkeypatch.setattr(decoding_room, "search", lambda *args, **more: calls.append(args) or real(*args, **more))
    translate_mixed(base, texts[:3], plugins[:3], decoding=Decoding())
    assert len(calls) == 1, "one batch for three plugins"
