"""Detection of repetitive and overlong translations from source and translation only, whatever system made them.

Weak models, and models far from their training domain, fall into loops ("the man of the man of the man", 将将将将). Counting
n-grams that the source does not repeat is the detector of Raunak et al. (2021, https://aclanthology.org/2021.naacl-main.92),
which Guerreiro et al. (2023, https://aclanthology.org/2023.eacl-main.75) confirmed as the most precise for such outputs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from engine.core.flagged import flag_of
from engine.corpora.words import word_spans

# The second search never repeats three tokens; if that is not enough ("tattoo tattoo tattoo"), the third never repeats two.
CONSTRAINTS = (3, 2)
# References of the held-out files have at most 1.85 times the source's tokens, plus the allowance (docs/bases.md).
LONGEST, ALLOWANCE = 2.0, 8
RUN = re.compile(r"(.{1,60}?)\1{2,}", re.DOTALL)
# Consecutive occurrences that make a loop: of several characters, of a single letter, of other signs.
WORDS, LETTER, SIGNS = 3, 4, 8
NGRAM, NGRAM_UNSPACED = 4, 5  # words, characters
NGRAM_TIMES = 3  # and two more than any word pair in the source


@dataclass(frozen=True)
class Problem:
    """`kind` is "repetition" or "length"; `share` is the superfluous share of the text, 0 to 1."""

    kind: str
    share: float


def longest_allowed(source_tokens: int, ratio: float = LONGEST) -> int:
    """The maximum tokens of a translation before it counts as overlong; `ratio` is `Decoding.max_length_ratio`."""
    return int(source_tokens * max(LONGEST, ratio)) + ALLOWANCE


def problem(source: str, translation: str, tokens: int = 0, allowed: int = 1) -> Problem | None:
    """The problem of a translation with `tokens` tokens, of which fewer than `allowed` are acceptable; None if there is none.

    What the source repeats may occur once more in its translation.
    """
    share = repeated(source, translation)
    if share:
        return Problem("repetition", share)
    return Problem("length", tokens / (tokens + allowed)) if tokens >= allowed else None


def repeated(source: str, translation: str) -> float:
    """The share of a translation's characters that is repetition beyond that of the source; 0: none."""
    often = max((len(m[0]) // len(m[1]) for m in RUN.finditer(source)), default=1)
    often = max(often, *(len(list(same)) for _, same in groupby(_words(source))), 1)  # "very, very, very"
    excess = 0
    for match in RUN.finditer(translation):
        unit, times = match[1], len(match[0]) // len(match[1])
        if times >= max(_fewest(unit), often + 2):
            excess = max(excess, len(match[0]) - len(unit))
    if not excess:
        size = NGRAM_UNSPACED if sum(c > "\u2e7f" for c in translation) * 2 > len(translation) else NGRAM
        times, length = _top(_words(translation), size)
        if times >= max(NGRAM_TIMES, _top(_words(source), 2)[0] + 2):
            excess = (times - 1) * length
    return excess / max(1, len(translation))


def noticed(source: str, translation: str | None) -> str:
    """The flag of a translation (see `engine.core.flagged.FLAGS`), or "repetition" if it is repetitive; otherwise empty.

    Translations that were not made by decoding, or were stored by early versions, carry no flag.
    """
    return flag_of(translation) or ("repetition" if translation and repeated(source, translation) else "")


def _fewest(unit: str) -> int:
    """The number of consecutive occurrences that make this stretch a loop."""
    if any(map(str.isalpha, unit)):
        return LETTER if len(unit.strip()) == 1 else WORDS
    stripped = unit.strip()
    return WORDS if any(map(str.isdigit, stripped)) and not stripped.isdigit() else SIGNS  # "(2)(2)(2)", but 1,000,000 and "......"


def _words(text: str) -> list[str]:
    """Words (characters in scripts without spaces), without punctuation."""
    return [text[a:b].casefold() for a, b in word_spans(text) if text[a].isalnum()]


def _top(words: Sequence[str], size: int) -> tuple[int, int]:
    """The count of the most frequent n-gram, and its length in characters."""
    counts = Counter(zip(*(words[k:] for k in range(size)), strict=False))
    ngram, times = max(counts.items(), key=lambda item: item[1], default=((), 0))
    return times, sum(map(len, ngram))
