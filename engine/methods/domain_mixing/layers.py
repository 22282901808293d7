"""The two parts of domain mixing as equations: a layer's proportions D(x), and a linear map mixed by them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from engine.methods.modules import own_precision


def mix(logits: Tensor, epsilon: float) -> Tensor:
    """D(x) = (1 - ε) softmax(R x) + ε / k for logits R x (..., k)."""
    return (1 - epsilon) * logits.softmax(-1) + epsilon / logits.shape[-1]  # (..., k)


def word_losses(logits: Tensor, domain: Tensor, epsilon: float) -> Tensor:
    """-log D_J(x) of each word: logits (n, k), the number J of its sentence's domain (n,)."""
    own = mix(logits, epsilon).gather(1, domain[:, None])[:, 0]  # (n,)
    return -own.clamp(min=1e-12).log()  # (n,); ε = 0 allows a proportion of 0


class ProportionLayer(nn.Module):
    """R of one layer, on the layer's input with mean and spread taken off, and a constant: R x = W (x - μ) / σ + b.

    That is the paper's R on a state with a 1 put behind it; taking off mean and spread changes no D that can be reached,
    only how fast it is found. Computed in float32 at least: the states of some bases are large.
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
    """What Σ_j D_j(x) W_j x adds to the frozen W x with W_j = W + ΔW_j: Σ_j D_j(x) ΔW_j x, as the proportions sum to 1.

    ΔW_j is a full matrix, or up_j down_j of a rank. Both start with ΔW_j = 0, which is the base.
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

        Over a base held in half precision a module that is not (one in training) computes in its own.
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
