"""Settings of DExperts."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class DExpertsConfig(Options):
    """Expert and anti-expert."""

    weight: float = option(
        0.2, "α: weight of the difference between expert and anti-expert; 0.2 was best in paper 1. Strength scales it.",
        low=0, high=10,
    )  # fmt: skip
    anti: str = option(
        "translations",
        "What the anti-expert learns from: the base's own translations of the samples' sources, or the "
        "general sample of the language bundled with the program (paper).",
        choices=("translations", "general"),
    )
    layers: int = option(2, "Layers of each language model.", low=1, high=48)
    hidden: int | None = option(
        None, "Hidden size of each language model; none: the base's, whose embeddings it then starts from.", low=8
    )
    heads: int | None = option(None, "Attention heads of each language model; none: one for 64 units.", low=1)
    dropout: float = option(0.1, "Dropout in the language models while training.", low=0, high=0.9, advanced=True)
    beam: int = option(4, "Beam size for the base's translations that the anti-expert learns from.", low=1, high=64, advanced=True)
