"""Families of the hub besides Marian: small models with their real tokenizer classes translate and take a plugin's readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.base import BaseModel, LanguagePair
from engine.decoding.greedy import back_translate
from engine.decoding.options import Decoding
from engine.errors import ModelError
from engine.memory import PhrasePair, record
from engine.methods import Artefacts, get_method
from engine.methods.memory_adapter.module import SPEED
from tests.bases import SENTENCES, pieces_of

SOURCES = [source for source, _ in SENTENCES]
FAST = Decoding(beam=2, max_length_ratio=0.5)
SHAPE = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 128, "init_std": 0.15,
}  # fmt: skip
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def characters() -> list[str]:
    return sorted({c for pair in SENTENCES for text in pair for c in text.replace(" ", "▁")} | {"▁"})


def m2m100(folder: Path) -> None:
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

    words = pieces_of(folder, 700)
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *(w for w in words if w not in SPECIAL)])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "source.spm"), src_lang="en", tgt_lang="zh")
    size = len(vocabulary) + len(tokenizer.lang_token_to_id) + tokenizer.num_madeup_words
    config = M2M100Config(vocab_size=size, decoder_start_token_id=2, **SHAPE)
    save(folder, M2M100ForConditionalGeneration(config), tokenizer)


def nllb(folder: Path) -> None:
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    words = {word: i for i, word in enumerate([*SPECIAL, *characters()])}
    tokenizer = NllbTokenizer(vocab=words, merges=[], src_lang="eng_Latn", tgt_lang="zho_Hans")
    config = M2M100Config(vocab_size=len(tokenizer), decoder_start_token_id=2, **SHAPE)
    save(folder, M2M100ForConditionalGeneration(config), tokenizer)


def mbart(folder: Path) -> None:
    from transformers import MBartConfig, MBartForConditionalGeneration, MBartTokenizer

    words = [(word, 0.0) for word in SPECIAL] + [(c, -3.0) for c in characters()]
    tokenizer = MBartTokenizer(vocab=words, src_lang="en_XX", tgt_lang="zh_CN")
    config = MBartConfig(vocab_size=len(tokenizer), **SHAPE)
    save(folder, MBartForConditionalGeneration(config), tokenizer)


def save(folder: Path, model: torch.nn.Module, tokenizer: object) -> None:
    model.save_pretrained(folder)  # type: ignore[operator]
    tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]


@pytest.fixture(scope="module", params=[m2m100, nllb, mbart], ids=lambda make: make.__name__)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    make: Callable[[Path], None] = request.param
    place = tmp_path_factory.mktemp(make.__name__)
    torch.manual_seed(1)
    make(place)
    return place


@pytest.fixture(scope="module")
def pair(folder: Path) -> LanguagePair:
    return LanguagePair.load(folder, "en", "zh", device="cpu")


def test_it_translates_both_ways(pair: LanguagePair) -> None:
    forward = pair.forward.translate([*SOURCES, ""], decoding=FAST)
    assert len(forward) == len(SOURCES) + 1
    assert forward[-1] == ""
    assert any(forward)
    assert len(back_translate(pair.backward, [target for _, target in SENTENCES])) == len(SENTENCES)
    assert all(score < 0 for score, _ in pair.forward.score(SENTENCES))


def test_text_survives_its_tokenizer(pair: LanguagePair) -> None:
    base = pair.forward
    targets = [target for _, target in SENTENCES]
    assert [text.replace(" ", "") for text in base.decode(base.label(targets))] == targets
    assert not set(base.label(targets)[0]) & {base.tokenizer.unk_token_id}


def test_a_memory_adapter_starts_as_the_base_and_then_changes_it(pair: LanguagePair, tmp_path: Path) -> None:
    base = pair.forward
    pairs = [PhrasePair(i % 2, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    memory = record(base, pairs, tmp_path / "memory.safetensors")
    assert memory.sizes == [4, 4]
    assert all(memory.target(i).float().norm(dim=1).min() > 0 for i in range(2))
    method = get_method("memory_adapter")
    module = method.build(base, Artefacts(memory=memory), method.config_class())
    before, scores = base.translate(SOURCES, decoding=FAST), base.score(SENTENCES)
    with method.attach(base, module):
        assert base.translate(SOURCES, decoding=FAST) == before
        assert base.score(SENTENCES) == scores
    for name, parameter in module.named_parameters():
        if name.endswith("scale"):
            parameter.data += 1.0 / SPEED
    with method.attach(base, module):
        assert base.score(SENTENCES) != scores
    assert base.score(SENTENCES) == scores


@pytest.mark.parametrize(("source", "target"), [("en", "tlh"), ("en", "en")])
def test_languages_that_it_does_not_know(folder: Path, source: str, target: str) -> None:
    with pytest.raises(ModelError, match=r"does not know the language tlh|two different languages"):
        BaseModel.load(folder, source, target, device="cpu")
