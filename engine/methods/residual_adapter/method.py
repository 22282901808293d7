"""Residual adapters (paper 4): x = W_db relu(W_bd LN_T(z)) + z after each layer, equations 1 to 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.methods.cost import Cost, Workload
from engine.methods.interface import Capabilities
from engine.methods.layer_method import LayerMethod, layer_counts
from engine.methods.residual_adapter.config import ResidualAdapterConfig

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel


class ResidualAdapter(LayerMethod):
    """Inserts a small network with its own layer norm after each encoder and decoder layer."""

    name: ClassVar[str] = "residual_adapter"
    config_class = ResidualAdapterConfig
    capabilities = Capabilities(
        title="Residual adapters",
        summary="Small networks after each layer, of any size. Good for a domain with many sentences.",
        source="Bapna and Firat, Simple, Scalable Adaptation for Neural Machine Translation (2019)",
        changes_encoder=True,
    )

    def cost(self, config: ResidualAdapterConfig, work: Workload) -> Cost:
        d = work.shape.d
        per_adapter = 2 * d * config.bottleneck + 2 * d + (config.bottleneck + d if config.bias else 0)
        return Cost(weights=sum(layer_counts(config, work.shape)) * per_adapter, training=0.65)

    def positions(self, layer: nn.Module, config: ResidualAdapterConfig) -> list[str]:
        return ["layer"]

    def part(self, base: BaseModel, layer: nn.Module, position: str, config: ResidualAdapterConfig) -> nn.Module:
        from engine.methods.modules import Bottleneck

        return Bottleneck(base.d_model, config.bottleneck, normalise=True, bias=config.bias)
