"""Mixes the neighbours' distribution into the base's, changing only the logits of the neighbours' tokens.

    p(y) = (1 - λ) p_MT(y) + λ p_kNN(y),   p_kNN(y) ∝ Σ over neighbours i with token y of exp(-d_i / T)

(Khandelwal et al. 2021, equations 2 and 3.) A neighbour's mass is its share of λ; the masses of a position sum to λ. Since a
constant shift of all logits z does not matter, logits of other tokens need no change:

    z'(y) = log(exp z(y) + exp(lse z) · mass(y) / (1 - λ))

is log p(y) + lse z - log(1 - λ). The only operation over the whole vocabulary is lse z.
"""

from __future__ import annotations

import torch

from engine.methods.knn.options import MOST_WEIGHT

FEW = 16  # maximum neighbours for which pairwise comparison is faster than sorting


def shares(distances: torch.Tensor, temperature: float) -> torch.Tensor:
    """softmax(-d / T) over neighbours (..., k); zeros at infinite distances."""
    nearest = distances.min(-1, keepdim=True).values  # (..., 1)
    nearest = torch.where(torch.isfinite(nearest), nearest, torch.zeros_like(nearest))  # (..., 1)
    raw = torch.exp((nearest - distances) / temperature)  # (..., k), 0 at an infinite distance
    return raw / raw.sum(-1, keepdim=True).clamp(min=1e-30)  # (..., k)


def masses(distances: torch.Tensor, temperature: float, weight: float) -> torch.Tensor:
    """λ softmax(-d / T): the probability mass (..., k) of each neighbour; rows sum to λ, at most `MOST_WEIGHT`."""
    return min(weight, MOST_WEIGHT) * shares(distances, temperature)  # (..., k)


def by_token(tokens: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
    """For each neighbour (..., k), the total mass of the neighbours with the same token."""
    if tokens.shape[-1] <= FEW:
        same = (tokens[..., :, None] == tokens[..., None, :]).to(mass.dtype)  # (..., k, k)
        return (same @ mass[..., None])[..., 0]  # (..., k)
    ordered, order = tokens.sort(-1)  # (..., k), (..., k)
    new = (ordered[..., 1:] != ordered[..., :-1]).long()  # (..., k - 1)
    group = torch.nn.functional.pad(new.cumsum(-1), (1, 0))  # (..., k) number of its run of equal tokens, from 0
    sums = torch.zeros_like(mass).scatter_add(-1, group, mass.gather(-1, order))  # (..., k)
    return torch.zeros_like(mass).scatter(-1, order, sums.gather(-1, group))  # (..., k)


def mix(
    logits: torch.Tensor, tokens: torch.Tensor, mass: torch.Tensor, bias: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Logits (R, V) whose softmax, after `bias` (1, V) is added, is the mixture; in place if no gradient is needed.

    tokens (R, k): the neighbours' tokens; mass (R, k): their masses, at most 0.99 per row; lse (R, 1): the log of the sum of
    exp(logits + bias), if already known.
    """
    kind = torch.float64 if logits.dtype == torch.float64 else torch.float32
    full_logits = logits.to(kind) if bias is None else logits.to(kind) + bias  # (R, V)
    lse = full_logits.logsumexp(-1, keepdim=True) if lse is None else lse.to(kind)  # (R, 1)
    mass = mass.to(kind)  # (R, k)
    base_share = 1 - mass.sum(-1, keepdim=True)  # (R, 1), 1 - λ
    token_logits = full_logits.gather(1, tokens)  # (R, k)
    brought = lse + torch.log(by_token(tokens, mass) / base_share)  # (R, k), -inf for mass 0
    mixed = torch.logaddexp(token_logits, brought)  # (R, k)
    if bias is not None:
        token_bias = bias.to(kind).expand_as(full_logits).gather(1, tokens)  # (R, k)
        mixed = torch.where(torch.isfinite(token_bias), mixed - token_bias, mixed)  # (R, k); forbidden tokens remain so
    mixed = mixed.to(logits.dtype)
    if logits.requires_grad or mixed.requires_grad:
        return logits.scatter(1, tokens, mixed)  # (R, V)
    return logits.scatter_(1, tokens, mixed)  # (R, V)
