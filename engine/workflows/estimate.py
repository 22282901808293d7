"""Estimates of a run before it starts: seconds, memory and disk, and how certain they are.

The time is a sum over the steps of the main job. If this machine has done a step with this base before (`workflows.throughput`),
the measured speed is used. Otherwise the step's cost is relative to a plain forward pass, whose speed was measured when the samples
were weighed or indexed. If nothing was measured at all, it is guessed from the base's size and the processor.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.base.onednn import cpuinfo
from engine.core.languages import unspaced
from engine.core.settings import Settings
from engine.errors import TailorError
from engine.messages import Message, mark
from engine.methods import get_method
from engine.methods.cost import Shape, Workload
from engine.training import BUDGETS
from engine.workflows.customize.request import CustomizeRequest, candidates, corpus_config, method_config, training_config
from engine.workflows.customize.steps import held_out_count, kept_share, pairs_all, validated
from engine.workflows.throughput import Measurement, ThroughputLog, decoded_tokens, shape_key, threads

MiB = 2**20
# Cost per token of each kind of work, relative to a plain forward pass in full precision, where half precision is fast, as on GPUs
# and newer processors. Measured with bench/paces.py.
WORK = {"sources": 1.9, "weighing": 2.6, "datastore": 1.0, "evaluation": 5.5}
SLOW = 2.2  # factor by which training takes longer without fast half precision
# Operations per second, on a CPU per thread. Small models do not saturate a GPU: training on an H200 reaches 2e12.
FLOPS = {"cpu": 25e9, "cuda": 2e12, "mps": 2e12}
PHRASES = 4_000.0  # characters per second through a parser
START = 8.0  # seconds to load Python's libraries and a small base
PROCESS = 650 * MiB  # memory that the libraries take
SURE = {"measured": 1.25, "scaled": 1.6, "guessed": 2.5}  # the actual time is mostly within this factor
WORDS = {
    "measured": mark("from earlier runs on this machine"),
    "scaled": mark("from this base's speed on this machine; the method itself has not run here yet"),
    "guessed": mark("from the base's size alone; nothing was measured here yet"),
}
PARTS = (  # the steps whose seconds are reported
    mark("start"),
    mark("phrases"),
    mark("sources"),
    mark("filtering"),
    mark("method"),
    mark("translations"),
    mark("training"),
    mark("datastore"),
    mark("evaluation"),
)


@dataclass(frozen=True)
class CorpusStats:
    """Facts about the samples: `characters` of all sentences; `sourced`: the share with the user's own sources; `written`: the
    share whose sources were already written for earlier samples.
    """

    sentences: int
    characters: int
    phrases: int = 0
    sourced: float = 0.0
    domains: int = 1
    language: str = ""
    written: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """Seconds with their range and parts by step; bytes of memory, of the bundle, and of disk space during the run."""

    seconds: float
    low: float
    high: float
    parts: dict[str, float]
    memory: int
    bundle: int
    disk: int
    weights: int
    sure: str  # measured, scaled, guessed
    device: str
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """How certain the estimate is, in words."""
        return WORDS[self.sure]

    def to_mapping(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "how_sure": self.sentence}


def estimate(request: CustomizeRequest, counts: CorpusStats, settings: Settings, done: Collection[str] = ()) -> Estimate:
    """Estimate a run whose request names the folder of its base. `done` are steps that need not be repeated: phrases, sources,
    pairs. Raises ModelError if the folder is not a usable base, OptionError on a setting.
    """
    return _estimate(request, counts, BaseSpeed.of(request.base, settings), done)


def estimate_each(
    requests: Mapping[str, CustomizeRequest], counts: CorpusStats, settings: Settings, done: Collection[str] = ()
) -> dict[str, Estimate]:
    """{name: the estimate of its request} for requests over the same base, without those that cannot be estimated. Raises
    ModelError if the base's folder is not a usable base.
    """
    base = BaseSpeed.of(next(iter(requests.values())).base, settings)
    result: dict[str, Estimate] = {}
    for name, request in requests.items():
        with contextlib.suppress(TailorError):
            result[name] = _estimate(request, counts, base, done)
    return result


def _estimate(request: CustomizeRequest, counts: CorpusStats, base: BaseSpeed, done: Collection[str]) -> Estimate:
    """At least the estimate under any smaller budget, since measurements of one budget are unrelated to those of another."""
    budgets = list(BUDGETS)
    ranked = budgets[: budgets.index(request.budget) + 1]
    *smaller, requested = [_of_budget(request.replace(budget=budget), counts, base, done) for budget in ranked]
    longest = max([requested, *reversed(smaller)], key=lambda item: item.seconds)
    ends = {name: max(getattr(item, name) for item in (requested, *smaller)) for name in ("low", "high")}
    return dataclasses.replace(requested, seconds=longest.seconds, parts=longest.parts, **ends)


def _of_budget(request: CustomizeRequest, counts: CorpusStats, base: BaseSpeed, done: Collection[str]) -> Estimate:
    """The estimate for the request's own budget only."""
    estimates: list[Estimate] = []
    done = {*done, "filtering"} if "pairs" in done else set(done)
    for candidate in candidates(request):
        estimates.append(_Estimator(candidate, counts, base, done).run())
        done |= {"start", "sources", "pairs"} | ({"filtering"} & set(estimates[-1].parts))
    return estimates[0] if len(estimates) == 1 else together(estimates)


def together(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate of runs one after another in one process, of which one bundle is kept."""
    last = max(estimates, key=lambda item: list(SURE).index(item.sure))
    named = [name for name in PARTS if any(name in item.parts for item in estimates)]
    return dataclasses.replace(
        last,
        **{name: round(sum(getattr(item, name) for item in estimates), 1) for name in ("seconds", "low", "high")},
        **{name: max(getattr(item, name) for item in estimates) for name in ("memory", "bundle", "weights")},
        disk=sum(item.disk for item in estimates),
        parts={name: round(sum(item.parts.get(name, 0.0) for item in estimates), 1) for name in named},
        notes=list(dict.fromkeys(note for item in estimates for note in item.notes)),
    )


def estimate_samples(request: CustomizeRequest, settings: Settings) -> Estimate:
    """Estimate a request of the main job after reading its samples. Raises as reading and checking them does."""
    from engine.base.registry import BaseRegistry
    from engine.corpora import import_corpus

    request = validated(request)
    segments = import_corpus(
        [Path(sample) for sample in request.samples], request.target, source_language=request.source,
        domains=request.domains, options=corpus_config(request),
    ).segments  # fmt: skip
    counts = CorpusStats(
        len(segments),
        sum(len(segment.text) for segment in segments),
        sourced=sum(segment.source is not None for segment in segments) / max(1, len(segments)),
        domains=len({segment.domain for segment in segments}) or 1,
        language=request.target,
    )
    base = str(BaseRegistry(settings).find(request.base, download=request.download))
    return estimate(request.replace(base=base), counts, settings)


def has_fast_half() -> bool:
    """Whether the processor reports fast bfloat16 multiplication; determined without torch, so that pages can call it."""
    flags = cpuinfo()
    return "avx512_bf16" in flags or "amx_bf16" in flags


@dataclass(frozen=True)
class BaseSpeed:
    """A base, and the known speed with these settings on this machine."""

    shape: Shape
    measured: Mapping[str, Measurement]
    kind: str  # cpu, cuda, mps
    threads: int
    settings: Settings

    @classmethod
    def of(cls, folder: str, settings: Settings) -> BaseSpeed:
        """Read the base's shape and its measured speed. Raises ModelError if the folder is not a usable base."""
        from engine.base.files import count_parameters, read_config

        config = read_config(Path(folder))
        log = ThroughputLog(settings, shape_key(config))
        kind = log.machine.split(", ")[1]
        return cls(Shape.of(config, count_parameters(Path(folder))), log.all(), kind, threads(settings), settings)


class _Estimator:
    def __init__(self, request: CustomizeRequest, counts: CorpusStats, base: BaseSpeed, done: Collection[str]) -> None:
        self.request, self.settings, self.counts, self.done = request, base.settings, counts, done
        self.config, self.options = method_config(request), training_config(request)
        self.shape, self.kind, self.threads = base.shape, base.kind, base.threads
        method = get_method(request.method)
        self.needs, self.parsed = method.capabilities, method.reads_phrases(self.config)
        self.throughput, settings = base.measured, base.settings
        count = base.threads
        self.device = f"CPU, {count} {'thread' if count == 1 else 'threads'}" if self.kind == "cpu" else self.kind.upper()
        self.parts: dict[str, float] = {}
        self.how: dict[str, str] = {}
        measured = self.throughput.get("tokens a character " + counts.language)
        self.per_character = measured.value if measured else 0.8 if unspaced(counts.language or "en") else 0.28
        self.forward, self.known = self._forward()
        half = settings.precision != "float32" and (self.kind != "cpu" or has_fast_half())
        self.slower = 1.0 if half else SLOW  # in training
        characters = self.training_characters(1.0)
        self.work = Workload(
            self.shape,
            counts.sentences,
            counts.characters * self.per_character / max(1, counts.sentences),
            self.training_characters(self.options.keep_pairs),
            characters,
            characters * self.per_character,
            float(counts.phrases or counts.sentences * 12),
            counts.domains,
            counts.sourced,
        )
        self.cost = method.cost(self.config, self.work)

    def _forward(self) -> tuple[float, bool]:
        """Tokens per second of a forward pass over sentence pairs, and whether this was measured."""
        result = self.throughput.get("weighing")
        if result:
            return result.value * self.per_character * WORK["weighing"], True
        result = self.throughput.get("datastore")
        if result:
            return result.value * self.per_character * WORK["datastore"], True
        shape = self.shape
        used = shape.encoder * shape.layer(False) + shape.decoder * shape.layer(True) + shape.words * shape.d
        speed = FLOPS.get(self.kind, FLOPS["cpu"]) * (self.threads if self.kind == "cpu" else 1)
        return speed / (2 * used), False

    def add(self, part: str, amount: float, key: str, fallback: float) -> None:
        """Add a step of `amount` units: at the measured pace, else `fallback` seconds."""
        if amount <= 0:
            return
        result = self.throughput.get(key)
        self.parts[part] = self.parts.get(part, 0.0) + (amount / result.value if result else fallback)
        self.how[part] = "measured" if result else "scaled" if self.known else "guessed"

    def run(self) -> Estimate:
        request, counts = self.request, self.counts
        characters, tokens = counts.characters, counts.characters * self.per_character
        missing = 1 - counts.sourced
        started = self.throughput.get("start")
        if "start" not in self.done:
            self.parts["start"] = started.value if started else START + self.shape.weights * 4 / (500 * MiB)
            self.how["start"] = "measured" if started else "scaled" if self.known else "guessed"
        if self.parsed and "phrases" not in self.done:
            self.add("phrases", characters, "phrases", 4 + characters / PHRASES)
        paired = pairs_all(self.needs, self.options, request.knn)
        if paired and not {"pairs", "sources"} & set(self.done):
            new = missing - min(missing, counts.written)
            self.add("sources", characters * new, "sources", new * self.passes("sources", tokens))
        if paired and "filtering" not in self.done and kept_share(self.needs, self.options) is not None:
            self.add("filtering", characters * missing, "weighing", missing * self.passes("weighing", tokens))
            self.add("filtering", characters * missing, "round trip", missing * self.passes("sources", tokens))
        cost, learnt = self.cost, self.work.trained_characters
        units = learnt if cost.units is None else cost.units
        preparing = (cost.preparing * units + cost.warming * self.slower) / self.forward
        self.add("method", units, f"method {request.method}", preparing)
        if cost.translates:
            text = learnt + self.held_out * characters / max(1, counts.sentences)
            self.add("translations", text, "translations", self.passes("evaluation", text * self.per_character))
        notes = []
        if self.needs.trains:
            seconds, how, note = self.training(learnt * self.per_character)
            self.parts["training"], self.how["training"] = seconds, how
            notes += [note] if note else []
        if request.knn:
            self.add("datastore", characters, "datastore", self.passes("datastore", tokens))
        if not self.needs.needs_endpoint:
            decoded = decoded_tokens(self.held_out / 2, tokens / max(1, counts.sentences))
            slower = 1.4 if request.knn else cost.decoding
            self.add("evaluation", decoded, f"evaluation {request.method}", slower * self.passes("evaluation", decoded))
        seconds = sum(self.parts.values())
        sure = self.sure(seconds)
        weights = int(cost.weights)
        files = cost.files + (self.work.datastore() if request.knn else 0)
        peak = self.throughput.get(f"peak {request.method} {self.options.tokens_per_batch}")
        return Estimate(
            seconds=round(seconds, 1),
            low=round(seconds / SURE[sure], 1),
            high=round(seconds * SURE[sure], 1),
            parts={key: round(value, 1) for key, value in self.parts.items()},
            memory=int(peak.value) if peak else self.memory(weights, files),
            bundle=int(cost.bytes_each * weights + files + 20_000),
            # Besides the bundle: the method's prepared files, and two checkpoints of weights, best weights and optimiser.
            disk=int(4 * weights + 2 * files + (32 * weights if self.needs.trains else 0) + characters * 12),
            weights=weights,
            sure=sure,
            device=self.device,
            notes=notes,
        )

    def passes(self, kind: str, tokens: float) -> float:
        return WORK[kind] * tokens / self.forward

    def training_characters(self, keep_pairs: float) -> float:
        """Characters of the sentences to train on: all but the held-out ones, and only the share `keep_pairs` of those with
        synthetic sources.
        """
        counts = self.counts
        share = counts.sourced + (1 - counts.sourced) * keep_pairs
        return counts.characters * (1 - self.held_out / max(1, counts.sentences)) * share

    @property
    def held_out(self) -> int:
        """The number of sentences held out for validation."""
        return held_out_count(self.counts.sentences)

    def training(self, tokens: float) -> tuple[float, str, str]:
        """Seconds, how certain they are, and a note for the user."""
        options = self.options
        batch = options.tokens_per_batch * options.accumulate
        epoch_batches = max(1.0, 1.1 * tokens / options.tokens_per_batch)  # batches per epoch, padding included
        updates = float(options.max_updates)
        if options.max_epochs is not None:
            updates = min(updates, epoch_batches * options.max_epochs / options.accumulate)
        used = self.throughput.get(f"share {self.request.method} {self.request.budget}")
        if used and options.patience:
            updates *= used.value
        # A batch cannot be larger than the samples.
        full = min(1.0, tokens * 1.1 / options.tokens_per_batch)
        result = self.throughput.get(f"training {self.request.method}")
        if result:
            seconds = self.cost.terms * updates * batch * full / result.value
            how = "measured"
        else:
            each = self.cost.training * self.cost.terms * self.slower
            seconds = updates * batch * full * each / self.forward
            looks = 1 + updates / options.validate_every
            watched = 2 * options.watch * 20 * WORK["evaluation"] / 2 / self.forward
            seconds += looks * (watched + self.held_out * 30 / self.forward)
            how = "scaled" if self.known else "guessed"
        note = ""
        if options.max_minutes is not None and seconds > 60 * options.max_minutes:
            seconds, note = (
                60.0 * options.max_minutes,
                Message("Training stops after {count:g} min at the latest.", count=options.max_minutes),
            )
            how = "measured"
        elif options.patience and not used:
            note = mark("Training may stop earlier, once validation stops improving.")
        return seconds, how, note

    def sure(self, seconds: float) -> str:
        """How certain the time is: guessed if guesses make up a third of it, measured if measurements make up two thirds, else
        scaled.
        """
        share = {kind: sum(self.parts[part] for part, how in self.how.items() if how == kind) / max(1e-9, seconds) for kind in SURE}
        if share["guessed"] >= 1 / 3:
            return "guessed"
        return "measured" if share["measured"] >= 2 / 3 else "scaled"

    def memory(self, weights: int, files: float) -> int:
        """Peak memory in bytes: libraries, base, trained weights with gradients and moments, and a batch's activations."""
        shape, options = self.shape, self.options
        bytes_each = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 5 if self.kind == "cpu" else 1}[
            self.settings.base_precision
        ]
        total = PROCESS + shape.weights * bytes_each + 20 * weights + 2 * files
        tokens = options.tokens_per_batch if self.needs.trains else 4096
        # About 16 vectors of the hidden size per token and layer are kept for the backward pass; logits three times over.
        layers = shape.encoder + 1.5 * shape.decoder
        total += tokens * 4 * (layers * (16 * shape.d + 2 * shape.hidden) + 4 * shape.words)
        return int(total)
