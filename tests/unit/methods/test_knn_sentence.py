"""Retrieval by sentence: shortlists, the gate, numbers and names, no loops, beams of whatever search, files, exchange."""

from types import SimpleNamespace

import pytest
import torch

from engine.base.cache_argument import cache_argument
from engine.base.decoding_options import Decoding
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError, OptionError
from engine.memory.source_index import names_in, row_names
from engine.methods import get_method
from engine.methods.batches import Pairs
from engine.methods.knn.build import make_knn, replacement
from engine.methods.knn.datastore import Datastore
from engine.methods.knn.decoder import Knn
from engine.methods.knn.history import History, is_repeated, repeats
from engine.methods.knn.module import KnnModule
from engine.methods.knn.options import KnnOptions
from engine.methods.knn.sentence import ANY, copied, splits_word
from engine.plugins import Plugin, PluginStack
from tests.bases import SENTENCES

PAIRS = [SentencePair(en, zh) for en, zh in SENTENCES]
SET = KnnOptions(retrieval="sentence", k=8, shortlist=3, temperature=0.05, threshold=0.8, weight=0.9, index="flat")
FILES = ["datastore.jsonl", "datastore.safetensors", "datastore.sources.safetensors"]
SHORT = Decoding(beam=3, max_length_ratio=1.0)


@pytest.fixture(scope="module")
def datastore(base):
    return Datastore.build(base, Pairs.encode(base, PAIRS))


def plugin_with(base, datastore, **options):
    return Plugin(get_method("knn"), KnnModule(Knn(datastore, None, SET.replace(**options), base.device)), {})


def total(base, plugin=None, pairs=SENTENCES, **more):
    return sum(value for value, _ in score(base, pairs, plugin, **more))


def entries_of(knn, i):
    """The datastore's sentences that sentence i of the batch may copy from."""
    return set(knn.datastore.sentences[knn.reader.rows[i].columns[:, 1]].tolist())


def test_a_sentence_is_shortlisted_by_the_rare_words_it_shares(base, datastore):
    knn = plugin_with(base, datastore, shortlist=1).module.knn
    knn.set_source(base, base.pad_batch(base.encode([en for en, _ in SENTENCES])))
    assert [entries_of(knn, i) for i in range(len(SENTENCES))] == [{i} for i in range(len(SENTENCES))]
    knn.set_source(base, base.pad_batch(base.encode(["By the river, the old teahouse.", "7"])))
    assert entries_of(knn, 0) == {2}


def test_in_training_a_sentence_does_not_find_itself(base, datastore):
    from engine.methods.interface import Batch

    plugin, pairs = plugin_with(base, datastore), Pairs.encode(base, PAIRS)
    sources = base.pad_batch(pairs.sources)
    labels = base.pad_batch(pairs.labels)
    batch = Batch(sources, (sources != base.pad).long(), None, labels, labels, 0, pairs, list(range(len(pairs))))
    plugin.method.set_source(base, plugin.module, sources, batch)
    assert all(i not in entries_of(plugin.module.knn, i) for i in range(len(pairs)))


def test_the_gate_opens_with_the_best_cosine_and_strength_scales_it():
    cosines = torch.tensor([[0.9, 0.3], [0.1, 0.05], [-2.0, -2.0]])
    mass = copied(cosines, 0.05, 0.8, 0.9)
    assert float(mass[0].sum()) == pytest.approx(0.9 * float(torch.sigmoid(torch.tensor(1.0))), abs=1e-5)
    assert float(mass[0, 0]) > 0.99 * float(mass[0].sum())
    assert float(mass[1].sum()) < 1e-3
    assert mass[2].tolist() == [0.0, 0.0]  # no row to read
    assert float(copied(cosines, 0.05, -1.0, 0.9, 2.0).sum(-1)[0]) == pytest.approx(0.99)  # the base keeps a say


def test_a_sample_is_copied_where_it_is_translated(base, datastore):
    """The tiny base has random weights, so what it says of these sentences is all the samples'."""
    plugin = plugin_with(base, datastore, weight=0.99, threshold=0.5, k=4)
    sources = [en for en, _ in SENTENCES]
    expected = [base.decode(base.encode_target([zh]))[0] for _, zh in SENTENCES]
    for decoding in (Decoding(beam=2), Decoding(beam=1)):
        assert translate(base, sources, plugin, decoding=decoding) == expected


def test_every_search_follows_its_hypotheses(base, datastore):
    """Sentences that leave the batch, or the library's own search, change nothing."""
    sources = [en for en, _ in SENTENCES]
    plugin = plugin_with(base, datastore, threshold=0.3)
    translations = translate(base, sources, plugin, decoding=SHORT)
    assert [translate(base, [source], plugin, decoding=SHORT)[0] for source in sources] == translations

    class Slow(Plugin):
        def logits_processors(self, base, strength=1.0):
            return [lambda ids, scores: scores]  # the library's own search then

    assert translate(base, sources, Slow(plugin.method, plugin.module, {}), decoding=SHORT) == translations


def test_strength_and_weight_zero_are_the_base_exactly(base, datastore):
    sources = [en for en, _ in SENTENCES[:3]]
    before, scores = translate(base, sources, decoding=SHORT), score(base, SENTENCES)
    plugin = plugin_with(base, datastore)
    assert translate(base, sources, plugin, strength=0.0, decoding=SHORT) == before
    assert score(base, SENTENCES, plugin, strength=0.0) == scores
    assert score(base, SENTENCES, plugin_with(base, datastore, weight=0.0)) == scores
    assert total(base, plugin, strength=0.5) < total(base, plugin) < total(base, plugin, strength=1.05)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in base.model.modules())


def test_what_is_scored_whole_is_what_is_decoded_step_by_step(base, datastore):
    """Teacher forcing and the cache of a search keep the same history."""
    from transformers import DynamicCache, EncoderDecoderCache

    plugin = plugin_with(base, datastore, threshold=0.3, temperature=0.2)
    source, labels = (base.pad_batch(base.encode([SENTENCES[2][0]])), base.pad_batch(base.encode_target([SENTENCES[2][1] * 2])))
    inputs = base.shift_right(labels)
    with base.using(plugin), torch.inference_mode():
        plugin.set_source(base, source)
        logits = base.model(input_ids=source, decoder_input_ids=inputs, use_cache=False).logits[0]  # (T, V)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        encoded = base.model.get_encoder()(input_ids=source)
        steps = [
            base.model(
                encoder_outputs=encoded,
                decoder_input_ids=inputs[:, i : i + 1],
                use_cache=True,
                **{cache_argument(base.model): cache},
            ).logits[0, 0]
            for i in range(inputs.shape[1])
        ]
    assert torch.allclose(torch.stack(steps), logits, atol=1e-3)


def test_nothing_is_copied_twice_unless_the_source_repeats():
    written = torch.tensor([[5, 7, 8, 9, 7, 8]])
    rows = torch.tensor([[-1, 70, 71, 72, 73, 74]])
    tokens, candidates = torch.tensor([[[9, 4, 7]]]), torch.tensor([[[90, 71, 95]]])
    refused = is_repeated(History(written, rows, 1), tokens, candidates, torch.tensor([1]))
    assert refused.tolist() == [[[True, True, False]]]  # "7 8 9" again; the same row again; neither
    refused = is_repeated(History(written, rows, 1), tokens, candidates, torch.tensor([2]))
    assert not bool(refused.any())
    assert repeats([1, 2, 3, 4]) == 1
    assert repeats([1, 2, 3, 1, 2, 3, 9, 1, 2, 3]) == 3


def test_a_piece_inside_a_word_follows_the_piece_of_its_own_word():
    before, written = torch.tensor([[[5, 7, ANY]]]), torch.tensor([[5]])
    assert splits_word(before, written).tolist() == [[[False, True, False]]]


def test_tags_and_placeholders_that_the_input_lacks_are_not_copied():
    pieces = [["▁Click", "▁<", "b", ">", "OK", "</", "b", ">", "▁for", "▁%", "s", "▁in", "▁", "<0x7B>", "name", "<0x7D>"]]
    sums = row_names(pieces, ["Klicken Sie auf <b>OK</b> für %s in {name}"])
    opening, closing, printf, brace = sums[1], sums[5], sums[9], sums[13]
    assert sums[1:4] == [opening] * 3
    assert sums[5:8] == [closing] * 3
    assert sums[9:11] == [printf] * 2
    assert sums[13:16] == [brace] * 3
    assert 0 not in (opening, closing, printf, brace)
    assert sums[0] == sums[8] == sums[11] == 0
    assert {opening, closing, printf} <= names_in("Drücken Sie <b>Esc</b> oder %s")
    assert brace not in names_in("Drücken Sie <b>Esc</b> oder %s")
    assert not {opening, printf, brace} & names_in("In 5 % der Fälle ist a < b > c")
    spelt = row_names([["▁a", "<0xE5>", "<0xB2>", "<0x94>"]], ["ein 0"])  # a rare character in bytes
    assert spelt[0] == 0
    assert 0 not in spelt[1:]
    assert not set(spelt[1:]) & names_in("ein 0")


def test_numbers_and_names_that_the_input_lacks_are_not_copied(base):
    pieces = [["▁Article", "▁1", "5", "▁of", "▁Brussels", "▁is", "▁void"]]
    number, name = next(iter(names_in("15"))), next(iter(names_in("Brussels")))
    assert row_names(pieces, ["Artikel 15 von Brussels gilt"]) == [0, number, number, 0, name, 0, 0]
    assert row_names(pieces, ["Artikel 15 der Hauptstadt"])[4] == 0  # translated, not taken over
    pairs = [SentencePair("The road is 25 miles long.", "路是25里长的。"), *PAIRS]
    store = Datastore.build(base, Pairs.encode(base, pairs))
    knn = plugin_with(base, store).module.knn
    for source, holds in (("The road is 25 miles long.", True), ("The road is 37 miles long.", False)):
        knn.set_source(base, base.pad_batch(base.encode([source])))
        words = base.tokenizer.convert_ids_to_tokens(knn.reader.rows[0].columns[:, 0].tolist())
        assert any("2" in word for word in words) == holds
        assert "路" in "".join(words)


def test_settings_are_chosen_on_held_out_sentences_and_saved(base, tmp_path):
    knn, files, metrics = make_knn(base, PAIRS, PAIRS, KnnOptions(retrieval="sentence"), tmp_path)
    assert sorted(files) == ["datastore.gate.safetensors", *FILES]
    assert None not in (knn.options.k, knn.options.shortlist, knn.options.weight)
    assert (knn.options.threshold, knn.options.temperature) == (None, None)
    assert metrics["retrieval"] == "sentence"
    assert metrics["loss"] < metrics["loss_base"]
    plugin = Plugin(get_method("knn"), KnnModule(knn), {})
    assert -total(base, plugin) / metrics["tokens"] == pytest.approx(metrics["loss"], abs=0.05)  # but for the history
    again = Plugin(get_method("knn"), KnnModule(Knn.open(tmp_path, base, knn.options)), {})
    assert score(base, SENTENCES, again) == score(base, SENTENCES, plugin)
    other = replacement(base, knn, PAIRS[:4], tmp_path / "swapped")[0]
    assert torch.equal(other.gate.weights, knn.gate.weights)


def test_its_keys_have_eight_bits_and_those_of_earlier_bundles_sixteen(base, datastore, tmp_path):
    original = make_knn(base, PAIRS, PAIRS, KnnOptions(retrieval="sentence"), tmp_path / "made")[0]
    again = Knn.open(tmp_path / "made", base, original.options)
    for knn in (original, again):
        assert knn.datastore.keys.values.dtype == torch.int8
        assert torch.equal(knn.datastore.vectors(), original.datastore.vectors()), "exact after saving"
        assert torch.allclose(knn.datastore.vectors().float(), datastore.vectors().float(), atol=0.03)
    plugin_with(base, datastore).module.knn.save(tmp_path / "earlier")
    earlier = Knn.open(tmp_path / "earlier", base, SET)
    assert torch.equal(earlier.datastore.keys, datastore.keys)
    sizes = [(tmp_path / folder / "datastore.safetensors").stat().st_size for folder in ("made", "earlier")]
    assert sizes[0] < 0.7 * sizes[1]


@pytest.mark.parametrize("spoil", ["exponents", "keys", "retrieval"])
def test_keys_in_eight_bits_that_do_not_fit_are_refused(base, datastore, tmp_path, spoil):
    from safetensors.torch import load_file, save_file

    plugin_with(base, datastore.in_eight_bits()).module.knn.save(tmp_path)
    file = tmp_path / "datastore.safetensors"
    tensors = {key: value.clone() for key, value in load_file(file).items()}
    if spoil == "retrieval":  # an index cannot search them
        with pytest.raises(BundleError, match=r"exponents.*Get a new copy of the bundle\.$"):
            Knn.open(tmp_path, base, SET.replace(retrieval="global"))
        return
    tensors[spoil] = tensors[spoil][:-1] if spoil == "exponents" else tensors[spoil].half()
    save_file(tensors, file)
    with pytest.raises(BundleError, match=rf"{spoil}.*Get a new copy of the bundle\.$"):
        Knn.open(tmp_path, base, SET)


def test_a_sentence_that_shares_nothing_with_the_samples_is_left_to_the_base(base, tmp_path):
    knn = make_knn(base, PAIRS, PAIRS, KnnOptions(retrieval="sentence"), tmp_path)[0]
    plugin = Plugin(get_method("knn"), KnnModule(knn), {})
    alien = "?"
    assert knn.gate is not None
    assert translate(base, [alien], plugin) == translate(base, [alien])
    assert not any(len(row.scale) for row in knn.reader.rows)
    assert all(row["items"] == [] or row["gate"] > 0.99 for row in plugin.attributions(base, alien, "。"))
    both = [alien, SENTENCES[0][0]]
    assert translate(base, both, plugin)[0] == translate(base, both)[0]


def test_a_named_threshold_takes_the_place_of_the_learned_gate(base, tmp_path):
    knn, files, _ = make_knn(base, PAIRS, PAIRS, KnnOptions(shortlist=2, threshold=0.6), tmp_path / "other")
    fixed = knn.options
    assert (fixed.retrieval, fixed.shortlist, fixed.threshold) == ("sentence", 2, 0.6)
    assert None not in (fixed.temperature, fixed.weight)
    assert sorted(files) == FILES
    assert knn.gate is None
    with pytest.raises(OptionError, match="cannot use the adaptive network"):
        make_knn(base, PAIRS, PAIRS, KnnOptions(retrieval="sentence", adaptive=True), tmp_path / "third")


@pytest.mark.parametrize("spoil", ["missing", "bytes", "list", "rows"])
def test_an_index_of_the_sources_that_does_not_fit_is_refused(base, datastore, tmp_path, spoil):
    from safetensors.torch import load_file, save_file

    plugin_with(base, datastore).module.knn.save(tmp_path)
    file = tmp_path / "datastore.sources.safetensors"
    if spoil == "missing":
        file.unlink()
    elif spoil == "bytes":
        file.write_bytes(file.read_bytes()[:-9])
    else:
        tensors = {key: value.clone() for key, value in load_file(file).items()}
        tensors["lists" if spoil == "list" else "starts"][-1] += 1000
        save_file(tensors, file)
    with pytest.raises(BundleError, match=r"datastore\.sources\.safetensors .*Get a new copy of the bundle\.$"):
        Knn.open(tmp_path, base, SET)


def test_other_samples_take_the_place_of_its_own(base, datastore, tmp_path):
    plugin = plugin_with(base, datastore)
    files = plugin.method.replace_samples(base, plugin.module, PAIRS[:3], tmp_path).files
    assert "datastore.sources.safetensors" in files
    texts = {item["text"] for row in plugin.attributions(base, *SENTENCES[7]) for item in row["items"]}
    assert texts <= {pair.target for pair in PAIRS[:3]}
    assert replacement(base, plugin.module.knn, PAIRS, tmp_path / "more")[0].options == SET


def test_what_was_read_names_sentences_of_the_samples(base, datastore):
    rows = plugin_with(base, datastore).attributions(base, *SENTENCES[2], top=3)
    assert [row["position"] for row in rows] == list(range(len(base.encode_target([SENTENCES[2][1]])[0])))
    for row in rows:
        assert (row["items"][0]["text"], row["items"][0]["source"]) == (SENTENCES[2][1], SENTENCES[2][0])
        assert row["items"][0]["token"] == row["token"]
        assert row["gate"] < 0.5


def test_nothing_was_read_where_the_domain_filter_leaves_a_sentence_to_the_base(base, datastore):
    refuses = SimpleNamespace(shares=lambda base, texts: [0.0] * len(texts))
    plugin = plugin_with(base, datastore).with_filter(refuses)
    assert plugin.unfiltered.attributions(base, *SENTENCES[2])
    assert plugin.attributions(base, *SENTENCES[2]) == []


def test_it_works_beside_other_plugins(base, datastore, tmp_path):
    from engine.methods import Artefacts

    method = get_method("houlsby_adapter")
    module = method.build(base, Artefacts(), method.config_class())
    method.prepare_for_inference(module)
    other, plugin = Plugin(method, module, {}), plugin_with(base, datastore, threshold=0.3)
    sources = [en for en, _ in SENTENCES]
    alone = translate(base, sources, plugin, decoding=SHORT)
    assert translate(base, sources, PluginStack([other, plugin]), decoding=SHORT) == alone  # untrained: the base
    beside = Plugin(method, module, {}, knn=plugin.module.knn)
    assert translate(base, sources, beside, decoding=SHORT) == alone
    assert {row["place"] for row in beside.attributions(base, *SENTENCES[1])} == {"datastore"}
    twice = translate(base, sources, PluginStack([plugin, plugin_with(base, datastore, shortlist=1)]), decoding=SHORT)
    assert len(twice) == len(sources)
