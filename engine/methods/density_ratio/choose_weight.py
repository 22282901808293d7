"""Chooses the weight of the density ratio by the likelihood of held-out sentence pairs and of general text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from engine.base import BaseModel
from engine.base.onednn import fast_products
from engine.core.progress import Part, Progress
from engine.corpora.types import SentencePair
from engine.decoding.translate import length_batches
from engine.errors import CorpusError
from engine.methods.batches import Pairs
from engine.methods.interface import Batch
from engine.methods.losses import log_probabilities

WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
COST = 0.005  # nats per token that general text may lose
NUMBERS = 2**25  # limit of the values in a batch's distributions, which are held in memory at once


def choose_weight(
    base: BaseModel, module: Any, held_out: Sequence[SentencePair], general: Sequence[SentencePair], progress: Progress
) -> dict[str, Any]:
    """Choose the `weight` with the lowest loss on held-out pairs, among those that increase the loss on general pairs by at most
    `COST`. Also returns `losses` and `losses_general`, nats per token for each of `WEIGHTS`.

    Raises CorpusError if there are no held-out pairs.
    """
    if not held_out:
        raise CorpusError("There are no held-out sentence pairs to choose the weight on. Add samples.")
    total = len(held_out) + len(general)
    losses = mean_losses(base, module, held_out, WEIGHTS, Part(progress, 0, total))
    plain = mean_losses(base, module, general, WEIGHTS, Part(progress, len(held_out), total)) if general else []
    bound = plain[0] + COST if plain else 0.0
    allowed = [i for i in range(len(WEIGHTS)) if not plain or plain[i] <= bound]
    best = min(allowed, key=lambda i: losses[i])
    measured = {"losses": losses, "losses_general": plain}
    return {"weight": WEIGHTS[best], **{name: [round(loss, 4) for loss in row] for name, row in measured.items()}}


def mean_losses(
    base: BaseModel, module: Any, pairs: Sequence[SentencePair], weights: Sequence[float], progress: Progress
) -> list[float]:
    """The loss of the pairs' targets in nats per token under each weight, from one pass of the base."""
    encoded = Pairs.encode(base, pairs)
    losses, tokens, done = torch.zeros(len(weights), dtype=torch.float64), 0, 0  # (W,)
    words = len(base.model.get_output_embeddings().weight)
    with base.using(None), fast_products(base), torch.no_grad():
        for rows in length_batches(encoded.lengths, max(64, NUMBERS // words // 2)):
            batch = Batch.of(base, encoded, rows)
            log_p = log_probabilities(base, batch)  # (M, V)
            real = batch.labels != base.pad  # (B, T)
            gold, difference = batch.labels[real][:, None], module.difference(batch.inputs, real)  # (M, 1), (M, V)
            for position, weight in enumerate(weights):
                mixed = (log_p + weight * difference).log_softmax(-1)  # (M, V)
                losses[position] -= float(mixed.gather(1, gold).double().sum())
            tokens += len(gold)
            done += len(rows)
            progress.advance(done, len(encoded))
    return [float(loss) / max(1, tokens) for loss in losses]
