"""The decoder's self-attention keys and values during a search, with room for new tokens and reordering in one pass.

`DynamicLayer` of transformers copies everything twice at each step: to reorder the hypotheses and to append a token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import Cache, DynamicLayer

ROOM = 32  # initial capacity in tokens; doubled when used up


def search_cache(layers: int) -> EncoderDecoderCache:
    """An empty cache for a decoder with this many layers: `BeamLayer` for its tokens, the library's layers for the source."""
    return EncoderDecoderCache(Cache(layers=[BeamLayer() for _ in range(layers)]), DynamicCache())


class BeamLayer(DynamicLayer):
    """Keys and values of a layer: views (R, H, T, h) of buffers (R, room, H * h), which are read and written alternately."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: list[Tensor] = []  # keys and values (R, room, d)
        self.spare: list[Tensor] = []  # the buffers into which rows are reordered
        self.tokens = 0

    def get_seq_length(self) -> int:
        return self.tokens

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append keys and values (R, H, L, h). Returns all keys and values (R, H, T, h)."""
        rows, heads, new, width = key_states.shape
        return self.append(
            key_states.transpose(1, 2).reshape(rows, new, heads * width),  # (R, L, d)
            value_states.transpose(1, 2).reshape(rows, new, heads * width),  # (R, L, d)
            heads,
        )

    def append(self, keys: Tensor, values: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        """Append keys and values (R, L, d). Returns all keys and values (R, H, T, h)."""
        rows, new, width = keys.shape
        total = self.tokens + new
        if not self.buffers or total > self.buffers[0].shape[1]:
            capacity = max(ROOM, 2 * total)
            grown = [keys.new_empty(rows, capacity, width) for _ in range(2)]
            for buffer, larger in zip(self.buffers, grown, strict=False):
                larger[:, : self.tokens] = buffer[:, : self.tokens]
            self.buffers, self.spare = grown, []
        for buffer, states in zip(self.buffers, (keys, values), strict=True):
            buffer[:, self.tokens : total] = states
        self.tokens, self.is_initialized = total, True
        self.keys, self.values = (
            buffer[:, :total].view(rows, total, heads, -1).transpose(1, 2)
            for buffer in self.buffers  # (R, H, T, h)
        )
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Replace row i by row indices[i]; the number of rows may change."""
        if not self.tokens:
            return
        rows = len(indices)
        if not self.spare or len(self.spare[0]) < rows:
            self.spare = [buffer.new_empty(rows, *buffer.shape[1:]) for buffer in self.buffers]
        for buffer, spare in zip(self.buffers, self.spare, strict=True):
            torch.index_select(buffer[:, : self.tokens], 0, indices, out=spare[:rows, : self.tokens])
        self.buffers, self.spare = [spare[:rows] for spare in self.spare], self.buffers
