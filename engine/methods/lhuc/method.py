"""LHUC: trained gates 2σ(a) on hidden units of the frozen base."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.methods.cost import Cost, Workload
from engine.methods.interface import Capabilities
from engine.methods.layer_hooks import attentions
from engine.methods.layer_method import LayerMethod, layer_counts
from engine.methods.lhuc.config import LhucConfig

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel


class Lhuc(LayerMethod):
    """Amplifies or dampens hidden units of the base."""

    name: ClassVar[str] = "lhuc"
    config_class = LhucConfig
    capabilities = Capabilities(
        title="LHUC gates",
        summary="Turns units of the base up or down. Tiny; good for very few sentences.",
        source="Vilar, Learning Hidden Unit Contribution for Adapting Neural Machine Translation Models (2018)",
        changes_encoder=True,
    )

    def cost(self, config: LhucConfig, work: Workload) -> Cost:
        encoder, decoder = layer_counts(config, work.shape)
        attention = (encoder + 2 * decoder) * work.shape.d if "attention" in config.places else 0
        hidden = encoder * work.shape.encoder_hidden + decoder * work.shape.hidden
        forward = hidden if "feed_forward" in config.places else 0
        outputs = (encoder + decoder) * work.shape.d if "layer" in config.places else 0
        return Cost(weights=attention + forward + outputs, training=0.9)

    def positions(self, layer: nn.Module, config: LhucConfig) -> list[str]:
        result = attentions(layer) if "attention" in config.places else []
        result += ["hidden"] if "feed_forward" in config.places else []
        return result + (["layer"] if "layer" in config.places else [])

    def part(self, base: BaseModel, layer: nn.Module, position: str, config: LhucConfig) -> nn.Module:
        from engine.methods.lhuc.module import Gate

        return Gate(layer.fc2.in_features if position == "hidden" else base.d_model)  # type: ignore[arg-type, union-attr]
