"""Settings of translating and then rewriting."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class RewriteConfig(Options):
    """Rewriting."""

    beam: int = option(4, "Beam size for the base's translations used in training.", low=1, high=64)
    denoising: float = option(
        0.0,
        "Also learn to restore samples in which this share of the tokens is dropped or replaced, half of each; 0: do not.",
        low=0,
        high=0.9,
    )
    shrink: float = option(
        1.0, "After training, interpolate this far from the base's weights to the rewriting model's.", low=0, high=1
    )
    speed: float = option(
        0.1,
        "Multiplier of the learning rate: the model starts from the base's weights, which must change slowly.",
        low=1e-4,
        high=10,
        advanced=True,
    )
    dropout: float | None = option(
        None, "Dropout in the model's layers while training; empty: as the base was trained, by its config.",
        low=0, high=0.9, advanced=True,
    )  # fmt: skip
    label_smoothing: float = option(0.1, "Label smoothing of the likelihood.", low=0, high=0.9, advanced=True)
