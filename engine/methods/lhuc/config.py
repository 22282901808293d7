"""Settings of LHUC."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import option
from engine.methods.layer_hooks import LayerOptions

UNITS = ("feed_forward", "attention", "layer")


@dataclass(frozen=True)
class LhucConfig(LayerOptions):
    """Learning hidden unit contributions."""

    places: tuple[str, ...] = option(
        ("feed_forward", "attention"),
        "Units that have a gate: of each feed-forward's hidden layer, of each attention's output, of each layer's output "
        "(as in Sockeye).",
        choices=UNITS,
    )
    speed: float = option(
        20.0,
        "Multiplier of the learning rate: a gate is one number per unit and must change a lot.",
        low=1e-3,
        high=1e4,
        advanced=True,
    )
