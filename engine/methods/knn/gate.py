"""A learned gate for retrieval by sentence, trained on held-out pairs and on general text.

For row i of the shortlist, c_i is the cosine of its key and the state, v_i is the share of the input's IDF mass that the row's
source sentence covers, and u is the share that any sample covers. m_i and n_i are 1 if the last token and the last two tokens of
the hypothesis, respectively, precede the row:

    s_i = κ c_i + β v_i + γ m_i + δ n_i        p_copy(y) = Σ_{i: y_i = y} softmax(s)_i
    g = λ sigmoid(b + w · (c_*, v_*, u, m_*, n_*, log max p_MT))        * = argmax_i s_i
    p(y) = (1 - g) p_MT(y) + g p_copy(y)

The eleven weights minimise the loss on held-out pairs plus `GENERAL` times the loss on general text, so that text unrelated to
the samples is left to the base. A Gaussian prior regularises the fit to few held-out pairs. This is adaptive kNN-MT (Zheng
et al., 2021) with evidence from the sentence in addition to the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from engine.core.tensor_files import save_tensors
from engine.errors import BundleError
from engine.methods.knn.options import MOST_WEIGHT

FILE = "datastore.gate.safetensors"
NO_ROW = -2.0  # cosine of a missing or refused row, below all cosines
GENERAL = 5.0  # weight of the loss on general text relative to the loss on held-out pairs
TOKENS = 6000  # maximum tokens to which the weights are fitted
STEPS = 60  # of L-BFGS
# log κ, β, γ, δ, b, w (6): the mean of weights fitted to held-out pairs of the domains Law, Koran, IT and Medical.
PRIOR = (2.26, 4.07, 1.33, 2.0, -11.97, 4.52, 1.3, 9.39, 0.77, 1.0, -0.44)


@dataclass(frozen=True)
class GateInputs:
    """The features of k rows at each position."""

    cosines: torch.Tensor  # (..., k), `NO_ROW` for missing or refused rows
    coverage: torch.Tensor  # (..., k) v of the row's sentence
    context: torch.Tensor  # (..., k) how many tokens before the row match those before the position: 0, 1 or 2
    known_share: torch.Tensor  # (...,) u of the input
    top: torch.Tensor  # (...,) log of the base's highest probability


@dataclass(frozen=True)
class NeighbourGate:
    """A gate with its eleven weights."""

    weights: torch.Tensor  # (11,) as `PRIOR`

    @classmethod
    def prior(cls) -> NeighbourGate:
        return cls(torch.tensor(PRIOR))

    def scores(self, cosines: torch.Tensor, coverage: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """The scores s (..., k) of the rows."""
        log_sharpness, by_coverage, by_first, by_second = self.weights[:4]
        return log_sharpness.exp() * cosines + by_coverage * coverage + by_first * (context >= 1) + by_second * (context >= 2)

    def masses(self, rows: GateInputs, weight: float = MOST_WEIGHT, strength: float = 1.0) -> torch.Tensor:
        """The probability mass (..., k) of each row; the rows of a position sum to at most `strength` times `weight`, λ."""
        brings = rows.cosines > NO_ROW  # (..., k)
        scores = self.scores(rows.cosines, rows.coverage, rows.context).masked_fill(~brings, -1e4)  # (..., k)
        best = scores.argmax(-1, keepdim=True)  # (..., 1)
        context = rows.context.gather(-1, best)[..., 0]  # (...,)
        evidence = torch.stack(
            [
                rows.cosines.gather(-1, best)[..., 0], rows.coverage.gather(-1, best)[..., 0], rows.known_share,
                (context >= 1).to(scores.dtype), (context >= 2).to(scores.dtype), rows.top,
            ],
            -1,
        )  # (..., 6)  # fmt: skip
        gate = torch.sigmoid(self.weights[4] + evidence @ self.weights[5:]) * brings.any(-1)  # (...,)
        gate = (strength * weight * gate).clamp(max=MOST_WEIGHT)  # (...,)
        return gate[..., None] * torch.softmax(scores, -1) * brings  # (..., k)

    def to(self, device: torch.device) -> NeighbourGate:
        return NeighbourGate(self.weights.to(device))

    def save(self, folder: Path) -> Path:
        """Write the gate to a folder. Raises StorageError."""
        return save_tensors(folder / FILE, {"weights": self.weights}, "the gate")

    @classmethod
    def open(cls, folder: Path) -> NeighbourGate:
        """Load the gate from a folder. Raises BundleError if it is missing or invalid."""
        try:
            weights = load_file(folder / FILE)["weights"]
        except (SafetensorError, OSError, LookupError):
            raise BundleError("{file} is missing or damaged. Get a new copy of the bundle.", file=FILE) from None
        if weights.shape != (len(PRIOR),) or weights.dtype != torch.float32 or not bool(weights.isfinite().all()):
            raise BundleError(
                "{file} does not hold the {count} weights of a gate. Get a new copy of the bundle.", file=FILE, count=len(PRIOR)
            )
        return cls(weights)


@dataclass(frozen=True)
class Positions:
    """M target positions of a teacher-forced pass with K rows each."""

    rows: GateInputs  # (M, K)
    right: torch.Tensor  # (M, K) whether a row has the reference token
    log_p: torch.Tensor  # (M,) of the reference token under the base

    def first(self, limit: int) -> Positions:
        """At most `limit` of the positions, evenly spaced."""
        if len(self.log_p) <= limit:
            return self
        selected = torch.linspace(0, len(self.log_p) - 1, limit).long()  # (M',)
        rows = GateInputs(*(getattr(self.rows, name)[selected] for name in GateInputs.__dataclass_fields__))
        return Positions(rows, self.right[selected], self.log_p[selected])


def loss(gate: NeighbourGate, positions: Positions, weight: float = MOST_WEIGHT) -> torch.Tensor:
    """Mean negative log-likelihood (nats per token) of the reference tokens; a scalar, differentiable in the gate's weights."""
    mass = gate.masses(positions.rows, weight)  # (M, K)
    p = (1 - mass.sum(-1)) * positions.log_p.exp() + (mass * positions.right).sum(-1)  # (M,)
    return -torch.log(p.clamp(min=1e-12)).mean()


def fit(pairs: Positions, general: Positions | None, weight: float = MOST_WEIGHT) -> NeighbourGate:
    """Fit the gate to held-out pairs and general text, if any; returns the prior if the fit diverges."""
    pairs, general = pairs.first(TOKENS), general.first(TOKENS) if general is not None else None
    prior = torch.tensor(PRIOR)  # (11,)
    weights = prior.clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        total = loss(NeighbourGate(weights), pairs, weight) + (weights - prior).square().sum() / (2 * len(pairs.log_p))
        if general is not None:
            total = total + GENERAL * loss(NeighbourGate(weights), general, weight)
        total.backward()  # type: ignore[no-untyped-call]
        return total

    with torch.enable_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    fitted = weights.detach()
    return NeighbourGate(fitted if bool(fitted.isfinite().all()) else prior)
