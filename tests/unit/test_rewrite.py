"""Translating, then rewriting: what the model learns from, when it runs, and what it leaves alone."""

import random

import pytest
import torch

from engine.decoding.options import Decoding
from engine.errors import Cancelled, ModelError
from engine.methods import Artefacts, get_method
from engine.methods.machine import machine_translations
from engine.methods.rewrite.config import RewriteConfig
from engine.methods.rewrite.texts import check_rewriter, noisy, rewriter_of
from engine.methods.samples import Samples, SentencePair
from engine.plugins import Plugin
from engine.progress import Progress
from engine.settings import load_settings
from engine.training.loop import make_batch
from tests.bases import SENTENCES, tiny_pair

METHOD = get_method("rewrite")
TEXTS = [a for a, _ in SENTENCES]


@pytest.fixture(scope="module")
def pair():
    return tiny_pair()


@pytest.fixture
def base(pair):
    return pair.forward


def samples_in(folder, pair):
    pairs = [SentencePair(a, b) for a, b in SENTENCES]
    folder.mkdir(exist_ok=True)
    return Samples(pair, [], [], folder, load_settings(), sentence_pairs={"train": pairs[:6], "valid": pairs[6:]})


def module_for(base, moved=0.1, **options):
    torch.manual_seed(2)
    module = METHOD.build(base, Artefacts(), RewriteConfig(**options))
    for parameter in module.parameters():
        parameter.data += moved * torch.randn_like(parameter)
    METHOD.finish(module)
    return module


def test_it_learns_from_what_the_base_says_to_what_the_user_wrote(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    found = METHOD.encode(base, samples, "train", Progress())
    said = base.translate(TEXTS[:6], decoding=Decoding(beam=4, no_repeat_ngram=3))
    assert [one.source for one in found.sentences] == [text for text in said if text]
    assert found.sources == rewriter_of(base).encode([one.source for one in found.sentences])
    assert base.decode(found.labels) == [one.target for one in found.sentences]


def test_translations_are_kept_and_made_once(pair, base, tmp_path, monkeypatch):
    samples = samples_in(tmp_path, pair)
    first = machine_translations(samples, samples.pairs("train"), 1, Progress(), "train")
    assert (tmp_path / "machine.jsonl").exists()
    monkeypatch.setattr(type(base), "translate", lambda *_, **__: pytest.fail("made again"))
    assert machine_translations(samples, samples.pairs("train"), 1, Progress(), "train") == first


def test_a_stopped_run_goes_on(pair, base, tmp_path, monkeypatch):
    from engine.decoding import resumable

    monkeypatch.setattr(resumable, "PART", 2)
    samples = samples_in(tmp_path, pair)
    whole, calls = type(base).translate, []

    def stop(self, texts, *rest, **more):
        calls.append(len(texts))
        if len(calls) == 2:
            raise Cancelled("Stopped.")
        return whole(self, texts, *rest, **more)

    monkeypatch.setattr(type(base), "translate", stop)
    with pytest.raises(Cancelled):
        machine_translations(samples, samples.pairs("train"), 1, Progress(), "train")
    found = machine_translations(samples, samples.pairs("train"), 1, Progress(), "train")
    assert calls == [2, 2, 2, 2]  # the second part twice, the first once
    other = samples_in(tmp_path / "undisturbed", pair)
    assert found == machine_translations(other, other.pairs("train"), 1, Progress(), "train")


def test_the_model_runs_on_the_bases_output_and_only_then(base):
    module = module_for(base)
    plugin = Plugin(METHOD, module, {})
    before = base.translate(TEXTS)
    rewritten = base.translate(TEXTS, plugin)
    with module.exchanged():
        assert rewriter_of(base).translate(before) == rewritten
    assert rewritten != before
    assert base.translate(TEXTS) == before
    assert base.translate(TEXTS, plugin, strength=0.0) == before
    with METHOD.attach(base, module):
        assert base.translate(TEXTS) == before


def test_validation_is_of_the_rewriting_model(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    pairs = METHOD.encode(base, samples, "train", Progress())
    module = module_for(base)
    batch = make_batch(base, METHOD, module, pairs, [0, 1], 0)
    assert batch.encoded is None
    with torch.no_grad():
        found = METHOD.log_probabilities(base, module, batch)
        with module.exchanged():
            logits = base.model(
                input_ids=batch.sources, attention_mask=batch.mask, decoder_input_ids=batch.inputs, use_cache=False
            ).logits
    wanted = logits.log_softmax(-1)[batch.labels != base.pad]
    assert torch.allclose(found, wanted, atol=1e-4)


def test_the_gradient_goes_to_the_copies(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    pairs = METHOD.encode(base, samples, "train", Progress())
    module = module_for(base)
    METHOD.loss(base, module, make_batch(base, METHOD, module, pairs, [0, 1], 0)).total.backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
    assert all(parameter.grad is None for parameter in base.model.parameters())


def test_noise_drops_and_exchanges_plain_tokens_alone():
    ids, special = [7, *range(100, 2100), 0], frozenset({0, 7})
    found = noisy(ids, 0.4, [5], special, random.Random(1))
    assert found[0] == 7
    assert found[-1] == 0
    assert 1500 < len(found) < 1700  # a fifth is dropped
    assert 300 < found.count(5) < 500  # a fifth is exchanged
    assert noisy(ids, 0.0, [5], special, random.Random(1)) == ids


def test_noisy_samples_are_added_in_training_alone(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    from engine.methods.machine import keep_settings

    keep_settings(samples, RewriteConfig(denoising=0.5))
    train, valid = (METHOD.encode(base, samples, part, Progress()) for part in ("train", "valid"))
    assert len(train) == 12
    assert len(valid) == 2
    assert train.labels[6:] == base.label([b for _, b in SENTENCES[:6]])


def test_a_base_that_cannot_read_its_target_language_is_refused(base, monkeypatch):
    check_rewriter(base, [b for _, b in SENTENCES])
    with monkeypatch.context() as patch:
        patch.setattr(base.model.config, "share_encoder_decoder_embeddings", False)
        with pytest.raises(ModelError, match="has a vocabulary for each side, so its encoder cannot read zh"):
            check_rewriter(base, ["雨停了。"])
    with monkeypatch.context() as patch:
        patch.setattr(type(base), "encode", lambda self, texts: [[self.tokenizer.unk_token_id, 5, 0]])
        with pytest.raises(ModelError, match="33% of the tokens of your sentences are unknown"):
            check_rewriter(base, ["雨停了。"])
