"""Translating, then rewriting: what the model learns from, when it runs, and what it leaves alone."""

import random

import pytest
import torch

from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.types import SentencePair
from engine.decoding.translate import translate
from engine.errors import Cancelled, ModelError
from engine.methods import Artefacts, get_method
from engine.methods.base_translations import machine_translations
from engine.methods.data import Samples
from engine.methods.rewrite.config import RewriteConfig
from engine.methods.rewrite.texts import check_rewriter, noisy, rewriter_of
from engine.plugins import Plugin
from engine.training.batches import make_batch
from tests.bases import SENTENCES

METHOD = get_method("rewrite")
TEXTS = [a for a, _ in SENTENCES]


def samples_in(folder, pair):
    pairs = [SentencePair(a, b) for a, b in SENTENCES]
    folder.mkdir(exist_ok=True)
    return Samples(pair, [], [], folder, load_settings(), sentence_pairs={"train": pairs[:6], "valid": pairs[6:]})


def module_for(base, moved=0.1, **options):
    torch.manual_seed(2)
    module = METHOD.build(base, Artefacts(), RewriteConfig(**options))
    for parameter in module.parameters():
        parameter.data += moved * torch.randn_like(parameter)
    METHOD.prepare_for_inference(module)
    return module


def test_it_learns_from_what_the_base_says_to_what_the_user_wrote(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    result = METHOD.encode(base, samples, "train", Progress())
    translations = translate(base, TEXTS[:6], decoding=Decoding(beam=4, no_repeat_ngram=3))
    assert [sentence.source for sentence in result.sentences] == [text for text in translations if text]
    assert result.sources == rewriter_of(base).encode([sentence.source for sentence in result.sentences])
    assert base.decode(result.labels) == [sentence.target for sentence in result.sentences]


def test_translations_are_kept_and_made_once(pair, base, tmp_path, monkeypatch):
    samples = samples_in(tmp_path, pair)
    first = machine_translations(samples, samples.pairs("train"), 1, Progress(), "train")
    assert (tmp_path / "machine.jsonl").exists()
    monkeypatch.setattr("engine.decoding.translate.translate", lambda *_, **__: pytest.fail("made again"))
    assert machine_translations(samples, samples.pairs("train"), 1, Progress(), "train") == first


@pytest.mark.slow
def test_a_stopped_run_goes_on(pair, base, tmp_path, monkeypatch):
    from engine.decoding import resumable

    monkeypatch.setattr(resumable, "PART", 2)
    samples = samples_in(tmp_path, pair)
    original, calls = translate, []

    def stop(base, texts, *rest, **more):
        calls.append(len(texts))
        if len(calls) == 2:
            raise Cancelled("Stopped.")
        return original(base, texts, *rest, **more)

    monkeypatch.setattr("engine.decoding.translate.translate", stop)
    with pytest.raises(Cancelled):
        machine_translations(samples, samples.pairs("train"), 1, Progress(), "train")
    result = machine_translations(samples, samples.pairs("train"), 1, Progress(), "train")
    assert calls == [2, 2, 2, 2]  # the second part twice, the first once
    other = samples_in(tmp_path / "undisturbed", pair)
    assert result == machine_translations(other, other.pairs("train"), 1, Progress(), "train")


@pytest.mark.slow
def test_the_model_runs_on_the_bases_output_and_only_then(base):
    module = module_for(base)
    plugin = Plugin(METHOD, module, {})
    before = translate(base, TEXTS)
    rewritten = translate(base, TEXTS, plugin)
    with module.exchanged():
        assert translate(rewriter_of(base), before) == rewritten
    assert rewritten != before
    assert translate(base, TEXTS) == before
    assert translate(base, TEXTS, plugin, strength=0.0) == before
    with METHOD.attach(base, module):
        assert translate(base, TEXTS) == before


def test_validation_is_of_the_rewriting_model(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    pairs = METHOD.encode(base, samples, "train", Progress())
    module = module_for(base)
    batch = make_batch(base, METHOD, module, pairs, [0, 1], 0)
    assert batch.encoded is None
    with torch.no_grad():
        result = METHOD.log_probabilities(base, module, batch)
        with module.exchanged():
            logits = base.model(
                input_ids=batch.sources, attention_mask=batch.mask, decoder_input_ids=batch.inputs, use_cache=False
            ).logits
    expected = logits.log_softmax(-1)[batch.labels != base.pad]
    assert torch.allclose(result, expected, atol=1e-4)


def test_the_gradient_goes_to_the_copies(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    pairs = METHOD.encode(base, samples, "train", Progress())
    module = module_for(base)
    METHOD.loss(base, module, make_batch(base, METHOD, module, pairs, [0, 1], 0)).total.backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
    assert all(parameter.grad is None for parameter in base.model.parameters())


def test_noise_drops_and_exchanges_plain_tokens_alone():
    ids, special = [7, *range(100, 2100), 0], frozenset({0, 7})
    result = noisy(ids, 0.4, [5], special, random.Random(1))
    assert result[0] == 7
    assert result[-1] == 0
    assert 1500 < len(result) < 1700  # a fifth is dropped
    assert 300 < result.count(5) < 500  # a fifth is exchanged
    assert noisy(ids, 0.0, [5], special, random.Random(1)) == ids


def test_noisy_samples_are_added_in_training_alone(pair, base, tmp_path):
    samples = samples_in(tmp_path, pair)
    from engine.methods.base_translations import keep_settings

    keep_settings(samples, RewriteConfig(denoising=0.5))
    train, valid = (METHOD.encode(base, samples, part, Progress()) for part in ("train", "valid"))
    assert len(train) == 12
    assert len(valid) == 2
    assert train.labels[6:] == base.encode_target([b for _, b in SENTENCES[:6]])


def test_a_base_that_cannot_read_its_target_language_is_refused(base, monkeypatch):
    check_rewriter(base, [b for _, b in SENTENCES])
    with monkeypatch.context() as patch:
        patch.setattr(base.model.config, "share_encoder_decoder_embeddings", False)
        with pytest.raises(ModelError, match="has a vocabulary for each side, so its encoder cannot read Chinese"):
            check_rewriter(base, ["雨停了。"])
    with monkeypatch.context() as patch:
        patch.setattr(type(base), "encode", lambda self, texts: [[self.tokenizer.unk_token_id, 5, 0]])
        with pytest.raises(ModelError, match="33% of the tokens of your sentences are unknown"):
            check_rewriter(base, ["雨停了。"])
