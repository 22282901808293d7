"""A trained bias on the output vocabulary for each speaker (Michel and Neubig, 2018).

p(y | x, s) = softmax(E h + b_T + b_s)      the base's own logits and bias, and the speaker's

full        b_s is a row of B, a vector of V numbers for each speaker
factored    B = S B̃ with S of speakers x k and B̃ of k x V, which all speakers share
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

SCATTER = 0.1  # standard deviation of B̃ before training; S is zero, so that the bias is


class OutputBias(nn.Module):
    """Biases of `names` (speakers, or domains) over `words` words, zero before training."""

    def __init__(self, names: Sequence[str], words: int, rank: int | None) -> None:
        super().__init__()
        self.config: Any = None
        self.names = list(names)
        self.chosen: int | None = None  # whose bias is used outside of training; None: the mean of all
        self.current: Tensor | None = None  # (M,) whose target positions these are, in training; -1: nobody's
        if rank is None:
            self.bias = nn.Parameter(torch.zeros(len(names), words))
        else:
            self.speakers = nn.Parameter(torch.zeros(len(names), rank))
            self.words = nn.Parameter(SCATTER * torch.randn(rank, words))
        self.rank = rank

    def biases(self) -> Tensor:
        """B: one row a speaker (S, V)."""
        return self.bias if self.rank is None else self.speakers @ self.words  # (S, V)

    def used(self) -> Tensor:
        """The bias of the chosen speaker, or the mean of all (V,)."""
        if self.rank is None:
            return self.bias.mean(0) if self.chosen is None else self.bias[self.chosen]  # (V,)
        vector = self.speakers.mean(0) if self.chosen is None else self.speakers[self.chosen]  # (k,)
        return vector @ self.words  # (V,)

    def forward(self, logits: Tensor, strength: float = 1.0) -> Tensor:
        """Logits (..., V) with the bias added; where it is known whose positions they are (M, V), each gets its own."""
        if self.current is None or len(self.names) == 1:
            return logits + strength * self.used()  # (..., V)
        table = torch.cat([self.biases(), self.biases().mean(0, keepdim=True)])  # (S + 1, V), the last one nobody's
        return logits + strength * table[self.current]  # (M, V)
