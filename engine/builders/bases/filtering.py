"""Leaving out the worst pairs, scored by dual conditional cross-entropy (Junczys-Dowmunt 2018) with the base in training.

The score of a pair is |H(y|x) - H(x|y)| + (H(y|x) + H(x|y)) / 2, H in nats per token. It is high if the sides are not
translations of each other (both entropies are high) or if one side says more than the other (one entropy is high).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.builders.bases.network import PackedLoss, load_model
from engine.builders.bases.packing import Examples, Packed, assemble, pack_examples
from engine.builders.bases.tokenised import open_pairs
from engine.builders.bases.vocabulary import load_vocabulary
from engine.core.atomic_files import atomic_write
from engine.core.devices import pick_device, pick_precision
from engine.core.progress import Progress
from engine.errors import ModelError

WINDOW = 8192  # examples packed together; also the most that an interruption loses
ROWS = 32


def score_pairs(
    base: Path, source: str, target: str, *, device: str = "auto", precision: str = "auto", progress: Progress | None = None
) -> np.ndarray:
    """Score every tokenised pair of the training in `base` with its current weights, and write training/pairs/scores.npy.

    An interrupted run is continued by the next call. Returns the scores (pairs,), lower is better. Raises ModelError if
    `base` has no tokenised pairs or no weights yet.
    """
    progress = progress or Progress()
    folder = base / "training" / "pairs"
    if not (folder / "pairs.json").is_file() or not (base / "model.safetensors").is_file():
        raise ModelError(f"{base} holds no training with a checkpoint and pairs. Train it for some minutes first.")
    examples = open_pairs(folder, load_vocabulary(base, source, target))
    losses = _unfinished(folder / "losses.npy", len(examples))  # (2 * pairs,) nats per token, NaN if not yet scored
    order = np.argsort(np.add(*examples.lengths(np.arange(len(examples)))), kind="stable")  # short ones first
    todo = order[np.isnan(losses[order])]
    network = _network(base, device, precision)
    progress.begin("Scoring pairs")
    for begin in range(0, len(todo), WINDOW):
        progress.advance(len(examples) - len(todo) + begin, len(examples))
        window = todo[begin : begin + WINDOW]
        for batch, rows in _batches(examples, window):
            for number, loss in zip(*_losses(network, batch, rows), strict=True):
                losses[number] = loss
        losses.flush()
    forward, backward = np.asarray(losses[::2], np.float32), np.asarray(losses[1::2], np.float32)  # (pairs,)
    scores = (np.abs(forward - backward) + (forward + backward) / 2).astype(np.float16)
    with atomic_write(folder / "scores.npy", "the scores") as temporary, temporary.open("wb") as file:
        np.save(file, scores)
    (folder / "losses.npy").unlink()
    return scores


def read_scores(folder: Path, pairs: int) -> np.ndarray | None:
    """The scores (pairs,) that `score_pairs` wrote into the folder of tokenised pairs; None if missing or of another length."""
    try:
        scores: np.ndarray = np.load(folder / "scores.npy", allow_pickle=False)
    except (OSError, ValueError):
        return None
    return scores if scores.shape == (pairs,) else None


def drop_worst(examples: Examples, scores: np.ndarray, share: float, files: int) -> list[int]:
    """Set the weight of the worst `share` of each file's pairs to zero; returns the number dropped from each file."""
    dropped = []
    assert examples.file is not None
    for number in range(files):
        indices = np.flatnonzero(examples.file == number)
        worst = indices[np.argsort(scores[indices], kind="stable")[len(indices) - int(share * len(indices)) :]]
        examples.weights[worst] = 0.0
        dropped.append(len(worst))
    return dropped


def _unfinished(path: Path, examples: int) -> Any:
    """The memory-mapped losses of an interrupted run, or a new array of NaN."""
    if path.is_file():
        losses = np.load(path, mmap_mode="r+", allow_pickle=False)
        if losses.shape == (examples,):
            return losses
    losses = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(examples,))
    losses[:] = np.nan
    return losses


def _network(base: Path, device: str, precision: str) -> Any:
    where = pick_device(device)
    return PackedLoss(load_model(base).to(where), 0.0, pick_precision(precision, where)).eval()


def _batches(examples: Examples, window: np.ndarray) -> Iterator[tuple[Packed, list[list[int]]]]:
    """Packed batches of these examples, and the examples of each row."""
    sources, targets = examples.lengths(window)
    width = int(max(64, sources.max(), targets.max()))
    rows = pack_examples(examples, window, width)
    for begin in range(0, len(rows), ROWS):
        yield assemble(examples, rows[begin : begin + ROWS], width), rows[begin : begin + ROWS]


def _losses(network: Any, batch: Packed, rows: Sequence[Sequence[int]]) -> tuple[list[int], list[float]]:
    """The examples of a batch and the mean loss per token of each, in nats."""
    table = network.model.model.shared.weight
    batch = batch.to(table.device)
    with torch.no_grad():
        real = (batch.target_segment.view(-1) > 0).nonzero()[:, 0]  # (n,)
        states = network.hidden(batch)[real]  # (n, d)
        logits = states @ table.to(states.dtype).T  # (n, V)
        label_logits = logits.gather(1, batch.labels.view(-1)[real, None])[:, 0]  # (n,)
        loss = logits.logsumexp(-1).float() - label_logits.float()  # (n,)
    numbers = [number for row in rows for number in row]
    first = torch.tensor([0, *[len(row) for row in rows][:-1]]).cumsum(0).to(real.device)  # (B,) of each row's examples
    row_of = real // batch.labels.shape[1]
    index = first[row_of] + batch.target_segment.view(-1)[real] - 1  # (n,) index into `numbers`
    total = torch.zeros(len(numbers), device=real.device).index_add_(0, index, loss)
    count = torch.zeros_like(total).index_add_(0, index, torch.ones_like(loss))
    return numbers, (total / count).tolist()
