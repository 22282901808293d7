"""The names of the parts of a base that can be tuned, in a module that does not import torch."""

from __future__ import annotations

WHICH = ("all", "decoder", "encoder", "cross_attention", "embeddings", "layer_norms", "biases")
BY_SAMPLES = "auto"


def part_of(which: str, sourced: float = 1.0) -> str:
    """The part of the base to tune; "auto" depends on the share of the samples that come with a source."""
    if which != BY_SAMPLES:
        return which
    return "all" if sourced >= 0.5 else "decoder"
