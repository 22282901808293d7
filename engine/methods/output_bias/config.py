"""Settings of the output bias of Michel and Neubig (2018)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class ExtremeConfig(Options):
    """Extreme adaptation."""

    rank: int | None = option(
        None,
        "k of the factored bias: a vector of k numbers for each domain, times k biases that all share. None: the full bias.",
        low=1,
        high=4096,
    )
    per_domain: bool = option(
        False, "A bias for each domain of the samples, as the paper has one for each speaker; else one for all."
    )
    domain: str = option("", "With per_domain: the domain whose bias translations get; empty: the mean of all domains' biases.")
    decay: float = option(
        0.0, "Weight of the biases' sum of squares in the loss: larger keeps closer to the base.", low=0, high=1e3
    )
    speed: float = option(
        20.0,
        "Multiplier of the learning rate: a bias is one number per word and must change a lot.",
        low=1e-3,
        high=1e4,
        advanced=True,
    )
