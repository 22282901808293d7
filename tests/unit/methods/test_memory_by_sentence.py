"""The memory adapter that reads by sentence: a slow float64 reference of its equations, and what users rely on."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora import Segment
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError, CorpusError
from engine.memory.sentence_memory import FILE, TEXTS, Keys, SentenceMemory, record_sentences
from engine.memory.source_index import OF_MEMORY
from engine.methods import Artefacts, get_method
from engine.methods.ablation import KINDS, Material
from engine.methods.batches import Pairs
from engine.methods.data import Samples
from engine.methods.interface import Batch
from engine.methods.losses import log_probabilities
from engine.methods.memory_adapter.by_sentence import GENERAL
from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.methods.memory_adapter.sentence_reader import COVERAGE, SHARPNESS, SIZE, SLOW, SPEED
from engine.phrases import PhraseOptions
from engine.plugins import Plugin
from tests.bases import SENTENCES

METHOD = get_method("memory_adapter")
CONFIG = MemoryAdapterConfig(retrieval="sentence", key_size=8, shortlist=3, alpha=0, beta=0)
PAIRS = [SentencePair(*pair) for pair in SENTENCES]
SOURCES = ["The rain stopped by the river.", "My mother said nothing.", "I waited in the dark for a letter."]


@pytest.fixture(scope="module")
def folder(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    places = [(layer, position) for layer in (1, 2) for position in ("self_attn", "encoder_attn")]
    record_sentences(base, PAIRS, places, CONFIG.key_size).save(folder)
    return folder


def module_for(base, folder, *, trained=True, **options):
    config = CONFIG.replace(**options)
    module = METHOD.build(base, METHOD.open(folder, base, config), config)
    if trained:
        torch.manual_seed(4)
        for parameter in module.parameters():
            parameter.data += torch.randn_like(parameter) * 0.05
    METHOD.prepare_for_inference(module)
    return module


def batch_of(base, pairs):
    encoded = Pairs.encode(base, pairs)
    sources, labels = base.pad_batch(encoded.sources), base.pad_batch(encoded.labels)
    mask = (sources != base.pad).long()
    return Batch(sources, mask, None, base.shift_right(labels), labels, 0, encoded, range(len(encoded)))


def mixed(reader, anchor, query, rows, tokens, table, coverage, known_share):
    """What a reader makes of one anchor, written down word by word from the module's equations."""

    def length_1(x):
        return x / x.norm()

    def compared(key):
        return length_1(key + SLOW * reader.match.double() @ key)

    q = compared(reader.basis.double() @ (query - reader.mean.double()))
    sharpness = SHARPNESS * math.exp(SPEED * reader.sharpness.item())
    cosines = [float(q @ compared(key)) for key in rows]
    bonus = [(COVERAGE + SPEED * reader.by_coverage.item()) * float(v) for v in coverage]
    scores = torch.tensor([sharpness * c + b for c, b in zip(cosines, bonus, strict=True)], dtype=torch.float64)
    weights = torch.exp(scores - scores.max())
    weights = weights / weights.sum()
    read = reader.value.weight.double() @ sum(w * table[token] for w, token in zip(weights, tokens, strict=True))
    best, entropy = int(scores.argmax()), -sum(float(w) * math.log(max(float(w), 1e-9)) for w in weights)
    evidence = torch.tensor([5 * cosines[best], 5 * float(coverage[best]), 5 * float(known_share), entropy], dtype=torch.float64)
    hidden = reader.gate_hidden.weight.double() @ torch.cat([SIZE * length_1(anchor), evidence])
    hidden = torch.clamp(hidden + reader.gate_hidden.bias.double(), min=0)
    opened = 1 / (1 + torch.exp(-(reader.gate_out.weight.double() @ hidden + reader.gate_out.bias.double())))
    return anchor + opened * read


def test_a_reader_does_what_its_equations_say(base, folder):
    module = module_for(base, folder)
    module.set_source(base, base.pad_batch(base.encode(SOURCES)))
    shortlist, memory = module.shortlist, module.memory
    assert shortlist.real.any(1).all()
    table = base.model.get_output_embeddings().weight.detach().double()
    table = table * (SIZE / table.norm(dim=-1).mean())
    for layer, position, reader in module.readers():
        anchor, query = torch.randn(2, len(SOURCES), 4, base.d_model)
        with torch.no_grad():
            result = reader(anchor, query)
        for b in range(len(SOURCES)):
            rows = shortlist.rows[b][shortlist.real[b]]
            keys, tokens = memory.keys[layer, position][rows].double(), memory.tokens[rows].tolist()
            coverage = shortlist.coverage[b][shortlist.real[b]]
            for t in range(4):
                expected = mixed(
                    reader, anchor[b, t].double(), query[b, t].double(), keys, tokens, table, coverage, shortlist.known_share[b]
                )
                torch.testing.assert_close(result[b, t].double(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("bottleneck", [0, 4])
def test_an_untrained_adapter_is_the_base_to_the_bit_and_has_a_gradient(base, folder, bottleneck):
    module = module_for(base, folder, trained=False, bottleneck=bottleneck)
    plugin = Plugin(METHOD, module, {})
    assert translate(base, SOURCES, plugin) == translate(base, SOURCES)
    assert score(base, SENTENCES, plugin) == score(base, SENTENCES)
    batch = batch_of(base, PAIRS)
    module.train()
    METHOD.set_source(base, module, batch.sources, batch)
    with METHOD.attach(base, module):
        METHOD.loss(base, module, batch).total.backward()
    assert any(float(reader.value.weight.grad.abs().max()) > 0 for _, _, reader in module.readers())
    assert all(float(part.up.weight.grad.abs().max()) > 0 for _, _, _, part in module.adapters.placed())
    assert float(next(iter(module.readers()))[2].value.weight.abs().max()) == 0


@pytest.mark.parametrize("bottleneck", [0, 4])
def test_the_base_is_as_before_once_the_plugin_is_off(base, folder, bottleneck):
    module = module_for(base, folder, bottleneck=bottleneck)
    before, scores = translate(base, SOURCES), score(base, SENTENCES)
    assert score(base, SENTENCES, Plugin(METHOD, module, {})) != scores
    assert translate(base, SOURCES) == before
    assert not any(part._forward_hooks for layer in base.decoder_layers for part in layer.modules())


@pytest.mark.parametrize("bottleneck", [0, 4])
def test_translations_do_not_hang_on_the_batch(base, folder, bottleneck):
    plugin = Plugin(METHOD, module_for(base, folder, bottleneck=bottleneck), {})
    together = translate(base, SOURCES, plugin, decoding=Decoding())
    assert together == [translate(base, [source], plugin, decoding=Decoding())[0] for source in SOURCES]


def test_in_training_no_sentence_reads_itself(base, folder):
    module = module_for(base, folder)
    batch = batch_of(base, PAIRS)
    METHOD.set_source(base, module, batch.sources, batch)
    rows, real = module.shortlist.rows, module.shortlist.real
    for number in range(len(PAIRS)):
        assert number not in {module.memory.sentence_of(int(row)) for row in rows[number][real[number]]}
    METHOD.set_source(base, module, batch.sources)
    rows, real = module.shortlist.rows, module.shortlist.real
    assert all(number == module.memory.sentence_of(int(rows[number][0])) for number in range(len(PAIRS)))


def test_a_text_that_no_sample_has_a_word_of_is_left_to_the_base(base, folder):
    module = module_for(base, folder)
    module.set_source(base, base.pad_batch([[max(base.special_ids)]]))
    assert not module.shortlist.real.any()
    anchor = torch.randn(1, 3, base.d_model)
    assert all(torch.equal(reader(anchor, anchor), anchor) for _, _, reader in module.readers())


@pytest.mark.parametrize("options", [{}, {"bottleneck": 4}, {"bottleneck": 4, "fine_tune": "all"}])
def test_general_text_is_learned_as_the_base_has_it(base, folder, options):
    pairs = [*PAIRS[:4], *(replace(pair, general=True) for pair in PAIRS[4:])]
    batch, parts = batch_of(base, pairs), {}
    general = torch.tensor([pair.general for pair in pairs])[:, None].expand_as(batch.labels)[batch.labels != base.pad]
    for trained in (False, True):
        module = module_for(base, folder, trained=trained, **options).train()
        METHOD.set_source(base, module, batch.sources, batch)
        with METHOD.attach(base, module), torch.no_grad():
            loss, log_p = METHOD.loss(base, module, batch), log_probabilities(base, batch)
        with torch.no_grad():
            alone = log_probabilities(base, batch)
        labels = batch.labels[batch.labels != base.pad]
        nll = -log_p.gather(1, labels[:, None])[~general].sum()
        drift = (alone.exp() * (alone - log_p)).sum(-1)[general].sum()
        assert float(loss.total) == pytest.approx(float(nll + GENERAL * drift) / len(labels), rel=1e-4)
        parts[trained] = loss.parts
    assert parts[False]["drift"] == pytest.approx(0, abs=1e-6)
    assert parts[True]["drift"] > 1e-4


def test_dropped_readers_leave_the_anchor(base, folder):
    module = module_for(base, folder, memory_dropout=1.0)
    module.set_source(base, base.pad_batch(base.encode(SOURCES)))
    anchor = torch.randn(len(SOURCES), 2, base.d_model)
    assert module.drop()
    assert module.lowest_dropped() == 1
    assert all(torch.equal(reader(anchor, anchor), anchor) for _, _, reader in module.readers())
    module.undrop()
    assert not any(torch.equal(reader(anchor, anchor), anchor) for _, _, reader in module.readers())


def test_what_was_read_is_shown_with_its_sentences(base, folder):
    module = module_for(base, folder)
    rows = METHOD.attributions(base, module, SOURCES[0], "雨停了。", 2)
    assert {row["layer"] for row in rows} == {1, 2}
    sentences = set(SENTENCES)
    for row in rows:
        assert 0 <= row["gate"] <= 1
        assert all((item["source"], item["text"]) in sentences for item in row["items"])
        weights = [item["weight"] for item in row["items"]]
        assert weights == sorted(weights, reverse=True)
    (folder / TEXTS).rename(folder / "away")
    try:
        rows = METHOD.attributions(base, module_for(base, folder), SOURCES[0], "雨停了。", 2)
    finally:
        (folder / "away").rename(folder / TEXTS)
    assert {item["text"] for row in rows for item in row["items"]} == {""}


@pytest.mark.parametrize("kind", KINDS)
def test_every_other_memory_can_take_its_place(base, folder, tmp_path, pair, kind):
    module = module_for(base, folder)
    segments = [Segment(target, source) for source, target in SENTENCES]
    texts = {"foreign": segments[:3], "oracle": segments[3:]}
    material = Material(base, texts, tmp_path, load_settings(), PhraseOptions(), lambda: pair)
    before = score(base, SENTENCES, Plugin(METHOD, module, {}))
    METHOD.ablate(base, module, kind, material)
    after = score(base, SENTENCES, Plugin(METHOD, module, {}))
    assert after != before
    if kind == "empty":
        assert after == score(base, SENTENCES)


def test_a_memory_is_read_as_it_was_written_and_a_damaged_one_is_refused(base, folder, tmp_path):
    memory = SentenceMemory.open(folder, base)
    files = memory.save(tmp_path)
    assert set(files) == {FILE, OF_MEMORY, TEXTS}
    again = SentenceMemory.open(tmp_path, base)
    assert torch.equal(again.tokens, memory.tokens)
    assert all(torch.equal(again.keys[place][:], keys[:]) for place, keys in memory.keys.items())
    assert again.sentences == memory.sentences
    memory.changed(tokens=memory.tokens + 10**6).save(tmp_path)
    with pytest.raises(BundleError, match="does not fit the base"):
        SentenceMemory.open(tmp_path, base)
    memory.changed(keys={place: Keys.of(keys[:-1]) for place, keys in memory.keys.items()}).save(tmp_path)
    with pytest.raises(BundleError, match="does not fit the base"):
        SentenceMemory.open(tmp_path, base)
    memory.changed(sentences=memory.sentences[1:]).save(tmp_path)
    with pytest.raises(BundleError, match="does not fit"):
        SentenceMemory.open(tmp_path, base)
    (tmp_path / FILE).write_bytes(b"no tensors")
    with pytest.raises(BundleError, match="missing or damaged"):
        SentenceMemory.open(tmp_path, base)


def test_keys_in_sixteen_bits_of_earlier_bundles_are_read_as_they_were(base, folder, tmp_path):
    memory = SentenceMemory.open(folder, base)
    memory.save(tmp_path)
    tensors = load_file(tmp_path / FILE)
    halves = {name: torch.randn(value.shape).half() for name, value in tensors.items() if name.endswith(".keys")}
    others = {name: value for name, value in tensors.items() if not name.endswith((".keys", ".exponents"))}
    save_file(others | halves, tmp_path / FILE)
    earlier = SentenceMemory.open(tmp_path, base)
    for (layer, position), keys in earlier.keys.items():
        assert torch.equal(keys[:], halves[f"{layer}.{position}.keys"].float())
    save_file(others | {name: value.double() for name, value in halves.items()}, tmp_path / FILE)
    with pytest.raises(BundleError, match="does not fit the base"):
        SentenceMemory.open(tmp_path, base)


@given(st.lists(st.lists(st.floats(-1e4, 1e4, width=32), min_size=3, max_size=3), min_size=1, max_size=5))
def test_a_key_is_rounded_by_a_127th_of_its_largest_number_at_most(rows):
    keys = torch.tensor(rows)
    rounded = Keys.of(keys)[:]
    assert ((rounded - keys).abs() <= keys.abs().amax(1, keepdim=True) / 127 + 2**-99).all()
    assert torch.equal(Keys.of(rounded)[:], rounded), "once is for good"


def test_settings_that_the_memory_was_not_made_with_are_refused(base, folder):
    with pytest.raises(BundleError, match="does not fit the settings"):
        METHOD.build(base, METHOD.open(folder, base, CONFIG), CONFIG.replace(key_size=16))
    with pytest.raises(BundleError, match="does not fit the settings"):
        METHOD.build(base, METHOD.open(folder, base, CONFIG), CONFIG.replace(layers=(0,)))


def test_a_bundle_without_its_memory_is_refused(base, tmp_path):
    with pytest.raises(BundleError, match=f"has no {FILE}"):
        METHOD.open(tmp_path, base, CONFIG)


def test_samples_without_a_source_cannot_be_remembered(base):
    with pytest.raises(CorpusError, match="no sentence pair to store in the memory"):
        record_sentences(base, [SentencePair("", "雨停了。")], [(2, "self_attn")], 8, Progress())


def test_without_a_memory_nothing_is_read(base):
    module = METHOD.build(base, Artefacts(), CONFIG)
    METHOD.prepare_for_inference(module)
    assert translate(base, SOURCES, Plugin(METHOD, module, {})) == translate(base, SOURCES)


@pytest.mark.parametrize(("own", "part"), [(len(SENTENCES), "all"), (0, "decoder")])
def test_the_base_is_tuned_along_as_far_as_the_sources_teach_it(pair, own, part, tmp_path):
    """`fine_tune=auto`: the whole base where the user gave the sources, else the decoder alone."""
    train = [Segment(text, source if i < own else None) for i, (source, text) in enumerate(SENTENCES)]
    samples = Samples(pair, train, [], tmp_path, load_settings(), sentence_pairs={"train": PAIRS})
    artefacts = METHOD.prepare(samples, CONFIG.replace(fine_tune="auto"), Progress())
    assert artefacts.config.fine_tune == part
    assert METHOD.changes_encoder(METHOD.build(pair.forward, artefacts, artefacts.config)) == (part == "all")


def test_a_bundle_holds_the_tuned_weights_in_a_quarter_of_the_bytes_and_exactly(base, folder):
    module = module_for(base, folder, fine_tune="decoder", bottleneck=8)
    METHOD.after_training(module)
    packed = METHOD.packed(module)
    state = module.state_dict()
    tuned = {key: tensor for key, tensor in packed.items() if key.startswith("tuned.")}
    assert {key.removesuffix(".change").removesuffix(".exponents") for key in packed} == set(state)
    assert {tensor.dtype for tensor in tuned.values() if tensor.dim() > 1} == {torch.int8}
    assert {tensor.dtype for key, tensor in packed.items() if key not in tuned} == {torch.float32}
    again = METHOD.unpacked(module, packed)
    assert set(again) == set(state)
    assert all(torch.equal(again[key], state[key]) for key in state)
