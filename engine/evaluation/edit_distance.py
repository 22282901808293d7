"""Edit distance and chrF of single sentences, by which lists of sentences are sorted."""

from __future__ import annotations

from functools import cache
from typing import Any

from engine.evaluation.diff import tokens


def edits(left: list[str], right: list[str]) -> int:
    """The minimum number of insertions, deletions and replacements between the two, by bit vectors (Hyyrö, 2003)."""
    if not left or not right:
        return max(len(left), len(right))
    masks: dict[str, int] = {}
    for i, token in enumerate(left):
        masks[token] = masks.get(token, 0) | (1 << i)
    last, full = 1 << (len(left) - 1), (1 << len(left)) - 1
    plus, minus, distance = full, 0, len(left)
    for token in right:
        match = masks.get(token, 0) | minus
        zeros = (((match & plus) + plus) ^ plus) | match
        up, down = minus | (~(zeros | plus) & full), plus & zeros
        distance += bool(up & last) - bool(down & last)
        up, down = ((up << 1) | 1) & full, (down << 1) & full
        plus, minus = down | (~(zeros | up) & full), up & zeros
    return distance


def difference(vanilla: str, customized: str, language: str) -> float:
    """Edits as a share of the longer text, 0 to 1, in words, or characters in scripts without spaces."""
    if vanilla == customized:
        return 0.0
    left = [token for token in tokens(vanilla, language) if not token.isspace()]
    right = [token for token in tokens(customized, language) if not token.isspace()]
    return edits(left, right) / max(1, len(left), len(right))


def sentence_score(text: str, reference: str) -> float:
    """chrF2 of one sentence, 0 to 100; unlike BLEU it is meaningful for a single sentence."""
    return float(_chrf().sentence_score(text, [reference]).score)


@cache
def _chrf() -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF()
