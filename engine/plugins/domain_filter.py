"""The domain filter of a plugin: recognises sentences that resemble its samples. Other sentences are left to the base.

A source x has two scores: the difference of two cross-entropies (Moore & Lewis, 2010) of its n-grams of one and two pieces,
under the samples' sources and under general text; and a logistic regression h on the mean of the frozen encoder's states, which
separates domains (Aharoni & Goldberg, 2020).

    r_f = log a_f / A - log b_f / B        counts a_f, b_f (plus ½) of the known n-grams; sums A, B over those of equal length
    s(x) = mean_{f in x, known} r_f / σ_r + `STATES` · w · h(x) / σ_w

To b_f of a single piece, `VOCABULARY` times its probability under the base's vocabulary is added, which was made from far more
general text than the bundled one. A common word is thus not attributed to the samples because a few hundred sentences lack it.

Each σ is the standard deviation of its score on held-out samples. x resembles the samples if s(x) reaches the threshold.
`ACCEPTED` of the held-out samples reach it, or fewer, but at least `FEWEST_ACCEPTED`, if otherwise more than `MISTAKEN` of the
general sentences held out from training would reach it too. Of the held-out samples below the threshold, the upper `HALF_LIKE`
reach a second threshold: x between the two partly resembles the samples and is translated at `SHARE` of the strength.

domain_filter.safetensors
    features   (U,)  int64    n-grams of one and two source pieces, in increasing order
    ratios     (U,)  float32  r_f / σ_r
    direction  (d,)  float32  `STATES` · w / σ_w
    threshold  (1,)  float32  (2,) with a second one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from engine.base import BaseModel
from engine.base.piece_probabilities import piece_probabilities
from engine.core.tensor_files import check_keys, load_tensors, save_tensors
from engine.corpora.language import evenly_spaced
from engine.decoding.translate import length_batches
from engine.errors import BundleError
from engine.memory.record import pool
from engine.memory.source_index import PAIRS, Ints, features_of, located, rising
from engine.plugins.bundle import DOMAIN_FILTER

KEYS = ("features", "ratios", "direction", "threshold")
# Trained on 2,000 back-translated sentences and tested on real ones, these separated news best (bench/EXPERIMENTS.md).
PENALTY = 100.0  # of the regression's squared weights, divided by the number of sentences
VOCABULARY = 1_000_000  # pieces of general text that the vocabulary's probabilities count as
STATES = 2.0  # weight of the regression's score relative to that of the n-grams
ACCEPTED, FEWEST_ACCEPTED = 0.95, 0.70  # shares of held-out samples
MISTAKEN = 0.003  # share of held-out general text that may be accepted
HALF_LIKE, SHARE = 0.4, 0.6
MOST = 5000  # samples whose states are computed: each takes an encoder run, and more add little
EVERY = 5  # one of this many general sentences is held out
FEWEST = 20  # sentences of either kind for training
FEWEST_HELD_OUT = 10
BATCH = 4096  # source tokens

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class DomainFilter:
    """The weights of both scores and the thresholds of their sum."""

    features: Ints  # (U,)
    ratios: Floats  # (U,)
    direction: Floats  # (d,)
    threshold: float  # for resembling the samples
    lower: float  # for partial resemblance; the same value if there is no such range

    @classmethod
    def learn(cls, base: BaseModel, samples: Sequence[str], general: Sequence[str], held_out: Sequence[str]) -> DomainFilter | None:
        """Train on sources of the samples, general text and held-out samples; None if any of these are too few."""
        if min(len(samples), len(general)) < FEWEST or len(held_out) < FEWEST_HELD_OUT:
            return None
        learned_from = [text for i, text in enumerate(general) if i % EVERY]
        sample_rows, general_rows, held_out_rows = (encoded(base, texts) for texts in (samples, learned_from, held_out))
        features, ratios = log_ratios(plain(base, sample_rows), plain(base, general_rows), piece_probabilities(base))
        direction = regression(mean_states(base, evenly_spaced(sample_rows, MOST)), mean_states(base, general_rows))  # (d,)
        words, states = plain(base, held_out_rows), mean_states(base, held_out_rows)  # (N, d)
        ratios /= max(1e-6, mean_ratios(features, ratios, words).std())
        direction *= STATES / max(1e-6, (states @ direction).std())
        scores = mean_ratios(features, ratios, words) + states @ direction  # (N,)
        lowest, highest = np.quantile(scores, (1 - ACCEPTED, 1 - FEWEST_ACCEPTED))
        provisional = cls(features, ratios, direction, float(lowest), float(lowest))
        cutoff = np.quantile(provisional.scores(base, general[::EVERY]), 1 - MISTAKEN)
        threshold = float(np.clip(cutoff, lowest, highest))
        accepted = float((scores >= threshold).mean())
        more = HALF_LIKE * max(0.0, ACCEPTED - accepted)
        return replace(provisional, threshold=threshold, lower=min(threshold, float(np.quantile(scores, 1 - accepted - more))))

    def scores(self, base: BaseModel, texts: Sequence[str]) -> Floats:
        """s (N,) of each source."""
        rows = encoded(base, texts)
        return mean_ratios(self.features, self.ratios, plain(base, rows)) + mean_states(base, rows) @ self.direction

    def accepts(self, base: BaseModel, texts: Sequence[str]) -> list[bool]:
        """Which of these sources resemble the samples."""
        return [share == 1 for share in self.shares(base, texts)]

    def shares(self, base: BaseModel, texts: Sequence[str]) -> list[float]:
        """The share of a plugin's strength for each source: 1, `SHARE` for partial resemblance to the samples, or 0."""
        scores = self.scores(base, texts)
        return [1.0 if score >= self.threshold else SHARE if score >= self.lower else 0.0 for score in scores]

    def save(self, folder: Path) -> Path:
        """Write the filter to its file. Raises StorageError."""
        tensors = {name: torch.from_numpy(getattr(self, name)) for name in KEYS[:-1]}
        thresholds = [self.threshold, self.lower] if self.lower < self.threshold else [self.threshold]
        return save_tensors(folder / DOMAIN_FILTER, tensors | {"threshold": torch.tensor(thresholds)}, "the domain filter")

    @classmethod
    def open(cls, folder: Path, d: int) -> DomainFilter | None:
        """The filter of an unpacked bundle, for a base with states of size d; None if it has none. Raises BundleError."""
        path = folder / DOMAIN_FILTER
        if not path.exists():
            return None
        tensors = load_tensors(path)
        check_keys(path, tensors, KEYS)
        features, ratios, direction, threshold = (tensors[name].numpy() for name in KEYS)
        fits = (
            features.dtype == np.int64 and {array.dtype for array in (ratios, direction, threshold)} == {np.dtype("float32")}
            and features.ndim == 1 and ratios.shape == features.shape and direction.shape == (d,)
            and threshold.shape in ((1,), (2,)) and threshold[-1] <= threshold[0]
            and rising(features)
        )  # fmt: skip
        if not fits:
            raise BundleError("{file} does not fit its base. Get a new copy of the bundle.", file=DOMAIN_FILTER)
        return cls(features, ratios, direction, float(threshold[0]), float(threshold[-1]))


def encoded(base: BaseModel, texts: Sequence[str]) -> list[list[int]]:
    """Sources as ids."""
    with base.lock:
        return base.encode([" ".join(text.split()) for text in texts])


def plain(base: BaseModel, rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Rows of ids without special tokens."""
    skip = base.special_ids
    return [[i for i in row if i not in skip] for row in rows]


def log_ratios(
    samples: Sequence[Sequence[int]], general: Sequence[Sequence[int]], probabilities: Mapping[int, float]
) -> tuple[Ints, Floats]:
    """The n-grams (U,) that occur in more than one row of pieces, and the ratio r (U,) of each.

    `probabilities` are those of pieces in general text.
    """
    each = [[features_of(row) for row in rows if row] for rows in (samples, general)]
    features, counts = np.unique(np.concatenate([*each[0], *each[1], np.zeros(0, np.int64)]), return_counts=True)
    features = features[counts > 1]  # most n-grams occur in a single sample and say little
    prior = np.array([probabilities.get(int(piece) - 1, 0.0) for piece in features[features < PAIRS]])
    ratios = np.zeros(len(features))  # (U,)
    for sign, rows, more in ((1, each[0], 0), (-1, each[1], VOCABULARY)):
        flat = np.concatenate([*rows, np.zeros(0, np.int64)])
        occurrences = np.bincount(np.searchsorted(features, flat[np.isin(flat, features)]), minlength=len(features)) + 0.5  # (U,)
        occurrences[: len(prior)] += more * prior
        sums = np.repeat(
            [occurrences[: len(prior)].sum(), occurrences[len(prior) :].sum()], [len(prior), len(occurrences) - len(prior)]
        )  # (U,)
        ratios += sign * np.log(occurrences / sums)
    return features, ratios.astype(np.float32)


def mean_ratio(features: Ints, ratios: Floats, row: Sequence[int]) -> float:
    """The mean of the ratios (U,) of a row's known n-grams; 0 if there are none."""
    positions, _ = located(features, features_of(row))
    return float(ratios[positions].mean()) if len(positions) else 0.0


def mean_ratios(features: Ints, ratios: Floats, rows: Sequence[Sequence[int]]) -> Floats:
    """`mean_ratio` of several rows (N,)."""
    return np.array([mean_ratio(features, ratios, row) for row in rows], dtype=np.float32)


def mean_states(base: BaseModel, rows: Sequence[list[int]]) -> Floats:
    """The mean of the frozen encoder's states (N, d) over each source's ids; long sources are truncated."""
    rows = [row[: base.max_tokens] for row in rows]
    result = np.zeros((len(rows), base.d_model), np.float32)
    with base.using(None), torch.inference_mode():
        for batch in length_batches([len(row) for row in rows], BATCH):
            inputs = base.pad_batch([rows[i] for i in batch])  # (B, S)
            result[batch] = pool(base.encoder_states(inputs).float(), base.mask(inputs), "mean").cpu().numpy()
    return result


def regression(samples: Floats, general: Floats) -> Floats:
    """The weights (d,) of a logistic regression of samples (N, d) against general text (M, d), with equal class weights."""
    states = torch.from_numpy(np.concatenate([samples, general]))  # (N + M, d)
    spread = states.std(0).clamp(min=1e-6)  # (d,)
    states = (states - states.mean(0)) / spread
    labels = torch.cat([torch.ones(len(samples)), torch.zeros(len(general))])  # (N + M,)
    balance = torch.where(labels > 0, 0.5 / len(samples), 0.5 / len(general))  # (N + M,)
    weights = torch.zeros(states.shape[1] + 1, requires_grad=True)  # (d + 1,)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        logits = states @ weights[1:] + weights[0]  # (N + M,)
        each = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")  # (N + M,)
        total = (balance * each).sum() + PENALTY * weights[1:].square().sum() / len(labels)
        total.backward()  # type: ignore[no-untyped-call]
        return total

    with torch.enable_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    return (weights.detach()[1:] / spread).numpy()
