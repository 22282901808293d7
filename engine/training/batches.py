"""Batches of a training, with the frozen encoder's output, which is computed once where sentences come several times.

A sentence's states do not depend on when they are asked for, so that a training that goes on after a stop sees the same ones.
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

MOST_BYTES = 256 << 20  # of the states of all sentences; beyond it they are computed batch by batch
FEWEST_USES = 2.0  # how often a sentence must come, on average, for its states to be held


def mixed(base: BaseModel, precision: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    if precision == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(base.device.type, dtype=precision)


class EncodedSources:
    """The states of each source sentence (S, d), on the base's device."""

    def __init__(self, base: BaseModel, pairs: Pairs, tokens: int, kind: torch.dtype, progress: Progress) -> None:
        """Encode all sources in batches of `tokens`, in the arithmetic `kind`; `base` is as it is in training."""
        self.states: list[torch.Tensor] = [torch.empty(0)] * len(pairs)

        def encode(rows: list[int]) -> None:
            with torch.no_grad(), mixed(base, kind):
                states = base.encoder_states(base.pad_batch([pairs.sources[row] for row in rows]))  # (B, S, d)
            for row, own in zip(rows, states, strict=True):
                self.states[row] = own[: len(pairs.sources[row])].clone()  # (S, d)

        fit = HalveOnOom("tokens_per_batch")
        for rows in epoch_batches([len(source) for source in pairs.sources], tokens, seed=0, epoch=0):
            progress.check()
            fit.run(rows, encode)

    def batch(self, rows: Sequence[int]) -> torch.Tensor:
        """The states of these rows (B, S, d), zeros after a sentence's end."""
        return torch.nn.utils.rnn.pad_sequence([self.states[row] for row in rows], batch_first=True)


def worth_holding(base: BaseModel, pairs: Pairs, tokens: int) -> bool:
    """Whether the states of all sources fit, and are used often enough, when `tokens` padded tokens are trained on."""
    whole = sum(map(len, pairs.sources))
    return whole * base.d_model * 4 <= MOST_BYTES and tokens >= FEWEST_USES * sum(pairs.lengths)


def make_batch(
    base: BaseModel, method: Method, module: nn.Module, pairs: Pairs, rows: list[int], step: int,
    encoded: EncodedSources | None = None,
) -> Batch:  # fmt: skip
    """The rows as tensors on the base's device. The encoder's output is that of `encoded`, or is computed once without gradient,
    where the method leaves the encoder alone. The method has seen the batch.
    """
    batch = Batch.of(base, pairs, rows, step=step, encode=encoded is None and not method.changes_encoder(module))
    if encoded is not None:
        batch = replace(batch, encoded=encoded.batch(rows))
    method.set_source(base, module, batch.sources, batch)
    return batch
