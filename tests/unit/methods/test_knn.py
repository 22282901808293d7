"""kNN decoding against a slow float64 reference of the paper's equations, its indexes, its tuning, and what users rely on."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.base.decoding_options import Decoding
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError, OptionError
from engine.memory.faiss_search import FlatSearch
from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.methods.knn.build import make_knn, replacement
from engine.methods.knn.config import KnnConfig
from engine.methods.knn.datastore import Datastore
from engine.methods.knn.decoder import Knn
from engine.methods.knn.index import build_index, kind_for, make_search, open_index, save_index
from engine.methods.knn.interpolate import by_token, masses, mix, shares
from engine.methods.knn.options import KnnOptions
from engine.methods.knn.tune import Evidence, gather, likelihood, tune
from engine.plugins import Plugin, PluginStack
from tests.bases import SENTENCES, tiny_base
from tests.properties import few

PAIRS = [SentencePair(en, zh) for en, zh in SENTENCES]
SET = KnnOptions(k=4, temperature=10.0, weight=0.5, index="flat")


@pytest.fixture(scope="module")
def datastore(base):
    return Datastore.build(base, Pairs.encode(base, PAIRS))


def knn_for(base, datastore, **options):
    chosen = SET.replace(**options)
    return Knn(datastore, build_index(datastore.keys, chosen.index, chosen), chosen, base.device)


def plugin_with(base, knn):
    """kNN-MT as a plugin over the base."""
    from engine.methods.knn.module import KnnModule

    return Plugin(get_method("knn"), KnnModule(knn), {})


# -- the equations


def equations_2_and_3(logits, distances, tokens, temperature, weight):
    """Khandelwal et al. (2021), word for word, one position and one word after the other, in float64."""
    rows, words = logits.shape
    result = torch.zeros(rows, words, dtype=torch.float64)
    for r in range(rows):
        total = sum(math.exp(float(z)) for z in logits[r])
        raw = [math.exp(-float(d) / temperature) for d in distances[r]]
        for y in range(words):
            near = sum(w for w, t in zip(raw, tokens[r].tolist(), strict=True) if t == y) / sum(raw)
            result[r, y] = (1 - weight) * math.exp(float(logits[r, y])) / total + weight * near
    return result


@few
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 9), st.floats(0.0, 0.99), st.floats(0.5, 100.0))
def test_the_mixture_is_the_papers_and_a_distribution(seed, rows, k, weight, temperature):
    draw = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, 7, generator=draw, dtype=torch.float64)
    distances = 50 * torch.rand(rows, k, generator=draw, dtype=torch.float64)
    tokens = torch.randint(7, (rows, k), generator=draw)
    expected = equations_2_and_3(logits, distances, tokens, temperature, weight)
    result = mix(logits.clone(), tokens, masses(distances, temperature, weight)).softmax(-1)
    assert torch.allclose(result, expected, atol=1e-9)
    assert torch.allclose(result.sum(-1), torch.ones(rows, dtype=torch.float64), atol=1e-12)
    assert bool((result >= 0).all())


def test_a_bias_that_comes_after_the_output_layer_is_part_of_the_base():
    torch.manual_seed(0)
    logits, bias = torch.randn(3, 7, dtype=torch.float64), torch.randn(1, 7, dtype=torch.float64)
    distances, tokens = torch.rand(3, 4, dtype=torch.float64), torch.randint(7, (3, 4))
    expected = equations_2_and_3(logits + bias, distances, tokens, 2.0, 0.4)
    result = (mix(logits.clone(), tokens, masses(distances, 2.0, 0.4), bias) + bias).softmax(-1)
    assert torch.allclose(result, expected, atol=1e-10)
    bias[0, 2] = float("-inf")  # what a base forbids stays forbidden
    result = (mix(logits.clone(), tokens, masses(distances, 2.0, 0.4), bias) + bias).softmax(-1)
    assert bool((result[:, 2] == 0).all())
    assert bool(torch.isfinite(result).all())


def test_neighbours_that_were_not_found_bring_nothing():
    far = float("inf")
    distances = torch.tensor([[1.0, far, far], [far, far, far]])
    assert shares(distances, 5.0).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    logits = torch.randn(2, 6)
    result = mix(logits.clone(), torch.tensor([[3, 0, 0], [0, 0, 0]]), masses(distances, 5.0, 0.5))
    assert torch.allclose(result[1], logits[1], atol=1e-6)
    assert torch.isfinite(result).all()


def test_shares_stay_finite_for_far_neighbours_and_small_temperatures():
    result = shares(torch.tensor([[1e7, 1e7 + 1, 2e7]]), 1e-3)
    assert torch.isfinite(result).all()
    assert float(result.sum()) == pytest.approx(1.0)


def test_masses_of_one_token_add_up(monkeypatch):
    tokens, mass = torch.tensor([[4, 5, 4, 4]]), torch.tensor([[0.1, 0.2, 0.3, 0.05]])
    assert torch.allclose(by_token(tokens, mass), torch.tensor([[0.45, 0.2, 0.45, 0.45]]))
    tokens, mass = torch.randint(9, (5, 128)), torch.rand(5, 128, dtype=torch.float64)
    expected = torch.stack([torch.stack([m[t == token].sum() for token in t]) for t, m in zip(tokens, mass, strict=True)])
    assert torch.allclose(by_token(tokens, mass), expected)
    monkeypatch.setattr("engine.methods.knn.interpolate.FEW", 1000)
    assert torch.allclose(by_token(tokens, mass), expected)


def test_gradients_reach_the_logits_and_the_masses():
    logits = torch.randn(2, 6, requires_grad=True)
    mass = masses(torch.rand(2, 3), 1.0, 0.5).requires_grad_()
    mix(logits, torch.randint(6, (2, 3)), mass).log_softmax(-1)[:, 0].sum().backward()
    assert bool(logits.grad.abs().sum() > 0)
    assert bool(torch.isfinite(mass.grad).all())


# -- the datastore


def test_keys_are_the_decoders_last_states_and_values_the_next_tokens(base, datastore):
    pairs = Pairs.encode(base, PAIRS)
    assert datastore.tokens.tolist() == [token for row in pairs.labels for token in row]
    assert datastore.sentences.tolist() == [i for i, row in enumerate(pairs.labels) for _ in row]
    assert datastore.positions.tolist() == [t for row in pairs.labels for t in range(len(row))]
    i = 2
    labels = base.pad_batch([pairs.labels[i]])
    with torch.no_grad():
        states = base.model.model(
            input_ids=base.pad_batch([pairs.sources[i]]), decoder_input_ids=base.shift_right(labels)
        ).last_hidden_state[0]
    keys = datastore.keys[datastore.sentences == i].float()
    assert torch.allclose(keys, states, atol=2e-2)  # keys are kept in half precision


def test_the_feed_forward_input_is_another_key(base, datastore):
    other = Datastore.build(base, Pairs.encode(base, PAIRS), location="ffn_input")
    assert other.tokens.equal(datastore.tokens)
    assert not torch.allclose(other.keys.float(), datastore.keys.float(), atol=0.1)


def test_saved_and_opened_it_is_the_same(base, datastore, tmp_path):
    files = datastore.save(tmp_path)
    assert sorted(files) == ["datastore.jsonl", "datastore.safetensors"]
    again = Datastore.open(tmp_path, base.d_model, base.model.config.vocab_size)
    assert all(getattr(again, name).equal(getattr(datastore, name)) for name in ("keys", "tokens", "sentences", "positions"))
    assert again.sentence(0) == SENTENCES[0]
    (tmp_path / "datastore.jsonl").unlink()
    assert Datastore.open(tmp_path, base.d_model, base.model.config.vocab_size).sentence(0) == ("", "")


@pytest.mark.parametrize("spoil", ["token", "sentence", "shape", "type", "key", "bytes", "text"])
def test_a_datastore_that_does_not_fit_is_refused_in_a_sentence(base, datastore, tmp_path, spoil):
    from safetensors.torch import load_file, save_file

    datastore.save(tmp_path)
    file = tmp_path / "datastore.safetensors"
    tensors = load_file(file)
    if spoil == "token":
        tensors["tokens"] = tensors["tokens"] + 10**8
    elif spoil == "sentence":
        tensors["sentences"] = tensors["sentences"] - 1
    elif spoil == "shape":
        tensors["keys"] = tensors["keys"][:-1]
    elif spoil == "type":
        tensors["keys"] = tensors["keys"].float()
    elif spoil == "key":
        tensors["more"] = tensors.pop("positions")
    if spoil == "bytes":
        file.write_bytes(file.read_bytes()[:-9])
    elif spoil == "text":
        (tmp_path / "datastore.jsonl").write_text("{}\n", encoding="utf-8")
    else:
        save_file({key: value.clone() for key, value in tensors.items()}, file)
    with pytest.raises(BundleError, match=r"datastore\.(safetensors|jsonl).*Get a new copy of the bundle\.$"):
        Datastore.open(tmp_path, base.d_model, base.model.config.vocab_size)


# -- the indexes


def clustered(count=3000, d=32, seed=0):
    draw = torch.Generator().manual_seed(seed)
    centres = 4 * torch.randn(40, d, generator=draw)
    return (centres[torch.randint(40, (count,), generator=draw)] + torch.randn(count, d, generator=draw)).half()


def exact(queries, keys, k):
    """Nearest keys by their differences, in float64."""
    far = (queries.double()[:, None] - keys.double()[None]).square().sum(-1)
    values, rows = far.topk(k, dim=1, largest=False)
    return values, rows


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq", "torch"])
def test_an_index_finds_the_nearest_keys(kind, tmp_path):
    keys = clustered()
    queries = keys[::50].float() + 0.1 * torch.randn(60, 32, generator=torch.Generator().manual_seed(1))
    options = KnnOptions(index="flat" if kind == "torch" else kind, lists=16, probe=8, code_bytes=16)
    if kind == "torch":
        search = FlatSearch(keys, "cpu")
    else:
        index = build_index(keys, kind, options)
        if index is not None:
            save_index(index, kind, tmp_path / "datastore.faiss")
            index = open_index(tmp_path / "datastore.faiss", kind, keys, len(keys), 32, options)
        search = make_search(kind, index, keys, "cpu", options)
    distances, rows = search(queries, 8)
    values, expected = exact(queries, keys, 8)
    recall = sum(len(set(a) & set(b)) for a, b in zip(rows.tolist(), expected.tolist(), strict=True)) / expected.numel()
    assert recall >= {"flat": 1.0, "torch": 1.0, "hnsw": 0.97, "ivfpq": 0.7}[kind]
    true = (queries[:, None] - keys[rows].float()).square().sum(-1)
    assert torch.allclose(distances, true, rtol=1e-3, atol=5e-3)  # squared L2
    assert bool((distances.diff(dim=1) >= -1e-3).all())  # nearest first
    assert values.shape == distances.shape


def test_flat_search_in_pieces_is_flat_search(monkeypatch):
    keys = clustered(500)
    full = FlatSearch(keys, "cpu")(keys[:20].float(), 5)
    monkeypatch.setattr("engine.memory.faiss_search.CHUNK", 64)
    monkeypatch.setattr("engine.memory.faiss_search.GATHERED", 1000)
    parts = FlatSearch(keys, "cpu")(keys[:20].float(), 5)
    assert torch.equal(full[1], parts[1])
    assert float(parts[0][:, 0].max()) == 0.0  # a key's own distance is 0, not a rounding error


def test_more_neighbours_than_entries():
    keys = clustered(20)
    options = KnnOptions(index="flat")
    distances, rows = make_search("flat", None, keys, "cpu", options)(keys[:2].float(), 64)
    assert distances.shape == rows.shape == (2, 20)


def test_the_size_chooses_the_index():
    assert [kind_for(n, KnnOptions()) for n in (100, 20_000, 20_001, 1_000_000, 1_000_001)] == [
        "flat", "flat", "hnsw", "hnsw", "ivfpq",
    ]  # fmt: skip
    assert kind_for(100, KnnOptions(index="ivfpq")) == "ivfpq"


def test_without_faiss_everything_flat_still_works(monkeypatch, base, datastore):
    import sys

    from engine.errors import MissingError

    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("engine.methods.knn.index.has_faiss", lambda: False)
    assert kind_for(10**6, KnnOptions()) == "flat"
    knn = knn_for(base, datastore)
    assert isinstance(knn.search, FlatSearch)
    with pytest.raises(MissingError, match=r"needs faiss, which is not installed\. Install it with `pip install faiss-cpu`"):
        build_index(datastore.keys, "hnsw", KnnOptions())


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq"])
@pytest.mark.parametrize("spoil", ["cut", "head", "count", "kind", "link", "missing"])
def test_an_index_that_does_not_fit_is_refused(kind, spoil, tmp_path):
    import faiss

    keys, file = clustered(600), tmp_path / "datastore.faiss"
    options = KnnOptions(index=kind, lists=8, code_bytes=8)
    index = build_index(keys, kind, options)
    if spoil == "link" and kind == "hnsw":
        links = faiss.vector_to_array(index.hnsw.neighbors)
        links[3] = 10**7
        faiss.copy_array_to_vector(links, index.hnsw.neighbors)
    elif spoil == "link":
        size = index.invlists.list_size(0)
        faiss.rev_swig_ptr(index.invlists.get_ids(0), size)[0] = 10**7
    save_index(index, kind, file)
    data = file.read_bytes()
    if spoil == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif spoil == "head":
        file.write_bytes(b"IxFI" + data[4:])
    elif spoil == "missing":
        file.unlink()
    other = "ivfpq" if kind == "hnsw" else "hnsw"
    with pytest.raises(BundleError, match=r"datastore\.faiss.*Get a new copy of the bundle\.$"):
        open_index(file, other if spoil == "kind" else kind, keys, 600 + (spoil == "count"), 32, options)


# -- decoding


def total(base, plugin=None, pairs=SENTENCES, **more):
    return sum(value for value, _ in score(base, pairs, plugin, **more))


def test_a_datastore_of_the_sentence_itself_makes_its_tokens_likelier(base, datastore):
    plugin = plugin_with(base, knn_for(base, datastore))
    before, after = score(base, SENTENCES), score(base, SENTENCES, plugin)
    assert all(b[0] > a[0] + 1 for a, b in zip(before, after, strict=True))


def test_scores_are_the_papers_mixture_of_the_bases_own(base, datastore):
    plugin = plugin_with(base, knn_for(base, datastore))
    en, zh = SENTENCES[2]
    labels = base.pad_batch(base.encode_target([zh]))
    with torch.no_grad():
        output = base.model.model(input_ids=base.pad_batch(base.encode([en])), decoder_input_ids=base.shift_right(labels))
        logits = base.model.lm_head(output.last_hidden_state)[0] + base.model.final_logits_bias
    distances, rows = exact(output.last_hidden_state[0], datastore.keys, 4)
    p = equations_2_and_3(logits.double(), distances, datastore.tokens[rows], 10.0, 0.5)
    expected = float(p.gather(1, labels[0][:, None]).log().sum())
    assert score(base, [(en, zh)], plugin)[0][0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq"])
@pytest.mark.parametrize("beam", [1, 4])
def test_strength_and_weight_zero_are_the_base_exactly(base, datastore, kind, beam):
    sources, decoding = [a for a, _ in SENTENCES[:3]], Decoding(beam=beam, max_length_ratio=0.5)
    before, scores = translate(base, sources, decoding=decoding), score(base, SENTENCES)
    plugin = plugin_with(base, knn_for(base, datastore, index=kind, code_bytes=8))
    translate(base, sources, plugin, decoding=decoding)
    assert translate(base, sources, plugin, strength=0.0, decoding=decoding) == before
    assert score(base, SENTENCES, plugin, strength=0.0) == scores
    assert score(base, SENTENCES, plugin_with(base, knn_for(base, datastore, index=kind, code_bytes=8, weight=0.0))) == scores
    assert translate(base, sources, decoding=decoding) == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in base.model.modules())


def test_strength_scales_the_share_and_never_takes_all(base, datastore):
    plugin = plugin_with(base, knn_for(base, datastore))
    half = plugin_with(base, knn_for(base, datastore, weight=0.25))
    assert total(base, plugin, strength=0.5) == pytest.approx(total(base, half), abs=1e-3)
    assert math.isfinite(total(base, plugin_with(base, knn_for(base, datastore, weight=0.9)), strength=2.0))


def test_translations_come_near_the_samples(base, datastore):
    """The tiny base has random weights, so what it says of these sentences is all the datastore's."""
    plugin = plugin_with(base, knn_for(base, datastore, weight=0.99, k=1))
    decoding = Decoding(beam=2)
    assert translate(base, [a for a, _ in SENTENCES], plugin, decoding=decoding) == [
        base.decode(base.encode_target([b]))[0] for _, b in SENTENCES
    ]


def test_sure_tokens_need_no_search(base, datastore):
    never = plugin_with(base, knn_for(base, datastore, skip_above=0.999999))
    always = plugin_with(base, knn_for(base, datastore))
    assert total(base, never) == pytest.approx(total(base, always), abs=1e-3)
    logits = torch.zeros(3, base.model.config.vocab_size)
    logits[1, 7] = 50.0  # the only one that is sure
    knn, counts = knn_for(base, datastore, skip_above=0.5), []
    search = knn.search
    knn.search = lambda queries, k: counts.append(len(queries)) or search(queries, k)
    result = knn.interpolate(datastore.keys[:3].float(), logits.clone(), None, 1.0)
    assert counts == [2]
    assert torch.equal(result[1], logits[1])
    full = knn_for(base, datastore).interpolate(datastore.keys[:3].float(), logits.clone(), None, 1.0)
    assert torch.equal(result[[0, 2]], full[[0, 2]])


def test_one_search_a_step_serves_all_beams(base, datastore):
    knn = knn_for(base, datastore)
    calls = []
    search = knn.search
    knn.search = lambda queries, k: calls.append(len(queries)) or search(queries, k)
    translate(base, [a for a, _ in SENTENCES], plugin_with(base, knn), decoding=Decoding(beam=3, max_length_ratio=0.5))
    # All hypotheses of all sentences at work; at the first step, where those of a sentence are the same, one of each.
    assert calls[:2] == [len(SENTENCES), 3 * len(SENTENCES)]
    assert calls[1:] == sorted(calls[1:], reverse=True)
    assert len(calls) <= 40


def test_keys_of_the_feed_forward_layer_decode_too(base):
    store = Datastore.build(base, Pairs.encode(base, PAIRS), location="ffn_input")
    plugin = plugin_with(base, knn_for(base, store, keys="ffn_input"))
    assert total(base, plugin) > total(base) + 10
    translate(base, [SENTENCES[0][0]], plugin, decoding=Decoding(max_length_ratio=0.5))
    from engine.training.batches import make_batch

    pairs = Pairs.encode(base, PAIRS)
    with plugin.method.attach(base, plugin.module), torch.no_grad():
        batch = make_batch(base, plugin.method, plugin.module, pairs, list(range(len(pairs))), 0)
        log_p = plugin.method.log_probabilities(base, plugin.module, batch)
    right = log_p.gather(1, batch.labels[batch.labels != base.pad][:, None]).sum()
    assert float(right) == pytest.approx(total(base, plugin), abs=1e-2)


def test_half_precision_bases():
    half = tiny_base()
    half.model.bfloat16()
    store = Datastore.build(half, Pairs.encode(half, PAIRS))
    plugin = plugin_with(half, knn_for(half, store))
    assert total(half, plugin) > total(half) + 10
    assert len(translate(half, [SENTENCES[0][0]], plugin, decoding=Decoding(max_length_ratio=0.5))) == 1


def test_reads_name_sentences_of_the_samples(base, datastore):
    rows = plugin_with(base, knn_for(base, datastore)).attributions(base, *SENTENCES[2], top=3)
    assert [row["position"] for row in rows] == list(range(len(base.encode_target([SENTENCES[2][1]])[0])))
    for row in rows:
        best = row["items"][0]
        assert (best["text"], best["source"]) == (SENTENCES[2][1], SENTENCES[2][0])  # the state's own entry
        assert best["token"] == row["token"]
        assert best["at"] == row["position"]
        assert row["gate"] == pytest.approx(0.5, abs=1e-5)
        weights = [item["weight"] for item in row["items"]]
        assert weights == sorted(weights, reverse=True)
        assert sum(weights) <= 1 + 1e-5


# -- tuning


def test_the_likelihood_of_a_setting_needs_no_second_run(base, datastore):
    pairs = Pairs.encode(base, PAIRS[:5])
    knn = knn_for(base, datastore)
    evidence = gather(base, knn, pairs, k=8)
    for k, temperature, weight in ((4, 10.0, 0.5), (2, 3.0, 0.8)):
        plugin = plugin_with(base, knn_for(base, datastore, k=k, temperature=temperature, weight=weight))
        expected = -total(base, plugin, SENTENCES[:5]) / len(evidence.gold)
        assert likelihood(evidence, k, temperature, [weight])[0] == pytest.approx(expected, abs=1e-4)


def test_tuning_takes_the_likeliest_and_keeps_what_was_given(base, datastore):
    held_out = Pairs.encode(base, PAIRS)
    knn = knn_for(base, datastore, k=None, temperature=None, weight=None)
    tuned, metrics = tune(base, knn, held_out)
    options = tuned.options
    assert metrics["loss"] == metrics["best"][0]["loss"] <= min(row["loss"] for row in metrics["best"]) + 0.005
    assert metrics["loss"] < metrics["loss_base"]
    assert options.k <= min(row["k"] for row in metrics["best"])
    assert total(base, plugin_with(base, tuned)) == pytest.approx(-metrics["loss"] * metrics["tokens"], rel=1e-3)
    assert options.weight > 0.8  # the sentences are in the datastore
    fixed, _ = tune(base, knn_for(base, datastore, k=2, temperature=None, weight=0.3), held_out)
    assert (fixed.options.k, fixed.options.weight) == (2, 0.3)


def test_finalists_are_chosen_by_bleu(base, datastore):
    knn = knn_for(base, datastore, k=None, temperature=5.0, weight=None, finalists=3)
    seen = []

    def bleu(candidate):
        seen.append((candidate.options.k, candidate.options.weight))
        return 10.0 * len(seen)

    tuned, metrics = tune(base, knn, Pairs.encode(base, PAIRS), translated=bleu)
    assert len(seen) == len(set(seen)) == 3
    assert (tuned.options.k, tuned.options.weight) == seen[-1]
    assert [row["bleu"] for row in metrics["bleu"]] == [10.0, 20.0, 30.0]


# -- the adaptive network


def adaptive_reference(network, distances, tokens, temperature):
    """Zheng et al. (2021), equations 5 to 7, one position after the other; what each neighbour brings."""
    result = []
    for row, words in zip(distances.tolist(), tokens.tolist(), strict=True):
        logs = [(math.log(1 + d) - float(network.mean)) / float(network.std) for d in row]
        counts = [len(set(words[: i + 1])) / len(words) for i in range(len(words))]
        x = torch.tensor(logs + counts, dtype=torch.float64)
        hidden = torch.tanh(network.hidden.weight @ x + network.hidden.bias)
        z = network.out.weight @ hidden + network.out.bias
        p = torch.exp(z) / torch.exp(z).sum()
        brought = [0.0] * len(row)
        for j, k in enumerate([1, 2, 4, 8][: len(p) - 1]):
            raw = [math.exp(-d / temperature) for d in row[:k]]
            for i in range(k):
                brought[i] += float(p[j + 1]) * raw[i] / sum(raw)
        result.append(brought)
    return torch.tensor(result, dtype=torch.float64)


def test_the_adaptive_network_is_the_papers():
    from engine.methods.knn.adaptive import MetaK

    torch.manual_seed(0)
    network = MetaK(8).double()
    distances = (30 * torch.rand(5, 8, dtype=torch.float64)).sort(1).values
    tokens = torch.randint(4, (5, 8))
    with torch.no_grad():
        result = network(distances, tokens, 7.0)
        assert torch.allclose(result, adaptive_reference(network, distances, tokens, 7.0), atol=1e-10)
    assert bool((result.sum(1) < 1).all())


def test_the_adaptive_network_learns_when_neighbours_can_be_trusted():
    """Near neighbours are right, far ones are not: one share for all must lose to one that looks at the distance."""
    from engine.methods.knn.adaptive import train_adaptive

    draw = torch.Generator().manual_seed(0)
    count = 600
    near = torch.arange(count) % 2 == 0
    distances = torch.where(near, 1.0, 90.0)[:, None] + torch.rand(count, 8, generator=draw).sort(1).values
    gold = torch.randint(50, (count,), generator=draw)
    tokens = torch.where(near[:, None], gold[:, None], torch.randint(50, (count, 8), generator=draw))
    evidence = Evidence(torch.full((count,), math.log(0.3)), torch.full((count,), 0.3), gold, torch.arange(count) // 5,
                        distances, tokens)  # fmt: skip
    before = torch.get_rng_state()
    network = train_adaptive(evidence, 8, 10.0)
    assert torch.equal(torch.get_rng_state(), before)
    mass = network(distances, tokens, 10.0).sum(1)
    assert float(mass[near].mean()) > 0.9
    assert float(mass[~near].mean()) < 0.1


def test_an_adaptive_datastore_is_saved_and_opened(base, tmp_path):
    options = KnnOptions(k=4, temperature=10.0, adaptive=True)
    knn, files, metrics = make_knn(base, PAIRS, PAIRS, options, tmp_path)
    assert "adaptive.safetensors" in files
    assert metrics["loss"] < metrics["loss_base"]
    again = Knn.open(tmp_path, base, knn.options)
    assert total(base, plugin_with(base, again)) == pytest.approx(total(base, plugin_with(base, knn)), abs=1e-4)
    assert total(base, plugin_with(base, again), strength=0.0) == total(base)
    files["adaptive.safetensors"].write_bytes(b"no")
    with pytest.raises(BundleError, match=r"adaptive\.safetensors"):
        Knn.open(tmp_path, base, knn.options)


# -- as a method, and beside another one


def test_as_a_method_it_has_no_weights_and_settings_that_are_complete(base, tmp_path):
    from engine.core.progress import Progress
    from engine.core.settings import load_settings
    from engine.methods.data import Samples
    from tests.bases import tiny_pair

    method = get_method("knn")
    samples = Samples(tiny_pair(), [], [], tmp_path, load_settings(), sentence_pairs={"train": PAIRS, "valid": PAIRS})
    artefacts = method.prepare(samples, KnnConfig(), Progress())
    assert None not in (artefacts.config.k, artefacts.config.shortlist, artefacts.config.weight)
    assert artefacts.config.index == "flat"
    stamp = artefacts.files["datastore.safetensors"].stat().st_mtime_ns
    assert method.prepare(samples, KnnConfig(), Progress()).config == artefacts.config
    assert artefacts.files["datastore.safetensors"].stat().st_mtime_ns == stamp  # finished files are used again
    module = method.build(base, method.open(tmp_path, base, artefacts.config), artefacts.config)
    assert not module.state_dict()
    assert total(base, Plugin(method, module, {})) > total(base)


def test_other_samples_take_the_place_of_its_own(base, datastore, tmp_path):
    plugin = plugin_with(base, knn_for(base, datastore))
    files = plugin.method.replace_samples(base, plugin.module, PAIRS[:3], tmp_path).files
    assert sorted(files) == ["datastore.jsonl", "datastore.safetensors"]
    texts = {item["text"] for row in plugin.attributions(base, *SENTENCES[7]) for item in row["items"]}
    assert texts <= {pair.target for pair in PAIRS[:3]}
    assert total(base, plugin, SENTENCES[:3]) > total(base, None, SENTENCES[:3]) + 3


@pytest.fixture(scope="module")
def adapter(base, tmp_path_factory):
    """A memory adapter that does something."""
    from engine.memory import PhrasePair, record
    from engine.methods.memory_adapter.config import MemoryAdapterConfig

    pairs = [PhrasePair(i % 3, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    folder = tmp_path_factory.mktemp("adapter")
    memory = record(base, pairs, folder / "memory.safetensors")
    method = get_method("memory_adapter")
    torch.manual_seed(3)
    module = method.build(base, Artefacts(memory=memory), MemoryAdapterConfig())
    for parameter in module.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    method.prepare_for_inference(module)
    return Plugin(method, module, {}), {"memory.safetensors": folder / "memory.safetensors"}


def test_with_an_adapter_the_keys_are_the_adapted_models(base, adapter, datastore, tmp_path):
    plugin, _ = adapter
    knn, _, metrics = make_knn(base, PAIRS, PAIRS, KnnOptions(retrieval="global"), tmp_path, plugin)
    assert not torch.allclose(knn.datastore.keys.float(), datastore.keys.float(), atol=0.05)
    swapped, _ = replacement(base, knn, PAIRS[:3], tmp_path / "other", plugin=plugin)
    assert torch.allclose(swapped.datastore.keys.float(), knn.datastore.keys[: len(swapped.datastore)].float(), atol=0.02)
    alone = total(base, plugin)
    assert metrics["loss_base"] * metrics["tokens"] == pytest.approx(-alone, rel=1e-3)
    both = Plugin(plugin.method, plugin.module, {}, knn=knn)
    assert total(base, both) == pytest.approx(-metrics["loss"] * metrics["tokens"], rel=1e-2)
    assert total(base, both) > alone + 10
    assert score(base, SENTENCES, both, strength=0.0) == score(base, SENTENCES)
    assert {row["layer"] for row in both.attributions(base, *SENTENCES[1])} == {-1, 0, 1, 2}
    assert len(translate(base, [SENTENCES[0][0]], PluginStack([both, plugin]), decoding=Decoding(max_length_ratio=0.5))) == 1


def test_a_bundle_carries_a_datastore_and_loads_with_it(base, adapter, tmp_path):
    from engine.plugins import BundleContent, export_bundle, read_bundle_card
    from engine.plugins.repack import amend, repack

    plugin, files = adapter
    bundle, carrying = tmp_path / "plugin.zip", tmp_path / "knn.zip"
    export_bundle(
        bundle,
        BundleContent(name="a", base=base, method=plugin.method, config=plugin.module.config, module=plugin.module, files=files),
    )
    knn, knn_files, _ = make_knn(base, PAIRS, PAIRS, KnnOptions(index="hnsw"), tmp_path / "knn", plugin)
    amend(bundle, carrying, card={"knn": knn.options.to_mapping()}, files=knn_files)
    loaded = Plugin.load(carrying, base, cache=tmp_path / "cache")
    both = Plugin(plugin.method, plugin.module, {}, knn=knn)
    assert total(base, loaded) == pytest.approx(total(base, both), rel=1e-3)
    assert "knn" not in read_bundle_card(bundle)
    assert Plugin.load(bundle, base, cache=tmp_path / "cache").knn is None
    repacked = tmp_path / "given.zip"
    repack(carrying, repacked, with_phrases=False)
    assert "datastore.jsonl" not in read_bundle_card(repacked)["files"]
    rows = Plugin.load(repacked, base, cache=tmp_path / "cache").attributions(base, *SENTENCES[0])
    assert {item["text"] for row in rows if row["layer"] == -1 for item in row["items"]} == {""}
    amend(carrying, repacked, card={"knn": {**knn.options.to_mapping(), "index": "ivfpq"}})
    with pytest.raises(BundleError, match=r"given\.zip: datastore\.faiss is not the ivfpq index of this bundle's datastore"):
        Plugin.load(repacked, base, cache=tmp_path / "cache")
    amend(carrying, repacked, card={"knn": {"colour": 1}})
    with pytest.raises(BundleError, match=r"given\.zip: colour is not a setting"):
        Plugin.load(repacked, base, cache=tmp_path / "cache")


def test_a_second_datastore_is_refused(base, datastore, tmp_path):
    with pytest.raises(OptionError, match="The method knn already has its own datastore"):
        make_knn(base, PAIRS, PAIRS, SET, tmp_path, plugin_with(base, knn_for(base, datastore)))
