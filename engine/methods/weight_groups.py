"""The parts of a base whose weights can be tuned, by name; apart from the code that needs torch."""

from __future__ import annotations

WHICH = ("all", "decoder", "encoder", "cross_attention", "embeddings", "layer_norms", "biases")
BY_SAMPLES = "auto"


def part_of(which: str, sourced: float = 1.0) -> str:
    """The part of the base that is tuned where this share of the samples has a source of its own."""
    if which != BY_SAMPLES:
        return which
    return "all" if sourced >= 0.5 else "decoder"
