"""A tiny real base in memory: Marian's own class with random weights, and the tokenizer of the bundled base."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.base import BaseModel, LanguagePair
from engine.base.families import family_of

ROOT = Path(__file__).resolve().parent.parent
EN_ZH = ROOT / "assets" / "models" / "en-zh"


def tiny_base(source: str = "en", target: str = "zh", *, d: int = 32, layers: int = 3, seed: int = 0) -> BaseModel:
    """An untrained Marian model of `layers` decoder layers and hidden size `d`; the same seed gives the same weights."""
    from transformers import AutoTokenizer, MarianConfig, MarianMTModel

    tokenizer = AutoTokenizer.from_pretrained(EN_ZH)
    size = len(tokenizer)
    config = MarianConfig(
        vocab_size=size,
        d_model=d,
        encoder_layers=2,
        decoder_layers=layers,
        encoder_ffn_dim=2 * d,
        decoder_ffn_dim=2 * d,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        max_position_embeddings=128,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=0,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=0,
        activation_function="relu",
        share_encoder_decoder_embeddings=True,
        init_std=0.15,
    )
    torch.manual_seed(seed)
    model = MarianMTModel(config).requires_grad_(False).eval()
    family = family_of("marian", tokenizer, "tiny")
    return BaseModel(model, tokenizer, family, source=source, target=target, name="tiny", path="tiny")


def tiny_pair(**shape: int) -> LanguagePair:
    forward = tiny_base(**shape)
    return LanguagePair(forward, forward.directed("zh", "en"))


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
