"""Chooses k, T and λ on held-out sentence pairs.

The model runs once and stores the probability of each target token and its neighbours, from which the likelihood under any
setting can be computed. The settings with the highest likelihood can be compared by the BLEU of translations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.errors import CorpusError
from engine.methods.batches import Pairs
from engine.methods.knn.forced_decoding import forced
from engine.methods.knn.interpolate import shares
from engine.methods.trained import TrainedMethod

if TYPE_CHECKING:
    from engine.methods.knn.decoder import Knn

NEIGHBOURS = (1, 2, 4, 8, 16, 32, 64, 128)
WEIGHTS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
# Relative to the median distance: suitable values of T depend on the distances between a base's hidden states.
TEMPERATURE_FACTORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
NEAR = 0.005  # nats per token that may be lost for fewer neighbours, which are faster to search
MARGIN = 0.2  # BLEU by which a less likely setting must be better, to avoid choices by chance


@dataclass
class Evidence:
    """The results of a forced pass over held-out pairs: M target tokens with K neighbours each."""

    log_p: torch.Tensor  # (M,) of the reference token under the model without neighbours
    top: torch.Tensor  # (M,) the model's highest probability
    gold: torch.Tensor  # (M,) the reference token
    sentences: torch.Tensor  # (M,)
    distances: torch.Tensor  # (M, K)
    tokens: torch.Tensor  # (M, K)


def gather(
    base: BaseModel, knn: Knn, pairs: Pairs, plugin: TrainedMethod | None = None, k: int = max(NEIGHBOURS),
    progress: Progress | None = None,
) -> Evidence:  # fmt: skip
    """Run the model over the pairs and look up k neighbours of each target token. Raises CorpusError if there are no pairs."""
    parts: list[tuple[torch.Tensor, ...]] = []
    for part in forced(base, pairs, plugin, knn.options.keys, probabilities=True, progress=progress):
        assert part.log_p is not None
        assert part.top is not None
        distances, tokens, _ = knn.look_up(part.states, min(k, len(knn.datastore)))  # (m, K)
        parts.append((part.log_p, part.top, part.tokens, part.sentences, distances, tokens))
    if not parts:
        raise CorpusError("There are no held-out sentence pairs to choose the kNN settings on. Add samples.")
    return Evidence(*(torch.cat([part[i] for part in parts]).cpu() for i in range(6)))


def likelihood(evidence: Evidence, k: int, temperature: float, weights: Sequence[float], skip_above: float = 1.0) -> list[float]:
    """Mean negative log-likelihood (nats per token) for each λ of `weights`, with k neighbours and temperature T."""
    share = shares(evidence.distances[:, :k].double(), temperature)  # (M, k)
    right = (share * (evidence.tokens[:, :k] == evidence.gold[:, None])).sum(1)  # (M,) p_kNN of the reference token
    result = share.sum(1)  # (M,) 1, or 0 without neighbours
    alone = evidence.log_p.double().exp()  # (M,)
    if skip_above < 1:
        result = result * (evidence.top < skip_above)  # (M,)
        right = right * (evidence.top < skip_above)  # (M,)
    values = []
    for weight in weights:
        mixed = (1 - weight * result) * alone + weight * right  # (M,)
        values.append(-float(torch.log(mixed.clamp(min=1e-30)).mean()))
    return values


def tune(
    base: BaseModel,
    knn: Knn,
    pairs: Pairs,
    plugin: TrainedMethod | None = None,
    *,
    translated: Callable[[Knn], float] | None = None,
    progress: Progress | None = None,
) -> tuple[Knn, dict[str, object]]:
    """The same datastore with the settings under which the pairs are likeliest, and figures of the choice. Of settings that are
    nearly as good, the one with the fewest neighbours is chosen.

    Settings that are given in `knn.options` are kept. `translated` returns the BLEU of a setting; with it and
    `options.finalists`, the likeliest settings are compared by BLEU. Figures: `loss_base`, `loss`, `tokens`, `best` (the setting
    chosen by likelihood, then the likeliest), and `bleu` if settings were compared.
    """
    from engine.methods.knn.adaptive import train_adaptive

    progress = progress or Progress()
    options = knn.options
    max_k = len(knn.datastore)
    k_values = [options.k] if options.k else [k for k in NEIGHBOURS if k <= max_k] or [1]
    evidence = gather(base, knn, pairs, plugin, max(k_values), progress)
    alone = -float(evidence.log_p.double().mean())
    finite = evidence.distances[evidence.distances.isfinite()]
    unit = float(finite.median()) if len(finite) else 1.0
    temperatures = [options.temperature] if options.temperature else [
        float(f"{max(1e-3, unit * factor):.3g}") for factor in TEMPERATURE_FACTORS
    ]  # fmt: skip
    weights = [options.weight] if options.weight is not None else list(WEIGHTS)
    rows: list[tuple[float, int, float, float]] = []
    for k in k_values:
        for temperature in dict.fromkeys(temperatures):
            progress.check()
            values = likelihood(evidence, k, temperature, weights, options.skip_above)
            rows += [(value, k, temperature, weight) for value, weight in zip(values, weights, strict=True)]
    rows.sort()
    near = [row for row in rows if row[0] <= rows[0][0] + NEAR]
    fewest = min(near, key=lambda row: (row[1], row[0]))
    rows.remove(fewest)
    rows.insert(0, fewest)
    loss, k, temperature, weight = fewest
    bleu_figures: dict[str, object] = {}
    if options.finalists and translated is not None and not options.adaptive:
        chosen, bleu_figures = choose_by_bleu(knn, distinct(rows, options.finalists), translated, progress)
        loss, k, temperature, weight = chosen
    network = None
    if options.adaptive:
        # Zheng et al. (2021) use 8 neighbours; the network can choose fewer.
        k = min(options.k or 8, max_k)
        if not options.temperature:
            temperature = min((row for row in rows if row[1] == k), default=rows[0])[2]
        network = train_adaptive(evidence, k, temperature, progress)
    settled = options.replace(k=k, temperature=temperature, weight=weight)
    tuned = knn.with_settings(settled, network)
    if network is not None:
        loss = adaptive_loss(tuned, evidence)
    best = [{"loss": round(v, 4), "k": a, "temperature": t, "weight": w} for v, a, t, w in rows[:5]]
    figures = {"loss_base": round(alone, 4), "loss": round(loss, 4), "tokens": len(evidence.gold), "best": best, **bleu_figures}
    return tuned, figures


def distinct(rows: list[tuple[float, int, float, float]], count: int) -> list[tuple[float, int, float, float]]:
    """The `count` likeliest settings with different λ or k, so that finalists differ in translation."""
    result: dict[tuple[int, float], tuple[float, int, float, float]] = {}
    for row in rows:
        result.setdefault((row[1], row[3]), row)
        if len(result) == count:
            break
    return list(result.values())


def choose_by_bleu(
    knn: Knn, rows: list[tuple[float, int, float, float]], translated: Callable[[Knn], float], progress: Progress
) -> tuple[tuple[float, int, float, float], dict[str, object]]:
    """The row with the best BLEU, and the scores of all rows. A less likely row must be better by `MARGIN`."""
    best, chosen, scores = float("-inf"), rows[0], []
    for done, row in enumerate(rows):
        progress.advance(done, len(rows))
        _, k, temperature, weight = row
        options = knn.options.replace(k=k, temperature=temperature, weight=weight)
        value = translated(knn.with_settings(options))
        scores.append({"k": k, "temperature": temperature, "weight": weight, "bleu": round(value, 2)})
        if value > best + MARGIN:
            best, chosen = value, row
    return chosen, {"bleu": scores}


def adaptive_loss(knn: Knn, evidence: Evidence) -> float:
    """Mean negative log-likelihood (nats per token) of the evidence under the adaptive network."""
    k = knn.options.k or 1
    device = knn.tokens.device
    parts = []
    for rows in torch.arange(len(evidence.gold)).split(4096):
        tokens = evidence.tokens[rows, :k].to(device)  # (r, k)
        mass = knn.masses(evidence.distances[rows, :k].to(device), tokens).double().cpu()  # (r, k)
        right = (mass * (evidence.tokens[rows, :k] == evidence.gold[rows, None])).sum(1)  # (r,)
        parts.append((1 - mass.sum(1)) * evidence.log_p[rows].double().exp() + right)  # (r,)
    return -float(torch.cat(parts).clamp(min=1e-30).log().mean())
