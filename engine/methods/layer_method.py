"""What methods with parts inside a base's layers have in common; each says which parts stand where."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from engine.core.progress import Progress
from engine.errors import OptionError
from engine.methods.cost import Shape
from engine.methods.interface import Artefacts, HookPoint, Method
from engine.methods.layer_hooks import LayerOptions, applied, chosen_layers, hook_points

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel
    from engine.methods.data import Samples
    from engine.methods.modules import LayerModules


def layer_counts(config: LayerOptions, shape: Shape) -> tuple[int, int]:
    """Encoder and decoder layers that a method within layers works at."""
    named = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    there = {"encoder": shape.encoder, "decoder": shape.decoder}
    encoder, decoder = (
        0 if side not in config.sides else there[side] if chosen is None else len(set(chosen))
        for side, chosen in named.items()
    )
    return encoder, decoder


class LayerMethod(Method):
    """A method whose module is `Parts`."""

    def prepare(self, samples: Samples, config: LayerOptions, progress: Progress) -> Artefacts:
        """Nothing is made of the samples; what the base lacks is refused before any work is done. Raises OptionError
        where no layer that was chosen has the place.
        """
        layers = chosen_layers(samples.pair.forward, config)
        if not any(self.positions(layer, config) for _, _, layer in layers):
            raise OptionError(
                "places: none of the named places is in the chosen layers. Name another place, or more layers."
            )
        return Artefacts()

    def build(self, base: BaseModel, artefacts: Artefacts, config: Any) -> LayerModules:
        from engine.methods.modules import LayerModules

        module = LayerModules(config)
        for side, number, layer in chosen_layers(base, config):
            for position in self.positions(layer, config):
                module.put(side, number, position, self.part(base, layer, position, config))
        return module.to(base.device)

    @abstractmethod
    def positions(self, layer: nn.Module, config: Any) -> list[str]:
        """Where in a layer of the base parts stand; see `engine.methods.layer_hooks.hook_points`."""

    @abstractmethod
    def part(self, base: BaseModel, layer: nn.Module, position: str, config: Any) -> nn.Module:
        """A new part for a place."""

    def changes_encoder(self, module: Any) -> bool:
        return bool(module.changes_encoder)

    def lr_scale(self, module: Any) -> float:
        return float(getattr(module.config, "speed", 1.0))

    def batches_beams_per_sentence(self, module: Any) -> bool:
        """Adapters treat each position by itself."""
        return True

    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> AbstractContextManager[None]:
        return applied(hook_points(base, module, strength))

    def hook_points(self, base: BaseModel, module: Any, strength: float = 1.0) -> list[HookPoint] | None:
        if type(self).attach is not LayerMethod.attach:
            return None
        return hook_points(base, module, strength)
