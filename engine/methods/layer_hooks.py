"""Methods that work inside a base's layers: selection of layers, and hooks that apply the method's parts inside a block.

    post-norm (Marian):             x = LN(x + sublayer(x))
    pre-norm (M2M100, NLLB, mBART): x = x + sublayer(LN(x))

Both architectures use the same module names: `self_attn`, `encoder_attn` (decoder only), `fc1`, `fc2`, each sub-layer with a
`*_layer_norm`. A position therefore means the same in both: the output of an attention or of `fc2` is the sub-layer's output
before dropout, the residual sum and, in a post-norm base, the layer norm.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.core.options import Options, option
from engine.errors import OptionError
from engine.methods.interface import HookPoint

if TYPE_CHECKING:
    import torch
    from torch import nn

    from engine.base import BaseModel
    from engine.methods.modules import LayerModules

SIDES = ("encoder", "decoder")


@dataclass(frozen=True)
class LayerOptions(Options):
    """Layers that a method works at."""

    sides: tuple[str, ...] = option(SIDES, "Which half of the base is adapted; the decoder alone trains faster.", choices=SIDES)
    encoder_layers: tuple[int, ...] | None = option(
        None, "Encoder layers that are adapted, from 0; none: all.", low=0, advanced=True
    )
    decoder_layers: tuple[int, ...] | None = option(
        None, "Decoder layers that are adapted, from 0; none: all.", low=0, advanced=True
    )


def layers_of(base: BaseModel, side: str) -> Any:
    return base.decoder_layers if side == "decoder" else base.model.get_encoder().layers


def chosen_layers(base: BaseModel, config: LayerOptions) -> list[tuple[str, int, nn.Module]]:
    """(side, number, module) of the selected layers, bottom up. Raises OptionError if one does not exist or none is selected."""
    results: list[tuple[str, int, nn.Module]] = []
    for side in (side for side in SIDES if side in config.sides):
        layers, chosen = layers_of(base, side), getattr(config, f"{side}_layers")
        if chosen and max(chosen) >= len(layers):
            raise OptionError(
                "{side}_layers: the base {base} has {count} {side} layers, numbered from 0 to {last}.",
                side=side, base=base.name, count=len(layers), last=len(layers) - 1,
            )  # fmt: skip
        numbers = range(len(layers)) if chosen is None else sorted(set(chosen))
        results += [(side, i, layers[i]) for i in numbers]
    if not results:
        raise OptionError("No layer is left to adapt. Name a side in sides, and layers of it in encoder_layers or decoder_layers.")
    return results


def attentions(layer: nn.Module) -> list[str]:
    """The names of a layer's attention modules, in order."""
    return [name for name in ("self_attn", "encoder_attn") if hasattr(layer, name)]


def norms(layer: nn.Module) -> list[str]:
    """The names of a layer's layer norms, in order."""
    names = ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")
    return [name for name in names if hasattr(layer, name)]


@contextlib.contextmanager
def applied(points: Iterable[HookPoint]) -> Iterator[None]:
    """Register the hooks of the points for the duration of the block."""
    with contextlib.ExitStack() as hooks:
        for point in points:
            hooks.enter_context(point.hook())
        yield


def hook_points(base: BaseModel, module: LayerModules, strength: float) -> list[HookPoint]:
    """The hook points of a module's parts, by position; none at strength 0.

    layer                    changes the output of the whole layer
    self_attn, encoder_attn  changes the output of the attention
    fc2                      changes the output of the feed-forward block
    hidden                   changes the hidden layer of the feed-forward block, the input of `fc2`
    *_layer_norm             replaces the layer norm: the part computes it from the norm's input
    """
    results = []
    for side, number, position, part in module.placed() if strength != 0.0 else ():
        layer = layers_of(base, side)[number]
        target = layer if position == "layer" else layer.fc2 if position == "hidden" else getattr(layer, position)
        change = partial(of_norm, part, target, strength) if position.endswith("_norm") else partial(of_part, part, strength)
        results.append(HookPoint(target, position == "hidden", change))
    return results


def of_part(part: Any, strength: float, output: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    return part(output, strength)


def of_norm(part: Any, norm: Any, strength: float, output: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    changed: torch.Tensor = part(norm, input, strength)
    return changed.to(output.dtype)
