"""Methods that work inside a base's layers: which layers they take, and their parts hooked in for the duration of a block.

    residual + f(x)              post-norm (Marian):             x = LN(x + sublayer(x))
    one sub-layer of a layer     pre-norm (M2M100, NLLB, mBART): x = x + sublayer(LN(x))

Both kinds name their modules alike: `self_attn`, `encoder_attn` (decoder only), `fc1`, `fc2`, a `*_layer_norm` beside each.
So a place means the same in both: the output of an attention or of `fc2` is the sub-layer's own, before dropout, the
residual sum and, in a post-norm base, the layer norm.
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

    sides: tuple[str, ...] = option(
        SIDES, "Which half of the base is adapted; the decoder alone trains faster.", choices=SIDES
    )
    encoder_layers: tuple[int, ...] | None = option(
        None, "Encoder layers that are adapted, from 0; none: all.", low=0, advanced=True
    )
    decoder_layers: tuple[int, ...] | None = option(
        None, "Decoder layers that are adapted, from 0; none: all.", low=0, advanced=True
    )


def layers_of(base: BaseModel, side: str) -> Any:
    return base.decoder_layers if side == "decoder" else base.model.get_encoder().layers


def chosen_layers(base: BaseModel, config: LayerOptions) -> list[tuple[str, int, nn.Module]]:
    """(side, number, layer of the base), from the bottom up. Raises OptionError when the base lacks one, or none is left."""
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
        raise OptionError(
            "No layer is left to adapt. Name a side in sides, and layers of it in encoder_layers or decoder_layers."
        )
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
    """Each change works at its place for the duration of the block."""
    with contextlib.ExitStack() as hooks:
        for point in points:
            hooks.enter_context(point.hook())
        yield


def hook_points(base: BaseModel, module: LayerModules, strength: float) -> list[HookPoint]:
    """Where the parts of a module work on what a layer passes on; at strength 0 nowhere.

    layer        the whole layer's output
    self_attn    the attention's output, so `encoder_attn`
    fc2          the feed-forward's output
    hidden       the feed-forward's hidden layer: what `fc2` is given
    *_layer_norm the layer norm's input; the part does the norm's work
    """
    results = []
    for side, number, position, part in module.placed() if strength != 0.0 else ():
        layer = layers_of(base, side)[number]
        target = layer if position == "layer" else layer.fc2 if position == "hidden" else getattr(layer, position)
        change = (
            partial(of_norm, part, target, strength) if position.endswith("_norm") else partial(of_part, part, strength)
        )
        results.append(HookPoint(target, position == "hidden", change))
    return results


def of_part(part: Any, strength: float, output: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    return part(output, strength)


def of_norm(part: Any, norm: Any, strength: float, output: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    changed: torch.Tensor = part(norm, input, strength)
    return changed.to(output.dtype)
