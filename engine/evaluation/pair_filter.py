"""Selection of synthetic pairs that are worth learning from.

A back-translation that lost its sentence's meaning teaches the adapter to hallucinate. The support of a target is how much likelier
the frozen base finds it given this source than given another source of similar length: the pointwise mutual information log P(y|x)
- log P(y|x') per token.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.base import BaseModel
from engine.base.precision import quick_arithmetic
from engine.core.oom import HalveOnOom
from engine.core.progress import Progress

SIZE = 32  # pairs per batch


def support(base: BaseModel, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[float]:
    """log P(y|x) - log P(y|x') per target token (nats) of each pair, where x' is the source next in length.

    A source is encoded once per batch, since it is also the x' of the preceding pair. Language codes, which are forced in decoding,
    do not count. Raises Cancelled.
    """
    if len(pairs) < 2:
        return [0.0] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), i))
    sources = [ids[: base.max_tokens] for ids in base.encode([source for source, _ in pairs])]
    targets = [ids[: base.max_tokens] for ids in base.encode_target([target for _, target in pairs])]
    codes = torch.tensor(sorted(base.family.direction_ids()), device=base.device, dtype=torch.long)  # (C,)
    result = [0.0] * len(pairs)

    def compare(positions: list[int]) -> None:
        rows, after = [order[position] for position in positions], order[(positions[-1] + 1) % len(order)]
        inputs, labels = (base.pad_batch([sources[i] for i in (*rows, after)]), base.pad_batch([targets[i] for i in rows]))
        states = base.encoder_states(inputs)  # (B + 1, S, d)
        real = (labels != base.pad) & ~torch.isin(labels, codes)  # (B, T)
        matched, mismatched = (
            base.logits(inputs[part], labels, states[part])[real].float().log_softmax(-1).gather(-1, labels[real][:, None])
            for part in (slice(None, -1), slice(1, None))
        )  # (M, 1) each
        gained = torch.zeros(real.shape, device=real.device).masked_scatter_(real, matched - mismatched)  # (B, T)
        for i, total, count in zip(rows, gained.sum(1).tolist(), real.sum(1).tolist(), strict=True):
            result[i] = total / max(1, count)

    fit = HalveOnOom("longest (a decoding setting), or take shorter sentences")
    with base.using(None), torch.inference_mode(), quick_arithmetic(base):
        for begin in range(0, len(order), SIZE):
            progress.advance(begin, len(order))
            fit.run(list(range(begin, min(begin + SIZE, len(order)))), compare)
    progress.advance(len(order), len(order))
    return result


def best_supported(values: Sequence[float | None], share: float, least: float | None = None) -> list[bool]:
    """Which pairs to keep: the best `share` of those with a value, and all without one, whose sources are real. Pairs below `least`
    are dropped too, as long as half of the share remains.
    """
    ranked = sorted((value for value in values if value is not None), reverse=True)
    if not ranked or share >= 1:
        return [True] * len(values)
    count = max(1, round(share * len(ranked)))
    if least is not None:
        count = max(1, count // 2, min(count, sum(value >= least for value in ranked)))
    floor = ranked[count - 1]
    return [value is None or value >= floor for value in values]
