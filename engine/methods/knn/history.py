"""The tokens that each hypothesis has generated and copied so far, in a search or in scoring, and what it must not copy again.

The output layer receives only states. The history of each row and its sentence are therefore kept in an additional layer of the
decoder's cache, so that they are reordered, repeated and selected together with the rows of the cache.

    keys    (r, 1, t, 3)   per position: the input token, the datastore row that it was copied from (-1: none), and the sentence
                           in the batch
    values  (r, 1, 1, 2k)  the candidates after the last position: k tokens and k datastore rows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.base import BaseModel
from engine.base.cache_argument import cache_argument
from engine.decoding.marian_step import observer

GRAM = 3  # length of the subword n-grams that are not repeated by copying


def repeats(row: Sequence[int]) -> int:
    """The maximum count of a subword trigram in the source, at least 1: how often the translation may copy the same."""
    grams = Counter(zip(row, row[1:], row[2:], strict=False))
    return max(grams.values(), default=1)


@dataclass
class History:
    """L positions, of which the last n are queries."""

    tokens: torch.Tensor  # (r, L) input tokens
    rows: torch.Tensor  # (r, L) datastore row that the token was copied from; -1: none
    queries: int  # n


def is_repeated(history: History, tokens: torch.Tensor, rows: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Mask (r, n, k) of the candidates that would repeat: their row was already copied, or their trigram already generated,
    `allowed` (r,) times.
    """
    written, length = history.tokens, history.tokens.shape[1]  # (r, L)
    position = torch.arange(length - history.queries, length, device=written.device)  # (n,)
    earlier = torch.arange(length, device=written.device) < position[:, None]  # (n, L)
    upto = torch.arange(length, device=written.device) <= position[:, None]  # (n, L)
    from_row = (rows[..., None] == history.rows[:, None, None]) & upto[:, None] & (rows >= 0)[..., None]  # (r, n, k, L)
    times = from_row.sum(-1)  # (r, n, k)
    if length > GRAM - 1:
        same = written[:, None, 1:] == written[:, position, None]  # (r, n, L - 1), the last subword
        before = torch.nn.functional.pad(written, (1, 0), value=-1)[:, position]  # (r, n), the subword before it
        same &= written[:, None, :-1] == before[..., None]  # (r, n, L - 1)
        same &= earlier[:, 1:]  # (r, n, L - 1)
        following = torch.nn.functional.pad(written, (0, 1), value=-1)[:, 2:]  # (r, L - 1)
        hit = same[:, :, None] & (following[:, None, None] == tokens[..., None])  # (r, n, k, L - 1)
        times = torch.maximum(times, hit.sum(-1))  # (r, n, k)
    return times >= allowed[:, None, None]  # (r, n, k)


class Steps:
    """Observes the decoder's inputs and keeps the history of each row in the decoder's cache."""

    def __init__(self, base: BaseModel) -> None:
        self.decoder = base.model.get_decoder()
        self.layers = len(base.decoder_layers)
        self.pad = base.pad
        self.ids: Any = None  # (r, n)
        self.cache: Any = None
        self._handle: Any = None

    def __enter__(self) -> Steps:
        named = cache_argument(self.decoder)

        @observer
        def look(module: Any, args: Any, kwargs: dict[str, object]) -> None:
            self.ids = kwargs.get("input_ids", args[0] if args else None)
            cache = kwargs.get(named)
            self.cache = getattr(cache, "self_attention_cache", cache)

        self._handle = self.decoder.register_forward_pre_hook(look, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()
        self.ids = self.cache = None

    def laid_out(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """States arranged as (r, n, d), and a mask (r, n) of the real positions if states are given at these only (M, d).

        Raises ValueError if states have neither shape.
        """
        if states.dim() == 3:
            return states, None
        real = self.ids != self.pad  # (r, n)
        real[:, 0] = True  # some bases start decoding with the padding token
        if int(real.sum()) != len(states):
            raise ValueError("states of the output layer need to be those of all target positions")
        laid = torch.zeros(*real.shape, states.shape[-1], dtype=states.dtype, device=states.device)  # (r, n, d)
        laid[real] = states
        return laid, real

    def layer(self) -> Any:
        """The additional layer of the cache; None if there is no cache or no such layer yet."""
        index = getattr(self.cache, "tailormt_layers", {}).get(id(self))
        return None if index is None else self.cache.layers[index]

    def sentences(self, count: int) -> torch.Tensor:
        """The index (r,) of each row's sentence in the batch of `count` sentences."""
        layer = self.layer()
        if layer is not None:
            return layer.keys[:, 0, -1, 2]
        return torch.arange(len(self.ids), device=self.ids.device) // max(1, len(self.ids) // count)  # (r,)

    def hypotheses(self, sentences: torch.Tensor) -> int:
        """The number of consecutive rows per sentence; 1 if it is not the same for all sentences."""
        changes = int((sentences[1:] != sentences[:-1]).sum()) + 1
        each, remainder = divmod(len(sentences), changes)
        alike = not remainder and bool((sentences.view(changes, each) == sentences.view(changes, each)[:, :1]).all())
        return each if alike else 1

    def written(self, begins: torch.Tensor, none: int) -> torch.Tensor:
        """The last two tokens (r, n, 2) before each prediction, the last one first; `none` for tokens in `begins` (b,) and if
        there are fewer than two.
        """
        layer = self.layer()
        before = self.ids[:, :1].new_full((len(self.ids), 1), none)  # (r, 1)
        if layer is not None:
            before = layer.keys[:, 0, -1:, 0]  # (r, 1)
        tokens = torch.cat([before, self.ids], 1)  # (r, n + 1)
        tokens = tokens.masked_fill(torch.isin(tokens, begins), none)  # (r, n + 1)
        return torch.stack([tokens[:, 1:], tokens[:, :-1]], -1)  # (r, n, 2)

    def history(self, sentences: torch.Tensor, tokens: torch.Tensor, rows: torch.Tensor) -> History:
        """The history of each row including the current inputs; candidates (r, n, k) are kept for the next step."""
        from transformers.cache_utils import DynamicLayer

        layer = self.layer()
        ids = self.ids  # (r, n)
        # A token counts as copied from the best row that proposed it at the position before.
        inner = proposed(tokens[:, :-1], rows[:, :-1], ids[:, 1:])  # (r, n - 1)
        if layer is None:
            first = torch.full_like(ids[:, :1], -1)  # (r, 1)
        else:
            k = layer.values.shape[-1] // 2
            last = layer.values[:, 0, -1:]  # (r, 1, 2k)
            first = proposed(last[..., :k], last[..., k:], ids[:, :1])  # (r, 1)
        current = torch.stack([ids, torch.cat([first, inner], 1), sentences[:, None].expand_as(ids)], -1)  # (r, n, 3)
        combined = current if layer is None else torch.cat([layer.keys[:, 0], current], 1)  # (r, L, 3)
        if self.cache is not None:
            if layer is None:
                layer = self.new_layer(DynamicLayer)
            layer.keys = combined[:, None]
            layer.values = torch.cat([tokens[:, -1:], rows[:, -1:]], -1)[:, None]  # (r, 1, 1, 2k)
        return History(combined[..., 0], combined[..., 1], ids.shape[1])

    def new_layer(self, kind: Any) -> Any:
        layers = self.cache.layers
        while len(layers) < self.layers:  # the decoder's layers, which may not exist yet
            layers.append(kind())
        layer = kind()
        layer.is_initialized = True
        layers.append(layer)
        layer_indices = getattr(self.cache, "tailormt_layers", {})
        self.cache.tailormt_layers = {**layer_indices, id(self): len(layers) - 1}
        return layer


def proposed(tokens: torch.Tensor, rows: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The best of the rows (r, n, k) that proposed the chosen tokens (r, n); -1 if none did."""
    hit = tokens == chosen[..., None]  # (r, n, k)
    best = rows.gather(-1, hit.int().argmax(-1, keepdim=True))[..., 0]  # (r, n)
    return torch.where(hit.any(-1), best, torch.full_like(best, -1))  # (r, n)
