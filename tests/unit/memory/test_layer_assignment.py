"""Which layer remembers what, and what is recorded for it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BundleError, OptionError
from engine.memory import Memory, PairRules, PhrasePair, assign_layers, load_pairs, record, save_pairs, translate_phrases
from engine.memory.phrase_pairs import stratified
from engine.phrases import Phrase
from tests.bases import SENTENCES, tiny_base, tiny_pair


@given(st.lists(st.integers(1, 12), max_size=60), st.integers(1, 8), st.sampled_from(["short_to_long", "long_to_short", "random"]))
def test_layers_get_even_parts_in_order_of_length(lengths, layers, order):
    result = assign_layers(lengths, layers, order)
    sizes = [result.count(i) for i in range(layers)]
    assert sum(sizes) == len(lengths)
    assert max(sizes) - min(sizes) <= 1
    if order != "random":
        step = 1 if order == "short_to_long" else -1
        for a in range(layers):
            for b in range(a + 1, layers):
                lower = [step * n for n, layer in zip(lengths, result, strict=True) if layer == a]
                upper = [step * n for n, layer in zip(lengths, result, strict=True) if layer == b]
                assert not lower or not upper or max(lower) <= min(upper)


def test_random_order_is_the_same_for_the_same_seed():
    lengths = list(range(1, 40))
    assert assign_layers(lengths, 4, "random", 7) == assign_layers(lengths, 4, "random", 7)
    assert assign_layers(lengths, 4, "random", 7) != assign_layers(lengths, 4, "random", 8)


def test_unknown_order():
    with pytest.raises(OptionError, match="short_to_long"):
        assign_layers([1, 2], 2, "sideways")


@pytest.mark.parametrize("pooling", ["mean", "sum_with_eos"])
def test_recorded_vectors_are_those_of_each_phrase_alone(tmp_path, pooling):
    """Batches, padding and hooks must not show: each row equals a pass over its pair alone."""
    base = tiny_base()
    pairs = [PhrasePair(i % 3, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    memory = record(base, pairs, tmp_path / "memory.safetensors", pooling=pooling, batch_tokens=64)
    for layer in range(3):
        layer_pairs = [pair for pair in pairs if pair.layer == layer]
        assert memory.sizes[layer] == len(layer_pairs)
        for row, pair in enumerate(layer_pairs):
            inputs, labels = (base.pad_batch(base.encode([pair.source])), base.pad_batch(base.encode_target([pair.target])))
            start = torch.full((1, 1), base.model.config.decoder_start_token_id)
            decoder_inputs = torch.cat([start, labels[:, :-1]], 1)
            seen = []
            handle = base.decoder_layers[layer].self_attn.register_forward_hook(lambda m, a, o, seen=seen: seen.append(o[0][0]))
            with torch.no_grad():
                encoded = base.model.get_encoder()(input_ids=inputs).last_hidden_state[0]
                base.model(input_ids=inputs, decoder_input_ids=decoder_inputs)
            handle.remove()
            if pooling == "mean":  # source: without tag and end; target: the phrase's own tokens, as inputs
                source, target = encoded[1:-1].mean(0), seen[0][1:].mean(0)
            else:
                source, target = encoded.sum(0), seen[0].sum(0)
            assert torch.allclose(memory.source(layer)[row].float(), source, atol=2e-2, rtol=1e-2)
            assert torch.allclose(memory.target(layer)[row].float(), target, atol=2e-2, rtol=1e-2)


def test_phrases_of_one_token_differ_in_target_memory(tmp_path):
    base = tiny_base()
    pairs = [PhrasePair(0, word, word, 1, 1) for word in ("雨", "信", "路")]
    rows = record(base, pairs, tmp_path / "m.safetensors").target(0)
    assert not torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[1], rows[2])


def test_phrase_pairs_survive_a_stop(tmp_path):
    pair = tiny_pair()
    phrases = [Phrase(zh, len(zh), 1, "statistical", i) for i, (_, zh) in enumerate(SENTENCES)]
    partial = tmp_path / "partial.jsonl"
    result = translate_phrases(phrases, pair.backward, 3, PairRules(max_length_ratio=1e9), partial=partial)
    assert not partial.exists()
    save_pairs(result, tmp_path / "pairs.jsonl")
    assert load_pairs(tmp_path / "pairs.jsonl") == result
    assert {p.target for p in result} <= {zh for _, zh in SENTENCES}


def test_per_layer_keeps_the_most_frequent_or_the_most_typical():
    pair = tiny_pair()
    phrases = [Phrase(zh, 1 + i // 4, 10 - i, "statistical", i) for i, (_, zh) in enumerate(SENTENCES)]
    result = translate_phrases(phrases, pair.backward, 2, PairRules(per_layer=2, max_length_ratio=1e9))
    assert {p.count for p in result} == {10, 9, 6, 5}
    typical = [0, 1, 5, 4, 9, 0, 0, 8]
    result = translate_phrases(phrases, pair.backward, 2, PairRules(per_layer=2, typicality=typical, max_length_ratio=1e9))
    assert {p.count for p in result} == {8, 7, 6, 3}


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 5)), max_size=80), st.integers(1, 40))
def test_a_cap_leaves_every_length_its_share(rows, most):
    lengths, values, sentences = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    chosen = stratified(lengths, values, sentences, most)
    assert len(chosen) == min(most, len(rows))
    assert chosen == sorted(set(chosen))
    for length in set(lengths):
        same_length = [i for i, other in enumerate(lengths) if other == length]
        selected = [i for i in chosen if lengths[i] == length]
        assert abs(len(selected) - len(same_length) * min(1, most / len(rows))) < 1
        left = set(same_length) - set(selected)
        assert not selected or not left or min(values[i] for i in selected) >= max(values[i] for i in left)


def test_of_equal_phrases_every_sentence_gives_one_before_any_gives_two():
    assert stratified([2] * 6, [1] * 6, [0, 0, 0, 1, 1, 2], 3) == [0, 3, 5]


def test_a_damaged_memory_is_a_sentence(tmp_path):
    file = tmp_path / "memory.safetensors"
    file.write_bytes(b"not a memory")
    with pytest.raises(BundleError, match="not a readable memory"):
        _ = Memory(file).sizes
