"""The two parts of domain mixing: the proportions D(x) of a layer, and linear maps mixed by the proportions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from engine.methods.modules import own_precision


def mix(logits: Tensor, epsilon: float) -> Tensor:
    """D(x) = (1 - ε) softmax(R x) + ε / k for logits R x (..., k)."""
    return (1 - epsilon) * logits.softmax(-1) + epsilon / logits.shape[-1]  # (..., k)


def word_losses(logits: Tensor, domain: Tensor, epsilon: float) -> Tensor:
    """-log D_J(x) (n,) of words with logits (n, k), where J (n,) is the domain of the word's sentence."""
    proportion = mix(logits, epsilon).gather(1, domain[:, None])[:, 0]  # (n,)
    return -proportion.clamp(min=1e-12).log()  # (n,); ε = 0 allows a proportion of 0


class ProportionLayer(nn.Module):
    """R of one layer, with standardised input and a bias: R x = W (x - μ) / σ + b.

    This equals the paper's R on states with a constant 1 appended. Standardisation does not restrict D, but speeds up fitting.
    Computed at least in float32, since the states of some bases are large.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, d: int, domains: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(domains, d))
        self.bias = nn.Parameter(torch.zeros(domains))
        self.register_buffer("mean", torch.zeros(d), persistent=False)
        self.register_buffer("spread", torch.ones(d), persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Logits R x (..., k) of states (..., d)."""
        kind = torch.promote_types(self.weight.dtype, torch.float32)
        with torch.autocast(states.device.type, enabled=False):
            x = (states.to(kind) - self.mean.to(kind)) / self.spread.to(kind)  # (..., d)
            return x @ self.weight.to(kind).T + self.bias.to(kind)  # (..., k)


class MixedDelta(nn.Module):
    """The change Σ_j D_j(x) ΔW_j x of the frozen W x. As the proportions sum to 1, the result is Σ_j D_j(x) W_j x, W_j = W + ΔW_j.

    ΔW_j is a full matrix or a low-rank product up_j down_j. It is initialised to zero, which leaves the base unchanged.
    """

    def __init__(self, inputs: int, outputs: int, domains: int, rank: int) -> None:
        super().__init__()
        self.rank = rank
        if rank:
            self.down = nn.Parameter(torch.randn(domains * rank, inputs) / math.sqrt(inputs))
            self.up = nn.Parameter(torch.zeros(outputs, domains * rank))
        else:
            self.delta = nn.Parameter(torch.zeros(outputs, domains * inputs))

    def forward(self, x: Tensor, proportions: Tensor) -> Tensor:
        """The change (..., out) of a map's output for its input x (..., in) and the words' proportions (..., k).

        In training over a half-precision base, it is computed in the precision of the module.
        """
        weight = self.up if self.rank else self.delta
        if own_precision(x, weight):
            x = x.to(weight.dtype)  # (..., in)
        shares = proportions.to(x.dtype).unsqueeze(-1)  # (..., k, 1)
        if not self.rank:
            return (shares * x.unsqueeze(-2)).flatten(-2) @ self.delta.T  # (..., k, in) -> (..., k·in) -> (..., out)
        low = x @ self.down.T  # (..., k·r)
        low = low.unflatten(-1, (-1, self.rank)) * shares  # (..., k, r)
        return low.flatten(-2) @ self.up.T  # (..., out)
