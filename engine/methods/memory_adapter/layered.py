"""Readers at the attentions of decoder layers, bottleneck adapters, and memory dropout for the second pass of equation 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.methods.modules import Bottleneck, LayerModules
from engine.methods.weight_swap import TunedWeights


class Adapter(Bottleneck):
    """z + W_up f(W_down z + b) + b' after a feed-forward block, like the adapters of Houlsby et al. after each sub-layer."""

    dropped = False

    def __init__(self, d: int, size: int) -> None:
        super().__init__(d, size, normalise=False, bias=True, activation="gelu")

    def forward(self, states: Tensor, strength: float = 1.0) -> Tensor:
        return states if self.dropped else super().forward(states, strength)


class LayeredReaders(nn.Module):
    """The readers of all selected decoder layers; the state_dict contains exactly the trained weights."""

    def __init__(self, config: MemoryAdapterConfig, layers: Sequence[int], make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.config = config
        self.tuned: TunedWeights | None = None  # copies of the base's weights that are trained too (table 7)
        self.adapters = LayerModules(None)  # bottleneck adapters (`bottleneck`); not in the paper
        self.layers = nn.ModuleDict(
            {str(i): nn.ModuleDict({attention: make() for attention in config.places}) for i in sorted(set(layers))}
        )

    def add_adapters(self, d: int, layers: int) -> None:
        """Add a bottleneck adapter after the feed-forward block of each decoder layer if the settings require it."""
        for layer in range(layers if self.config.bottleneck else 0):
            self.adapters.put("decoder", layer, "fc2", Adapter(d, self.config.bottleneck))

    def readers(self) -> list[tuple[int, str, Any]]:
        """(layer, attention, reader), from the bottom up."""
        return [
            (int(layer), attention, reader)
            for layer, readers in self.layers.items()
            for attention, reader in readers.items()  # type: ignore[operator, union-attr]
        ]

    def drop(self) -> bool:
        """Draw the memory dropout for the second pass. Returns whether anything is dropped."""
        rate, draws = self.config.memory_dropout, {}
        for layer, _, reader in self.readers():
            if self.config.dropout_unit != "layer" or layer not in draws:
                draws[layer] = bool(torch.rand(()) < rate)
            reader.dropped = draws[layer]
        return self.lowest_dropped() >= 0

    def lowest_dropped(self) -> int:
        """The lowest decoder layer whose memory is dropped; -1 if there is none."""
        lacking = [layer for layer, _, reader in self.readers() if reader.dropped is not False]
        return min(lacking, default=-1)

    def undrop(self) -> None:
        for _, _, reader in self.readers():
            reader.dropped = False
