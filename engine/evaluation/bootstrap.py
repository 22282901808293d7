"""Bootstrap resampling of sentence statistics (Koehn, 2004) and approximate randomisation (Riezler and Maxwell, 2005), in blocks,
so that 40,000 sentences fit in memory.

Indices, intervals and p-values equal those of sacrebleu's `--paired-bs` and `--paired-ar` for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

BLOCK = 4_000_000  # sentences drawn per block, about 200 MB with ten statistics each


def index_blocks(lines: int, samples: int, seed: int) -> Iterator[np.ndarray]:
    """Indices (b, n) of the resamples, in blocks."""
    import numpy as np

    random = np.random.default_rng(seed)
    step = max(1, BLOCK // max(1, lines))
    for begin in range(0, samples, step):
        yield random.choice(lines, size=(min(step, samples - begin), lines), replace=True)


def resampled(stats: np.ndarray, score: Callable[[np.ndarray], float], samples: int, seed: int) -> np.ndarray:
    """The score of each resample (samples,), from additive statistics (n, k) of the sentences."""
    import numpy as np

    results = []
    for block in index_blocks(len(stats), samples, seed):
        results += [score(stats[rows].sum(0)) for rows in block]
    return np.array(results)


def interval(scores: np.ndarray) -> tuple[float, float, float]:
    """The mean of the resamples' scores and the ends of the symmetric 95 % interval around it."""
    import numpy as np

    ordered = np.sort(scores)
    cut = len(ordered) // 40
    half = float(ordered[-cut - 1] - ordered[cut]) / 2
    mean = float(scores.mean())
    return mean, mean - half, mean + half


def p_value(system: np.ndarray, baseline: np.ndarray, difference: float) -> float:
    """The two-sided p-value of a difference from paired resamples: how often one as large would arise by chance."""
    import numpy as np

    gaps = np.abs(system - baseline)
    return float((np.sum(gaps - gaps.mean() > abs(difference)) + 1) / (len(gaps) + 1))


def randomised(
    system: np.ndarray, baseline: np.ndarray, score: Callable[[np.ndarray], float], trials: int, seed: int, *, ties: bool = False
) -> float:
    """The two-sided p-value of approximate randomisation, from the statistics (n, k) of two systems: how often they differ by more
    when their sentences are swapped at random.

    With `ties`, trials with an equal difference count too, as in Riezler and Maxwell. sacrebleu does not count them, which makes
    two systems that differ in a single line appear significantly different.
    """
    import numpy as np

    # Sums in double precision, so that equal differences are recognised.
    system, baseline = system.astype(float), baseline.astype(float)
    result = abs(score(baseline.sum(0)) - score(system.sum(0))) - (1e-9 if ties else 0)
    swaps = np.random.default_rng(seed).integers(2, size=(trials, len(system)), dtype=bool)
    gain, total = baseline - system, (baseline + system).sum(0)  # (n, k), (k,)
    larger = 0
    step = max(1, BLOCK // max(1, len(system)))
    for begin in range(0, trials, step):
        swapped = swaps[begin : begin + step].astype(float) @ gain + system.sum(0)  # (b, k)
        larger += sum(abs(score(row) - score(total - row)) > result for row in swapped)
    return (larger + 1) / (trials + 1)
