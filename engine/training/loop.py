"""The training loop shared by all methods.

It optimises the parameters of a method's module, attached to the frozen base, on (source, target) pairs, validates by likelihood,
keeps the best weights, writes checkpoints from which an interrupted training resumes exactly, and logs to metrics.jsonl, one JSON
line per report.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from engine.base import BaseModel
from engine.core.devices import pick_precision
from engine.core.oom import HalveOnOom, free_memory, halves, out_of_memory, reuse_memory
from engine.core.progress import Progress
from engine.core.random_state import random_state, set_random_state
from engine.errors import Cancelled, CorpusError, TailorError
from engine.messages import Message
from engine.methods.batches import Pairs, epoch_batches
from engine.methods.interface import Method
from engine.training.batches import EncodedSources, make_batch, mixed, worth_holding
from engine.training.checkpoint import Position, load_checkpoint, save_checkpoint
from engine.training.metrics_log import Meter, MetricsLog
from engine.training.options import TrainingOptions
from engine.training.probe import TranslationProbe


@dataclass(frozen=True)
class Result:
    """How a training ended; the module holds the best weights."""

    updates: int
    best_update: int
    best_loss: float  # validation, nats per token
    first_loss: float  # validation before the first update
    seconds: float
    parameters: int
    stopped_by: str  # "max_updates", "max_epochs", "patience" or "max_minutes"
    limit: int = 0  # maximum number of updates

    @property
    def ended(self) -> str:
        """How far training got, as text for a plugin card: `stopped at the time limit after 41 of 200 updates`."""
        if self.stopped_by == "max_minutes":
            return Message("stopped at the time limit after {count:,} of {all:,} updates", count=self.updates, all=self.limit)
        if self.stopped_by == "patience":
            return Message(
                "stopped after {count:,} of {all:,} updates, when validation stopped improving", count=self.updates, all=self.limit
            )
        return Message("all {count:,} updates", count=self.updates)


def learning_rate(update: int, options: TrainingOptions, limit: int) -> float:
    """The learning rate of an update, counted from 0, of `limit` in total: a linear warm-up, then the schedule."""
    warmup = max(1, options.warmup)
    if options.schedule == "linear":
        falling = (limit - update) / max(1, limit - warmup)
    else:
        falling = math.sqrt(warmup / (update + 1))
    return options.learning_rate * min((update + 1) / warmup, falling)


def make_optimizer(method: Method, module: nn.Module, options: TrainingOptions) -> torch.optim.Optimizer:
    """Adam, or AdamW with decoupled weight decay; groups of weights may have different learning rates (`Method.lr_scale`,
    `lr_scales`).
    """
    betas, scale, single = (options.beta1, options.beta2), method.lr_scale(module), method.lr_scales(module)
    groups: list[tuple[float, list[nn.Parameter]]] = []
    # Only consecutive weights share a group, since checkpoints number them in the module's order.
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        speed = scale * next((factor for prefix, factor in single.items() if name.startswith(prefix)), 1.0)
        if not groups or groups[-1][0] != speed:
            groups.append((speed, []))
        groups[-1][1].append(parameter)
    rows = [{"params": parameters, "speed": speed} for speed, parameters in groups]
    if options.optimizer == "adamw":
        return torch.optim.AdamW(rows, lr=options.learning_rate, betas=betas, eps=1e-9, weight_decay=options.weight_decay)
    return torch.optim.Adam(rows, lr=options.learning_rate, betas=betas, eps=1e-9)


@contextlib.contextmanager
def memory_for(options: TrainingOptions) -> Iterator[None]:
    """Turn out-of-memory errors into a TailorError that names the setting to lower."""
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise TailorError(
            "There is not enough memory for batches of {tokens_per_batch} tokens, even when halved. Lower "
            "tokens_per_batch (and raise accumulate by the same factor), or phrases_per_layer where the "
            "method has it.",
            tokens_per_batch=options.tokens_per_batch,
        ) from error


class Trainer:
    """Trains `module` in place and leaves the best weights in it; checkpoints and metrics.jsonl go to `folder`.

    If created again with the same options after an interruption, it resumes from the last checkpoint and ends with the same weights
    as an uninterrupted run (bit for bit on a CPU). Raises CorpusError without a training pair or a validation pair.
    """

    def __init__(
        self,
        base: BaseModel,
        method: Method,
        module: nn.Module,
        training: Pairs,
        validation: Pairs,
        options: TrainingOptions,
        folder: Path,
        precision: str = "auto",
    ) -> None:
        if not len(training) or not len(validation):
            raise CorpusError(
                "There are too few sentences to train on: at least one for training and one for validation are needed."
            )
        self.base, self.method, self.module = base, method, module
        self.training, self.validation, self.options, self.folder = training, validation, options, folder
        # A base in half precision determines the precision of all computations.
        self.dtype = base.dtype if base.dtype != torch.float32 else pick_precision(precision, base.device)
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(method, module, options)
        # The time limit is not part of the identity: given more time, a training that reached the limit continues.
        timeless = options.replace(max_minutes=None).to_mapping()
        self.identity = {"training": timeless, "pairs": len(training), "precision": str(self.dtype)}
        torch.manual_seed(options.seed)
        restored = load_checkpoint(folder, module, self.optimizer, self.identity)
        self.position, self.best = restored or (Position(), {})
        self.restored = restored is not None
        self.log = MetricsLog(folder / "metrics.jsonl", self.position.update if restored else None)
        self.meter = Meter()
        self.attached = contextlib.ExitStack()
        self.batches: list[list[int]] = []  # of the current epoch
        self.encoded: dict[str, EncodedSources] = {}  # of "training" and "validation", if cached
        self.begin, self.spent = time.monotonic(), self.position.seconds
        self.cap = math.inf if options.max_minutes is None else 60 * options.max_minutes
        if self.position.stopped_by == "max_minutes" and self.spent < self.cap:
            self.position.stopped_by = ""
        self.limit = options.max_updates
        if options.max_epochs is not None:
            # Epochs differ by a batch or so; the first epoch's count is used for all, so that the end is known from the start.
            self.limit = min(self.limit, -(-len(self.epoch(0)) * options.max_epochs // options.accumulate))

    def run(self, watch: TranslationProbe | None = None, progress: Progress | None = None) -> Result:
        """Train to the end. `watch` translates at each validation; its figures are added to that row of the log.

        Raises Cancelled, after writing a checkpoint, when the user stops it.
        """
        self.watch, self.progress = watch, progress or Progress()
        if self.base.device.type == "cpu":
            reuse_memory()
        with self.base.lock, self.attached, memory_for(self.options):
            self.attached.enter_context(self.method.attach(self.base, self.module))
            self.encode_sources()
            self.module.train()
            if not self.restored:
                self.validate()
            self.batches = self.epoch(self.position.epoch)
            if self.cap < math.inf:
                self.progress.ends_within(self.cap - self.seconds())
            while self.position.update < self.limit and not self.position.stopped_by:
                try:
                    self.progress.advance(self.position.update, self.limit, self.meter.note)
                except Cancelled:
                    self.checkpoint()
                    raise
                self.update()
                self.report()
                self.stop_where_due()
                if self.position.update % self.options.checkpoint_every == 0 or self.position.stopped_by:
                    self.checkpoint()
            self.progress.advance(self.position.update, self.limit)
        if self.best:
            self.module.load_state_dict(self.best)
        return Result(
            updates=self.position.update,
            best_update=self.position.best_update,
            best_loss=float(self.position.best_loss or 0.0),
            first_loss=self.log.first_validation(),
            seconds=self.seconds(),
            parameters=sum(p.numel() for p in self.parameters),
            stopped_by=self.position.stopped_by,
            limit=self.limit,
        )

    def encode_sources(self) -> None:
        """Cache the encoder's output if the method leaves the encoder unchanged and each sentence is used several times."""
        if self.method.changes_encoder(self.module):
            return
        validations = 1 + self.limit // self.options.validate_every
        uses = {
            "training": self.limit * self.options.accumulate * self.options.tokens_per_batch,
            "validation": validations * sum(self.validation.lengths),
        }
        for name, tokens in uses.items():
            pairs: Pairs = getattr(self, name)
            if worth_holding(self.base, pairs, tokens):
                self.encoded[name] = EncodedSources(self.base, pairs, self.options.tokens_per_batch, self.dtype, self.progress)

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch, as rows of the training pairs."""
        return epoch_batches(self.training.lengths, self.options.tokens_per_batch, seed=self.options.seed, epoch=number)

    def seconds(self) -> float:
        """Total seconds of training, including earlier runs."""
        return self.spent + time.monotonic() - self.begin

    def checkpoint(self) -> None:
        """Write the state from which a later run continues."""
        self.position.seconds = self.seconds()
        save_checkpoint(self.folder, self.position, self.module, self.best, self.optimizer, self.identity)

    def update(self) -> None:
        """One step of the optimizer."""
        position, options = self.position, self.options
        for group in self.optimizer.param_groups:
            group["lr"] = group["speed"] * learning_rate(position.update, options, self.limit)
        before = position.epoch, position.batch, self.batches
        state = random_state(self.base.device)
        counts = self.gradients()
        if counts is None:  # out of memory, once: batches are halved from here on; same random numbers
            position.epoch, position.batch, self.batches = before
            position.halved = True
            set_random_state(state, self.base.device)
            self.optimizer.zero_grad(set_to_none=True)
            free_memory()
            counts = self.gradients()
        for count in counts or ():
            self.meter.add(*count)
        if options.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.parameters, options.clip_norm)
        self.optimizer.step()
        position.update += 1

    def gradients(self) -> list[tuple[int, float, Mapping[str, float]]] | None:
        """Gradients of an update; returns (tokens, loss, its terms) of each batch, or None when memory first runs out."""
        position = self.position
        counts: list[tuple[int, float, Mapping[str, float]]] = []
        self.optimizer.zero_grad(set_to_none=True)
        try:
            for _ in range(self.options.accumulate):
                if position.batch >= len(self.batches):
                    position.epoch, position.batch = position.epoch + 1, 0
                    self.batches = self.epoch(position.epoch)
                rows = self.batches[position.batch]
                for part in halves(rows) if position.halved else [rows]:
                    counts.append(self.backward(part, rows))
                position.batch += 1
        except Exception as error:
            if position.halved or not out_of_memory(error):
                raise
            return None
        return counts

    def backward(self, part: list[int], rows: list[int]) -> tuple[int, float, Mapping[str, float]]:
        """Add the gradients of a batch or a part of it; returns its number of tokens, its loss and the loss terms."""
        with mixed(self.base, self.dtype):
            encoded, update = self.encoded.get("training"), self.position.update
            batch = make_batch(self.base, self.method, self.module, self.training, part, update, encoded)
            loss = self.method.loss(self.base, self.module, batch)
        total = loss.total / self.options.accumulate
        if self.position.halved:  # halves are weighted by their tokens, as in the mean over the whole batch
            total = total * (self.target_tokens(part) / self.target_tokens(rows))
        if total.requires_grad:  # False if nothing was retrieved for a batch: there is nothing to learn from it
            total.backward()
        return int((batch.labels != self.base.pad).sum()), float(loss.total.detach()), loss.parts

    def target_tokens(self, rows: list[int]) -> int:
        """Target tokens of these pairs."""
        return sum(len(self.training.labels[i]) for i in rows)

    def validate(self) -> None:
        """Measure the held-out loss, keep the best weights, translate the watched sentences."""
        position = self.position
        self.module.eval()
        fit = HalveOnOom("tokens_per_batch")
        fit.halved = position.halved

        with self.method.observed(self.module) as observations:
            loss = self.held_out_loss(fit)
        if (misled := self.method.misled(self.module)) is not None:
            with misled:
                observations["other_memory_loss"] = round(self.held_out_loss(fit), 5)
        position.halved = fit.halved
        self.module.train()
        if position.best_loss is None or loss < position.best_loss:
            position.best_loss, position.best_update, position.worse = loss, position.update, 0
            self.best = {key: value.detach().clone() for key, value in self.module.state_dict().items()}
        else:
            position.worse += 1
        row: dict[str, object] = {
            "step": position.update,
            "valid_loss": round(loss, 5),
            "seconds": round(self.seconds(), 1),
            **observations,
        }
        if self.watch is not None:
            self.attached.close()
            row |= self.watch.row(self.method, self.module if position.update else None, self.progress)
            self.attached.enter_context(self.method.attach(self.base, self.module))
        self.write(row)
        self.meter.skip_elapsed()

    @torch.no_grad()
    def held_out_loss(self, fit: HalveOnOom) -> float:
        """Mean negative log-likelihood per token (nats) of the validation pairs under the base with the module attached."""
        total = count = 0.0

        def add(rows: list[int]) -> None:
            nonlocal total, count
            encoded = self.encoded.get("validation")
            with mixed(self.base, self.dtype):
                batch = make_batch(self.base, self.method, self.module, self.validation, rows, 0, encoded)
                log_p = self.method.log_probabilities(self.base, self.module, batch)  # (M, V)
            labels = batch.labels[batch.labels != self.base.pad]  # (M,)
            total -= float(log_p.gather(1, labels[:, None]).double().sum())
            count += len(labels)

        for rows in epoch_batches(self.validation.lengths, self.options.tokens_per_batch, seed=0, epoch=0):
            self.progress.check()
            fit.run(rows, add)
        return total / max(1.0, count)

    def report(self) -> None:
        """Log a line every ten updates and at the end; validate if due."""
        position = self.position
        if position.update % 10 == 0 or position.update == self.limit:
            rate = self.optimizer.param_groups[0]["lr"]
            self.write({"step": position.update, **self.meter.row(), "lr": rate, "seconds": round(self.seconds(), 1)})
        if self.validates_now():
            self.validate()

    def validates_now(self) -> bool:
        """Whether validation is due after this update."""
        return self.position.update % self.options.validate_every == 0 or self.position.update == self.limit

    def stop_where_due(self) -> None:
        """Record in the position why training ends with this update, if it does."""
        position, options = self.position, self.options
        if position.update >= self.limit:  # takes precedence: there are no updates left
            position.stopped_by = "max_updates" if self.limit == options.max_updates else "max_epochs"
        elif options.patience and position.worse >= options.patience and self.validates_now():
            position.stopped_by = "patience"
        elif self.seconds() > self.cap:
            if not self.validates_now():
                self.validate()
            position.stopped_by = "max_minutes"

    def write(self, row: dict[str, object]) -> None:
        """Write a row to the log and pass it to observers."""
        self.log.write(row)
        self.progress.metrics({key: value for key, value in row.items() if key != "samples"})  # log only
