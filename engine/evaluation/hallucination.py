"""Hallucinated words: "symptom", "snake" or "surviv-", which a reverse model writes again and again regardless of its input.

A weak model replaces words it does not know by a few others. Within one pair such a word is inconspicuous; over the whole corpus it
stands out. A stem is hallucinated if it occurs in far more of the back-translations than in general text of their language, and no
words of the targets account for most of its occurrences.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from engine.corpora.tokenize import words
from engine.phrases.keyness import keyness

STEM = 6  # letters that identify a word: "symptom" and "symptoms" are the same
SHORT = 4  # letters; shorter words are function words, which need no counterpart in the other language
LEAST, SHARE = 4, 0.003  # sentences, and share of the corpus, from which a stem is considered
USUAL = 0.005  # share of general sentences above which a stem is ordinary
TIMES = 3.0  # minimum log2 ratio to its frequency in general text
SURE = 10.83  # minimum log-likelihood G² (p < 0.001) of being more frequent than in general text
LINKED = 15.13  # minimum G² (p < 0.0001) of a target unit with a stem, next to which it is at least twice as frequent
# Minimum difference in the share of sentences with a linked unit, between those with the stem and the others.
EXPLAINED = 0.35


def stems(text: str) -> set[str]:
    """The words of a text cut to their first letters; in scripts without spaces, characters and pairs of adjacent characters."""
    result = words(text)
    alone = {word[:STEM] for word in result if word[0].isalpha()}
    wide = [word if len(word) == 1 and ord(word) > 0x0E00 else "" for word in result]
    return alone | {a + b for a, b in itertools.pairwise(wide) if a and b}


def hallucinated_stems(sources: Sequence[str], targets: Sequence[str], general: Sequence[str] = ()) -> dict[str, list[int]]:
    """{stem: the pairs (from 0) whose source contains it} for stems of the synthetic sources that their targets do not explain.

    `general` is human-written text in the sources' language; without it nothing is reported.
    """
    if not general or not sources:
        return {}
    source_stems = [stems(text) for text in sources]
    occurrences: dict[str, list[int]] = defaultdict(list)
    for i, sentence_stems in enumerate(source_stems):
        for stem in sentence_stems:
            occurrences[stem].append(i)
    candidates = _frequent(occurrences, len(sources), [stems(text) for text in general])
    if not candidates:
        return {}
    units = [stems(text) for text in targets]
    counts = Counter(unit for sentence_units in units for unit in sentence_units)
    return {stem: where for stem, where in candidates.items() if not _explained(where, units, counts)}


def _frequent(occurrences: dict[str, list[int]], sentences: int, general: Sequence[set[str]]) -> dict[str, list[int]]:
    """The stems that are a far larger part of the sources than of general text, whose sentences may be shorter."""
    usual = Counter(stem for sentence_stems in general for stem in sentence_stems)
    candidates = [
        stem
        for stem, where in occurrences.items()
        if len(where) >= max(LEAST, SHARE * sentences)
        and usual[stem] <= USUAL * len(general)
        and (len(stem) >= SHORT or not stem.isascii())
    ]
    source_counts, general_counts = (
        np.array([len(occurrences[stem]) for stem in candidates]),
        np.array([usual[stem] for stem in candidates]),
    )  # (C,), (C,)
    result = keyness(source_counts, general_counts, sum(map(len, occurrences.values())), sum(usual.values()))
    often = (result.log_ratio >= TIMES) & (result.log_likelihood >= SURE)  # (C,)
    return {stem: occurrences[stem] for stem, selected in zip(candidates, often, strict=True) if selected}


def _explained(where: Sequence[int], units: Sequence[set[str]], counts: Counter[str]) -> bool:
    """Whether target words associated with the stem account for most of the sentences that contain it."""
    inside = Counter(unit for i in where for unit in units[i])
    frequent = [unit for unit, count in inside.items() if count >= 2]
    inside_counts = np.array([inside[unit] for unit in frequent])  # (U,)
    outside_counts = np.array([counts[unit] for unit in frequent]) - inside_counts  # (U,)
    outside = max(1, len(units) - len(where))
    result = keyness(inside_counts, outside_counts, len(where), outside)
    together = (result.log_likelihood >= LINKED) & (result.log_ratio >= 1)  # (U,)
    linked = {unit for unit, selected in zip(frequent, together, strict=True) if selected}
    linked_inside = sum(not linked.isdisjoint(units[i]) for i in where)
    linked_outside = sum(not linked.isdisjoint(sentence_units) for sentence_units in units) - linked_inside
    return bool(linked_inside / len(where) - linked_outside / outside >= EXPLAINED)
