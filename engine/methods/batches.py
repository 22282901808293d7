"""Training pairs as token ids, and batches of similar length whose order depends only on seed and epoch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from engine.base import BaseModel
from engine.corpora.types import SentencePair


@dataclass(frozen=True)
class Pairs:
    """Tokenised sentence pairs."""

    sources: list[list[int]]
    labels: list[list[int]]
    sentences: list[SentencePair]  # the pairs that were encoded

    @classmethod
    def encode(cls, base: BaseModel, pairs: Sequence[SentencePair | tuple[str, str]], max_tokens: int = 256) -> Pairs:
        """Encode for the base's direction. A pair with more than `max_tokens` tokens on either side is omitted, not truncated."""
        sentences = [pair if isinstance(pair, SentencePair) else SentencePair(*pair) for pair in pairs]
        limit = min(max_tokens, base.max_tokens)
        sources, labels = (
            base.encode([sentence.source for sentence in sentences]),
            base.encode_target([sentence.target for sentence in sentences]),
        )
        selected = [i for i in range(len(pairs)) if len(sources[i]) <= limit and len(labels[i]) <= limit]
        return cls([sources[i] for i in selected], [labels[i] for i in selected], [sentences[i] for i in selected])

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> list[int]:
        return [max(len(a), len(b)) for a, b in zip(self.sources, self.labels, strict=True)]


def epoch_batches(lengths: Sequence[int], tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """The batches of an epoch in random order: pairs of similar length, at most `tokens` padded tokens per batch.

    The same arguments give the same batches, so a position in training is determined by (epoch, batch).
    """
    draw = random.Random(f"{seed}/{epoch}")
    order = list(range(len(lengths)))
    draw.shuffle(order)
    order.sort(key=lambda i: lengths[i])  # stable: pairs of equal length stay shuffled
    batches: list[list[int]] = []
    for i in order:
        if batches and lengths[i] * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    draw.shuffle(batches)
    return batches
