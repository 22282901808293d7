"""A small base of each architecture of the hub on disk, as `save_pretrained` writes it: real classes, real tokenizer files.

`HUB_MODELS` names the makers; `make_hub_model(name, folder)` writes one. All translate English and Chinese; `backward` names
the maker of the other direction where a model has one only. They are trained for a second on eight sentences, so that they
are sure of what they say and their output is short. The method matrix runs every method on each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bases import SAMPLES, SENTENCES, fit_pairs, marian_config, pieces_of

__all__ = ["HUB_MODELS", "HubModel", "make_hub_model"]

SHAPE = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 128, "init_std": 0.08,
    "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0, "scale_embedding": True,
}  # fmt: skip
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@dataclass(frozen=True)
class HubModel:
    """One small architecture: how it is made, and the maker of its other direction where it has one only."""

    make: Callable[[Path], None]
    backward: str = ""
    languages: int = 2


def characters() -> list[str]:
    """The characters of the test's sentences and of the literary sample, for tokenizers by character."""
    sample = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:60]
    texts = [text for pair in SENTENCES for text in pair] + sample
    return sorted({c for text in texts for c in text if not c.isspace()} | {"▁"})


def marian(folder: Path, hub_config: dict[str, Any], tags: tuple[str, ...], codes: dict[str, str], seed: int) -> None:
    """A Marian folder with the tokenizer config of a hub repository; `codes` is {target language: its tag}."""
    import torch
    from transformers import MarianMTModel, MarianTokenizer

    words = pieces_of(folder, 700)
    for word in (*tags, "<pad>"):
        words[word] = len(words)
    (folder / "vocab.json").write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    tokenizer_config = {"tokenizer_class": "MarianTokenizer", "model_max_length": 512, "separate_vocabs": False, **hub_config}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config), encoding="utf-8")
    tokenizer = MarianTokenizer.from_pretrained(folder)
    torch.manual_seed(seed)
    model = MarianMTModel(marian_config(len(words), words["<pad>"], 32, 2, 2, scale_embedding=True, init_std=0.08))
    mark = {language: f"{code} " if code else "" for language, code in codes.items()}
    pairs = [(mark["zh"] + en, zh) for en, zh in SENTENCES] if "zh" in mark else []
    pairs += [(mark["en"] + zh, en) for en, zh in SENTENCES] if "en" in mark else []
    inputs = tokenizer([a for a, _ in pairs], padding=True, return_tensors="pt")
    labels = tokenizer(text_target=[b for _, b in pairs], padding=True, return_tensors="pt")["input_ids"]
    fit_pairs(model, inputs, labels, words["<pad>"])
    model.generation_config.bos_token_id = 0
    model.save_pretrained(folder)


def opus_en_zh(folder: Path) -> None:
    """One direction, no tags, as Helsinki-NLP/opus-mt-en-de."""
    marian(folder, {"source_lang": "en", "target_lang": "zh"}, (), {"zh": ""}, 1)


def opus_zh_en(folder: Path) -> None:
    """The other direction, its languages in three letters as of the Tatoeba challenge."""
    marian(folder, {"source_lang": "zho", "target_lang": "eng"}, (), {"en": ""}, 2)


def opus_mul(folder: Path) -> None:
    """Several targets by tags with scripts, as Helsinki-NLP/opus-mt-tc-big-en-pt and opus-mt-mul-mul."""
    tags = (">>cmn_Hans<<", ">>cmn_Hant<<", ">>eng<<", ">>por<<", ">>pob<<")
    codes = {"zh": tags[0], "en": tags[2]}
    marian(folder, {"source_lang": "mul", "target_lang": "mul"}, tags, codes, 3)


def m2m100(folder: Path) -> None:
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

    words = pieces_of(folder, 700)
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *(w for w in words if w not in SPECIAL)])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "source.spm"), src_lang="en", tgt_lang="zh")
    size = len(vocabulary) + len(tokenizer.lang_token_to_id) + tokenizer.num_madeup_words
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=size, decoder_start_token_id=2, **SHAPE))
    save_coded(folder, model, tokenizer, ("en", "zh"))
    for name in ("source.spm", "target.spm"):  # save_pretrained has written the tokenizer's own copy
        (folder / name).unlink()


def nllb(folder: Path) -> None:
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    words = {word: i for i, word in enumerate([*SPECIAL, *characters()])}
    tokenizer = NllbTokenizer(vocab=words, merges=[], src_lang="eng_Latn", tgt_lang="zho_Hans")
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=len(tokenizer), decoder_start_token_id=2, **SHAPE))
    save_coded(folder, model, tokenizer, ("eng_Latn", "zho_Hans"))


def mbart50(folder: Path) -> None:
    from transformers import MBart50Tokenizer, MBartConfig, MBartForConditionalGeneration

    # The first three are SentencePiece's own; the tokenizer puts fairseq's in their place, then its codes behind.
    words = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *((c, -3.0) for c in characters())]
    tokenizer = MBart50Tokenizer(vocab=words, src_lang="en_XX", tgt_lang="zh_CN")
    model = MBartForConditionalGeneration(MBartConfig(vocab_size=len(tokenizer), decoder_start_token_id=2, **SHAPE))
    save_coded(folder, model, tokenizer, ("en_XX", "zh_CN"))


def save_coded(folder: Path, model: Any, tokenizer: Any, codes: tuple[str, str]) -> None:
    """Train a model with language codes both ways, then write it and its tokenizer."""
    pad = tokenizer.pad_token_id
    rows: list[list[int]] = []
    answers: list[list[int]] = []
    for source, target, turned in ((*codes, False), (*codes[::-1], True)):
        tokenizer.src_lang, tokenizer.tgt_lang = source, target
        pairs = [(zh, en) if turned else (en, zh) for en, zh in SENTENCES]
        rows += tokenizer([a for a, _ in pairs])["input_ids"]
        answers += tokenizer(text_target=[b for _, b in pairs])["input_ids"]
    tokenizer.src_lang, tokenizer.tgt_lang = codes
    inputs = padded(rows, pad)
    fit_pairs(model, {"input_ids": inputs, "attention_mask": (inputs != pad).long()}, padded(answers, pad), pad)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def padded(rows: list[list[int]], pad: int) -> Any:
    import torch

    width = max(map(len, rows))
    return torch.tensor([row + [pad] * (width - len(row)) for row in rows])


HUB_MODELS = {
    "opus-en-zh": HubModel(opus_en_zh, backward="opus-zh-en"),
    "opus-zh-en": HubModel(opus_zh_en, backward="opus-en-zh"),
    "opus-mul": HubModel(opus_mul, languages=5),
    "m2m100": HubModel(m2m100, languages=100),
    "nllb": HubModel(nllb, languages=201),
    "mbart50": HubModel(mbart50, languages=52),
}


def make_hub_model(name: str, folder: Path) -> Path:
    """Write the small model of that name into `folder`, made when missing; the same every time."""
    import torch

    from engine.base.defaults import write_defaults

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    HUB_MODELS[name].make(folder)
    write_defaults(folder, {"en-zh": {"beam": 2}, "zh-en": {"beam": 2}})  # what it has not seen, it says without an end
    return folder
