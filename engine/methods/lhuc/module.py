"""LHUC's gate (Vilar, 2018): each hidden unit is multiplied by 2σ(a), with one trained number a per unit."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Gate(nn.Module):
    """h · 2σ(a), with a initialised to 0, which leaves h exactly unchanged.

    Since 2σ(a) = 1 + tanh(a/2), the strength s scales the change: h · (1 + s tanh(a/2)).
    """

    def __init__(self, units: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.zeros(units))

    def forward(self, states: Tensor, strength: float = 1.0) -> Tensor:
        """The gated hidden units (B, T, n)."""
        gate = 1 + strength * torch.tanh(self.a / 2)  # (n,)
        return (states * gate).to(states.dtype)  # (B, T, n)
