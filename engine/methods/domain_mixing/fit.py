"""Fitting the proportion layers alone: L_mix is convex in R but for ε, so a quasi-Newton method finds it in seconds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.methods.domain_mixing.layers import ProportionLayer, word_losses

RIDGES = (1e-3, 1e-2, 1e-1)
STEPS = 40  # at most; steps of L-BFGS
LEAST_STD = 1e-3  # of the mean standard deviation: dimensions that never change tell nothing


def domain_weights(counts: Sequence[float], balance: bool) -> list[float]:
    """The weight of a word of each domain, 1 on average over words: all domains alike, or all words alike."""
    present = [count for count in counts if count]
    if not balance or not present:
        return [1.0] * len(counts)
    return [sum(present) / (len(present) * count) if count else 0.0 for count in counts]


def fit_layer(
    states: Tensor, domain: Tensor, domains: int, *, epsilon: float, ridge: float, weights: Sequence[float]
) -> ProportionLayer:
    """R of one place from states (n, d) and their sentences' domains (n,): the least weighted mean of -log D_J(x) plus
    ridge / 2 |W|².
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
    train: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor], domains: int, *, epsilon: float, weights: Sequence[float]
) -> float:
    """The ridge that makes held-out words' L_mix least at one place; each part is states (n, d) and domains (n,)."""

    def loss(ridge: float) -> float:
        layer = fit_layer(*train, domains, epsilon=epsilon, ridge=ridge, weights=weights)
        share = torch.tensor(list(weights), device=held[1].device)[held[1]]  # (n,)
        with torch.no_grad():
            return float((share * word_losses(layer(held[0].float()), held[1], epsilon)).sum())

    return min(RIDGES, key=loss)
