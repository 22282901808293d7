"""An n-gram language model over the base's target vocabulary, with Witten-Bell smoothing (Witten and Bell, 1991).

    p(w | h) = (c(h w) + T(h) p(w | h')) / (c(h) + T(h))

c is the count, T(h) the number of distinct tokens after h, and h' is h without its first token; unigrams back off to a uniform
distribution. A history h consists of the last decoder inputs, so it can include the base's start token.

Tensors: `unigram` (V,), and for each history length m, with C histories and E pairs of a history and a token: `keys_m` (C,) the
sorted numbers of the histories, `starts_m` (C + 1,) the first pair of each history, `sums_m` (C,) c(h), `tokens_m` (E,) and
`counts_m` (E,).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

BASIS = 1_000_003  # base of the polynomial that numbers a history, modulo 2^64
NONE = -1  # in a history: no token


def count(inputs: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], words: int, order: int) -> dict[str, Tensor]:
    """The tensors of a model of sentences, given as decoder inputs and labels of equal lengths; `words` is V."""
    history = np.full((sum(map(len, labels)), max(1, order - 1)), NONE, dtype=np.int64)  # (N, h), the last input last
    at = 0
    for row in inputs:
        for back in range(min(order - 1, len(row))):
            history[at + back : at + len(row), -1 - back] = row[: len(row) - back]
        at += len(row)
    tokens = np.fromiter((token for row in labels for token in row), dtype=np.int64, count=len(history))  # (N,)
    counts = np.bincount(tokens, minlength=words)  # (V,)
    types = int((counts > 0).sum())
    unigram = (counts + types / words) / (len(tokens) + types)  # (V,)
    result = {"unigram": torch.from_numpy(unigram).float()}
    for m in range(1, order):
        complete = (history[:, -m:] != NONE).all(1)  # (N,)
        result |= _level(fold(torch.from_numpy(history[complete][:, -m:])).numpy(), tokens[complete], m)
    return result


def _level(keys: np.ndarray, tokens: np.ndarray, m: int) -> dict[str, Tensor]:
    """The tensors for histories of length m, from the number of the history and the following token at each position (N,)."""
    order = np.lexsort((tokens, keys))  # (N,)
    keys, tokens = keys[order], tokens[order]
    new_key = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]  # (N,)
    pairs = np.flatnonzero(new_key | np.concatenate([[True], tokens[1:] != tokens[:-1]])[: len(keys)])  # (E,)
    histories = np.flatnonzero(new_key)  # (C,)
    return {
        f"keys_{m}": torch.from_numpy(keys[histories]),
        f"starts_{m}": torch.from_numpy(np.append(np.searchsorted(pairs, histories), len(pairs))),
        f"sums_{m}": torch.from_numpy(np.diff(np.append(histories, len(keys)))).float(),
        f"tokens_{m}": torch.from_numpy(tokens[pairs]).int(),
        f"counts_{m}": torch.from_numpy(np.diff(np.append(pairs, len(keys)))).float(),
    }


def fold(history: Tensor) -> Tensor:
    """The numbers (R,) that represent histories (R, m)."""
    result = torch.zeros(len(history), dtype=torch.long, device=history.device)  # (R,)
    for column in history.unbind(1):
        result = result * BASIS + column + 1  # (R,)
    return result


class Ngrams(nn.Module):
    """An n-gram model from the tensors of `count`. Has no trained weights."""

    unigram: Tensor

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)
        self.order = 1 + sum(name.startswith("keys_") for name in tensors)

    def forward(self, history: Tensor) -> Tensor:
        """Log-probabilities (R, V) of the next token after decoder inputs (R, h), the last one last; `NONE` where missing."""
        words = len(self.unigram)
        p = self.unigram.expand(len(history), words).clone()  # (R, V)
        for m in range(1, min(self.order, history.shape[1] + 1)):
            keys, starts, sums, tokens, counts = (
                getattr(self, f"{name}_{m}") for name in ("keys", "starts", "sums", "tokens", "counts")
            )
            last = history[:, -m:]  # (R, m)
            number = fold(last)  # (R,)
            at = torch.searchsorted(keys, number).clamp(max=len(keys) - 1)  # (R,)
            rows = ((keys[at] == number) & (last != NONE).all(1)).nonzero().squeeze(1)  # (r,)
            if not len(rows):
                break
            at = at[rows]  # (r,)
            types = starts[at + 1] - starts[at]  # (r,)
            share = 1 / (sums[at] + types)  # (r,)
            keep = p.new_ones(len(p)).index_copy(0, rows, types * share)  # (R,)
            p.mul_(keep[:, None])
            owner = torch.arange(len(rows), device=p.device).repeat_interleave(types)  # (e,)
            entry = torch.arange(len(owner), device=p.device) + (starts[at] - types.cumsum(0) + types)[owner]  # (e,)
            p.view(-1).index_add_(0, rows[owner] * words + tokens[entry], counts[entry] * share[owner])
        return p.log()  # (R, V)
