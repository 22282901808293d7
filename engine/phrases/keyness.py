"""Keyness: how much more often a phrase occurs in the user's text than in general text, and how reliable that is.

For a phrase with a occurrences among n words of the samples and b occurrences among m words of general text:

    log-likelihood   G² = 2 (a ln(a/E₁) + b ln(b/E₂)), E₁ = n (a + b)/(n + m), E₂ = m (a + b)/(n + m)
                     Dunning, T. (1993): Accurate Methods for the Statistics of Surprise and Coincidence. Computational
                     Linguistics 19(1), 61-74, in the form of Rayson, P. and Garside, R. (2000): Comparing Corpora using
                     Frequency Profiling. Workshop on Comparing Corpora, ACL, 1-6. It measures the certainty of a difference and
                     grows with the corpus; 3.84, 6.63, 10.83 and 15.13 are its 5, 1, 0.1 and 0.01 % levels.
    log ratio        log₂((a/n) / (b/m)), with ½ instead of a count of 0
                     Hardie, A. (2014): Log Ratio - an informal introduction. CASS, Lancaster. It is the size of the
                     effect, independent of corpus size: 1 is twice as often, 3 eight times.
    its interval     95 %, with ½ added to each count: Walter, S. D. (1975): The distribution of Levin's measure of
                     attributable risk. Biometrika 62(2), 371-375.
    keyness          the bound of the interval nearer to 0, or 0 if the interval contains 0: a conservative log ratio, which ranks
                     neither rare phrases with chance ratios nor frequent ones with tiny differences highest.
                     Evert, S. (2022): Measuring Keyness. Digital Humanities 2022, Tokyo.

The interval is valid for a single phrase; among thousands some are outside by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Z = 1.959963984540054  # for a two-sided 95 % interval
LEVELS = ((15.13, "p < 0.0001"), (10.83, "p < 0.001"), (6.63, "p < 0.01"), (3.84, "p < 0.05"))


@dataclass(frozen=True)
class Keyness:
    """Arrays of one value per phrase; ratios are base-2 logarithms."""

    log_likelihood: np.ndarray
    log_ratio: np.ndarray
    low: np.ndarray
    high: np.ndarray
    value: np.ndarray  # the conservative log ratio


def keyness(own: np.ndarray, general: np.ndarray, own_words: int, general_words: int) -> Keyness:
    """Compare counts (phrases,) in texts with these numbers of words; all zeros if either text is empty."""
    a, b = np.asarray(own, dtype=np.float64), np.asarray(general, dtype=np.float64)
    if not own_words or not general_words:
        zero = np.zeros(len(a))
        return Keyness(zero, zero, zero, zero, zero)
    n, m = float(own_words), float(general_words)
    total = a + b
    likelihood = 2 * (_times_log(a, n * total / (n + m)) + _times_log(b, m * total / (n + m)))
    ratio = np.log2(np.where(a, a, 0.5) / n) - np.log2(np.where(b, b, 0.5) / m)
    middle = np.log((a + 0.5) / (n + 0.5)) - np.log((b + 0.5) / (m + 0.5))
    standard_error = np.sqrt(np.maximum(0.0, 1 / (a + 0.5) - 1 / (n + 0.5) + 1 / (b + 0.5) - 1 / (m + 0.5)))
    low, high = (middle - Z * standard_error) / np.log(2), (middle + Z * standard_error) / np.log(2)
    value = np.where(low > 0, low, np.where(high < 0, high, 0.0))
    return Keyness(np.maximum(likelihood, 0.0), ratio, low, high, value)


def _times_log(count: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """count · ln(count / expected), which is 0 for a count of 0."""
    positive = count > 0
    result = np.zeros(len(count))
    result[positive] = count[positive] * np.log(count[positive] / expected[positive])
    return result


def level(log_likelihood: float) -> str:
    """The significance level in words, such as "p < 0.001"; "p > 0.05" if not significant."""
    return next((words for least, words in LEVELS if log_likelihood >= least), "p > 0.05")
