"""The translation memory against slow float64 references of the paper's equations, and what users rely on."""

import json
import math

import numpy as np
import pytest
import torch

from engine.core.progress import Progress
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.errors import BundleError, Cancelled
from engine.methods import get_method
from engine.methods.batches import Pairs
from engine.methods.transformer import PackedSentences
from engine.methods.translation_memory.encoders import encode_all
from engine.methods.translation_memory.index import Refresher
from engine.methods.translation_memory.module import SPEED, Retrieved, mixture
from engine.methods.translation_memory.warm_start import sentence_loss, word_loss
from engine.plugins import Plugin
from engine.training import TrainingOptions
from engine.training.loop import Trainer
from tests import retrieval_methods
from tests.bases import SENTENCES
from tests.retrieval_methods import batch_of, forward, samples_of, trained_module

SMALL = retrieval_methods.SMALL["translation_memory"]


@pytest.fixture(scope="module")
def module(base, tmp_path_factory):
    return trained_module("translation_memory", base, tmp_path_factory.mktemp("memory"), **SMALL)


def test_attention_update_and_copying_are_the_papers_equations(base, module, tmp_path):
    """Equation 2, h_t + c_t, and the mixture, token by token in float64, for beams of two."""
    torch.manual_seed(0)
    module = module.double()
    module.copy_scale.data.fill_(0.6 / SPEED)
    d, lengths, owners = base.d_model, [3, 2, 4], [0, 0, 1]
    mask = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
    z, ids = torch.randn(3, 4, d, dtype=torch.float64), torch.randint(5, 9, (3, 4))  # few words: some come twice
    f = torch.rand(3, dtype=torch.float64)
    layout = PackedSentences(mask, owners, 3)  # for the third sentence nothing was found
    spread = f[:, None].expand(3, 4)
    module.retrieved = Retrieved(layout.put(z), layout.put(ids), layout.put(spread), layout.put(ids), layout)
    h, logits = torch.randn(6, 2, d, dtype=torch.float64), torch.randn(6, 2, 12)
    bias = torch.randn(1, 12)
    updated = module.attend(h)
    mixed = (module.copy_from_memory(logits, bias) + bias).double().softmax(-1)
    for r in range(6):
        mine = [(z[e, j], int(ids[e, j]), f[e]) for e in range(3) if owners[e] == r // 2 for j in range(lengths[e])]
        for t in range(2):
            p_v = (logits[r, t] + bias[0]).double().softmax(-1)
            if not mine:
                assert torch.equal(updated[r, t], h[r, t])
                assert torch.allclose(mixed[r, t], p_v, atol=1e-6)
                continue
            scores = torch.stack([h[r, t] @ (module.match.weight @ state) + module.beta * rel for state, _, rel in mine])
            alpha = torch.exp(scores - scores.max())
            alpha = alpha / alpha.sum()
            c = module.read.weight @ sum(a * state for a, (state, _, _) in zip(alpha, mine, strict=True))
            assert torch.allclose(updated[r, t], h[r, t] + c, atol=1e-8)
            hidden = torch.relu(module.gate_hidden.weight @ torch.cat([h[r, t], c]) + module.gate_hidden.bias)
            gate = 0.6 / (1 + torch.exp(-(module.gate_out.weight[0] @ hidden + module.gate_out.bias[0])))
            p = (1 - gate) * p_v
            for a, (_, word, _) in zip(alpha, mine, strict=True):
                p[word] = p[word] + gate * a
            assert float(p.sum().detach()) == pytest.approx(1)
            assert torch.allclose(mixed[r, t], p, atol=1e-5)
    module.retrieved = None
    module.float()


def test_the_mixture_is_the_base_bit_for_bit_where_nothing_is_copied():
    logits, alpha = torch.randn(4, 30) * 20, torch.full((4, 3), 1 / 3)
    assert torch.equal(mixture(logits, None, alpha, torch.zeros(4, 1), torch.tensor([[1, 2, 2]] * 4)), logits)


def test_vectors_have_zero_mean_and_unit_length_and_relevance_lies_in_bounds(base, module):
    x = encode_all(module.retriever.source, base.encode([s for s, _ in SENTENCES]), base.pad, base.device)
    z = encode_all(module.retriever.target, module.rows, base.pad, base.device)
    for vectors in (x, z):
        assert np.abs(vectors.mean(1)).max() < 1e-3
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-2)
    assert np.abs(x @ z.T).max() <= 1.01


def test_a_sentences_vector_does_not_depend_on_the_padding_beside_it(base, module):
    rows = module.rows
    vectors = encode_all(module.retriever.target, rows, base.pad, base.device)
    for i in (0, 3):
        assert encode_all(module.retriever.target, [rows[i]], base.pad, base.device)[0] == pytest.approx(vectors[i], abs=2e-3)


def test_warm_start_losses_are_the_papers():
    torch.manual_seed(1)
    x, z = torch.randn(4, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)
    slow = 0.0
    for i in range(4):
        e = [math.exp(float(x[i] @ z[j])) for j in range(4)]
        slow -= math.log(e[i] / sum(e)) / 4
    assert float(sentence_loss(x, z)) == pytest.approx(slow)
    logits, bags = torch.randn(2, 9), [[1, 4], [0, 3, 8]]
    slow = 0.0
    for i, bag in enumerate(bags):
        total = sum(math.exp(v) for v in logits[i].tolist())
        slow -= sum(math.log(math.exp(float(logits[i, w])) / total) for w in bag) / 2
    assert float(word_loss(logits, bags)) == pytest.approx(slow, rel=1e-5)
    assert float(word_loss(logits, bags, mean=True)) == pytest.approx(slow * 2 / 5, rel=1e-5)


@pytest.mark.slow
def test_the_warm_start_teaches_the_retriever_and_is_the_same_every_time(base, tmp_path):
    options = {**SMALL, "warm_updates": 100, "warm_batch": 10, "warm_learning_rate": 3e-3, "warm_temperature": 0.1}
    method = get_method("translation_memory")
    state = torch.get_rng_state()
    results = []
    for name in ("a", "b"):
        method.prepare(samples_of(base, tmp_path / name), method.config_class(**options), Progress())
        results.append((tmp_path / name / "retriever.safetensors").read_bytes())
        report = json.loads((tmp_path / name / "retriever.json").read_text())
    assert results[0] == results[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert report["recall"] > report["recall_before"]


@pytest.mark.parametrize("retriever", ["trained", "fixed_target", "fixed"])
def test_a_sentence_never_finds_itself_or_its_like_in_training(base, tmp_path, retriever):
    method = get_method("translation_memory")
    module = trained_module("translation_memory", base, tmp_path, **{**SMALL, "neighbours": 10}, retriever=retriever)
    module.train()
    batch = batch_of(base)
    method.set_source(base, module, batch.sources, batch)
    for row in range(len(SENTENCES)):
        result = set(module.retrieved.owners[row][module.retrieved.layout.mask[row]].tolist())
        assert row not in result
        assert len(result) == 9 - (row == 0)  # all the others: 10 sentences, of which the first has a twin
        if row == 0:
            assert 8 not in result
    assert module.retrieved.relevance.requires_grad is (retriever != "fixed")
    method.prepare_for_inference(module)
    method.set_source(base, module, batch.sources)
    numbers = {i for row in module.retrieved.owners.tolist() for i in row}
    assert len(numbers) == 10


def test_untrained_it_changes_nothing(base, tmp_path):
    module = trained_module("translation_memory", base, tmp_path, moved=False, **SMALL)
    method, batch = get_method("translation_memory"), batch_of(base)
    before = forward(base, batch)
    with method.attach(base, module):
        method.set_source(base, module, batch.sources)
        assert torch.equal(forward(base, batch), before)


def test_untrained_a_word_of_the_memory_scores_as_the_base_would_score_it(base, tmp_path):
    module = trained_module("translation_memory", base, tmp_path, moved=False, **SMALL)
    ids, mask, z = module.encode_memory(module.rows[:2], base.pad, base.device)
    h = torch.randn(base.d_model)
    head = base.model.get_output_embeddings().weight
    assert torch.allclose((module.match(z) @ h)[mask], (head @ h)[ids[mask]], atol=1e-4)


def test_training_and_scoring_see_the_same_distribution(base, module):
    """The output layer is asked for real positions alone in training, for all of them in scoring."""
    method, batch = get_method("translation_memory"), batch_of(base)
    with method.attach(base, module), torch.no_grad():
        method.set_source(base, module, batch.sources, batch)
        log_p = method.log_probabilities(base, module, batch)
        labels = batch.labels[batch.labels != base.pad]
        taught = log_p.gather(1, labels[:, None]).sum()
        logits = forward(base, batch).log_softmax(-1)[batch.labels != base.pad]
    assert torch.allclose(log_p, logits, atol=1e-4)
    assert log_p.exp().sum(-1) == pytest.approx(torch.ones(len(log_p)), abs=1e-4)
    assert float(taught) < 0


@pytest.mark.parametrize("retriever", ["trained", "fixed_target", "fixed"])
def test_gradients_reach_what_is_trained_and_no_weight_of_the_base(base, tmp_path, retriever):
    method = get_method("translation_memory")
    module = trained_module("translation_memory", base, tmp_path, **SMALL, retriever=retriever)
    module.train()
    batch = batch_of(base)
    with method.attach(base, module):
        method.set_source(base, module, batch.sources, batch)
        method.loss(base, module, batch).total.backward()
    for side, learns in (("source", retriever != "fixed"), ("target", retriever == "trained")):
        weight = getattr(module.retriever, side).project.weight
        assert weight.requires_grad is learns
        assert (weight.grad is not None and bool(weight.grad.any())) is learns
    for key in ("match.weight", "read.weight", "beta", "gate_hidden.weight", "gate_out.weight", "copy_scale"):
        assert module.get_parameter(key).grad.any(), key
    assert all(p.grad is None for p in base.model.parameters())
    assert set(module.state_dict()) == {name for name, _ in module.named_parameters()}


def test_a_scalar_at_or_beyond_its_bound_goes_on_learning(module):
    for value, share in ((-0.1, 0.0), (0.0, 0.0), (0.02, 0.4), (0.3, 1.0)):
        module.copy_scale.data.fill_(value)
        module.copy_scale.grad = None
        got = module.copy_share()
        got.backward()
        assert float(got.detach()) == pytest.approx(share, abs=1e-6)
        assert float(module.copy_scale.grad) == SPEED
    module.copy_scale.data.fill_(0.04)
    module.zero_grad(set_to_none=True)


def refresher(module, base, folder, waits=True, every=4):
    arguments = (module.rows, base.pad, base.device, 64)
    return Refresher(module.retriever.target, arguments, every=every, waits=waits, folder=folder)


def steps_of(updater, encoder, steps):
    """Weights that change with every update, and whose index each update sees."""
    seen = []
    for step in steps:
        encoder.first.data.fill_(step * 0.1)
        vectors = updater.at(step).vectors.copy()
        seen.append((updater.current, vectors))
    return seen


def test_a_refresh_takes_effect_one_interval_later_and_the_same_after_a_resume(base, tmp_path):
    module = trained_module("translation_memory", base, tmp_path / "m", **SMALL)
    full = steps_of(refresher(module, base, tmp_path), module.retriever.target, range(14))
    assert [step for step, _ in full] == [0] * 8 + [4] * 4 + [8] * 2
    for stop in (3, 5, 8, 10, 12):  # another process, which has the files alone
        again = steps_of(refresher(module, base, tmp_path), module.retriever.target, range(stop, 14))
        for (step, vectors), (expected_step, right) in zip(again, full[stop:], strict=True):
            assert step == expected_step
            assert np.array_equal(vectors, right)
    updater = refresher(module, base, tmp_path)
    updater.at(0)
    updater.close()
    assert not list(tmp_path.glob("retriever-*.safetensors"))


def test_without_waiting_a_refresh_takes_effect_when_it_is_ready(base, tmp_path):
    module = trained_module("translation_memory", base, tmp_path / "m", **SMALL)
    updater = refresher(module, base, None, waits=False)
    updater.at(0)
    updater.at(4)
    if updater.building is not None:
        updater.building[1].join()
    updater.at(5)
    assert updater.current == 4


class StopAt(Progress):
    def __init__(self, update):
        super().__init__()
        self.update = update

    def advance(self, done, total, note=""):
        if done >= self.update:
            raise Cancelled("Stopped.")


def test_stopped_and_resumed_over_a_refresh_it_ends_with_the_same_weights(base, tmp_path):
    method, name = get_method("translation_memory"), "translation_memory"
    config = method.config_class(**SMALL, refresh_every=2)
    options = TrainingOptions(
        max_updates=7, tokens_per_batch=64, learning_rate=3e-3, warmup=1, validate_every=3, checkpoint_every=1, patience=0
    )
    ended = {}
    for way in ("whole", "stopped"):
        samples = samples_of(base, tmp_path / way)
        pairs = Pairs.encode(base, samples.pairs("train"))

        def run(progress, samples=samples, pairs=pairs, way=way):
            artefacts = method.prepare(samples, config, Progress())
            torch.manual_seed(5)
            module = method.build(base, artefacts, config)
            Trainer(base, method, module, pairs, pairs, options, tmp_path / way / "training", precision="float32").run(
                progress=progress
            )
            method.after_training(module)
            method.prepare_for_inference(module)
            return module, artefacts

        if way == "stopped":
            with pytest.raises(Cancelled):
                run(StopAt(5))
        ended[way] = run(Progress())
    whole, stopped = (ended[way][0].state_dict() for way in ("whole", "stopped"))
    assert all(torch.equal(value, stopped[key]) for key, value in whole.items())
    files = [ended[way][1].files["memory.safetensors"].read_bytes() for way in ("whole", "stopped")]
    assert files[0] == files[1]
    assert not list((tmp_path / "stopped").glob("retriever-*.safetensors"))
    assert get_method(name).capabilities.swaps_pairs is False


def test_reads_name_sentences_with_their_relevance(base, module):
    rows = get_method("translation_memory").attributions(base, module, *SENTENCES[2], top=99)
    assert {row["layer"] for row in rows} == {-1}
    for row in rows:
        assert sum(item["weight"] for item in row["items"]) == pytest.approx(1, abs=1e-4)
        assert 0 <= row["gate"] <= 1
        assert all(item["text"] == module.pairs[item["row"]].target for item in row["items"])
        assert all(-1.01 <= item["relevance"] <= 1.01 for item in row["items"])
    json.dumps(rows)


def test_another_memory_without_training_and_without_sources(base, tmp_path):
    method = get_method("translation_memory")
    module = trained_module("translation_memory", base, tmp_path / "a", **SMALL)
    weights = {key: value.clone() for key, value in module.state_dict().items()}
    plugin = Plugin(method, module, {})
    before = score(base, SENTENCES, plugin)
    (tmp_path / "b").mkdir()
    others = [SentencePair("", "黑暗里没有人等。"), SentencePair("", "雨。"), SentencePair("", "母亲的信。")]
    method.replace_samples(base, module, others, tmp_path / "b")
    after = score(base, SENTENCES, plugin)
    assert after != before
    assert all(torch.equal(value, weights[key]) for key, value in module.state_dict().items())
    twin = method.build(base, method.open(tmp_path / "b", base, module.config), module.config)
    twin.load_state_dict(weights)
    method.prepare_for_inference(twin)
    assert score(base, SENTENCES, Plugin(method, twin, {})) == after


def test_files_that_do_not_fit_are_refused(base, tmp_path):
    method = get_method("translation_memory")
    module = trained_module("translation_memory", base, tmp_path / "a", **SMALL)
    method.replace_samples(base, module, module.pairs, tmp_path)
    lines = (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "pairs.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    with pytest.raises(BundleError, match="does not match the sentences"):
        method.open(tmp_path, base, module.config)
    (tmp_path / "memory.safetensors").unlink()
    with pytest.raises(BundleError, match=r"it has no memory\.safetensors"):
        method.open(tmp_path, base, module.config)
