"""The memory adapter's other ways: the released code's phrase lengths, the user's own sources, the base's weights."""

import dataclasses

import pytest
import torch

from engine.base import LanguagePair
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora import Segment
from engine.decoding.scoring import score
from engine.errors import MissingError, OptionError
from engine.memory import PairRules, PhrasePair, load_pairs, record, translate_phrases
from engine.memory.phrase_alignment import can_align
from engine.memory.phrase_pairs import by_bounds
from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.methods.data import Samples
from engine.methods.interface import Batch
from engine.methods.memory_adapter import method as adapter
from engine.methods.memory_adapter.config import RELEASED_BOUNDS, RELEASED_CODE, MemoryAdapterConfig
from engine.phrases import Phrase, PhraseSet
from engine.plugins import Plugin
from engine.training.loop import make_optimizer
from engine.training.options import TrainingOptions
from engine.workflows.customize.request import CustomizeRequest, method_config
from tests.bases import EN_ZH, SENTENCES

METHOD = get_method("memory_adapter")
PHRASES = [Phrase(text, len(text), count, "NP", 0) for count, text in enumerate(("雨", "雨停", "一封信", "河边的老茶馆"), 1)]


@pytest.fixture(scope="module")
def memory(pair, tmp_path_factory):
    pairs = [PhrasePair(i % 3, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    return record(pair.forward, pairs, tmp_path_factory.mktemp("memory") / "memory.safetensors")


@pytest.fixture
def plain(monkeypatch):
    """Back-translation that is known beforehand; gives what was asked for."""
    requests = []

    def stand_in(base, texts, partial, progress):
        requests.append((base.source, list(texts)))
        if base.source == "zh":
            return [f"{text} {text}" for text in texts]
        return ["雨" * (40 if "茶馆" in text else 2) for text in texts]

    monkeypatch.setattr("engine.memory.phrase_pairs.back_translate_all", stand_in)
    return requests


def test_bounds_give_the_first_layer_that_a_length_fits():
    lengths = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    slow = [next((layer for layer, most in enumerate(RELEASED_BOUNDS) if n <= most), None) for n in lengths]
    assert by_bounds(lengths, RELEASED_BOUNDS, 6) == slow == [0, 0, 1, 2, 3, 3, 4, 5, 5, None]
    for bounds in ((3, 4), (3, 3, 4), (5, 4, 3)):
        with pytest.raises(OptionError, match="must be increasing lengths, one for each of the base's 3 decoder layers"):
            by_bounds(lengths, bounds, 3)


def test_phrases_are_dealt_by_bounds_and_longer_ones_dropped(pair, plain):
    result = translate_phrases(PHRASES, pair.backward, 3, PairRules(bounds=(1, 2, 3), max_length_ratio=50))
    assert [(phrase.target, phrase.layer) for phrase in result] == [("雨", 0), ("雨停", 1), ("一封信", 2)]
    assert plain == [("zh", ["雨", "雨停", "一封信"])]


def test_lengths_can_be_counted_in_pieces(pair, plain):
    result = translate_phrases(PHRASES, pair.backward, 3, PairRules(unit="pieces", max_length_ratio=50))
    special = pair.backward.special_ids
    assert [phrase.length for phrase in result] == [
        len([i for i in pair.backward.encode([phrase.target])[0] if i not in special]) for phrase in result
    ]


def test_known_sources_are_not_translated(pair, plain):
    result = translate_phrases(PHRASES, pair.backward, 3, PairRules(max_length_ratio=50), known={"雨停": "rain stopped"})
    assert next(phrase.source for phrase in result if phrase.target == "雨停") == "rain stopped"
    assert plain == [("zh", ["雨", "一封信", "河边的老茶馆"])]


def test_a_round_trip_drops_what_returns_at_another_length(pair, plain):
    result = translate_phrases(
        PHRASES, pair.backward, 3, PairRules(max_length_ratio=3), known={"一封信": "a letter"}, round_trip=pair.forward
    )
    assert [phrase.target for phrase in result] == ["雨", "雨停", "一封信"]  # the known one is not sent
    assert plain[1] == ("en", ["雨 雨", "雨停 雨停", "河边的老茶馆 河边的老茶馆"])


def test_a_preset_takes_the_place_of_the_budget_s_settings():
    def of(**options):
        request = CustomizeRequest(base="b", source="en", target="zh", samples=("s",), method="memory_adapter", budget="quick")
        return method_config(dataclasses.replace(request, method_options=options))

    assert of().retrieval == "sentence"
    assert of(preset="paper") == MemoryAdapterConfig(start="released_code", init="random")
    assert of(preset="released_code", alpha=2) == MemoryAdapterConfig(**RELEASED_CODE, alpha=2)
    with pytest.raises(OptionError, match="preset: 'of mine' is not one of paper, released_code"):
        of(preset="of mine")


def bilingual(pair, folder):
    train = [Segment(zh, en) for en, zh in SENTENCES[:5]] + [Segment("雨停了。")]
    return Samples(pair, train, [], folder, load_settings())


def test_the_users_own_translations_are_aligned(pair, tmp_path, monkeypatch):
    seen = []

    def stand_in(phrases, pairs, languages):
        seen.append((list(phrases), list(pairs), languages))
        return {"雨": "rain"}

    monkeypatch.setattr("engine.memory.phrase_alignment.sources_of_phrases", stand_in)
    monkeypatch.setattr("engine.memory.phrase_alignment.can_align", lambda: True)
    samples = bilingual(pair, tmp_path)
    assert adapter.aligned_sources(samples, ["雨"], "auto", Progress()) == {"雨": "rain"}
    assert seen == [(["雨"], list(SENTENCES[:5]), ("en", "zh"))]
    assert adapter.aligned_sources(samples, ["雨"], "none", Progress()) == {}
    samples.train = [Segment("雨停了。")]
    assert adapter.aligned_sources(samples, ["雨"], "eflomal", Progress()) == {}


def test_without_the_aligner_the_bases_attention_is_used_unless_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.memory.phrase_alignment.can_align", lambda: False)
    pair = LanguagePair.load(str(EN_ZH), "en", "zh", backward="", download=False, settings=load_settings())
    samples = bilingual(pair, tmp_path)
    result = adapter.aligned_sources(samples, ["雨", "母亲", "什么也不曾说"], "auto", Progress())
    assert result
    texts = [segment.source for segment in samples.train if segment.source]
    assert all(any(source in text for text in texts) for source in result.values())
    assert result == adapter.aligned_sources(samples, ["雨", "母亲", "什么也不曾说"], "attention", Progress())
    with pytest.raises(MissingError, match="eflomal is not installed"):
        adapter.aligned_sources(samples, ["雨"], "eflomal", Progress())


def module_for(base, memory, **options):
    torch.manual_seed(3)
    return METHOD.build(base, Artefacts(memory=memory), MemoryAdapterConfig(**options))


def batch_of(base, encoded=None):
    pairs = Pairs.encode(base, SENTENCES)
    sources, labels = base.pad_batch(pairs.sources), base.pad_batch(pairs.labels)
    mask = (sources != base.pad).long()
    return Batch(sources, mask, encoded, base.shift_right(labels), labels, 0, pairs, range(len(pairs)))


def test_with_fine_tuning_it_starts_as_the_base_and_both_learn(base, memory):
    module = module_for(base, memory, fine_tune="all", alpha=0.0, beta=0.0)
    assert score(base, SENTENCES, Plugin(METHOD, module, {})) == score(base, SENTENCES)
    assert METHOD.changes_encoder(module)
    assert not METHOD.changes_encoder(module_for(base, memory, fine_tune="decoder"))
    assert not METHOD.changes_encoder(module_for(base, memory))
    keys = set(module.state_dict())
    assert keys == {name for name, _ in module.named_parameters()}
    assert any(key.startswith("tuned.model.encoder.") for key in keys)
    assert not any(key.startswith("tuned.") for key in module_for(base, memory).state_dict())
    original = {key: value.clone() for key, value in base.model.state_dict().items()}
    optimizer = make_optimizer(METHOD, module, TrainingOptions())
    assert [group["speed"] for group in optimizer.param_groups] == [1.0, 0.1]
    losses = []
    with METHOD.attach(base, module):
        for _ in range(4):
            loss = METHOD.loss(base, module, batch_of(base))
            optimizer.zero_grad()
            loss.total.backward()
            for group in optimizer.param_groups:
                group["lr"] = 0.02 * group["speed"]
            optimizer.step()
            losses.append(loss.total.item())
    assert losses[-1] < losses[0]
    tuned = dict(module.tuned.named_parameters())
    assert any(not torch.equal(tuned[key], original[key]) for key in tuned)
    assert any(float(reader.scale) != 0 for _, _, reader in module.readers())
    assert all(torch.equal(value, original[key]) for key, value in base.model.state_dict().items())


def test_strength_and_shrink_reach_the_tuned_weights(base, memory):
    module = module_for(base, memory, fine_tune="decoder", shrink=0.5)
    fc1 = base.decoder_layers[0].fc1
    original, tuned = fc1.weight, dict(module.tuned.named_parameters())["model.decoder.layers.0.fc1.weight"]
    tuned.data += 1.0
    with METHOD.attach(base, module, 0.25):
        assert torch.allclose(fc1.weight, original + 0.25, atol=1e-6)
    METHOD.after_training(module)
    assert torch.allclose(tuned, original + 0.5, atol=1e-6)
    with pytest.raises(ZeroDivisionError), METHOD.attach(base, module):
        raise ZeroDivisionError
    assert fc1.weight is original


@pytest.mark.skipif(not can_align(), reason="eflomal is not installed")
def test_bilingual_samples_give_the_memory_their_own_sources(pair, tmp_path, monkeypatch):
    """The whole preparation, with the real aligner: sentences of a few words, each often enough to be learnt."""
    words = {"cat": "猫", "dog": "狗", "river": "河", "letter": "信", "house": "屋", "rain": "雨"}
    train = [Segment(f"{words[a]}见{words[b]}", f"{a} sees {b}") for a in words for b in words if a != b for _ in range(8)]
    samples = Samples(pair, train, [], tmp_path, load_settings())
    samples.phrases = PhraseSet([Phrase(zh, 1, 10, "NP", 0) for zh in words.values()] + [Phrase("门", 1, 1, "NP", 0)])
    monkeypatch.setattr(
        "engine.memory.phrase_pairs.back_translate_all", lambda base, texts, partial, progress: ["door"] * len(texts)
    )
    METHOD.prepare(samples, MemoryAdapterConfig(aligner="eflomal"), Progress())
    result = {phrase.target: phrase.source for phrase in load_pairs(tmp_path / "phrase_pairs.jsonl")}
    assert result["门"] == "door"  # in no sample: translated back
    right = sum(result.get(zh) == en for en, zh in words.items())
    assert right >= 5
