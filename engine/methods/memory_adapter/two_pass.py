"""The second pass of equation 9 begins at the lowest decoder layer whose memory is dropped: below it, it is the first pass."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any


class CachedFirstPass:
    """What each decoder layer gave in a first pass over a batch, for a second over the same one."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = layers
        self.outputs: list[Any] = [None] * len(layers)  # (B, T, d) each, alone or first in a tuple

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """The pass within the block is the first."""

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
        """In the pass within the block the layers below that one give what they gave in the first, with its gradient."""

        def same(index: int) -> Any:
            return lambda *args, **kwargs: self.outputs[index]

        lower = list(self.layers)[: max(0, layer)]
        for index, one in enumerate(lower):
            one.forward = same(index)
        try:
            yield
        finally:
            for one in lower:
                del one.forward  # the class's own is there again
