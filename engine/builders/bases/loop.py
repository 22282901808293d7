"""The training loop of a base."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.builders.bases.network import PackedLoss, choose_candidates
from engine.builders.bases.options import BaseTrainingOptions
from engine.builders.bases.packing import Examples, Packed, packed_batches
from engine.builders.bases.weights import State, Weights
from engine.core.devices import pick_precision
from engine.core.oom import reuse_memory
from engine.core.progress import Progress
from engine.errors import TailorError
from engine.training.metrics_log import Meter, MetricsLog

REPORT_EVERY = 20  # updates


def rate_factor(options: BaseTrainingOptions, update: int, seconds: float) -> float:
    """The learning rate as a share of its maximum: a linear rise, a plateau, a linear fall to zero over the last `decay` of the
    training ("warm-up, stable, decay"; Hu et al. 2024). The plateau allows a run to be extended or ended early.
    """
    done = progress_share(options, update, seconds)
    rise = min(1.0, (update + 1) / max(1, options.warmup))
    fall = 1.0 if done < 1 - options.decay else max(0.0, (1 - done) / max(1e-9, options.decay))
    return min(rise, fall)


def progress_share(options: BaseTrainingOptions, update: int, seconds: float) -> float:
    """The completed share of the training, 0 to 1, measured by whichever limit comes first."""
    shares = [0.0]
    if options.updates:
        shares.append(update / options.updates)
    if options.minutes is not None:
        shares.append(seconds / (60 * options.minutes) if options.minutes else 1.0)
    return max(shares)


class Trainer:
    """Trains a model on packed pairs; `run` continues up to the options' limits, also from a restored state."""

    def __init__(
        self, model: Any, examples: Examples, validation: list[Packed], options: BaseTrainingOptions,
        device: torch.device, precision: str, folder: Path,
    ) -> None:  # fmt: skip
        self.options = options
        self.device = device
        self.folder = folder
        self.examples = examples
        self.validation = validation
        if device.type == "cpu":
            reuse_memory()
        model.to(device)
        self.network = PackedLoss(model, options.label_smoothing, pick_precision(precision, device)).train()
        self.weights = Weights(model, options, device)
        self.state = State()
        self.sampled = options.candidates if device.type == "cpu" else 0
        tokens = options.tokens or (65_536 if device.type == "cuda" else 5120)
        self.rows = max(1, tokens // options.row_tokens)
        use_compile = options.compile == "yes" or (options.compile == "auto" and device.type == "cuda")
        self.loss: Callable[..., Tensor] = torch.compile(self.network, dynamic=False) if use_compile else self.network

    def restore(self) -> bool:
        """Restore the folder's checkpoint, if any; returns whether there was one."""
        state = self.weights.restore(self.folder)
        self.state = state or State()
        return state is not None

    def batches(self) -> Iterator[tuple[int, int, Packed]]:
        """Yield (epoch, number of the batch within it, batch) endlessly, starting from the position of the state."""
        epoch, skip = self.state.epoch, self.state.batch
        while True:
            number = skip
            for batch in packed_batches(
                self.examples, rows=self.rows, row_tokens=self.options.row_tokens, seed=self.options.seed, epoch=epoch, skip=skip
            ):
                number += 1
                yield epoch, number, batch
            epoch, skip = epoch + 1, 0

    def run(self, progress: Progress, at_checkpoint: Callable[[State], dict[str, object]]) -> State:
        """Train until a limit is reached. `at_checkpoint` is called after each timed checkpoint and returns figures to log.

        If the user stops the training (Cancelled), a checkpoint is saved, from which the next run continues.
        """
        options, state = self.options, self.state
        log = MetricsLog(self.folder / "metrics.jsonl", state.update if state.update else None)
        meter = Meter()
        started, before = time.monotonic(), state.seconds
        saved = time.monotonic()
        stream = ahead(self.batches(), self.device)
        progress.advance(*self.share(), "going on" if state.update else "")
        try:
            while progress_share(options, state.update, state.seconds) < 1:
                progress.check()
                epoch, number, batch = next(stream)
                loss = self.update(batch)
                state.update, state.epoch, state.batch = state.update + 1, epoch, number
                state.seconds = before + time.monotonic() - started
                state.tokens += batch.tokens
                meter.add(batch.tokens, loss.item() if state.update % REPORT_EVERY == 0 else 0.0, {})
                if state.update % REPORT_EVERY == 0:
                    self.report(progress, log, meter, loss.item())
                if time.monotonic() - saved > 60 * options.save_every:
                    self.weights.save(self.folder, state)
                    pause = time.monotonic()
                    log.write({"step": state.update, **at_checkpoint(state)})
                    started += time.monotonic() - pause  # scoring is not training time
                    saved = time.monotonic()
                    meter = Meter()
        except BaseException:
            self.weights.save(self.folder, state)
            raise
        self.weights.save(self.folder, state)
        return state

    def update(self, batch: Packed) -> Tensor:
        """Make one update and return the batch's loss. Raises TailorError if memory runs out."""
        state = self.state
        seed = (self.options.seed, state.update)
        candidates = choose_candidates(batch.labels, self.examples.vocabulary.size, self.sampled, seed)
        try:
            loss = self.loss(batch.to(self.device), candidates)
            loss.backward()
            self.weights.step(rate_factor(self.options, state.update, state.seconds))
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise TailorError(
                f"The memory is not enough for batches of {self.rows * self.options.row_tokens} tokens. Lower --tokens."
            ) from error
        self.weights.follow(state.update)
        return loss.detach()

    def report(self, progress: Progress, log: MetricsLog, meter: Meter, loss: float) -> None:
        state, options = self.state, self.options
        factor = rate_factor(options, state.update, state.seconds)
        row = {"step": state.update, **meter.row(), "loss": round(loss, 4), "epoch": state.epoch, "factor": round(factor, 4),
               "tokens": state.tokens, "seconds": round(state.seconds, 1)}  # fmt: skip
        log.write(row)
        progress.metrics(row)
        speed = f"{row['tokens_per_second']:,.0f} tokens/s"
        note = f"update {state.update:,}, {state.tokens / 1e6:.1f}M tokens, loss {loss:.2f}, {speed}"
        progress.advance(*self.share(), note)

    def share(self) -> tuple[float, float]:
        """(done, total) in updates, or in seconds if the time limit is nearer."""
        state, options = self.state, self.options
        done, total = float(state.update), float(options.updates or 0)
        if not total or (options.minutes and state.seconds / (60 * options.minutes) > done / total):
            return state.seconds, 60 * (options.minutes or 0)
        return done, total

    @torch.no_grad()
    def validate(self, tensors: list[Tensor] | None = None) -> float:
        """Mean loss per target token on the held-out pairs (nats, all words scored, no smoothing), with `tensors` if given."""
        if tensors is not None:
            self.weights.to_live(tensors)
        self.network.eval()
        total = count = 0.0
        for batch in self.validation:
            real = int((batch.target_segment > 0).sum())
            total += float(self.network(batch.to(self.device), None, smooth=False)) * real
            count += real
        self.network.train()
        if tensors is not None:
            self.weights.to_live(self.weights.masters)
        return total / count if count else math.nan


def ahead(stream: Iterator[Any], device: torch.device) -> Iterator[Any]:
    """On a GPU, prepare the next batches in a thread; on a CPU, where that gains nothing, pass the stream through."""
    if device.type == "cpu":
        yield from stream
        return

    ready: queue.Queue[Any] = queue.Queue(maxsize=8)
    stop = threading.Event()

    def items() -> Iterator[Any]:
        try:
            yield from stream
        except Exception as error:  # re-raised in the training loop, which would otherwise wait for ever
            yield error

    def fill() -> None:
        for item in items():
            while not stop.is_set():
                try:
                    ready.put(item, timeout=0.2)
                    break
                except queue.Full:
                    continue
            if stop.is_set():
                return

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        stop.set()
