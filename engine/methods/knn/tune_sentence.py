"""Chooses the size of the shortlist and the gate of retrieval by sentence on held-out sentence pairs: a learned gate, or T, θ and
λ if T or θ is given.

The model runs once, with the longest shortlist. A shorter one consists of the rows of its first sentences, so the likelihood
under any setting can be computed from the stored results.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.base import BaseModel
from engine.core.progress import Part, Progress
from engine.errors import CorpusError
from engine.methods.batches import Pairs
from engine.methods.knn.decoder import Knn
from engine.methods.knn.forced_decoding import forced
from engine.methods.knn.gate import NO_ROW, GateInputs, NeighbourGate, Positions, fit
from engine.methods.knn.gate import loss as gate_loss
from engine.methods.knn.options import MOST_WEIGHT, KnnOptions
from engine.methods.knn.sentence import CANDIDATES, NO_TOKEN, context, copied, splits_word
from engine.methods.knn.tune import NEAR
from engine.methods.trained import TrainedMethod

SHORTLISTS = (8, 16, 32, 64)
TEMPERATURES = (0.03, 0.05, 0.1)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
WEIGHTS = (0.7, 0.85, 0.99)


@dataclass
class SentenceEvidence:
    """The results of a forced pass over held-out pairs: M target tokens with the K best rows of the longest shortlist each."""

    log_p: torch.Tensor  # (M,) of the reference token under the model without retrieval
    gold: torch.Tensor  # (M,) the reference token
    cosines: torch.Tensor  # (M, K), -2 if there is no row
    tokens: torch.Tensor  # (M, K)
    ranks: torch.Tensor  # (M, K) rank of the row's sentence in the shortlist
    coverage: torch.Tensor  # (M, K) share of the input that the row's sentence covers
    context: torch.Tensor  # (M, K) how many of the last two tokens match those before the row
    known_share: torch.Tensor  # (M,) share of the input that any sample covers
    top: torch.Tensor  # (M,) log of the base's highest probability

    def positions(self, shortlist: int) -> Positions:
        """The inputs of a gate if only the first `shortlist` samples are read."""
        cosines = self.cosines.masked_fill(self.ranks >= shortlist, NO_ROW)  # (M, K)
        return Positions(
            GateInputs(cosines, self.coverage, self.context, self.known_share, self.top),
            self.tokens == self.gold[:, None],
            self.log_p,
        )


def gather_sentences(
    base: BaseModel, knn: Knn, pairs: Pairs, plugin: TrainedMethod | None, progress: Progress | None = None
) -> SentenceEvidence:
    """Run the model over the pairs and record the rows that each target token would read. Raises CorpusError without pairs."""
    assert knn.reader is not None
    k = min(knn.options.k or CANDIDATES, len(knn.datastore))
    shortlist = knn.options.shortlist or max(SHORTLISTS)
    reader = knn.reader.with_settings(knn.options.replace(shortlist=shortlist))
    parts = []
    for part in forced(base, pairs, plugin, knn.options.keys, probabilities=True, progress=progress):
        assert part.log_p is not None
        which, owner = part.sentences.unique(return_inverse=True)  # (B,), (M,)
        reader.set_source(base, [pairs.sources[i] for i in which.tolist()])
        assert part.states is not None
        width = int(owner.bincount().max())
        order = owner.argsort(stable=True)  # (M,)
        position = torch.cat([torch.arange(int(n), device=owner.device) for n in owner.bincount()])  # (M,)
        queries = part.states.new_zeros(len(which), width, part.states.shape[1])  # (B, n, d)
        queries[owner[order], position] = part.states[order]
        result = reader.nearest(queries, range(len(which)), 4 * k)  # (B, n, K)
        at = owner[order], position
        columns = result.columns[at]  # (m, K, 6)
        tokens, ranks = columns[..., 0], columns[..., 2]  # (m, K) each
        written = previous(part.tokens[order], position, NO_TOKEN)  # (m, 2)
        cosines = result.cosines[at].masked_fill(splits_word(columns[..., 3], written[:, 0]), NO_ROW)  # (m, K)
        assert part.top is not None
        parts.append(
            (
                part.log_p[order], part.tokens[order], cosines, tokens, ranks, result.coverage[at],
                context(columns[..., 4:], written), reader.known_share(owner[order]), part.top[order].clamp(min=1e-9).log(),
            )
        )  # fmt: skip
    if not parts:
        raise CorpusError("There are no held-out sentence pairs to choose the kNN settings on. Add samples.")
    return SentenceEvidence(*(torch.cat([part[i] for part in parts]).cpu() for i in range(len(parts[0]))))


def previous(tokens: torch.Tensor, positions: torch.Tensor, none: int) -> torch.Tensor:
    """The two tokens (m, 2) before each of the tokens (m,) of consecutive sentences, the last one first. `positions` (m,) are
    counted from the start of each sentence; `none` marks missing tokens.
    """
    return torch.stack([tokens.roll(i).masked_fill(positions < i, none) for i in (1, 2)], -1)  # (m, 2)


def loss(evidence: SentenceEvidence, k: int, shortlist: int, temperature: float, threshold: float, weight: float) -> float:
    """Mean negative log-likelihood (nats per token) of the reference tokens under a setting."""
    cosines = evidence.cosines.masked_fill(evidence.ranks >= shortlist, NO_ROW)  # (M, K)
    cosines, order = cosines.topk(min(k, cosines.shape[1]))  # (M, k)
    mass = copied(cosines, temperature, threshold, weight).double()  # (M, k)
    right = (mass * (evidence.tokens.gather(1, order) == evidence.gold[:, None])).sum(1)  # (M,)
    p = (1 - mass.sum(1)) * evidence.log_p.double().exp() + right  # (M,)
    return -float(torch.log(p.clamp(min=1e-30)).mean())


def tune_sentence(
    base: BaseModel,
    knn: Knn,
    pairs: Pairs,
    plugin: TrainedMethod | None = None,
    progress: Progress | None = None,
    general: Pairs | None = None,
) -> tuple[Knn, dict[str, object]]:
    """The same datastore with the settings under which the pairs are likeliest, and figures of the choice. Of settings that are
    nearly as good, the one with the shortest shortlist is chosen.

    Unless `knn.options` give T or θ, a gate is learned, with `general` pairs of text that should not change. Given settings are
    kept. Figures: `loss_base`, `loss`, `tokens`, `best`, and with general pairs `loss_general_base` and `loss_general`.
    """
    progress = progress or Progress()
    options = knn.options
    total = len(pairs) + (len(general) if general is not None else 0)
    evidence = gather_sentences(base, knn, pairs, plugin, Part(progress, 0, total))
    figures: dict[str, object] = {"loss_base": round(-float(evidence.log_p.double().mean()), 4), "tokens": len(evidence.gold)}
    settled: KnnOptions = options.replace(k=options.k or CANDIDATES)
    if options.threshold is not None or options.temperature is not None:
        rows = grid(evidence, settled, progress)
        figures |= {"loss": rows[0]["loss"], "best": rows[:5]}
        return knn.with_settings(settled.replace(**{k: v for k, v in rows[0].items() if k != "loss"})), figures
    other = None
    if general is not None and len(general):
        other = gather_sentences(base, knn, general, plugin, Part(progress, len(pairs), total))
    gates = learned(evidence, other, settled, progress)
    chosen = nearly_best([(loss, shortlist) for loss, shortlist, _ in gates])
    value, shortlist, gate = gates[chosen]
    weight = MOST_WEIGHT if options.weight is None else options.weight
    figures |= {"loss": round(value, 4), "best": [
        {"k": settled.k, "loss": round(loss, 4), "shortlist": size, "weight": weight} for loss, size, _ in sorted(gates)[:5]
    ]}  # fmt: skip
    if other is not None:
        figures["loss_general_base"] = round(-float(other.log_p.double().mean()), 4)
        figures["loss_general"] = round(float(gate_loss(gate, other.positions(shortlist), weight)), 4)
    return knn.with_settings(settled.replace(shortlist=shortlist, weight=weight), gate=gate), figures


def learned(
    evidence: SentenceEvidence, general: SentenceEvidence | None, options: KnnOptions, progress: Progress
) -> list[tuple[float, int, NeighbourGate]]:
    """(held-out loss in nats per token, shortlist size, fitted gate) for each shortlist size."""
    weight = MOST_WEIGHT if options.weight is None else options.weight
    gates = []
    for shortlist in [options.shortlist] if options.shortlist else SHORTLISTS:
        progress.check()
        positions = evidence.positions(shortlist)
        gate = fit(positions, general.positions(shortlist) if general is not None else None, weight)
        gates.append((float(gate_loss(gate, positions, weight)), shortlist, gate))
    return gates


def nearly_best(losses: list[tuple[float, int]]) -> int:
    """The index of the (loss, shortlist) to choose: the shortest shortlist among those that are nearly as good as the best."""
    bound = min(losses)[0] + NEAR
    return min((i for i, pair in enumerate(losses) if pair[0] <= bound), key=lambda i: (losses[i][1], losses[i][0]))


def grid(evidence: SentenceEvidence, options: KnnOptions, progress: Progress) -> list[dict[str, object]]:
    """Settings of the fixed gate with their losses: first the one to choose, then the others by ascending loss."""
    rows = []
    for shortlist in [options.shortlist] if options.shortlist else SHORTLISTS:
        progress.check()
        for temperature in [options.temperature] if options.temperature else TEMPERATURES:
            for threshold in THRESHOLDS if options.threshold is None else [options.threshold]:
                for weight in WEIGHTS if options.weight is None else [options.weight]:
                    value = loss(evidence, options.k or 1, shortlist, temperature, threshold, weight)
                    rows.append((value, shortlist, temperature, threshold, weight))
    rows.sort()
    rows.insert(0, rows.pop(nearly_best([(row[0], row[1]) for row in rows])))
    names = ("loss", "shortlist", "temperature", "threshold", "weight")
    return [{"k": options.k, **dict(zip(names, (round(row[0], 4), *row[1:]), strict=True))} for row in rows]
