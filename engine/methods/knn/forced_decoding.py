"""A teacher-forced pass over sentence pairs: hidden states at the real target positions, optionally with probabilities.

`keys="output"`: the decoder's last hidden state, the input of the output layer, as in most later work on kNN-MT.
`keys="ffn_input"`: the input of the last layer's feed-forward network, as in Khandelwal et al. (2021), section 3.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from engine.base import BaseModel
from engine.base.onednn import fast_products
from engine.core.progress import Progress
from engine.decoding.translate import length_batches
from engine.methods.batches import Pairs
from engine.methods.interface import Batch
from engine.methods.losses import log_probabilities, target_states
from engine.methods.trained import TrainedMethod


@dataclass
class Forced:
    """The M target positions of one batch."""

    states: torch.Tensor  # (M, d) float32
    tokens: torch.Tensor  # (M,) reference tokens
    sentences: torch.Tensor  # (M,) rows of the pairs
    positions: torch.Tensor  # (M,) of the token in its sentence, from 0
    log_p: torch.Tensor | None  # (M,) of the reference token
    top: torch.Tensor | None  # (M,) the highest probability


class StateCapture:
    """Captures the states at the location from which keys are taken, without changing them."""

    def __init__(self, base: BaseModel, location: str) -> None:
        self.module = base.model.get_output_embeddings() if location == "output" else base.decoder_layers[-1].fc1
        self.states: Any = None
        self._handle: Any = None

    def __enter__(self) -> StateCapture:
        def keep(module: Any, args: Any) -> None:
            self.states = args[0]

        # First of all hooks: a key is the decoder's state before other hooks change it here.
        self._handle = self.module.register_forward_pre_hook(keep, prepend=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()
        self.states = None


def output_bias(base: BaseModel) -> torch.Tensor | None:
    """The bias (1, V) that the base adds to its output layer's logits; None if it is zero or missing, as in most bases."""
    bias = getattr(base.model, "final_logits_bias", None)
    return bias if bias is not None and bool(bias.any()) else None


def forced(
    base: BaseModel,
    pairs: Pairs,
    plugin: TrainedMethod | None,
    location: str,
    *,
    probabilities: bool = False,
    progress: Progress | None = None,
) -> Iterator[Forced]:
    """Run the base over all pairs in batches, with the plugin's method attached (but not its datastore, if any).

    Positions of language codes are omitted, since decoding forces these tokens.
    """
    progress = progress or Progress()
    codes = torch.tensor(sorted(base.family.direction_ids()), device=base.device, dtype=torch.long)  # (C,)
    done = 0
    method, module = (plugin.method, plugin.module) if plugin else (None, None)
    attached: Any = method.attach(base, module, 1.0) if method and module is not None else contextlib.nullcontext()
    with base.lock, fast_products(base), attached, StateCapture(base, location) as tap, torch.no_grad():
        for rows in length_batches(pairs.lengths, 4096):
            batch = Batch.of(base, pairs, rows)
            labels = batch.labels  # (B, T)
            if method and module is not None:
                method.set_source(base, module, batch.sources, batch)
            real = labels != base.pad  # (B, T)
            log_p = top = None
            if probabilities:
                all_log_p = method.log_probabilities(base, module, batch) if method and module is not None else (
                    log_probabilities(base, batch)
                )  # (M, V)  # fmt: skip
                log_p, top = (all_log_p.gather(1, labels[real][:, None])[:, 0], all_log_p.max(1).values.exp())  # (M,), (M,)
                states = at_targets(tap.states, batch, base.pad)  # (M, d)
            else:
                states = target_states(base, batch)  # (M, d)
                if location != "output":
                    states = at_targets(tap.states, batch, base.pad)  # (M, d)
            sentence, position = real.nonzero(as_tuple=True)  # (M,), (M,)
            keep = ~torch.isin(labels[real], codes)  # (M,)
            numbers = torch.tensor(rows, device=base.device)[sentence]  # (M,)
            yield Forced(
                states[keep].float(), labels[real][keep], numbers[keep], position[keep],
                None if log_p is None else log_p[keep], None if top is None else top[keep],
            )  # fmt: skip
            done += len(rows)
            progress.advance(done, len(pairs))


def at_targets(states: torch.Tensor, batch: Batch, pad: int) -> torch.Tensor:
    """States (M, d) at the real target positions, from states at all positions (B, T, d) or already at these (M, d)."""
    return states[batch.labels != pad] if states.dim() == 3 else states  # (M, d)
