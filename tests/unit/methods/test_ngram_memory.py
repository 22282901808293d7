"""The n-gram memory against slow float64 references of the paper's equations, and what users rely on."""

import json

import pytest
import torch

from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError
from engine.methods import get_method
from engine.methods.ngram_memory.module import SPEED, GatedAttention, Retrieved
from engine.methods.transformer import PackedSentences
from engine.plugins import Plugin
from tests.bases import SENTENCES
from tests.retrieval_methods import SMALL, batch_of, forward, trained_module

D = 8
KINDS = ["idf_ngram", "idf_sentence", "dense_ngram"]


@pytest.fixture(scope="module")
def module(base, tmp_path_factory):
    return trained_module("ngram_memory", base, tmp_path_factory.mktemp("set"), **SMALL["ngram_memory"])


def found_of(lengths):
    """A memory of random states for rows that found translations of these lengths."""
    owners = [row for row, result in enumerate(lengths) for _ in result]
    flat = [n for result in lengths for n in result]
    mask = torch.arange(max(flat))[None] < torch.tensor(flat)[:, None]
    states = torch.randn(*mask.shape, D, dtype=torch.float64)
    layout = PackedSentences(mask, owners, len(lengths))
    numbers = torch.arange(len(flat))[:, None].expand_as(mask)
    result = Retrieved(layout.put(states), layout.mask, layout.any.double(), layout.put(numbers), layout)
    return result, [[states[e, : flat[e]] for e in range(len(flat)) if owners[e] == row] for row in range(len(lengths))]


def attention(weights, query, rows):
    """Multi-head attention of one query over a list of states, head by head, in float64."""
    heads = []
    for h in range(weights.heads):
        part = slice(h * weights.size, (h + 1) * weights.size)
        q = (weights.q_proj.weight @ query + weights.q_proj.bias)[part]
        keys = torch.stack([(weights.k_proj.weight @ row + weights.k_proj.bias)[part] for row in rows])
        values = torch.stack([(weights.v_proj.weight @ row + weights.v_proj.bias)[part] for row in rows])
        e = torch.exp(keys @ q / weights.size**0.5)
        heads.append((e / e.sum()) @ values)
    return weights.out_proj.weight @ torch.cat(heads) + weights.out_proj.bias


@pytest.mark.parametrize("beams", [1, 3])
def test_gated_attention_is_equations_2_and_3_over_the_concatenated_translations(beams):
    torch.manual_seed(0)
    toggled = GatedAttention(D, 2).double()
    toggled.scale.data.fill_(0.7 / SPEED)
    result, parts = found_of([[3, 5], [2], []])
    anchor, query = torch.randn(2, 3 * beams, 4, D, dtype=torch.float64).unbind(0)
    got = toggled(anchor, query, result, 0)
    for r in range(3 * beams):
        for t in range(4):
            c_s, rows = anchor[r, t], parts[r // beams]
            if not rows:
                assert torch.equal(got[r, t], c_s)  # nothing was found: the base
                continue
            c_m = attention(toggled.attention, query[r, t], torch.cat(rows))
            z = toggled.gate_source.weight[0] @ c_s + toggled.gate_memory.weight[0] @ c_m
            g = 1 / (1 + torch.exp(-z))
            g = 1 - 0.7 * (1 - g)  # decision 0002: at s = 1 this is the paper's gate
            assert torch.allclose(got[r, t], g * c_s + (1 - g) * c_m, atol=1e-10)


def test_found_pairs_are_encoded_each_for_the_sentence_at_hand(base, module):
    """The memory of a batch is that of each sentence alone, and of each pair alone, one behind the other."""
    method, batch = get_method("ngram_memory"), batch_of(base)
    rows = [[1, 4], [], [2, 0, 5], *[[]] * 5]
    with torch.no_grad():
        module.remember(base, rows, batch.encoded, batch.mask)
        batched = module.retrieved
        for row in (0, 2):
            parts = []
            for number in rows[row]:
                length = int(batch.mask[row].sum())
                module.remember(base, [[number]], batch.encoded[row : row + 1, :length], batch.mask[row : row + 1, :length])
                parts.append(module.retrieved.memory[0])
            expected = torch.cat(parts)
            assert torch.allclose(batched.memory[row, : len(expected)], expected, atol=1e-5)
            assert not batched.memory[row, len(expected) :].any()
            assert batched.mask[row].sum() == len(expected)
    assert batched.any.flatten().tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
    module.retrieved = None
    assert method.capabilities.offers_swap


def test_a_found_source_is_read_with_the_sentence_at_hand(base, tmp_path):
    """CSTM: the same pair is remembered otherwise for another sentence; alone (TM) it is not."""
    batch = batch_of(base)
    for memory, differs in (("source_target", True), ("target", True), ("alone", False)):
        module = trained_module("ngram_memory", base, tmp_path / memory, memory=memory)
        with torch.no_grad():
            module.remember(base, [[1], [1], *[[]] * 6], batch.encoded, batch.mask)
        first, other = module.retrieved.memory[:2]
        assert torch.allclose(first, other, atol=1e-6) is not differs


@pytest.mark.parametrize("retrieval", KINDS)
def test_a_sentence_never_finds_itself_or_its_like_in_training(base, tmp_path, retrieval):
    method = get_method("ngram_memory")
    module = trained_module("ngram_memory", base, tmp_path, retrieval=retrieval)
    batch = batch_of(base)
    method.set_source(base, module, batch.sources, batch)
    for row in range(len(SENTENCES)):
        real = module.retrieved.layout.mask[row] if module.retrieved.any[row] else torch.zeros(module.retrieved.layout.width).bool()
        result = set(module.retrieved.owners[row][real].tolist())
        assert row not in result
        if row == 0:  # its twins: the same target but for a mark, the same source but for a capital
            assert not result & {8, 9}
    method.set_source(base, module, batch.sources)  # in use it may: that is what a memory is for
    assert 0 in module.retrieved.owners[0].tolist()


@pytest.mark.parametrize("retrieval", KINDS)
def test_in_use_the_best_found_pair_of_a_known_sentence_is_itself(base, tmp_path, retrieval):
    module = trained_module("ngram_memory", base, tmp_path, retrieval=retrieval)
    batch = batch_of(base)
    for row in (1, 2, 4):
        length = int(batch.mask[row].sum())
        result = module.retriever.find(base, batch.sources[row, :length].tolist(), batch.encoded[row, :length])
        assert result[0] == row


def test_untrained_it_changes_nothing(base, tmp_path):
    module = trained_module("ngram_memory", base, tmp_path, moved=False)
    method, batch = get_method("ngram_memory"), batch_of(base)
    before = forward(base, batch)
    with method.attach(base, module):
        method.set_source(base, module, batch.sources, batch)
        assert torch.equal(forward(base, batch), before)
    assert module.retrieved is None


def test_gradients_reach_every_weight_and_no_weight_of_the_base(base, tmp_path):
    method = get_method("ngram_memory")
    module = trained_module("ngram_memory", base, tmp_path)
    module.train()
    batch = batch_of(base)
    with method.attach(base, module):
        method.set_source(base, module, batch.sources, batch)
        method.loss(base, module, batch).total.backward()
    assert all(p.grad is not None for p in module.parameters())
    # A key's bias shifts all scores of a query alike, so it alone has a gradient of nothing but rounding.
    silent = [n for n, p in module.named_parameters() if not p.grad.any()]
    assert all(n.endswith("k_proj.bias") for n in silent)
    assert all(p.grad is None for p in base.model.parameters())
    assert set(module.state_dict()) == {name for name, _ in module.named_parameters()}


def test_reads_name_found_pairs_by_layer_with_their_attention(base, module):
    rows = get_method("ngram_memory").attributions(base, module, *SENTENCES[2], top=2)
    assert {row["layer"] for row in rows} == {0, 1, 2}
    for row in rows:
        weights = [item["weight"] for item in row["items"]]
        assert weights == sorted(weights, reverse=True)
        assert 0 < sum(weights) <= 1 + 1e-5
        assert all(item["text"] == module.pairs[item["row"]].target for item in row["items"])
    all_rows = get_method("ngram_memory").attributions(base, module, *SENTENCES[2], top=99)
    assert all(sum(item["weight"] for item in row["items"]) == pytest.approx(1, abs=1e-4) for row in all_rows)
    assert all(toggled.recorded is None for _, toggled in module.gates())
    json.dumps(rows)


@pytest.mark.parametrize("retrieval", ["idf_ngram", "dense_ngram"])
def test_another_retrieval_set_without_training(base, tmp_path, retrieval):
    method = get_method("ngram_memory")
    module = trained_module("ngram_memory", base, tmp_path / "a", retrieval=retrieval)
    weights = {key: value.clone() for key, value in module.state_dict().items()}
    plugin = Plugin(method, module, {})
    before = score(base, SENTENCES, plugin)
    (tmp_path / "b").mkdir()
    others = [SentencePair("Nobody waited in the dark.", "黑暗里没有人等。"), SentencePair("The rain.", "雨。")]
    files = method.replace_samples(base, module, others, tmp_path / "b").files
    assert score(base, SENTENCES, plugin) != before
    assert all(torch.equal(value, weights[key]) for key, value in module.state_dict().items())
    assert [pair.target for pair in module.pairs] == [pair.target for pair in others]
    # A module built from the files finds the same.
    opened = method.open(tmp_path / "b", base, module.config)
    assert set(opened.files) == set(files)
    twin = method.build(base, opened, module.config)
    twin.load_state_dict(weights)
    method.prepare_for_inference(twin)
    assert score(base, SENTENCES, Plugin(method, twin, {})) == score(base, SENTENCES, plugin)


def test_files_that_do_not_fit_are_refused(base, tmp_path):
    method = get_method("ngram_memory")
    module = trained_module("ngram_memory", base, tmp_path, retrieval="dense_ngram")
    lines = (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "pairs.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    with pytest.raises(BundleError, match="does not match the sentence pairs"):
        method.open(tmp_path, base, module.config)
    (tmp_path / "memory.safetensors").write_bytes(b"nonsense")
    with pytest.raises(BundleError, match="damaged"):
        method.open(tmp_path, base, module.config)


def test_a_pair_with_a_poor_source_is_found_by_its_target(base, tmp_path):
    """Its source is another's; the base's translation of the sentence leads to it."""
    from engine.methods.ngram_memory.config import NgramMemoryConfig
    from engine.methods.ngram_memory.retriever import Retriever

    pairs = [SentencePair(en, zh) for en, zh in SENTENCES]
    pairs[1] = SentencePair("A symptom survived.", SENTENCES[1][1], plausibility=0.05)
    retriever = Retriever(base, pairs, NgramMemoryConfig(retrieval="idf_sentence", neighbours_translating=1), None)
    (ids,) = base.encode(["He said nothing."])
    states = torch.zeros(len(ids), base.d_model)
    assert retriever.wants_draft()
    assert retriever.find(base, ids, states, None, "他什么也没有说。") == [1]
    (ids,) = base.encode(["The symptom survived."])
    assert retriever.find(base, ids, states, None, "门。") != [1]
    plain = Retriever(base, [SentencePair(*pair) for pair in SENTENCES], NgramMemoryConfig(), None)
    assert not plain.wants_draft()


def test_a_set_with_poor_sources_translates_and_keeps_them_in_its_bundle(base, tmp_path):
    module = trained_module("ngram_memory", base, tmp_path)
    method = get_method("ngram_memory")
    pairs = [SentencePair(en, zh, plausibility=0.1 if i % 2 else 1.0) for i, (en, zh) in enumerate(SENTENCES)]
    method.replace_samples(base, module, pairs, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row.get("plausibility", 1.0) for row in rows] == [pair.plausibility for pair in pairs]
    translations = translate(base, ["He said nothing.", "The road is long."], Plugin(method, module, {}))
    assert translations == translate(base, ["He said nothing.", "The road is long."], Plugin(method, module, {}))
