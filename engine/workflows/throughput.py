"""The speed of this machine, recorded by runs and used to estimate the time of later runs.

`<home>/paces.json` holds one figure per machine, shape of the base and kind of work: mostly units per second, and some plain values
(peak memory, tokens per character). A new figure and the previous value are weighted equally.
"""

from __future__ import annotations

import datetime
import os
import platform
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.atomic_files import read_json, write_json
from engine.core.cores import usable_cores
from engine.core.progress import Progress, Quiet
from engine.core.settings import Settings

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.workflows.customize.run import Run

IMPORTING = 3.0  # seconds before anything can be timed

SHORTEST = 0.05  # seconds; the pace of a shorter step is not recorded


class TimedProgress(Quiet):
    """Passes everything on to `inner`, and records the seconds of each step."""

    def __init__(self, inner: Progress) -> None:
        super().__init__(inner)
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def begin(self, step: str, index: int = 0, steps: int = 1) -> None:
        self.stop()
        self.step, self.index, self.steps = step, index, steps
        self.inner.begin(step, index, steps)

    def stop(self) -> None:
        """Count the current step up to now."""
        now = time.monotonic()
        if self.step:
            self.seconds[self.step] = self.seconds.get(self.step, 0.0) + now - self._since
        self._since = now

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        self.inner.advance(done, total, note)

    def ends_within(self, seconds: float) -> None:
        self.inner.ends_within(seconds)

    def metrics(self, row: Mapping[str, object]) -> None:
        self.inner.metrics(row)


class NumberedProgress(TimedProgress):
    """Numbers steps by their positions in a list, so that a step has the same number in every attempt and skipped steps count as
    done. Steps that are not in the list keep the number of the preceding step; numbers never decrease.

    Of all `count` steps (None: those of the list), `first` come before the list.
    """

    def __init__(self, inner: Progress, places: Sequence[str], first: int = 0, count: int | None = None) -> None:
        super().__init__(inner)
        self.places, self.first, self.count = list(places), first, count or len(places)
        self.index = first

    def begin(self, step: str, index: int = 0, steps: int = 1) -> None:
        position = self.first + self.places.index(step) if step in self.places else self.first
        super().begin(step, max(self.index, position), self.count)

    def move(self, step: str, other: str) -> None:
        """Move a step to right after the other one."""
        self.places.remove(step)
        self.places.insert(self.places.index(other) + 1, step)


@dataclass(frozen=True)
class Measurement:
    """A figure and how often it was measured."""

    value: float
    times: int


class ThroughputLog:
    """The figures of one machine and one shape of base."""

    def __init__(self, settings: Settings, base: str, device: str = "") -> None:
        """`base` is a `shape_key`; `device` is a `machine`, by default that of the settings."""
        self.file = settings.home_dir / "paces.json"
        self.machine, self.base = device or machine(settings), base

    @classmethod
    def of(cls, settings: Settings, base: BaseModel) -> ThroughputLog:
        """The log of a loaded base, on its current device."""
        return cls(settings, shape_key(base.model.config.to_dict()), machine(settings, base.device))

    def get(self, kind: str) -> Measurement | None:
        """The figure of a kind of work; None if it was never measured here."""
        return self.all().get(kind)

    def all(self) -> dict[str, Measurement]:
        """All figures measured here, by kind of work."""
        rows = read_json(self.file).get(self.machine, {}).get(self.base, {})
        return {kind: Measurement(float(row["value"]), int(row["times"])) for kind, row in rows.items() if isinstance(row, dict)}

    def note(self, kind: str, value: float) -> None:
        """Record a figure; implausible ones (zero, negative) are ignored."""
        if value > 0:
            self.note_all({kind: value})

    def note_all(self, values: dict[str, float]) -> None:
        """Record several figures at once."""
        everything = read_json(self.file)
        measurements = everything.setdefault(self.machine, {}).setdefault(self.base, {})
        moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        for kind, value in values.items():
            if value > 0:
                old = measurements.get(kind)
                mean = value if not isinstance(old, dict) else 0.5 * float(old["value"]) + 0.5 * value
                times = 1 + (int(old["times"]) if isinstance(old, dict) else 0)
                measurements[kind] = {"value": float(f"{mean:.5g}"), "times": times, "when": moment}
        write_json(self.file, everything, "the measured speeds")


def machine(settings: Settings, device: Any = None) -> str:
    """This machine and the device used on it: `host, cpu, 2 threads` or `host, cuda`.

    Without a device, that of the settings, as far as it can be known without loading torch.
    """
    kind = device.type if device is not None else settings.device
    if kind == "auto":
        apple = sys.platform == "darwin" and platform.machine() == "arm64"
        kind = "mps" if apple else "cuda" if Path("/dev/nvidia0").exists() else "cpu"
    host = socket.gethostname()
    if kind.partition(":")[0] != "cpu":
        return f"{host}, {kind.partition(':')[0]}"
    return f"{host}, cpu, {threads(settings)} threads"


def threads(settings: Settings) -> int:
    """The number of CPU threads that models run on."""
    configured = os.environ.get("OMP_NUM_THREADS", "")
    return settings.threads or (int(configured) if configured.isdigit() and int(configured) else usable_cores())


def shape_key(config: dict[str, Any]) -> str:
    """The properties that determine a base's speed, from its config.json: `marian 256x6+4, feed-forward 1024, 12003 words`."""
    layers = f"{config.get('encoder_layers', 0)}+{config.get('decoder_layers', 0)}"
    wide, narrow = config.get("encoder_ffn_dim", 0), config.get("decoder_ffn_dim", 0)
    hidden = f"{narrow}" if wide == narrow else f"{wide} and {narrow}"
    return (
        f"{config.get('model_type', '')} {config.get('d_model', 0)}x{layers}, feed-forward {hidden}, "
        f"{config.get('vocab_size', 0)} words"
    )


def peak_memory() -> int:
    """Peak memory of this process so far, in bytes: on the GPU if one is used, else on the machine."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return int(torch.cuda.max_memory_reserved())
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def record_run(run: Run) -> None:
    """Record this machine's speed in a whole run: the seconds of its steps against the amounts processed."""
    from engine.methods import get_method

    request, samples, training, result, times = run.request, run.samples, run.training, run.result, run.times
    cache, run_cache, remembered = run.cache, run.run_cache, sum(run.memory_sizes)
    run.progress.stop()
    steps = run.progress.seconds
    base, method = samples.pair.forward, request.method
    segments = [*samples.train, *samples.valid]
    missing = sum(len(segment.text) for segment in segments if segment.source is None)
    train_chars, memory_chars = (sum(len(pair.target) for pair in samples.pairs(part)) for part in ("train", "memory"))
    answer = {
        "start": times.get("loading", 0.0) + IMPORTING,
        f"tokens a character {base.target}": tokens_a_character(base, [segment.text for segment in samples.train]),
        f"peak {method} {training.tokens_per_batch}": peak_memory(),
    }
    if "phrases" in cache.made:
        answer["phrases"] = _rate(sum(len(segment.text) for segment in samples.train), steps.get("Finding phrases"))
    if "sources" in cache.made:
        answer["sources"] = _rate(missing, steps.get("Writing source sentences"))
    if "Filtering synthetic pairs" in steps:
        weighed = sum(len(segment.text) for segment in samples.train if segment.source is None)
        answer["weighing"] = _rate(weighed, steps["Filtering synthetic pairs"])
        answer["round trip"] = _rate(weighed, steps.get("Translating the sources there and back"))
    if "method" in run_cache.made:
        stores_samples = get_method(method).capabilities.holds_samples or run.artefacts.remembered
        answer[f"method {method}"] = _rate(
            (run.artefacts.memory and remembered) or (memory_chars if stores_samples else train_chars), times.get("memory")
        )
    if "Translating the sources" in steps:
        held_out = sum(len(pair.target) for pair in samples.pairs("valid"))
        answer["translations"] = _rate(train_chars + held_out, steps["Translating the sources"])
    if "knn" in run_cache.made:
        answer["datastore"] = _rate(memory_chars, times.get("knn"))
    if "evaluation" in run_cache.made:
        tokens = answer[f"tokens a character {base.target}"] * sum(map(len, (segment.text for segment in samples.valid)))
        decoded = decoded_tokens(len(samples.valid) / 2, tokens / max(1, len(samples.valid)))
        answer[f"evaluation {method}"] = _rate(decoded, times.get("evaluation"))
    if result is not None and result.updates:
        batch = training.tokens_per_batch * training.accumulate
        tokens = train_chars * answer[f"tokens a character {base.target}"]
        full = min(1.0, 1.1 * tokens / training.tokens_per_batch)
        answer[f"training {method}"] = _rate(result.updates * batch * full, result.seconds)
        limit = training.max_updates
        if training.max_epochs is not None:
            limit = min(limit, int(1.1 * tokens / training.tokens_per_batch * training.max_epochs / training.accumulate) + 1)
        if result.stopped_by != "max_minutes":
            answer[f"share {method} {request.budget}"] = min(1.0, result.updates / max(1, limit))
    ThroughputLog.of(run.settings, base).note_all({key: value for key, value in answer.items() if value})


def decoded_tokens(held_out: float, a_sentence: float) -> float:
    """The approximate number of tokens decoded to choose decoding settings and to compare with the base: five passes over half of
    the held-out sentences, and two over general text.
    """
    return 5 * min(60.0, held_out) * a_sentence + 2 * 40 * 14


def tokens_a_character(base: BaseModel, texts: Sequence[str]) -> float:
    """Target tokens per character, measured on the first texts."""
    nonempty = [text for text in texts[:200] if text]
    return sum(map(len, base.encode_target(nonempty))) / max(1, sum(map(len, nonempty)))


def _rate(amount: float, seconds: float | None) -> float:
    return amount / seconds if seconds and seconds > SHORTEST else 0.0
