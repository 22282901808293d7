"""DExperts against its equation in float64, in scoring, greedy and beam search, with a cache and without."""

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList

from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import OptionError
from engine.methods import Artefacts, get_method
from engine.methods.data import Samples
from engine.methods.dexperts.config import DExpertsConfig
from engine.methods.dexperts.general import draw_general
from engine.methods.dexperts.method import language_loss
from engine.methods.dexperts.module import PrefixCache
from engine.plugins import Plugin
from engine.training.batches import make_batch
from tests.bases import SENTENCES

METHOD = get_method("dexperts")
TEXTS = [a for a, _ in SENTENCES[:3]]


def module_for(base, moved=0.1, **options):
    torch.manual_seed(2)
    module = METHOD.build(base, Artefacts(), DExpertsConfig(**options))
    for parameter in module.parameters():
        parameter.data += moved * torch.randn_like(parameter)
    METHOD.prepare_for_inference(module)
    return module


@pytest.fixture
def pairs(pair, base, tmp_path):
    sentence_pairs = [SentencePair(a, b) for a, b in SENTENCES]
    samples = Samples(pair, [], [], tmp_path, load_settings(), sentence_pairs={"train": sentence_pairs})
    METHOD.prepare(samples, DExpertsConfig(beam=1), Progress())
    return METHOD.encode(base, samples, "train", Progress())


def slow_mixture(base, module, source, prefix, alpha):
    """P(next | source, prefix) = softmax(z + α (z⁺ - z⁻)), nothing kept from before, in float64."""
    inputs = base.pad_batch(base.encode([source]))
    ids = torch.tensor([prefix])
    with torch.no_grad():
        z = base.model(input_ids=inputs, decoder_input_ids=ids, use_cache=False).logits[0, -1].double()
        experts = []
        for model in (module.expert, module.anti):
            hidden = model.network(input_ids=ids).last_hidden_state[0, -1].double()
            experts.append(model.network.wte.weight.double() @ hidden)
    return torch.softmax(z + alpha * (experts[0] - experts[1]), -1)


def test_scores_are_those_of_the_equation(base):
    module = module_for(base, weight=0.7)
    plugin = Plugin(METHOD, module, {})
    for strength in (0.5, 1.0):
        result = score(base, SENTENCES[:3], plugin, strength=strength)
        for (source, target), (total, count) in zip(SENTENCES[:3], result, strict=True):
            labels = base.encode_target([target])[0]
            start = base.shift_right(torch.tensor([labels]))[0, 0].item()
            expected = sum(
                float(slow_mixture(base, module, source, [start, *labels[:t]], 0.7 * strength)[token].log())
                for t, token in enumerate(labels)
            )
            assert count == len(labels)
            assert total == pytest.approx(expected, abs=2e-3)


def test_greedy_search_takes_the_likeliest_token_of_the_mixture(base):
    module = module_for(base, weight=1.5)
    source, allowed = TEXTS[0], base.max_tokens
    inputs = base.pad_batch(base.encode([source]))
    processors = LogitsProcessorList(METHOD.logits_processors(base, module, 1.0))
    with METHOD.attach(base, module):
        result = base.model.generate(
            input_ids=inputs, num_beams=1, max_new_tokens=min(8, allowed), do_sample=False, logits_processor=processors
        )[0].tolist()
    prefix = result[:1]
    for token in result[1:8]:
        scores = slow_mixture(base, module, source, prefix, 1.5)
        scores[base.pad] = 0  # never written
        assert token == int(scores.argmax())
        prefix.append(token)


def test_beam_search_with_kept_states_equals_one_that_computes_all_anew(base):
    module = module_for(base, weight=1.0)

    class Anew(LogitsProcessor):
        def __call__(self, ids, scores):
            difference = module.next_difference(ids, PrefixCache())
            return torch.log_softmax(scores + difference, -1)

    inputs = base.pad_batch(base.encode(TEXTS))

    def search(processor):
        return base.model.generate(
            input_ids=inputs, attention_mask=(inputs != base.pad).long(), num_beams=3, max_new_tokens=12,
            do_sample=False, logits_processor=LogitsProcessorList([processor]),
        )  # fmt: skip

    with torch.no_grad():
        assert torch.equal(search(METHOD.logits_processors(base, module, 1.0)[0]), search(Anew()))


def test_kept_states_follow_hypotheses_that_change_places(base):
    module = module_for(base)
    memory = PrefixCache()
    first = torch.tensor([[9, 4], [9, 5], [9, 6]])
    second = torch.tensor([[9, 6, 1], [9, 4, 2], [9, 6, 3], [9, 5, 3]])
    with torch.no_grad():
        module.next_difference(first, memory)
        result = module.next_difference(second, memory)
        expected = module.difference(second)[:, -1]
        unknown = module.next_difference(torch.tensor([[9, 7, 7, 7]]), memory)
        assert torch.allclose(unknown, module.difference(torch.tensor([[9, 7, 7, 7]]))[:, -1], atol=1e-4)
    assert torch.allclose(result, expected, atol=1e-4)


def test_untrained_it_is_the_base_bit_for_bit(base):
    plugin = Plugin(METHOD, module_for(base, moved=0.0), {})
    assert translate(base, TEXTS, plugin) == translate(base, TEXTS)
    assert score(base, SENTENCES[:3], plugin) == score(base, SENTENCES[:3])


def test_it_changes_translations_and_leaves_nothing_behind(base):
    before, plugin = translate(base, TEXTS), Plugin(METHOD, module_for(base, weight=5.0), {})
    assert translate(base, TEXTS, plugin) != before
    assert translate(base, TEXTS, plugin, strength=0.0) == before
    assert translate(base, TEXTS) == before
    assert len(translate(base, TEXTS, plugin, decoding=Decoding(beam=1))) == 3
    head, decoder = base.model.get_output_embeddings(), base.model.get_decoder()
    assert not head._forward_hooks
    assert not decoder._forward_pre_hooks


def kept_translations(pairs, base):
    return translate(base, [sentence.source for sentence in pairs.sentences], decoding=Decoding(beam=1, no_repeat_ngram=3))


def test_the_models_learn_their_own_texts(base, pairs):
    module = module_for(base, moved=0.0, dropout=0.0)
    batch = make_batch(base, METHOD, module, pairs, [0, 3], 0)
    assert batch.encoded is None  # no encoder is run in training
    loss = METHOD.loss(base, module, batch)
    total = count = 0.0
    for row in (0, 3):
        labels = torch.tensor([pairs.labels[row]])
        total += language_loss(module.expert, base.shift_right(labels), labels, base.pad).item() * labels.numel()
        count += labels.numel()
    assert loss.parts["nll"] == pytest.approx(total / count, rel=1e-4)
    assert len(pairs.machine) == len(pairs)
    batches = [(base.encode_target([text])[0], pairs.machine[row]) for row, text in enumerate(kept_translations(pairs, base))]
    assert all(encoded == other for encoded, other in batches)
    loss.total.backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
    assert all(parameter.grad is None for parameter in base.model.parameters())


def test_the_anti_expert_can_learn_general_text(pair, base, tmp_path):
    sentence_pairs = [SentencePair(a, b) for a, b in SENTENCES]
    samples = Samples(pair, [], [], tmp_path, load_settings(), sentence_pairs={"train": sentence_pairs})
    METHOD.prepare(samples, DExpertsConfig(anti="general"), Progress())
    result = METHOD.encode(base, samples, "train", Progress())
    file = load_settings().assets_dir / "samples" / "general-zh" / "general-zh.txt"
    general = {tuple(ids) for ids in base.encode_target(file.read_text(encoding="utf-8").splitlines())}
    assert all(tuple(ids) in general for ids in result.machine)
    assert len({tuple(ids) for ids in result.machine}) == len(result) == len(SENTENCES)
    assert not (tmp_path / "machine.jsonl").exists()
    assert len(draw_general(load_settings().assets_dir, "zh-CN", 5000)) == 5000
    with pytest.raises(OptionError, match="no general sample of Finnish is bundled"):
        draw_general(load_settings().assets_dir, "fi", 1)


def test_validation_is_of_the_mixture(base, pairs):
    module = module_for(base, weight=0.9)
    batch = make_batch(base, METHOD, module, pairs, [0, 1], 0)
    with METHOD.attach(base, module), torch.no_grad():
        result = METHOD.log_probabilities(base, module, batch)
    labels = batch.labels[batch.labels != base.pad]
    total = float(result.gather(1, labels[:, None]).sum())
    expected = sum(a for a, _ in score(base, SENTENCES[:2], Plugin(METHOD, module, {})))
    assert total == pytest.approx(expected, abs=1e-2)


def test_weights_are_those_of_both_models(base):
    module = module_for(base)
    assert set(module.state_dict()) == {name for name, _ in module.named_parameters()}
    assert module.expert.network.wte.weight.shape == base.model.get_output_embeddings().weight.shape
    with pytest.raises(OptionError, match="a hidden size of 30 cannot be shared by 4 heads"):
        module_for(base, hidden=30, heads=4)
