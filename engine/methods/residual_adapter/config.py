"""Settings of residual adapters (paper 4). In the paper, the bottleneck is the only hyperparameter."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import option
from engine.methods.layer_hooks import LayerOptions


@dataclass(frozen=True)
class ResidualAdapterConfig(LayerOptions):
    """Residual adapters."""

    bottleneck: int = option(
        64,
        "Size b of the hidden layer: more room for more samples. The paper: 4 for little data, 2048 to 4096 for a lot.",
        low=1,
        high=16_384,
    )
    bias: bool = option(False, "Biases in the two projections (the paper's equations have none).", advanced=True)
    speed: float = option(1.0, "Multiplier of the learning rate.", low=1e-3, high=1e4, advanced=True)
