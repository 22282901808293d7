"""Hooks that observe the input of each layer of a base."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from engine.base import BaseModel

See = Callable[[str, int, "Tensor"], None]


def encoder_layers(base: BaseModel) -> Any:
    return base.model.get_encoder().layers


def proportion_layer_counts(base: BaseModel) -> dict[str, int]:
    """The number of positions with proportions on each side: the input of each layer, and the output of the encoder."""
    return {"encoder": len(encoder_layers(base)) + 1, "decoder": len(base.decoder_layers)}


@contextlib.contextmanager
def watching(base: BaseModel, see: See) -> Iterator[None]:
    """Call `see(side, layer, states)` with the input (B, T, d) of each layer for the duration of the block.

    The last position of the encoder is its output, which the decoder's cross-attention reads.
    """

    def before(side: str, layer: int) -> Any:
        def hook(module: Any, args: Any, kwargs: Any) -> None:
            see(side, layer, args[0] if args else kwargs["hidden_states"])

        return hook

    def after(module: Any, args: Any, output: Any) -> None:
        see("encoder", len(encoder_layers(base)), output[0])

    with contextlib.ExitStack() as hooks:
        for side, layers in (("encoder", encoder_layers(base)), ("decoder", base.decoder_layers)):
            for i, layer in enumerate(layers):
                hooks.enter_context(layer.register_forward_pre_hook(before(side, i), with_kwargs=True))
        hooks.enter_context(base.model.get_encoder().register_forward_hook(after))
        yield
