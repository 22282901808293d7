"""The domain report of a corpus: domain proportions by layer, histograms, domain-specific words and shared words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.methods.domain_mixing.shapes import CorpusSummary, DomainFigures, WordLists, WordRow

BINS = 10
SHOWN = 30  # words in each list
LEAST = 2  # minimum count of a listed word


def layer_names(side: str, count: int) -> list[str]:
    """Names of a side's positions, from the bottom up: "1" to "L", and "output" for the output of the encoder."""
    names = [str(i + 1) for i in range(count)]
    return [*names[:-1], "output"] if side == "encoder" else names


def shared(proportions: Sequence[float]) -> float:
    """How much a word is shared by domains: the entropy of its proportions over log k, from 0 (one domain) to 1 (all equally)."""
    if len(proportions) < 2:
        return 1.0
    entropy = -sum(float(p) * math.log(p) for p in proportions if p > 0)
    return round(entropy / math.log(len(proportions)), 4)


def rounded(values: Any) -> Any:
    """An array as nested lists, rounded to four decimal places."""
    return np.round(np.asarray(values, dtype=np.float64), 4).tolist()


def summary(
    side: str, domains: Sequence[str], proportions: np.ndarray, owner: np.ndarray, words: Sequence[str], index: bool = False
) -> CorpusSummary:
    """Data for plots of a corpus, given the `proportions` (n, P, k) of its words, their domains `owner` (n,), and the words.

    by_domain   per domain: count of words, mean proportions, and means per layer (P, k)
    histogram   counts of words by the proportion of each domain, (P, k, 10), in bins of a tenth
    words       the words with the highest proportion of each domain, and the words most shared by domains
    index       if requested, per word: text, count, `in` (counts by domain), mean proportions, shared
    """
    count, layers, k = proportions.shape
    mean = proportions.mean(1)  # (n, k)
    by_domain: dict[str, DomainFigures] = {
        name: {
            "words": int((owner == j).sum()),
            "mean": rounded(mean[owner == j].mean(0)) if (owner == j).any() else None,
            "layers": rounded(proportions[owner == j].mean(0)) if (owner == j).any() else None,
        }
        for j, name in enumerate(domains)
    }
    tenths = np.minimum((proportions * BINS).astype(int), BINS - 1)  # (n, P, k)
    histogram = [[np.bincount(tenths[:, layer, j], minlength=BINS).tolist() for j in range(k)] for layer in range(layers)]
    result: CorpusSummary = {
        "side": side,
        "domains": list(domains),
        "layers": layer_names(side, layers),
        "word_count": count,
        "by_domain": by_domain,
        "histogram": {"bins": BINS, "counts": histogram},
        "words": word_lists(domains, mean, words),
    }
    if index:
        result["index"] = word_index(len(domains), mean, owner, words)
    return result


def word_lists(domains: Sequence[str], mean: np.ndarray, words: Sequence[str]) -> WordLists:
    """{"of": {domain: rows}, "shared": rows} of words that occur at least twice; rows have text, count, proportions and shared."""
    rows: list[WordRow] = []
    for word, positions in positions_by_word(words).items():
        if len(positions) >= LEAST:
            average = rounded(mean[positions].mean(0))
            rows.append({"text": word, "count": len(positions), "proportions": average, "shared": shared(average)})
    return {
        "of": {
            name: sorted(rows, key=lambda row: (-row["proportions"][j], -row["count"], row["text"]))[:SHOWN]
            for j, name in enumerate(domains)
        },
        "shared": sorted(rows, key=lambda row: (-round(row["shared"], 2), -row["count"], row["text"]))[:SHOWN],
    }


def positions_by_word(words: Sequence[str]) -> dict[str, list[int]]:
    """The positions of each word, ignoring case; a word contains at least one letter."""
    positions: dict[str, list[int]] = {}
    for i, word in enumerate(words):
        if any(c.isalpha() for c in word):
            positions.setdefault(word.lower(), []).append(i)
    return positions


def word_index(domains: int, mean: np.ndarray, owner: np.ndarray, words: Sequence[str]) -> list[WordRow]:
    """A row per word by descending frequency: text, count, counts by domain (`in`), mean proportions and shared."""
    rows: list[WordRow] = []
    for word, positions in positions_by_word(words).items():
        average = rounded(mean[positions].mean(0))
        times = np.bincount(owner[positions], minlength=domains).tolist()
        rows.append({"text": word, "count": len(positions), "in": times, "proportions": average, "shared": shared(average)})
    return sorted(rows, key=lambda row: (-row["count"], row["text"]))
