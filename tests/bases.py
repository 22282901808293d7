"""Small real bases: Marian's own class and tokenizer, in memory (random weights) or on disk (trained for a second)."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.base import BaseModel, LanguagePair

__all__ = [
    "EN_ZH",
    "ROOT",
    "SAMPLES",
    "SENTENCES",
    "copy_base",
    "fit_pairs",
    "make_base",
    "marian_config",
    "pieces_of",
    "tiny_base",
    "tiny_pair",
]

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "assets" / "samples"
EN_ZH = ROOT / "assets" / "models" / "en-zh"
SENTENCES = [
    ("The rain stopped.", "雨停了。"),
    ("He said nothing.", "他什么也不曾说。"),
    ("The old teahouse by the river closed last year.", "河边的老茶馆，去年竟关了门。"),
    ("I waited for a letter.", "我等一封信，然而终于没有来。"),
    ("My mother kept every letter.", "母亲将每一封信都收着。"),
    ("We walked home in the dark.", "我们在黑暗里走回家去。"),
    ("The road is long.", "路是长的。"),
    ("Nobody came to the door.", "门外大抵不会有人来了。"),
]

# What an untrained base writes has no end, and is searched for again where it is guarded.
SHORT = {"max_length_ratio": 1.0, "guard": False}


def pieces_of(folder: Path, vocabulary: int, **settings: Any) -> dict[str, int]:
    """Train a SentencePiece model on the bundled samples, write source.spm and target.spm, return {piece: id}."""
    import sentencepiece

    lines = [
        line
        for name, most in (("literary-zh/literary-zh.txt", 40), ("elizabethan-en/elizabethan-en.txt", 100), ("demo.en.txt", 12))
        for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()[:most]
    ]
    lines += [text for pair in SENTENCES for text in pair] * 5
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=vocabulary,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        eos_id=0,
        unk_id=1,
        bos_id=-1,
        pad_id=-1,
        num_threads=1,
        minloglevel=2,
        **settings,
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}


def marian_config(size: int, pad: int, d: int, encoder: int, decoder: int, **more: Any) -> Any:
    """A small Marian's shape: `size` words, hidden size `d`, without dropout."""
    from transformers import MarianConfig

    return MarianConfig(
        vocab_size=size, d_model=d, encoder_layers=encoder, decoder_layers=decoder,
        encoder_ffn_dim=2 * d, decoder_ffn_dim=2 * d, encoder_attention_heads=2, decoder_attention_heads=2,
        dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, activation_function="relu",
        max_position_embeddings=128, pad_token_id=pad, eos_token_id=0, bos_token_id=0, forced_eos_token_id=0,
        decoder_start_token_id=pad, share_encoder_decoder_embeddings=True, **more,
    )  # fmt: skip


def tiny_base(source: str = "en", target: str = "zh", *, d: int = 32, layers: int = 3, seed: int = 0) -> BaseModel:
    """An untrained base in memory with the tokenizer of the bundled one; the same seed gives the same weights."""
    import torch
    from transformers import AutoTokenizer, MarianMTModel

    from engine.base import BaseModel
    from engine.base.families import family_of

    tokenizer = AutoTokenizer.from_pretrained(EN_ZH)
    torch.manual_seed(seed)
    model = MarianMTModel(marian_config(len(tokenizer), tokenizer.pad_token_id, d, 2, layers, init_std=0.15))
    model.requires_grad_(False).eval()
    family = family_of("marian", tokenizer, "tiny")
    base = BaseModel(model, tokenizer, family, source=source, target=target, folder=Path("tiny"))
    base.__dict__["_own_decoding"] = SHORT
    return base


def tiny_pair(**shape: int) -> LanguagePair:
    from engine.base import LanguagePair

    forward = tiny_base(**shape)
    return LanguagePair(forward, forward.for_direction("zh", "en"))


def make_base(
    folder: Path,
    *,
    d: int = 32,
    layers: int = 2,
    vocabulary: int = 700,
    tags: tuple[str, ...] = (">>en<<", ">>zh<<"),
    updates: int = 120,
    seed: int = 1,
    half: bool = False,
) -> Path:
    """A Marian folder of the same layout as assets/models/en-zh: both directions by tags, weights as safetensors.

    `updates` steps of training on eight sentence pairs in both directions make it sure of what it says, so that its
    output does not hang on the last digit of a sum, and is short. With no tags it translates one way only.
    """
    import torch
    from transformers import AutoTokenizer, MarianMTModel

    folder.mkdir(parents=True, exist_ok=True)
    words = pieces_of(folder, vocabulary)
    for word in (*tags, "<pad>"):
        words[word] = len(words)
    pad = words["<pad>"]
    (folder / "vocab.json").write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    tokenizer_config = {
        "source_lang": "en",
        "target_lang": "zh",
        "tokenizer_class": "MarianTokenizer",
        "model_max_length": 128,
        "separate_vocabs": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config), encoding="utf-8")
    config = marian_config(len(words), pad, d, layers, layers, scale_embedding=True, init_std=0.08)
    torch.manual_seed(seed)
    model = MarianMTModel(config)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    fit(model, tokenizer, pad, updates, bool(tags))
    model.generation_config.bos_token_id = 0
    (model.half() if half else model).save_pretrained(folder)
    return folder


def fit(model: Any, tokenizer: Any, pad: int, updates: int, tagged: bool) -> None:
    rows = [(">>zh<< " + en if tagged else en, zh) for en, zh in SENTENCES]
    if tagged:
        rows += [(">>en<< " + zh, en) for en, zh in SENTENCES]
    inputs = tokenizer([a for a, _ in rows], padding=True, return_tensors="pt")
    labels = tokenizer(text_target=[b for _, b in rows], padding=True, return_tensors="pt")["input_ids"]
    fit_pairs(model, inputs, labels, pad, updates)


def fit_pairs(model: Any, inputs: Any, labels: Any, pad: int, updates: int = 120) -> None:
    """Train a model on one batch of inputs and labels (B, T), again and again."""
    import torch

    labels = labels.masked_fill(labels == pad, -100)  # (B, T)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    model.train()
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * min(1.0, (update + 1) / 20)
        loss = model(**inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()


def copy_base(base: Path, folder: Path) -> Path:
    """A copy to be spoilt."""
    shutil.copytree(base, folder, copy_function=shutil.copyfile)
    return folder
