"""The common base of methods that insert parts into a base's layers; subclasses define the parts and their positions."""

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
    """The numbers of encoder and decoder layers that the settings select."""
    named = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    available = {"encoder": shape.encoder, "decoder": shape.decoder}
    encoder, decoder = (
        0 if side not in config.sides else available[side] if chosen is None else len(set(chosen)) for side, chosen in named.items()
    )
    return encoder, decoder


class LayerMethod(Method):
    """A method whose module is `LayerModules`."""

    def prepare(self, samples: Samples, config: LayerOptions, progress: Progress) -> Artefacts:
        """Check the settings early; nothing is computed. Raises OptionError if the selected layers do not exist or have none of
        the selected positions.
        """
        layers = chosen_layers(samples.pair.forward, config)
        if not any(self.positions(layer, config) for _, _, layer in layers):
            raise OptionError("places: none of the named places is in the chosen layers. Name another place, or more layers.")
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
        """The positions of the parts in a layer of the base; see `engine.methods.layer_hooks.hook_points`."""

    @abstractmethod
    def part(self, base: BaseModel, layer: nn.Module, position: str, config: Any) -> nn.Module:
        """A new, untrained part for a position."""

    def changes_encoder(self, module: Any) -> bool:
        return bool(module.changes_encoder)

    def lr_scale(self, module: Any) -> float:
        return float(getattr(module.config, "speed", 1.0))

    def batches_beams_per_sentence(self, module: Any) -> bool:
        """True: the parts treat positions independently."""
        return True

    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> AbstractContextManager[None]:
        return applied(hook_points(base, module, strength))

    def hook_points(self, base: BaseModel, module: Any, strength: float = 1.0) -> list[HookPoint] | None:
        if type(self).attach is not LayerMethod.attach:
            return None
        return hook_points(base, module, strength)
