"""What a hypothesis has written and copied so far, while it is searched for or scored, and what it must not copy again.

The output layer sees states alone. What was written before, and of which sentence a row is, goes along with the decoder's
cache as one more layer of it: whatever search reorders, repeats or selects the rows of the cache does so with these.

    keys    (r, 1, t, 3)   of each position: the token that was read there, the row of the datastore that it was copied from
                           (-1: none), the sentence of the batch
    values  (r, 1, t, 2k)  at the last position alone what could be copied next: k tokens, k rows; elsewhere nothing is kept
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

GRAM = 3  # pieces that are not copied a second time in the same order


def repeats(row: Sequence[int]) -> int:
    """How often the source says the same three pieces at most: so often the translation may copy the same."""
    grams = Counter(zip(row, row[1:], row[2:], strict=False))
    return max(grams.values(), default=1)


@dataclass
class History:
    """L positions, of which the last n are queries."""

    tokens: torch.Tensor  # (r, L) what was read at each position
    rows: torch.Tensor  # (r, L) the datastore's row that this token was copied from; -1: none
    queries: int  # n


def again(history: History, tokens: torch.Tensor, rows: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Which of the candidates (r, n, k) were copied from the same row before, or would complete three pieces in an order that
    was written before, as often as is `allowed` (r,).
    """
    written, length = history.tokens, history.tokens.shape[1]  # (r, L)
    position = torch.arange(length - history.queries, length, device=written.device)  # (n,)
    earlier = torch.arange(length, device=written.device) < position[:, None]  # (n, L)
    upto = torch.arange(length, device=written.device) <= position[:, None]  # (n, L)
    from_row = (rows[..., None] == history.rows[:, None, None]) & upto[:, None] & (rows >= 0)[..., None]  # (r, n, k, L)
    times = from_row.sum(-1)  # (r, n, k)
    if length > GRAM - 1:
        same = written[:, None, 1:] == written[:, position, None]  # (r, n, L - 1), the piece before the next
        before = torch.nn.functional.pad(written, (1, 0), value=-1)[:, position]  # (r, n), the piece before that
        same &= written[:, None, :-1] == before[..., None]  # (r, n, L - 1)
        same &= earlier[:, 1:]  # (r, n, L - 1)
        following = torch.nn.functional.pad(written, (0, 1), value=-1)[:, 2:]  # (r, L - 1)
        hit = same[:, :, None] & (following[:, None, None] == tokens[..., None])  # (r, n, k, L - 1)
        times = torch.maximum(times, hit.sum(-1))  # (r, n, k)
    return times >= allowed[:, None, None]  # (r, n, k)


class Steps:
    """Watches what the decoder is given, and keeps the history of each row with its cache."""

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
        """States as (r, n, d). Where they are of the real positions alone (M, d), also which those are (r, n). Raises
        ValueError where they fit neither.
        """
        if states.dim() == 3:
            return states, None
        real = self.ids != self.pad  # (r, n)
        real[:, 0] = True  # decoding begins with the padding's token in some bases
        if int(real.sum()) != len(states):
            raise ValueError("states of the output layer need to be those of all target positions")
        laid = torch.zeros(*real.shape, states.shape[-1], dtype=states.dtype, device=states.device)  # (r, n, d)
        laid[real] = states
        return laid, real

    def layer(self) -> Any:
        """Our layer of the cache; None where nothing is cached, or nothing yet."""
        mine = getattr(self.cache, "tailormt_layers", {}).get(id(self))
        return None if mine is None else self.cache.layers[mine]

    def sentences(self, count: int) -> torch.Tensor:
        """The sentence (r,) of the batch that each row is of."""
        layer = self.layer()
        if layer is not None:
            return layer.keys[:, 0, -1, 2]
        return torch.arange(len(self.ids), device=self.ids.device) // max(1, len(self.ids) // count)  # (r,)

    def hypotheses(self, sentences: torch.Tensor) -> int:
        """How many rows that follow each other belong to each sentence; 1 where that differs."""
        changes = int((sentences[1:] != sentences[:-1]).sum()) + 1
        each, rest = divmod(len(sentences), changes)
        alike = not rest and bool((sentences.view(changes, each) == sentences.view(changes, each)[:, :1]).all())
        return each if alike else 1

    def written(self, begins: torch.Tensor, none: int) -> torch.Tensor:
        """The last two tokens (r, n, 2) before each position, the last one first; `none` for those among `begins` (b,) and
        where there are fewer.
        """
        layer = self.layer()
        one = self.ids[:, :1].new_full((len(self.ids), 1), none)  # (r, 1)
        if layer is not None:
            one = layer.keys[:, 0, -1:, 0]  # (r, 1)
        whole = torch.cat([one, self.ids], 1)  # (r, n + 1)
        whole = whole.masked_fill(torch.isin(whole, begins), none)  # (r, n + 1)
        return torch.stack([whole[:, 1:], whole[:, :-1]], -1)  # (r, n, 2)

    def history(self, sentences: torch.Tensor, tokens: torch.Tensor, rows: torch.Tensor) -> History:
        """What each row has written and copied, with what was just read; candidates (r, n, k) are kept for the next step."""
        from transformers.cache_utils import DynamicLayer

        layer = self.layer()
        ids = self.ids  # (r, n)
        # The token after a position was copied from the best row that proposed it there.
        inner = proposed(tokens[:, :-1], rows[:, :-1], ids[:, 1:])  # (r, n - 1)
        if layer is None:
            first = torch.full_like(ids[:, :1], -1)  # (r, 1)
        else:
            k = layer.values.shape[-1] // 2
            last = layer.values[:, 0, -1:]  # (r, 1, 2k)
            first = proposed(last[..., :k], last[..., k:], ids[:, :1])  # (r, 1)
        here = torch.stack([ids, torch.cat([first, inner], 1), sentences[:, None].expand_as(ids)], -1)  # (r, n, 3)
        whole = here if layer is None else torch.cat([layer.keys[:, 0], here], 1)  # (r, L, 3)
        if self.cache is not None:
            if layer is None:
                layer = self.new_layer(DynamicLayer)
            layer.keys = whole[:, None]
            layer.values = torch.cat([tokens[:, -1:], rows[:, -1:]], -1)[:, None]  # (r, 1, 1, 2k)
        return History(whole[..., 0], whole[..., 1], ids.shape[1])

    def new_layer(self, kind: Any) -> Any:
        layers = self.cache.layers
        while len(layers) < self.layers:  # the decoder's own, which may not have begun
            layers.append(kind())
        mine = kind()
        mine.is_initialized = True
        layers.append(mine)
        known = getattr(self.cache, "tailormt_layers", {})
        self.cache.tailormt_layers = {**known, id(self): len(layers) - 1}
        return mine


def proposed(tokens: torch.Tensor, rows: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The best of the rows (r, n, k) whose token was chosen (r, n); -1 where none was."""
    hit = tokens == chosen[..., None]  # (r, n, k)
    best = rows.gather(-1, hit.int().argmax(-1, keepdim=True))[..., 0]  # (r, n)
    return torch.where(hit.any(-1), best, torch.full_like(best, -1))  # (r, n)
