"""Training batches, with the frozen encoder's output cached if sentences are used several times.

A sentence's encoder states do not depend on when they are computed, so a resumed training uses the same ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from engine.base import BaseModel
from engine.core.oom import HalveOnOom
from engine.core.progress import Progress
from engine.methods.batches import Pairs, epoch_batches
from engine.methods.interface import Batch, Method

MOST_BYTES = 256 << 20  # for the cached states of all sentences; larger ones are computed batch by batch
FEWEST_USES = 2.0  # average number of uses per sentence from which caching its states pays off


def mixed(base: BaseModel, precision: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    if precision == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(base.device.type, dtype=precision)


class EncodedSources:
    """The encoder states (S, d) of each source sentence, on the base's device."""

    def __init__(self, base: BaseModel, pairs: Pairs, tokens: int, kind: torch.dtype, progress: Progress) -> None:
        """Encode all sources in batches of `tokens`, in precision `kind`, with the base as it is in training."""
        self.states: list[torch.Tensor] = [torch.empty(0)] * len(pairs)

        def encode(rows: list[int]) -> None:
            with torch.no_grad(), mixed(base, kind):
                states = base.encoder_states(base.pad_batch([pairs.sources[row] for row in rows]))  # (B, S, d)
            for row, state in zip(rows, states, strict=True):
                self.states[row] = state[: len(pairs.sources[row])].clone()  # (S, d)

        fit = HalveOnOom("tokens_per_batch")
        for rows in epoch_batches([len(source) for source in pairs.sources], tokens, seed=0, epoch=0):
            progress.check()
            fit.run(rows, encode)

    def batch(self, rows: Sequence[int]) -> torch.Tensor:
        """The states of these rows (B, S, d), padded with zeros."""
        return torch.nn.utils.rnn.pad_sequence([self.states[row] for row in rows], batch_first=True)


def worth_holding(base: BaseModel, pairs: Pairs, tokens: int) -> bool:
    """Whether the states of all sources fit in memory and are used often enough if `tokens` padded tokens are trained on."""
    total = sum(map(len, pairs.sources))
    return total * base.d_model * 4 <= MOST_BYTES and tokens >= FEWEST_USES * sum(pairs.lengths)


def make_batch(
    base: BaseModel, method: Method, module: nn.Module, pairs: Pairs, rows: list[int], step: int,
    encoded: EncodedSources | None = None,
) -> Batch:  # fmt: skip
    """The rows as tensors on the base's device, already passed to `Method.set_source`.

    The encoder's output is taken from `encoded`. Without it, it is computed once without gradient if the method leaves the encoder
    unchanged.
    """
    batch = Batch.of(base, pairs, rows, step=step, encode=encoded is None and not method.changes_encoder(module))
    if encoded is not None:
        batch = replace(batch, encoded=encoded.batch(rows))
    method.set_source(base, module, batch.sources, batch)
    return batch
