"""Settings of the density ratio."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class DensityRatioConfig(Options):
    """Density ratio."""

    weight: float | None = option(
        None, "β: weight of the ratio; none: the one under which held-out samples are likeliest and general text loses nothing. "
        "Strength scales it.",
        low=0, high=10,
    )  # fmt: skip
    order: int = option(3, "Longest n-gram that is counted, in pieces of the base's vocabulary.", low=1, high=6)
    against: str = option(
        "unigrams",
        "What the n-grams of the samples are divided by: the samples' unigrams, so that a context that they do not have changes "
        "nothing; n-grams of the bundled general text; or nothing (shallow fusion).",
        choices=("unigrams", "general", "nothing"),
    )
