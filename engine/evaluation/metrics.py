"""The BLEU tokenizer for each language, and the metrics that use it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from engine.corpora.language import base_language

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

UNSPACED = ("zh", "ja")  # languages that TER's `asian_support` splits into characters

DEFAULT = "13a"
# Scripts without spaces between words, for which every sacrebleu tokenizer needs a download.
CHARACTERS = ("th", "lo", "my", "km", "bo", "dz")
# sacrebleu's choice for languages whose tokenizers need optional packages.
OPTIONAL = {"ja": "ja-mecab", "ko": "ko-mecab"}


@cache
def _available(name: str) -> bool:
    from sacrebleu.metrics import BLEU

    try:
        BLEU(tokenize=name)
    except (RuntimeError, ImportError):
        return False
    return True


def tokenizer(language: str) -> str:
    """sacrebleu's tokenizer for the target language: zh, ja-mecab, ko-mecab, char or 13a.

    Japanese and Korean fall back to char if sacrebleu[ja] or sacrebleu[ko] is not installed; the signature shows this.
    """
    code = base_language(language)
    if code == "zh":
        return "zh"
    if code in OPTIONAL:
        return OPTIONAL[code] if _available(OPTIONAL[code]) else "char"
    return "char" if code in CHARACTERS else DEFAULT


def metrics(language: str, *, ter: bool = False) -> dict[str, Metric]:
    """BLEU (Papineni et al., 2002), chrF2 (Popović, 2015) and, if requested, TER (Snover et al., 2006), by sacrebleu (Post, 2018).
    TER counts characters in Chinese and Japanese, where it is slow.
    """
    from sacrebleu.metrics import BLEU, CHRF, TER

    # The texts are plain sentences: without force, sacrebleu logs a warning about tokenized-looking periods.
    result: dict[str, Metric] = {"BLEU": BLEU(tokenize=tokenizer(language), force=True), "chrF2": CHRF()}
    if ter:
        unspaced = base_language(language) in UNSPACED
        result["TER"] = TER(normalized=unspaced, asian_support=unspaced)
    return result
