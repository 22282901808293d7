"""The training loop that all methods share.

It optimises the parameters of a method's module, attached to the frozen base, on (source, target) pairs; validates by
plain likelihood; keeps the best; writes checkpoints from which a stopped training goes on as if never stopped; logs a
JSON line a report to metrics.jsonl.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from engine.devices import pick_precision
from engine.errors import Cancelled, CorpusError, TailorError
from engine.fitting import Fit, free_memory, halves, out_of_memory
from engine.methods.base import Batch, Method
from engine.progress import Progress
from engine.training.checkpoint import Position, load_checkpoint, save_checkpoint
from engine.training.data import Pairs, epoch_batches
from engine.training.log import Meter, MetricsLog
from engine.training.options import TrainingOptions
from engine.training.watch import Watch

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["Result", "learning_rate", "train"]


@dataclass(frozen=True)
class Result:
    """How a training ended; the module holds the best weights."""

    updates: int
    best_update: int
    best_loss: float  # validation, nats a token
    first_loss: float  # validation before the first update
    seconds: float
    parameters: int
    stopped_by: str  # "max_updates", "max_epochs", "patience" or "max_minutes"


def learning_rate(update: int, options: TrainingOptions) -> float:
    """Linear warm-up, then the inverse square root of the update (counted from 0)."""
    warmup = max(1, options.warmup)
    return options.learning_rate * min((update + 1) / warmup, math.sqrt(warmup / (update + 1)))


def make_optimizer(method: Method, module: nn.Module, options: TrainingOptions) -> torch.optim.Optimizer:
    """Adam, or AdamW with decoupled weight decay, as asked for; each group of weights has its `speed`."""
    betas, whole, single = (options.beta1, options.beta2), method.speed(module), method.speeds(module)
    groups: list[dict[str, Any]] = []
    # Weights that follow each other share a group: checkpoints number them in the module's order.
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        speed = whole * next((factor for prefix, factor in single.items() if name.startswith(prefix)), 1.0)
        if not groups or groups[-1]["speed"] != speed:
            groups.append({"params": [], "speed": speed})
        groups[-1]["params"].append(parameter)
    if options.optimizer == "adamw":
        return torch.optim.AdamW(
            groups, lr=options.learning_rate, betas=betas, eps=1e-9, weight_decay=options.weight_decay
        )
    return torch.optim.Adam(groups, lr=options.learning_rate, betas=betas, eps=1e-9)


def make_batch(base: BaseModel, method: Method, module: nn.Module, pairs: Pairs, rows: list[int], step: int) -> Batch:
    """The rows as tensors on the base's device. The encoder's output is computed once without gradient where the method
    leaves the encoder alone. The method has seen the batch.
    """
    sources = base.pad_batch([pairs.sources[i] for i in rows])  # (B, S)
    labels = base.pad_batch([pairs.labels[i] for i in rows])  # (B, T)
    mask = (sources != base.pad).long()  # (B, S)
    encoded = None
    if not method.changes_encoder(module):
        with torch.no_grad():
            encoded = base.model.get_encoder()(input_ids=sources, attention_mask=mask).last_hidden_state  # (B, S, d)
    batch = Batch(sources, mask, encoded, base.shift_right(labels), labels, step, pairs, rows)
    method.see(base, module, sources, batch)
    return batch


@torch.no_grad()
def validate(
    base: BaseModel,
    method: Method,
    module: nn.Module,
    pairs: Pairs,
    tokens: int,
    precision: torch.dtype,
    check: Progress,
    fit: Fit | None = None,
) -> float:
    """Mean negative log-likelihood a token (nats) of the pairs under the base with the module attached."""
    total = count = 0.0

    def add(rows: list[int]) -> None:
        nonlocal total, count
        with mixed(base, precision):
            batch = make_batch(base, method, module, pairs, rows, 0)
            log_p = method.log_probabilities(base, module, batch)  # (M, V)
        labels = batch.labels[batch.labels != base.pad]  # (M,)
        total -= float(log_p.gather(1, labels[:, None]).double().sum())
        count += len(labels)

    fit = fit or Fit("tokens_per_batch")
    for rows in epoch_batches(pairs.lengths, tokens, seed=0, epoch=0):
        check.check()
        fit.each(rows, add)
    return total / max(1.0, count)


def random_state(device: torch.device) -> list[torch.Tensor]:
    """Where the random generators stand that a batch draws from."""
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


def set_random_state(state: list[torch.Tensor] | None) -> None:
    if state:
        torch.set_rng_state(state[0])
        for one in state[1:]:
            torch.cuda.set_rng_state(one)


def mixed(base: BaseModel, precision: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    if precision == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(base.device.type, dtype=precision)


@contextlib.contextmanager
def memory_for(options: TrainingOptions) -> Iterator[None]:
    """Turn the allocator's error into a sentence naming the setting to lower."""
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise TailorError(
            f"The memory is not enough for batches of {options.tokens_per_batch} tokens, nor for halves of them. Lower "
            "tokens_per_batch (and raise accumulate by the same factor), or phrases_per_layer where the method has it."
        ) from error


def train(
    base: BaseModel,
    method: Method,
    module: nn.Module,
    training: Pairs,
    validation: Pairs,
    options: TrainingOptions,
    folder: Path,
    *,
    precision: str = "auto",
    watch: Watch | None = None,
    progress: Progress | None = None,
) -> Result:
    """Train `module` in place and leave the best weights in it; checkpoints and metrics.jsonl go to `folder`.

    Called again with the same options after a stop, it goes on from the last checkpoint and ends with the same weights
    as an undisturbed run (bit for bit on a CPU). Raises Cancelled after writing a checkpoint when the user stops it.
    `watch` translates at each validation; what it finds goes into that row.
    """
    progress = progress or Progress()
    if not len(training) or not len(validation):
        raise CorpusError(
            "There are too few sentences to train on: at least one for training and one for validation are needed."
        )
    # Over a base held in half precision all is computed in it.
    dtype = base.dtype if base.dtype != torch.float32 else pick_precision(precision, base.device)
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimizer = make_optimizer(method, module, options)
    identity = {"training": options.to_mapping(), "pairs": len(training), "precision": str(dtype)}
    torch.manual_seed(options.seed)
    restored = load_checkpoint(folder, module, optimizer, identity)
    position, best = restored or (Position(), {})
    log = MetricsLog(folder / "metrics.jsonl", position.update if restored else None)
    begin, spent = time.monotonic(), position.seconds

    def clock() -> float:
        return spent + time.monotonic() - begin

    def checkpoint() -> None:
        position.seconds = clock()
        save_checkpoint(folder, position, module, best, optimizer, identity)

    def validation_step() -> None:
        nonlocal best
        module.eval()
        fit = Fit("tokens_per_batch")
        fit.halved = position.halved
        loss = validate(base, method, module, validation, options.tokens_per_batch, dtype, progress, fit)
        position.halved = fit.halved
        module.train()
        if position.best_loss is None or loss < position.best_loss:
            position.best_loss, position.best_update, position.worse = loss, position.update, 0
            best = {key: value.detach().clone() for key, value in module.state_dict().items()}
        else:
            position.worse += 1
        row: dict[str, Any] = {"step": position.update, "valid_loss": round(loss, 5), "seconds": round(clock(), 1)}
        if watch is not None:
            attached.close()
            row |= watch.row(method, module if position.update else None, progress)
            attached.enter_context(method.attach(base, module))
        log.write(row)
        progress.metrics(row)
        meter.rest()

    batches: list[list[int]] = []

    def target_tokens(rows: list[int]) -> int:
        return sum(len(training.labels[i]) for i in rows)

    def gradients() -> list[tuple[int, float, Mapping[str, float]]] | None:
        """The gradients of an update; (tokens, loss, its parts) of each batch. None where the memory ran out the first time."""
        nonlocal batches
        told = []
        optimizer.zero_grad(set_to_none=True)
        try:
            for _ in range(options.accumulate):
                if position.batch >= len(batches):
                    position.epoch, position.batch = position.epoch + 1, 0
                    batches = epoch_batches(
                        training.lengths, options.tokens_per_batch, seed=options.seed, epoch=position.epoch
                    )
                rows = batches[position.batch]
                for part in halves(rows) if position.halved else [rows]:
                    with mixed(base, dtype):
                        batch = make_batch(base, method, module, training, part, position.update)
                        loss = method.loss(base, module, batch)
                    total = loss.total / options.accumulate
                    if position.halved:  # each half counts by its tokens, as in the mean over the whole
                        total = total * (target_tokens(part) / target_tokens(rows))
                    total.backward()
                    told.append((int((batch.labels != base.pad).sum()), float(loss.total.detach()), loss.parts))
                position.batch += 1
        except Exception as error:
            if position.halved or not out_of_memory(error):
                raise
            return None
        return told

    meter = Meter()
    with base.lock, contextlib.ExitStack() as attached, memory_for(options):
        attached.enter_context(method.attach(base, module))
        module.train()
        if not restored:
            validation_step()
        batches = epoch_batches(training.lengths, options.tokens_per_batch, seed=options.seed, epoch=position.epoch)
        limit = options.max_updates
        if options.max_epochs is not None:
            # Epochs differ by a batch or so; the first one's count stands for all, so that the end is known from the start.
            whole = len(epoch_batches(training.lengths, options.tokens_per_batch, seed=options.seed, epoch=0))
            limit = min(limit, -(-whole * options.max_epochs // options.accumulate))
        while position.update < limit and not position.stopped_by:
            try:
                progress.advance(position.update, limit, meter.note)
            except Cancelled:
                checkpoint()
                raise
            for group in optimizer.param_groups:
                group["lr"] = group["speed"] * learning_rate(position.update, options)
            before = (position.epoch, position.batch, batches, None if position.halved else random_state(base.device))
            found = gradients()
            if found is None:  # once: batches are worked on in halves from here on, from the same random numbers
                position.epoch, position.batch, batches, position.halved = *before[:3], True
                set_random_state(before[3])
                optimizer.zero_grad(set_to_none=True)
                free_memory()
                found = gradients()
            for counted in found or ():
                meter.add(*counted)
            if options.clip_norm:
                torch.nn.utils.clip_grad_norm_(parameters, options.clip_norm)
            optimizer.step()
            position.update += 1
            if position.update % 10 == 0 or position.update == limit:
                row = {
                    "step": position.update,
                    **meter.row(),
                    "lr": optimizer.param_groups[0]["lr"],
                    "seconds": round(clock(), 1),
                }
                log.write(row)
                progress.metrics(row)
            if position.update % options.validate_every == 0 or position.update == limit:
                validation_step()
                if options.patience and position.worse >= options.patience:
                    position.stopped_by = "patience"
            if options.max_minutes is not None and clock() > 60 * options.max_minutes and not position.stopped_by:
                if position.update % options.validate_every:
                    validation_step()
                position.stopped_by = "max_minutes"
            if position.update >= limit and not position.stopped_by:
                position.stopped_by = "max_updates" if limit == options.max_updates else "max_epochs"
            if position.update % options.checkpoint_every == 0 or position.stopped_by:
                checkpoint()
        progress.advance(position.update, limit)
    if best:
        module.load_state_dict(best)
    return Result(
        updates=position.update,
        best_update=position.best_update,
        best_loss=float(position.best_loss or 0.0),
        first_loss=log.first_validation(),
        seconds=clock(),
        parameters=sum(p.numel() for p in parameters),
        stopped_by=position.stopped_by,
    )
