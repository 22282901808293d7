"""Which synthetic pairs are worth learning from.

A back-translation that lost its sentence's meaning teaches the adapter to invent. How well a source supports its target
is how much likelier the frozen base finds the target given this source than given another one of like length: the
pointwise mutual information log P(y|x) - log P(y|x'), a token.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.base import BaseModel
from engine.core.progress import Progress

PART = 256  # pairs between two reports


def support(base: BaseModel, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[float]:
    """log P(y|x) - log P(y|x') a target token (nats) of each pair, x' being the source next in length."""
    from engine.decoding.scoring import score

    if len(pairs) < 2:
        return [0.0] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), i))
    result = [0.0] * len(pairs)
    for begin in range(0, len(order), PART):
        progress.advance(begin, len(order))
        rows = order[begin : begin + PART]
        others = [order[(begin + k + 1) % len(order)] for k in range(len(rows))]
        own = score(base, [pairs[i] for i in rows])
        other = score(base, [(pairs[j][0], pairs[i][1]) for i, j in zip(rows, others, strict=True)])
        for i, (mine, tokens), (theirs, _) in zip(rows, own, other, strict=True):
            result[i] = (mine - theirs) / max(1, tokens)
    progress.advance(len(order), len(order))
    return result


def best_supported(values: Sequence[float | None], share: float, least: float | None = None) -> list[bool]:
    """Which pairs are kept: the best `share` of those with a value, and all without one (their sources are real). Of these
    the ones below `least` are left out too, as long as half of the share remains.
    """
    known = sorted((value for value in values if value is not None), reverse=True)
    if not known or share >= 1:
        return [True] * len(values)
    count = max(1, round(share * len(known)))
    if least is not None:
        count = max(1, count // 2, min(count, sum(value >= least for value in known)))
    floor = known[count - 1]
    return [value is None or value >= floor for value in values]
