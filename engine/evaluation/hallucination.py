"""Words that a reverse model writes again and again whatever it is given: "symptom", "snake", "surviv-" in a tenth of all sources.

A weak model that does not know a word falls back on a few of its own. Within one pair such a word looks like any other; over the
whole corpus it shows. A stem is hallucinated when it stands in far more of the back-translations than in general text of their
language, and no words of the targets account for most of its occurrences.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from engine.corpora.tokenize import words
from engine.phrases.keyness import keyness

STEM = 6  # letters that tell a word from others: "symptom" and "symptoms" are one
SHORT = 4  # letters below which a word is a function word, which comes and goes without a word of the other language
LEAST, SHARE = 4, 0.003  # sentences, and share of the corpus, from which a stem is looked at
USUAL = 0.005  # share of general sentences from which a word is everybody's
TIMES = 3.0  # log2 of how much more often than in general text
SURE = 10.83  # log-likelihood G² (p < 0.001) of being more frequent than in general text
LINKED = 15.13  # G² (p < 0.0001) of a target unit with a stem, beside which it is at least twice as frequent: they go together
# By how much the share of sentences with a linked unit is larger among those with the stem than among the others.
EXPLAINED = 0.35


def stems(text: str) -> set[str]:
    """The words of a text cut to their first letters; in scripts without spaces each character, and two in a row."""
    result = words(text)
    alone = {word[:STEM] for word in result if word[0].isalpha()}
    wide = [word if len(word) == 1 and ord(word) > 0x0E00 else "" for word in result]
    return alone | {a + b for a, b in itertools.pairwise(wide) if a and b}


def hallucinated_stems(
    sources: Sequence[str], targets: Sequence[str], general: Sequence[str] = ()
) -> dict[str, list[int]]:
    """{stem: the pairs (from 0) whose source holds it} for stems of the synthetic sources that their targets do not explain.

    `general` is text of the sources' language that people wrote; without it nothing is known, and nothing is reported.
    """
    if not general or not sources:
        return {}
    held = [stems(text) for text in sources]
    occurrences: dict[str, list[int]] = defaultdict(list)
    for i, own in enumerate(held):
        for stem in own:
            occurrences[stem].append(i)
    candidates = _frequent(occurrences, len(sources), [stems(text) for text in general])
    if not candidates:
        return {}
    units = [stems(text) for text in targets]
    counts = Counter(unit for own in units for unit in own)
    return {stem: where for stem, where in candidates.items() if not _explained(where, units, counts)}


def _frequent(occurrences: dict[str, list[int]], sentences: int, general: Sequence[set[str]]) -> dict[str, list[int]]:
    """The stems that are a far larger part of what is written than of general text, whose sentences may be shorter."""
    usual = Counter(stem for own in general for stem in own)
    some = [
        stem
        for stem, where in occurrences.items()
        if len(where) >= max(LEAST, SHARE * sentences)
        and usual[stem] <= USUAL * len(general)
        and (len(stem) >= SHORT or not stem.isascii())
    ]
    own, other = (
        np.array([len(occurrences[stem]) for stem in some]),
        np.array([usual[stem] for stem in some]),
    )  # (C,), (C,)
    result = keyness(own, other, sum(map(len, occurrences.values())), sum(usual.values()))
    often = (result.log_ratio >= TIMES) & (result.log_likelihood >= SURE)  # (C,)
    return {stem: occurrences[stem] for stem, good in zip(some, often, strict=True) if good}


def _explained(where: Sequence[int], units: Sequence[set[str]], counts: Counter[str]) -> bool:
    """Whether words of the targets that go with the stem account for most of the sentences that hold it."""
    inside = Counter(unit for i in where for unit in units[i])
    some = [unit for unit, count in inside.items() if count >= 2]
    own = np.array([inside[unit] for unit in some])  # (U,)
    rest = np.array([counts[unit] for unit in some]) - own  # (U,)
    others = max(1, len(units) - len(where))
    result = keyness(own, rest, len(where), others)
    together = (result.log_likelihood >= LINKED) & (result.log_ratio >= 1)  # (U,)
    linked = {unit for unit, good in zip(some, together, strict=True) if good}
    both = sum(not linked.isdisjoint(units[i]) for i in where)
    elsewhere = sum(not linked.isdisjoint(one) for one in units) - both
    return bool(both / len(where) - elsewhere / others >= EXPLAINED)
