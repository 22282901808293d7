"""Fits the proportion layers separately: L_mix is convex in R for ε = 0, so a quasi-Newton method converges quickly."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.methods.domain_mixing.layers import ProportionLayer, word_losses

RIDGES = (1e-3, 1e-2, 1e-1)
STEPS = 40  # maximum steps of L-BFGS
LEAST_STD = 1e-3  # minimum standard deviation relative to the mean one: constant dimensions are uninformative


def domain_weights(counts: Sequence[float], balance: bool) -> list[float]:
    """The weight per word of each domain, 1 on average over words: so that domains (`balance`) or words count equally."""
    present = [count for count in counts if count]
    if not balance or not present:
        return [1.0] * len(counts)
    return [sum(present) / (len(present) * count) if count else 0.0 for count in counts]


def fit_layer(
    states: Tensor, domain: Tensor, domains: int, *, epsilon: float, ridge: float, weights: Sequence[float]
) -> ProportionLayer:
    """Fit R of one layer to states (n, d) and the domains of their sentences (n,), minimising the weighted mean of -log D_J(x)
    plus ridge / 2 |W|².
    """
    x = states.float()  # (n, d)
    layer = ProportionLayer(x.shape[1], domains).to(x.device)
    std = x.std(0)  # (d,)
    layer.mean = x.mean(0)  # (d,)
    layer.spread = std.clamp(min=float(LEAST_STD * std.mean()) or 1.0)  # (d,)
    x = (x - layer.mean) / layer.spread  # (n, d)
    share = torch.tensor(list(weights), device=x.device)[domain]  # (n,)
    share = share / share.sum()  # (n,)
    optimizer = torch.optim.LBFGS(
        layer.parameters(), max_iter=STEPS, history_size=10, line_search_fn="strong_wolfe", tolerance_change=1e-6
    )

    def closure() -> float:
        optimizer.zero_grad()
        logits = x @ layer.weight.T + layer.bias  # (n, k)
        loss = (share * word_losses(logits, domain, epsilon)).sum() + ridge / 2 * layer.weight.square().sum()  # ()
        loss.backward()
        return float(loss.detach())

    with torch.enable_grad():
        optimizer.step(closure)
    return layer


def best_ridge(
    train: tuple[Tensor, Tensor], held_out: tuple[Tensor, Tensor], domains: int, *, epsilon: float, weights: Sequence[float]
) -> float:
    """The ridge with the lowest L_mix of held-out words at one layer; each part consists of states (n, d) and domains (n,)."""

    def loss(ridge: float) -> float:
        layer = fit_layer(*train, domains, epsilon=epsilon, ridge=ridge, weights=weights)
        share = torch.tensor(list(weights), device=held_out[1].device)[held_out[1]]  # (n,)
        with torch.no_grad():
            return float((share * word_losses(layer(held_out[0].float()), held_out[1], epsilon)).sum())

    return min(RIDGES, key=loss)
