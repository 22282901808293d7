"""A trained bias on the output vocabulary for each speaker (Michel and Neubig, 2018).

p(y | x, s) = softmax(E h + b_T + b_s)      the base's logits and bias, plus the bias of speaker s

full        b_s is a row of B, which has V numbers per speaker
factored    B = S B̃ with S of size speakers x k, and B̃ of size k x V shared by all speakers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

SCATTER = 0.1  # standard deviation of the untrained B̃; the untrained S is zero, so the bias is zero


class OutputBias(nn.Module):
    """Biases of speakers or domains (`names`) over a vocabulary of `words` words, zero before training."""

    def __init__(self, names: Sequence[str], words: int, rank: int | None) -> None:
        super().__init__()
        self.config: Any = None
        self.names = list(names)
        self.chosen: int | None = None  # index of the bias used outside of training; None: the mean of all
        self.current: Tensor | None = None  # (M,) index of the name per target position in training; -1: unknown
        if rank is None:
            self.bias = nn.Parameter(torch.zeros(len(names), words))
        else:
            self.speakers = nn.Parameter(torch.zeros(len(names), rank))
            self.words = nn.Parameter(SCATTER * torch.randn(rank, words))
        self.rank = rank

    def biases(self) -> Tensor:
        """B (S, V), with one row per speaker."""
        return self.bias if self.rank is None else self.speakers @ self.words  # (S, V)

    def used(self) -> Tensor:
        """The bias (V,) of the chosen speaker, or the mean of all."""
        if self.rank is None:
            return self.bias.mean(0) if self.chosen is None else self.bias[self.chosen]  # (V,)
        vector = self.speakers.mean(0) if self.chosen is None else self.speakers[self.chosen]  # (k,)
        return vector @ self.words  # (V,)

    def forward(self, logits: Tensor, strength: float = 1.0) -> Tensor:
        """Logits (..., V) with the bias added. If `current` is set, each position (M, V) gets the bias of its speaker."""
        if self.current is None or len(self.names) == 1:
            return logits + strength * self.used()  # (..., V)
        table = torch.cat([self.biases(), self.biases().mean(0, keepdim=True)])  # (S + 1, V), the last for unknown ones
        return logits + strength * table[self.current]  # (M, V)
