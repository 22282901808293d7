"""Which synthetic pairs are worth learning from.

A back-translation that lost its sentence's meaning teaches the adapter to invent. How well a source supports its target
is how much likelier the frozen base finds the target given this source than given another one of like length: the
pointwise mutual information log P(y|x) - log P(y|x'), a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["best_supported", "support"]

PART = 256  # pairs between two reports


def support(base: BaseModel, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[float]:
    """log P(y|x) - log P(y|x') a target token (nats) of each pair, x' being the source next in length."""
    if len(pairs) < 2:
        return [0.0] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), i))
    found = [0.0] * len(pairs)
    for begin in range(0, len(order), PART):
        progress.advance(begin, len(order))
        rows = order[begin : begin + PART]
        others = [order[(begin + k + 1) % len(order)] for k in range(len(rows))]
        own = base.score([pairs[i] for i in rows])
        other = base.score([(pairs[j][0], pairs[i][1]) for i, j in zip(rows, others, strict=True)])
        for i, (mine, tokens), (theirs, _) in zip(rows, own, other, strict=True):
            found[i] = (mine - theirs) / max(1, tokens)
    progress.advance(len(order), len(order))
    return found


def best_supported(values: Sequence[float | None], share: float) -> list[bool]:
    """Which pairs are kept: the best `share` of those with a value, and all without one (their sources are real)."""
    known = sorted((value for value in values if value is not None), reverse=True)
    if not known or share >= 1:
        return [True] * len(values)
    floor = known[max(1, round(share * len(known))) - 1]
    return [value is None or value >= floor for value in values]
