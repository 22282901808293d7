"""Other memories in the place of a plugin's own: what each holds, for every method that has one."""

from __future__ import annotations

import pytest
import torch

from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora import general_text
from engine.corpora.general_text import general_sentences
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import InputError, ModelError, OptionError
from engine.methods import get_method, method_names
from engine.methods.ablation import KINDS, UnavailableError, evenly_spaced, gaussian_like, kinds_of
from engine.methods.data import Samples
from engine.methods.knn.options import KnnOptions
from engine.phrases import PhraseOptions, extract_phrases
from engine.plugins import Plugin
from engine.plugins.ablate import Ablation, check_ablate, check_lines, exchange_memory, material_of
from tests.bases import SENTENCES, tiny_base
from tests.retrieval_methods import samples_of

SOURCES = ["The rain stopped at the door.", "My mother waited for a letter.", "We walked the long road home."]
REFERENCES = ["雨在门外停了。", "母亲等一封信。", "我们走那长路回家去。"]
SHORT = Decoding(beam=2, max_length_ratio=0.5, guard=False)
OPTIONS = {
    "memory_adapter": {"phrases_per_layer": 12, "aligner": "none"},
    "knn": {"k": 4, "temperature": 10.0, "weight": 0.5},
    "ngram_memory": {"neighbours_translating": 2, "init": "random"},
    "translation_memory": {"warm_updates": 0, "neighbours": 2},
}


@pytest.fixture(scope="module")
def base():
    return tiny_base()


@pytest.fixture(autouse=True)
def an_eighth_of_general_text(monkeypatch):
    """An untrained base writes each source to its longest."""
    monkeypatch.setattr(general_text, "general_sentences", lambda *args, **kwargs: general_sentences(*args, **kwargs)[::8])


@pytest.fixture(scope="module")
def prepared(base, tmp_path_factory):
    """{method: artefacts of the eight sentences}, made once."""
    result = {}

    def of(name):
        if name not in result:
            method, folder = get_method(name), tmp_path_factory.mktemp(name)
            samples = samples_of(base, folder, [])
            if method.capabilities.needs_phrases:
                texts = [target for _, target in SENTENCES]
                phrases = extract_phrases(texts, "zh", PhraseOptions(parser="statistical"), pieces=base.subwords)
                samples = Samples(samples.pair, [], [], folder, samples.settings, phrases)
            config = method.config_class(**OPTIONS[name])
            result[name] = method.prepare(samples, config, Progress()), config
        return result[name]

    return of


def plugin_of(name, base, prepared):
    """A plugin whose every weight has a value that is not its first one, so that its memory does something."""
    method, (artefacts, config) = get_method(name), prepared(name)
    torch.manual_seed(3)
    module = method.build(base, artefacts, artefacts.config or config)
    for key, parameter in module.named_parameters():
        parameter.data += 0.04 if key.endswith("scale") else torch.randn_like(parameter) * 0.05
    method.prepare_for_inference(module)
    return Plugin(method, module, {"source": "en", "target": "zh"})


def material(base, folder, **changes):
    ablation = Ablation(SOURCES, REFERENCES, phrase_options=PhraseOptions(parser="statistical"), **changes)
    return material_of(ablation, base, "", load_settings(), folder, Progress())


def loss(base, plugin):
    scored = score(base, list(zip(SOURCES, REFERENCES, strict=True)), plugin)
    return -sum(total for total, _ in scored) / sum(count for _, count in scored)


METHODS = [name for name in method_names() if get_method(name).capabilities.has_memory]


def test_the_methods_with_a_memory_are_the_four_that_read_one():
    assert sorted(METHODS) == sorted(OPTIONS)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name not in ("memory_adapter", "knn") else ()) for name in METHODS]
)
def test_every_memory_changes_what_is_read_and_the_same_seed_gives_the_same(name, base, prepared, tmp_path):
    losses = {"base": loss(base, None), "true": loss(base, plugin_of(name, base, prepared))}
    for kind in KINDS:
        again = []
        for run in range(2):
            plugin = plugin_of(name, base, prepared)
            exchange_memory(base, plugin, kind, material(base, tmp_path / f"{kind}{run}"))
            again.append(loss(base, plugin))
            assert len(translate(base, SOURCES, plugin, decoding=SHORT)) == len(SOURCES)
        assert again[0] == again[1], kind
        losses[kind] = again[0]
    assert losses["true"] != losses["base"]
    for kind in KINDS:
        assert losses[kind] != losses["true"], kind
    if name != "memory_adapter":  # whose readers read zeros where nothing is remembered, as with memory dropout
        assert losses["empty"] == pytest.approx(losses["base"], abs=1e-6)
    assert loss(base, None) == losses["base"], "the base is as it was"


def test_the_oracle_helps_where_reading_works(base, prepared, tmp_path):
    plugin = plugin_of("knn", base, prepared)
    before = loss(base, plugin)
    exchange_memory(base, plugin, "oracle", material(base, tmp_path))
    assert loss(base, plugin) < before - 0.5
    assert {target for _, target in plugin.module.knn.datastore.texts} == set(REFERENCES)


def test_shuffled_values_are_the_same_values_at_other_keys(base, prepared, tmp_path):
    for name, values in {
        "knn": lambda module: module.knn.datastore.tokens.tolist(),
        "ngram_memory": lambda module: [pair.target for pair in module.pairs],
        "translation_memory": lambda module: module.rows,
    }.items():
        plugin = plugin_of(name, base, prepared)
        before = values(plugin.module)
        exchange_memory(base, plugin, "shuffled", material(base, tmp_path))
        after = values(plugin.module)
        assert sorted(after) == sorted(before)
        assert after != before
    keys = plugin_of("memory_adapter", base, prepared).module.readers()[0][2]
    plugin = plugin_of("memory_adapter", base, prepared)
    exchange_memory(base, plugin, "shuffled", material(base, tmp_path))
    reader = plugin.module.readers()[0][2]
    assert torch.equal(reader.keys, keys.keys)
    assert not torch.equal(reader.values, keys.values)
    assert torch.equal(reader.values.sort(0).values, keys.values.sort(0).values)


def test_noise_and_mean_rows_have_the_memory_s_own_moments(base, prepared, tmp_path):
    true = plugin_of("memory_adapter", base, prepared).module.readers()[0][2].memory
    plugin = plugin_of("memory_adapter", base, prepared)
    exchange_memory(base, plugin, "mean", material(base, tmp_path))
    assert torch.allclose(plugin.module.readers()[0][2].memory, true.mean(0, keepdim=True), atol=1e-6)
    plugin = plugin_of("memory_adapter", base, prepared)
    exchange_memory(base, plugin, "noise", material(base, tmp_path))
    assert plugin.module.readers()[0][2].memory.shape == true.shape
    rows = torch.randn(50, 4) @ torch.randn(4, 4) + 3
    drawn = gaussian_like(rows, 200_000, torch.Generator().manual_seed(1))
    assert torch.allclose(drawn.mean(0), rows.mean(0), atol=0.05)
    assert torch.allclose(drawn.T.cov(), rows.T.cov(correction=0), atol=0.1)
    assert evenly_spaced(torch.tensor([7, 3, 7, 7]), 4).tolist() == [3, 7, 7, 7]
    assert evenly_spaced(torch.arange(100) // 50, 10).tolist() == [0] * 5 + [1] * 5


def test_a_datastore_beside_the_method_is_exchanged_with_it(base, prepared, tmp_path):
    """A plugin without a memory of its own, but with a datastore (`--knn`)."""
    method, config = get_method("lhuc"), get_method("lhuc").config_class()
    module = method.build(base, method.prepare(samples_of(base, tmp_path / "w"), config, Progress()), config)
    plugin = Plugin(method, module.eval(), {}, None, plugin_of("knn", base, prepared).module.knn)
    before = loss(base, plugin)
    exchange_memory(base, plugin, "oracle", material(base, tmp_path))
    assert loss(base, plugin) < before - 0.5


def test_what_cannot_be_had_says_why(base, prepared, tmp_path):
    plugin = plugin_of("knn", base, prepared)
    knn = plugin.module.knn
    knn.datastore.keys, keys = None, knn.datastore.keys
    try:
        for kind in ("noise", "mean"):
            with pytest.raises(UnavailableError, match=r"keep_keys=no.*\.$"):
                exchange_memory(base, plugin, kind, material(base, tmp_path))
    finally:
        knn.datastore.keys = keys

    def one_way():
        raise ModelError("The base tiny cannot translate back.")

    lone = material(base, tmp_path)
    lone.load_pair = one_way  # and the general text that comes along has no sources
    with pytest.raises(UnavailableError, match="cannot translate back"):
        exchange_memory(base, plugin, "foreign", lone)


def test_errors_are_one_sentence():
    with pytest.raises(OptionError, match=r"no memory 'nosie'.*Known: empty, foreign, noise, shuffled, mean, oracle\.$"):
        kinds_of("empty,nosie")
    with pytest.raises(OptionError, match="name at least one"):
        kinds_of(" , ")
    assert kinds_of("oracle, empty") == ["empty", "oracle"]
    with pytest.raises(InputError, match=r"2 source sentences and 1 references\..*line by line\.$"):
        check_lines(Ablation(["a", "b"], ["c"]))
    with pytest.raises(InputError, match=r"no sentence to translate\."):
        check_lines(Ablation([""], [" "]))
    for method in ("lhuc", "blend"):
        with pytest.raises(OptionError, match=rf"method {method} has no memory, only weights"):
            check_ablate({"method": method})
    check_ablate({"method": "lhuc", "knn": KnnOptions().to_mapping()})
