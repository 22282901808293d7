"""Decoding settings."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class Decoding(Options):
    """Decoding: how a translation is searched for."""

    beam: int = option(4, "Hypotheses kept at each step.", low=1, high=64)
    length_penalty: float = option(
        1.0, "Exponent on the length in a hypothesis' score; above 1 prefers longer translations.", low=-5, high=5
    )
    max_length_ratio: float = option(2.0, "Longest translation, as a multiple of the source's tokens.", low=0.5, high=10)
    no_repeat_ngram: int = option(
        0, "Never repeat a sequence of this many tokens within one translation; 0: off.", low=0, high=20, advanced=True
    )
    guard: bool = option(
        True,
        "Search once more, never repeating three tokens, where a translation repeats itself or is too long; such translations "
        "are flagged.",
    )
    longest: int = option(
        128,
        "A text of more source tokens is cut at sentence ends, else at commas, and translated in parts; 32 helps a weak base.",
        low=8,
        high=4096,
        advanced=True,
    )
    batch_tokens: int = option(
        2048,
        "Source tokens in one batch, padding included; lower it when memory is short. On a GPU, where none is given, 8,192.",
        low=16,
        advanced=True,
    )
