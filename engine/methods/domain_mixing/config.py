"""Settings of domain mixing. Defaults follow the paper if it states them; it has neither low rank nor a frozen base."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class DomainMixingConfig(Options):
    """Domain mixing."""

    rank: int = option(
        16,
        "Rank of each domain's update to a linear map; 0: full matrices, as in the paper, which need many sentences.",
        low=0,
        high=4096,
    )
    full_speed: float = option(
        0.1,
        "Multiplier of the learning rate for full matrices: when all weights of a map change at once, they "
        "must change slowly. Low-rank updates use the full rate.",
        low=1e-4,
        high=10,
        advanced=True,
    )
    epsilon: float = option(
        0.05, "Share of every word that is distributed evenly over all domains; 1 distributes all words evenly.", low=0, high=1
    )
    feed_forward: bool = option(False, "Mix the two maps of each layer's feed-forward block as well.")
    general: str = option(
        "auto",
        "The bundled general sample as a further domain: where the samples have one domain only, always, or never.",
        choices=("auto", "always", "never"),
    )
    mix_weight: float = option(
        1.0, "Weight of the loss of the domain proportions, L_mix; it reaches no other weights.", low=0, high=1000
    )
    balance: bool = option(
        True, "Weight all domains equally in L_mix, however many words each has; the paper weights words equally.", advanced=True
    )
    ridge: float | None = option(
        None, "Weight of the squared size of R in L_mix; none: chosen on held-out sentences (the paper: 0).", low=0, advanced=True
    )
    words: int = option(6000, "Words of each domain, in pieces, on which the proportions are first fitted.", low=100, advanced=True)
