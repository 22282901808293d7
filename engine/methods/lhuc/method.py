"""LHUC as a method: gates 2σ(a) on hidden units of the frozen base."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.methods.base import Capabilities
from engine.methods.layer_method import LayerMethod
from engine.methods.layers import attentions
from engine.methods.lhuc.config import LhucConfig

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel

__all__ = ["Lhuc"]


class Lhuc(LayerMethod):
    """Amplifies or dampens units that the base already has."""

    name: ClassVar[str] = "lhuc"
    config_class = LhucConfig
    capabilities = Capabilities(
        title="LHUC gates",
        summary="Turns units of the base up or down. Tiny; good for very few sentences.",
        source="Vilar, Learning Hidden Unit Contribution for Adapting Neural Machine Translation Models (2018)",
        changes_encoder=True,
    )

    def places(self, layer: nn.Module, config: LhucConfig) -> list[str]:
        found = attentions(layer) if "attention" in config.places else []
        found += ["hidden"] if "feed_forward" in config.places else []
        return found + (["layer"] if "layer" in config.places else [])

    def part(self, base: BaseModel, layer: nn.Module, place: str, config: LhucConfig) -> nn.Module:
        from engine.methods.lhuc.module import Gate

        return Gate(layer.fc2.in_features if place == "hidden" else base.d_model)  # type: ignore[arg-type, union-attr]
