"""Training pairs as token ids, and batches of like length whose order depends on seed and epoch alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["Pairs", "epoch_batches"]


@dataclass(frozen=True)
class Pairs:
    """Tokenised (source, target) pairs."""

    sources: list[list[int]]
    labels: list[list[int]]

    @classmethod
    def encode(cls, base: BaseModel, pairs: Sequence[tuple[str, str]], max_tokens: int = 256) -> Pairs:
        """Encode for the base's direction; a pair longer than `max_tokens` on a side is left out, never cut."""
        limit = min(max_tokens, base.max_tokens)
        both = zip(base.encode([a for a, _ in pairs]), base.label([b for _, b in pairs]), strict=True)
        kept = [(a, b) for a, b in both if len(a) <= limit and len(b) <= limit]
        return cls([a for a, _ in kept], [b for _, b in kept])

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> list[int]:
        return [max(len(a), len(b)) for a, b in zip(self.sources, self.labels, strict=True)]


def epoch_batches(lengths: Sequence[int], tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """The batches of an epoch: pairs of like length together, at most `tokens` padded tokens, in random order.

    The same arguments give the same batches, so a position in training is just (epoch, batch).
    """
    draw = random.Random(f"{seed}/{epoch}")
    order = list(range(len(lengths)))
    draw.shuffle(order)
    order.sort(key=lambda i: lengths[i])  # stable: pairs of one length stay shuffled
    batches: list[list[int]] = []
    for i in order:
        if batches and lengths[i] * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    draw.shuffle(batches)
    return batches
