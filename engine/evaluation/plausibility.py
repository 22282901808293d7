"""How likely it is that a back-translation is a translation of its sentence.

A source that lost the meaning of its sentence teaches the model to hallucinate, and a memory searched by it returns its sentence
for the wrong inputs. Three signals show this, and each detects what the others miss:

    support       log P(y|x) - log P(y|x') per target token: how much the source helps the base to predict the target
    round trip    chrF between the target and the base's translation of the source (Sennrich et al., 2016, filtered by round
                  trip as in Imankulova et al., 2017, https://aclanthology.org/W17-5704)
    hallucination a word that the reverse model writes repeatedly without a reason in the targets (hallucination.py)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base import LanguagePair
from engine.core.progress import Progress
from engine.corpora.types import SentencePair
from engine.evaluation.hallucination import hallucinated_stems
from engine.evaluation.pair_filter import support

# Logistic weights that separate real from mismatched sources for 95 % of 160 pairs of legal text, and rank back-translations by
# similarity to the real sources better than support alone (correlation 0.43 against 0.34 on 80 pairs).
PER_SUPPORT, PER_AGREEMENT, OFFSET = 0.8, 4.0, 2.0
HALLUCINATED = 0.1  # factor for a hallucinated stem; sources with a lower plausibility are considered random


@dataclass(frozen=True)
class Weighed:
    """A synthetic source: `support` in nats per target token, `plausibility` from 0 to 1."""

    support: float
    plausibility: float


def plausibility(support: float, agreement: float | None = None, hallucinated: bool = False) -> float:
    """From 0 to 1, by `support` in nats per token and `agreement`, chrF of the round trip from 0 to 1 (None: no round trip)."""
    other = 0.25 if agreement is None else agreement
    value = 1 / (1 + math.exp(OFFSET - PER_SUPPORT * support - PER_AGREEMENT * other))
    return value * (HALLUCINATED if hallucinated else 1.0)


def pair_of(row: Mapping[str, Any]) -> SentencePair:
    """A row of pairs.jsonl, without its part, as a pair. Rows of older versions have only the support of a synthetic source, or not
    even that.
    """
    pair = SentencePair(**row)
    if not pair.synthetic or pair.support is None or "plausibility" in row:
        return pair
    return dataclasses.replace(pair, plausibility=plausibility(pair.support) if pair.source else 0.0)


def weigh(
    pair: LanguagePair, pairs: Sequence[tuple[str, str]], general: Sequence[str], progress: Progress, partial: Path | None = None
) -> list[Weighed]:
    """Weigh synthetic (source, target) pairs.

    `general` is human-written text in the source language; without it hallucinations are not detected. `partial` stores finished
    parts of the round trip, as in `back_translate_all`. Raises Cancelled.
    """
    from sacrebleu.metrics import CHRF

    from engine.decoding.resumable import back_translate_all

    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    values = support(pair.forward, pairs, progress)
    progress.begin("Translating the sources there and back", progress.index, progress.steps)
    returned = back_translate_all(pair.forward, sources, partial, progress)
    chrf = CHRF()
    agreements = [float(chrf.sentence_score(text, [target]).score) / 100 for text, target in zip(returned, targets, strict=True)]
    doubtful = {i for where in hallucinated_stems(sources, targets, general).values() for i in where}
    return [
        Weighed(value, plausibility(value, agreement, i in doubtful) if sources[i] else 0.0)
        for i, (value, agreement) in enumerate(zip(values, agreements, strict=True))
    ]
