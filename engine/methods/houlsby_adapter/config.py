"""Settings of Houlsby adapters. Defaults follow the paper; the activation follows the authors' code."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import option
from engine.methods.layer_hooks import LayerOptions

SUBLAYERS = ("self_attn", "encoder_attn", "feed_forward")


@dataclass(frozen=True)
class HoulsbyAdapterConfig(LayerOptions):
    """Houlsby adapters."""

    bottleneck: int = option(64, "Size m of the hidden layer. The paper: 64; 8 to 256 worked.", low=1, high=16_384)
    layer_norms: bool = option(True, "Also train the base's layer norms, as differences stored in the plugin (paper).")
    places: tuple[str, ...] = option(
        SUBLAYERS, "Sub-layers after which adapters are inserted: self-attention, cross-attention, feed-forward.",
        choices=SUBLAYERS, advanced=True,
    )  # fmt: skip
    activation: str = option("gelu", "The nonlinearity between the two projections.", choices=("gelu", "relu"), advanced=True)
    speed: float = option(1.0, "Multiplier of the learning rate.", low=1e-3, high=1e4, advanced=True)
