"""Readers at the attentions of decoder layers: their order, and which of them lack their memory in a pass of equation 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.methods.modules import Bottleneck, LayerModules
from engine.methods.weight_swap import TunedWeights


class Adapter(Bottleneck):
    """z + W_up f(W_down z + b) + b' after a feed-forward, as Houlsby et al. have it after each sub-layer."""

    dropped = False

    def __init__(self, d: int, size: int) -> None:
        super().__init__(d, size, normalise=False, bias=True, activation="gelu")

    def forward(self, states: Tensor, strength: float = 1.0) -> Tensor:
        return states if self.dropped else super().forward(states, strength)


class LayeredReaders(nn.Module):
    """The readers of all chosen decoder layers; their state_dict is what training changes, nothing else."""

    def __init__(self, config: MemoryAdapterConfig, layers: Sequence[int], make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.config = config
        self.tuned: TunedWeights | None = None  # copies of the base's weights that learn too (table 7)
        self.adapters = LayerModules(None)  # beside the readers (`bottleneck`); none in the paper
        self.layers = nn.ModuleDict(
            {str(i): nn.ModuleDict({attention: make() for attention in config.places}) for i in sorted(set(layers))}
        )

    def add_adapters(self, d: int, layers: int) -> None:
        """Put a bottleneck adapter after the feed-forward of each decoder layer."""
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
        """Draw a memory dropout for the second pass; returns whether anything was dropped."""
        rate, draws = self.config.memory_dropout, {}
        for layer, _, reader in self.readers():
            if self.config.dropout_unit != "layer" or layer not in draws:
                draws[layer] = bool(torch.rand(()) < rate)
            reader.dropped = draws[layer]
        return self.lowest_dropped() >= 0

    def lowest_dropped(self) -> int:
        """The lowest decoder layer that lacks memory; -1 where none does."""
        lacking = [layer for layer, _, reader in self.readers() if reader.dropped is not False]
        return min(lacking, default=-1)

    def undrop(self) -> None:
        for _, _, reader in self.readers():
            reader.dropped = False
