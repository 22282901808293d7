"""Houlsby adapters: h + W_up f(W_down h + b) + b' on each sub-layer's output h, before the residual sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.methods.cost import Cost, Workload
from engine.methods.houlsby_adapter.config import HoulsbyAdapterConfig
from engine.methods.interface import Capabilities
from engine.methods.layer_hooks import attentions, norms
from engine.methods.layer_method import LayerMethod, layer_counts

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel


class HoulsbyAdapter(LayerMethod):
    """Inserts an adapter after each attention and feed-forward block, and optionally trains the layer norms."""

    name: ClassVar[str] = "houlsby_adapter"
    config_class = HoulsbyAdapterConfig
    capabilities = Capabilities(
        title="Houlsby adapters",
        summary="Small networks inside each layer, after attention and feed-forward. The usual baseline.",
        source="Houlsby et al., Parameter-Efficient Transfer Learning for NLP (2019)",
        changes_encoder=True,
    )

    def cost(self, config: HoulsbyAdapterConfig, work: Workload) -> Cost:
        encoder, decoder = layer_counts(config, work.shape)
        blocks, d = set(config.places), work.shape.d
        per_adapter = 2 * d * config.bottleneck + config.bottleneck + d
        adapters = encoder * len(blocks - {"encoder_attn"}) + decoder * len(blocks)
        norms = (2 * encoder + 3 * decoder) * 2 * d if config.layer_norms else 0
        return Cost(weights=adapters * per_adapter + norms, training=0.7)

    def positions(self, layer: nn.Module, config: HoulsbyAdapterConfig) -> list[str]:
        results = [name for name in attentions(layer) if name in config.places]
        results += ["fc2"] if "feed_forward" in config.places else []
        return results + (norms(layer) if config.layer_norms else [])

    def part(self, base: BaseModel, layer: nn.Module, position: str, config: HoulsbyAdapterConfig) -> nn.Module:
        from engine.methods.modules import Bottleneck, NormShift

        if position.endswith("_norm"):
            return NormShift(base.d_model)
        return Bottleneck(base.d_model, config.bottleneck, normalise=False, bias=True, activation=config.activation)
