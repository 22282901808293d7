"""What methods with parts inside a base's layers have in common; each says which parts stand where."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from engine.errors import OptionError
from engine.methods.base import Artefacts, Method, Spot
from engine.methods.layers import LayerOptions, attached, chosen_layers, spots
from engine.progress import Progress

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel
    from engine.methods.parts import Parts
    from engine.methods.samples import Samples

__all__ = ["LayerMethod"]


class LayerMethod(Method):
    """A method whose module is `Parts`."""

    def prepare(self, samples: Samples, config: LayerOptions, progress: Progress) -> Artefacts:
        """Nothing is made of the samples; what the base lacks is refused before any work is done."""
        layers = chosen_layers(samples.pair.forward, config)
        if not any(self.places(layer, config) for _, _, layer in layers):
            raise OptionError(
                "places: nothing that is named is in the chosen layers. Name another place, or more layers."
            )
        return Artefacts()

    def build(self, base: BaseModel, artefacts: Artefacts, config: Any) -> Parts:
        from engine.methods.parts import Parts

        module = Parts(config)
        for side, number, layer in chosen_layers(base, config):
            for place in self.places(layer, config):
                module.put(side, number, place, self.part(base, layer, place, config))
        return module.to(base.device)

    @abstractmethod
    def places(self, layer: nn.Module, config: Any) -> list[str]:
        """Where in a layer of the base parts stand; see `engine.methods.layers.hook`."""

    @abstractmethod
    def part(self, base: BaseModel, layer: nn.Module, place: str, config: Any) -> nn.Module:
        """A new part for a place."""

    def changes_encoder(self, module: Any) -> bool:
        return bool(module.changes_encoder)

    def speed(self, module: Any) -> float:
        return float(getattr(module.config, "speed", 1.0))

    def finish(self, module: nn.Module) -> None:
        module.eval()

    def shares_source(self, module: Any) -> bool:
        """Adapters treat each position by itself."""
        return True

    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> AbstractContextManager[None]:
        return attached(base, module, strength)

    def spots(self, base: BaseModel, module: Any, strength: float = 1.0) -> list[Spot] | None:
        if type(self).attach is not LayerMethod.attach:
            return None
        return spots(base, module, strength)
