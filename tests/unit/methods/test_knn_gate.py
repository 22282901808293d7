"""The learned gate: what opens it, what it learns from pairs and from general text, its file."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from engine.core.progress import Progress
from engine.corpora.types import SentencePair
from engine.errors import BundleError
from engine.methods.knn.build import make_knn
from engine.methods.knn.gate import NO_ROW, PRIOR, GateInputs, NeighbourGate, Positions, fit, loss
from engine.methods.knn.options import KnnOptions
from engine.methods.knn.sentence import NO_TOKEN, context
from engine.methods.knn.tune_sentence import previous
from tests.bases import SENTENCES


def rows(cosine=0.8, coverage=0.5, before=1, top=-1.0, count=1):
    """`count` positions with two rows each, of which the second is far from all."""
    return GateInputs(
        torch.tensor([[cosine, 0.2]]).repeat(count, 1), torch.tensor([[coverage, 0.1]]).repeat(count, 1),
        torch.tensor([[before, 0]]).repeat(count, 1), torch.full((count,), coverage), torch.full((count,), top),
    )  # fmt: skip


def opened(**evidence):
    return float(NeighbourGate.prior().masses(rows(**evidence)).sum())


def test_each_kind_of_evidence_opens_the_gate():
    assert opened() > opened(cosine=0.5)
    assert opened() > opened(coverage=0.1)
    assert opened(before=2) > opened() > opened(before=0)
    assert opened(top=-2.0) > opened() > opened(top=0.0), "where the base is sure, less is copied"


def test_of_rows_as_alike_the_one_that_follows_the_same_words_of_a_nearer_sentence_is_copied():
    same = torch.tensor([[0.8, 0.8]])
    gate = NeighbourGate.prior()
    wide = GateInputs(same, torch.tensor([[0.2, 0.6]]), torch.tensor([[0, 0]]), torch.tensor([0.6]), torch.tensor([-1.0]))
    followed = GateInputs(same, torch.tensor([[0.4, 0.4]]), torch.tensor([[0, 2]]), torch.tensor([0.4]), torch.tensor([-1.0]))
    for inputs in (wide, followed):
        mass = gate.masses(inputs)[0]
        assert float(mass[1]) > 2 * float(mass[0])


def test_rows_that_bring_nothing_are_not_read():
    mass = NeighbourGate.prior().masses(rows(cosine=NO_ROW))
    assert float(mass[0, 0]) == 0.0
    none = GateInputs(torch.full((1, 2), NO_ROW), torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1), torch.zeros(1))
    assert NeighbourGate.prior().masses(none).tolist() == [[0.0, 0.0]]


@given(st.floats(0, 1.5), st.floats(0.05, 0.99), st.floats(-1, 1), st.floats(0, 1))
def test_the_base_always_keeps_a_share_and_strength_scales_the_rest(strength, weight, cosine, coverage):
    evidence = rows(cosine=cosine, coverage=coverage)
    mass = float(NeighbourGate.prior().masses(evidence, weight, strength).sum())
    assert 0 <= mass <= 0.9901
    assert mass == pytest.approx(min(0.99, strength * float(NeighbourGate.prior().masses(evidence, weight).sum())), abs=1e-5)


def positions(right, count, **evidence):
    hit = torch.tensor([[right, False]]).repeat(count, 1)
    return Positions(rows(count=count, **evidence), hit, torch.full((count,), -2.0))


def test_it_learns_where_rows_are_right_and_leaves_general_text_alone():
    samples, general = positions(True, 400, coverage=0.6), positions(False, 400, coverage=0.1)
    gate = fit(samples, general)
    assert float(loss(gate, samples)) < 0.3
    assert float(loss(gate, general)) < 2.01, "the base's own loss is 2"
    assert torch.equal(fit(samples, general).weights, gate.weights), "the same pairs give the same gate"


def test_few_pairs_move_it_little():
    prior = torch.tensor(PRIOR)
    few, many = (fit(positions(False, count), None).weights - prior for count in (1, 2000))
    assert float(few.norm()) < 0.5 * float(many.norm())


def test_tokens_before_a_position_are_those_of_its_own_sentence():
    tokens, position = torch.tensor([5, 6, 7, 8, 9]), torch.tensor([0, 1, 2, 0, 1])
    written = previous(tokens, position, NO_TOKEN)
    assert written.tolist() == [[NO_TOKEN, NO_TOKEN], [5, NO_TOKEN], [6, 5], [NO_TOKEN, NO_TOKEN], [8, NO_TOKEN]]
    before = torch.tensor([[6, 5], [6, 4], [5, 6]])
    assert context(before, torch.tensor([6, 5])).tolist() == [2, 1, 0]


def test_general_text_is_part_of_the_choice(base, tmp_path):
    pairs = [SentencePair(en, zh) for en, zh in SENTENCES]
    options = KnnOptions(retrieval="sentence")
    metrics = make_knn(base, pairs[:6], pairs, options, tmp_path / "a", progress=Progress(), general=lambda: pairs[6:])[2]
    assert metrics["loss_general"] <= metrics["loss_general_base"] + 0.2
    assert "loss_general" not in make_knn(base, pairs[:6], pairs, options, tmp_path / "b")[2]


@pytest.mark.parametrize("weights", [torch.zeros(3), torch.full((11,), float("nan")), torch.zeros(11, dtype=torch.float64)])
def test_a_file_that_is_no_gate_is_refused(tmp_path, weights):
    assert torch.equal(NeighbourGate.open(NeighbourGate.prior().save(tmp_path).parent).weights, NeighbourGate.prior().weights)
    save_file({"weights": weights}, tmp_path / "datastore.gate.safetensors")
    with pytest.raises(BundleError, match="does not hold the 11 weights"):
        NeighbourGate.open(tmp_path)
    (tmp_path / "datastore.gate.safetensors").write_bytes(b"no")
    with pytest.raises(BundleError, match="missing or damaged"):
        NeighbourGate.open(tmp_path)
