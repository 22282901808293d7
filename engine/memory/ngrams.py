"""The reduced set of n-grams of a sentence (paper 3, section 2.1.2).

    Ŝ_X^n = {(t_i, …) : 1 <= i <= T, i mod n/2 = 1}

An n-gram begins at every half width, so each token is in two of them. N-grams that reach beyond the end are shortened: a
padding token would be in every such n-gram and carries no information. An n-gram here has n tokens; read literally, the paper's
(t_i, …, t_{i+n}) has one more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTHS = (6, 10, 18)  # those of the paper

Ints = NDArray[np.int64]


def starts(length: int, width: int) -> range:
    """Start positions of n-grams in a sentence of `length` tokens, from 0 (the paper counts from 1)."""
    return range(0, length, max(1, width // 2))


def reduced_ngrams(tokens: Sequence[Any], width: int) -> list[tuple[Any, ...]]:
    """The n-grams of one sentence, in order."""
    return [tuple(tokens[i : i + width]) for i in starts(len(tokens), width)]


def all_ngrams(lengths: Ints, width: int) -> tuple[Ints, Ints, Ints]:
    """Sentence, first token and size of every n-gram of many sentences; `lengths` are the sentences' in one concatenated array."""
    step = max(1, width // 2)
    counts = -(-lengths // step)  # (S,)
    owners = np.repeat(np.arange(len(lengths)), counts)  # (G,)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)  # (G,) within its sentence
    begin = np.cumsum(lengths) - lengths  # (S,)
    sizes = np.minimum(width, lengths[owners] - number * step)  # (G,)
    return owners, begin[owners] + number * step, sizes
