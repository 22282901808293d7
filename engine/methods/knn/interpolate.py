"""Mixing the neighbours' distribution into the base's, at the few tokens that neighbours name.

    p(y) = (1 - λ) p_MT(y) + λ p_kNN(y),   p_kNN(y) ∝ Σ over neighbours i with token y of exp(-d_i / T)

(Khandelwal et al. 2021, equations 2 and 3.) A neighbour's mass is its share of λ; masses of a position sum to λ. Logits z
need no change where no neighbour is, since a constant shift of all does not matter:

    z'(y) = log(exp z(y) + exp(lse z) · mass(y) / (1 - λ))

is log p(y) + lse z - log(1 - λ). So nothing of the vocabulary's size is made but the sum over it.
"""

from __future__ import annotations

import torch

from engine.methods.knn.options import MOST_WEIGHT

FEW = 16  # neighbours up to which comparing all with all is quicker than sorting


def shares(distances: torch.Tensor, temperature: float) -> torch.Tensor:
    """softmax(-d / T) over neighbours (..., k); zeros where none was found."""
    nearest = distances.min(-1, keepdim=True).values  # (..., 1)
    nearest = torch.where(torch.isfinite(nearest), nearest, torch.zeros_like(nearest))  # (..., 1)
    raw = torch.exp((nearest - distances) / temperature)  # (..., k), 0 at an infinite distance
    return raw / raw.sum(-1, keepdim=True).clamp(min=1e-30)  # (..., k)


def masses(distances: torch.Tensor, temperature: float, weight: float) -> torch.Tensor:
    """λ softmax(-d / T): the probability (..., k) that each neighbour brings; rows sum to λ."""
    return min(weight, MOST_WEIGHT) * shares(distances, temperature)  # (..., k)


def by_token(tokens: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
    """For each neighbour (..., k) the mass of all neighbours with its token."""
    if tokens.shape[-1] <= FEW:
        same = (tokens[..., :, None] == tokens[..., None, :]).to(mass.dtype)  # (..., k, k)
        return (same @ mass[..., None])[..., 0]  # (..., k)
    ordered, order = tokens.sort(-1)  # (..., k), (..., k)
    new = (ordered[..., 1:] != ordered[..., :-1]).long()  # (..., k - 1)
    group = torch.nn.functional.pad(new.cumsum(-1), (1, 0))  # (..., k) which run of like tokens, from 0
    sums = torch.zeros_like(mass).scatter_add(-1, group, mass.gather(-1, order))  # (..., k)
    return torch.zeros_like(mass).scatter(-1, order, sums.gather(-1, group))  # (..., k)


def mix(
    logits: torch.Tensor, tokens: torch.Tensor, mass: torch.Tensor, bias: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Logits (R, V) whose softmax, after `bias` (1, V) is added, is the mixture; in place where no gradient is needed.

    tokens (R, k): the neighbours' tokens; mass (R, k): what each brings, at most 0.99 a row; lse (R, 1): the log of the sum of
    exp(logits + bias), where it is known.
    """
    kind = torch.float64 if logits.dtype == torch.float64 else torch.float32
    whole = logits.to(kind) if bias is None else logits.to(kind) + bias  # (R, V)
    lse = whole.logsumexp(-1, keepdim=True) if lse is None else lse.to(kind)  # (R, 1)
    mass = mass.to(kind)  # (R, k)
    rest = 1 - mass.sum(-1, keepdim=True)  # (R, 1), 1 - λ
    here = whole.gather(1, tokens)  # (R, k)
    brought = lse + torch.log(by_token(tokens, mass) / rest)  # (R, k), -inf where nothing is brought
    mixed = torch.logaddexp(here, brought)  # (R, k)
    if bias is not None:
        there = bias.to(kind).expand_as(whole).gather(1, tokens)  # (R, k)
        mixed = torch.where(torch.isfinite(there), mixed - there, mixed)  # (R, k); what a bias forbids stays so
    mixed = mixed.to(logits.dtype)
    if logits.requires_grad or mixed.requires_grad:
        return logits.scatter(1, tokens, mixed)  # (R, V)
    return logits.scatter_(1, tokens, mixed)  # (R, V)
