"""Reuse of the first pass of equation 9 for the second pass, below the lowest decoder layer whose memory is dropped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any


class CachedFirstPass:
    """The outputs of the decoder layers in the first pass over a batch, for a second pass over the same batch."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = layers
        self.outputs: list[Any] = [None] * len(layers)  # (B, T, d) each, possibly as the first item of a tuple

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record the outputs of the first pass, which runs inside the block."""

        def keep(index: int) -> Any:
            def hook(layer: Any, args: Any, output: Any) -> None:
                self.outputs[index] = output

            return hook

        with contextlib.ExitStack() as hooks:
            for index, layer in enumerate(self.layers):
                hooks.enter_context(layer.register_forward_hook(keep(index)))
            yield

    @contextlib.contextmanager
    def below(self, layer: int) -> Iterator[None]:
        """Inside the block, the layers below `layer` return their outputs of the first pass, with their gradients."""

        def same(index: int) -> Any:
            return lambda *args, **kwargs: self.outputs[index]

        lower = list(self.layers)[: max(0, layer)]
        for index, module in enumerate(lower):
            module.forward = same(index)
        try:
            yield
        finally:
            for module in lower:
                del module.forward  # restores the method of the class
