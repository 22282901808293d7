"""Houlsby adapters as a method: h + W_up f(W_down h + b) + b' on each sub-layer's output h, before the residual sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.methods.base import Capabilities
from engine.methods.houlsby_adapter.config import HoulsbyAdapterConfig
from engine.methods.layer_method import LayerMethod
from engine.methods.layers import attentions, norms

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel

__all__ = ["HoulsbyAdapter"]


class HoulsbyAdapter(LayerMethod):
    """An adapter after each attention and each feed-forward, with the layer norms trained along."""

    name: ClassVar[str] = "houlsby_adapter"
    config_class = HoulsbyAdapterConfig
    capabilities = Capabilities(
        title="Houlsby adapters",
        summary="Small networks inside each layer, after attention and feed-forward. The usual baseline.",
        source="Houlsby et al., Parameter-Efficient Transfer Learning for NLP (2019)",
        changes_encoder=True,
    )

    def places(self, layer: nn.Module, config: HoulsbyAdapterConfig) -> list[str]:
        found = [name for name in attentions(layer) if name in config.places]
        found += ["fc2"] if "feed_forward" in config.places else []
        return found + (norms(layer) if config.layer_norms else [])

    def part(self, base: BaseModel, layer: nn.Module, place: str, config: HoulsbyAdapterConfig) -> nn.Module:
        from engine.methods.parts import Bottleneck, NormShift

        if place.endswith("_norm"):
            return NormShift(base.d_model)
        return Bottleneck(base.d_model, config.bottleneck, normalise=False, bias=True, activation=config.activation)
