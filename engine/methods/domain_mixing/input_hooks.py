"""Looking at what goes into each layer of a base."""

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
    """How many places with proportions a side has: the input of each layer, and for the encoder its output."""
    return {"encoder": len(encoder_layers(base)) + 1, "decoder": len(base.decoder_layers)}


@contextlib.contextmanager
def watching(base: BaseModel, see: See) -> Iterator[None]:
    """Call `observe(side, layer, states)` with the input (B, T, d) of each layer while the block runs.

    The encoder's output, which the decoder's cross-attention reads, is the encoder's last place.
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
