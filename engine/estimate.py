"""What a run will take, before it starts: seconds, memory, disk; and how sure that is.

The time is a sum over the steps of the main job. Where this machine has done a step with this base before (`engine.paces`),
its own speed counts. Otherwise the step's share of a plain forward pass does, whose speed was measured when the samples were
weighed or looked up; and where nothing was measured at all, the pass is guessed from the base's size and the processor.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.languages import unspaced
from engine.methods.sizes import Shape, trained_weights
from engine.options import Options
from engine.paces import Paces, decoded_tokens, machine, shape_key, threads
from engine.settings import Settings
from engine.training import TrainingOptions

if TYPE_CHECKING:
    from engine.request import CustomizeRequest

__all__ = ["Ask", "Counts", "Estimate", "estimate", "estimate_request"]

MiB, GiB = 2**20, 2**30
# A plain forward pass in full precision is 1; how many times as much a token of each kind of work costs, where half precision
# is fast, as it is on GPUs and newer processors. Measured with bench/paces.py.
WORK = {"sources": 0.6, "weighing": 2.0, "datastore": 1.0, "evaluation": 5.5}
TRAINING = {
    "memory_adapter": 0.9, "residual_adapter": 0.65, "houlsby_adapter": 0.7, "lhuc": 0.9, "extreme": 0.3, "domain_mixing": 0.95,
    "fine_tuning": 0.7, "rewrite": 0.75, "ngram_memory": 0.8, "translation_memory": 0.7, "dexperts": 0.25,
}  # fmt: skip
SLOW = 2.2  # how much longer training takes where half precision is not fast
# Seconds of preparing a method for a thousand units, where a forward pass does 2,000 tokens a second: phrases that are
# remembered for the memory adapter, characters of samples for the others.
PREPARING = {"memory_adapter": 4.3, "knn": 0.55, "domain_mixing": 1.0, "ngram_memory": 0.1}
WARM = 0.5  # a token of the translation memory's warm start, in forward passes
LEARNS_FROM_BASE = ("rewrite", "dexperts")  # their training begins with the base's translations of all sources
FLOPS = {"cpu": 25e9, "cuda": 15e12, "mps": 2e12}  # a second; of one thread for a CPU
PHRASES = 4_000.0  # characters a second through a parser
START = 8.0  # seconds to load Python's libraries and a small base
PROCESS = 650 * MiB  # what they hold
SURE = {"measured": 1.25, "scaled": 1.6, "guessed": 2.5}  # the time lies within this factor, mostly
WORDS = {
    "measured": "from earlier runs on this machine",
    "scaled": "from this base's speed on this machine; the method itself has not run here yet",
    "guessed": "from the base's size alone; nothing was measured here yet",
}


@dataclass(frozen=True)
class Counts:
    """What is known of the samples: `characters` of all sentences, `sourced`: the share that has sources of its own."""

    sentences: int
    characters: int
    phrases: int = 0
    sourced: float = 0.0
    domains: int = 1
    language: str = ""


@dataclass(frozen=True)
class Ask:
    """What is to be estimated. `done` names steps that need not be done again: phrases, sources, pairs."""

    base: str
    method: str
    config: Options
    training: TrainingOptions
    counts: Counts
    budget: str = "balanced"
    knn: bool = False
    done: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Estimate:
    """Seconds with their range and parts by step; bytes of memory, of the bundle, and of the disk while it works."""

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
        """How sure, in words."""
        return WORDS[self.sure]

    def to_mapping(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "how_sure": self.sentence}


def estimate(ask: Ask, settings: Settings) -> Estimate:
    """The estimate of a run. Raises ModelError where the base's folder is no usable base."""
    return _Estimator(ask, settings).run()


def estimate_request(request: CustomizeRequest, settings: Settings) -> Estimate:
    """The same for a request of the main job, whose samples are read for it. Raises as reading and checking them does."""
    from engine.base.shelf import Shelf
    from engine.corpora import import_corpus
    from engine.request import corpus_config, method_config, training_config
    from engine.steps import checked

    request = checked(request)
    segments = import_corpus(
        [Path(sample) for sample in request.samples], request.target, source_language=request.source,
        domains=request.domains, options=corpus_config(request),
    ).segments  # fmt: skip
    counts = Counts(
        len(segments),
        sum(len(one.text) for one in segments),
        sourced=sum(one.source is not None for one in segments) / max(1, len(segments)),
        domains=len({one.domain for one in segments}) or 1,
        language=request.target,
    )
    base = str(Shelf(settings).find(request.base, download=request.download))
    config, training = method_config(request), training_config(request)
    return estimate(Ask(base, request.method, config, training, counts, request.budget, request.knn), settings)


@cache
def has_fast_half() -> bool:
    """Whether the processor says that it multiplies bfloat16 fast; without torch, so that a page can ask."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


class _Estimator:
    def __init__(self, ask: Ask, settings: Settings) -> None:
        from engine.base.files import count_parameters, read_config
        from engine.methods import get_method

        self.ask, self.settings, self.counts = ask, settings, ask.counts
        config = read_config(Path(ask.base))
        self.shape = Shape.of(config, count_parameters(Path(ask.base)))
        self.needs = get_method(ask.method).capabilities
        self.paces = Paces(settings, shape_key(config))
        self.kind = machine(settings).split(", ")[1]
        count = threads(settings)
        self.device = (
            f"CPU, {count} {'thread' if count == 1 else 'threads'}" if self.kind == "cpu" else self.kind.upper()
        )
        self.parts: dict[str, float] = {}
        self.how: dict[str, str] = {}
        measured = self.paces.get("tokens a character " + ask.counts.language)
        self.per_character = measured.value if measured else 0.8 if unspaced(ask.counts.language or "en") else 0.28
        self.forward, self.known = self._forward()
        self.half = settings.precision != "float32" and (self.kind != "cpu" or has_fast_half())

    def _forward(self) -> tuple[float, bool]:
        """Tokens a second of a forward pass over sentence pairs, and whether that was measured."""
        found = self.paces.get("weighing")
        if found:
            return found.value * self.per_character * WORK["weighing"], True
        found = self.paces.get("datastore")
        if found:
            return found.value * self.per_character * WORK["datastore"], True
        shape = self.shape
        used = shape.encoder * shape.layer(False) + shape.decoder * shape.layer(True) + shape.words * shape.d
        speed = FLOPS.get(self.kind, FLOPS["cpu"]) * (threads(self.settings) if self.kind == "cpu" else 1)
        return speed / (2 * used), False

    def add(self, part: str, amount: float, pace: str, fallback: float) -> None:
        """A step of `amount` units: at the measured pace, else `fallback` seconds."""
        if amount <= 0:
            return
        found = self.paces.get(pace)
        self.parts[part] = self.parts.get(part, 0.0) + (amount / found.value if found else fallback)
        self.how[part] = "measured" if found else "scaled" if self.known else "guessed"

    def run(self) -> Estimate:
        ask, counts, training = self.ask, self.counts, self.ask.training
        characters, tokens = counts.characters, counts.characters * self.per_character
        missing = 1 - counts.sourced
        started = self.paces.get("start")
        self.parts["start"] = started.value if started else START + self.shape.weights * 4 / (500 * MiB)
        self.how["start"] = "measured" if started else "scaled"
        if self.needs.needs_phrases and "phrases" not in ask.done:
            self.add("phrases", characters, "phrases", 4 + characters / PHRASES)
        if "pairs" not in ask.done and (self.needs.trains or self.needs.needs_pairs or ask.knn):
            if "sources" not in ask.done:
                self.add("sources", characters * missing, "sources", missing * self.passes("sources", tokens))
            self.add("weighing", characters * missing, "weighing", missing * self.passes("weighing", tokens))
        kept = self.kept()
        units = self.remembered() if ask.method == "memory_adapter" else kept
        preparing = PREPARING.get(ask.method, 0.06) * units / 1000 * (2000 / self.forward)
        warm = getattr(ask.config, "warm_updates", 0) * getattr(ask.config, "warm_batch", 0)
        preparing += WARM * warm * tokens / max(1, counts.sentences) / self.forward * (1.0 if self.half else SLOW)
        self.add("method", units, f"method {ask.method}", preparing)
        if ask.method in LEARNS_FROM_BASE and getattr(ask.config, "anti", "translations") == "translations":
            said = kept + self.held_out * characters / max(1, counts.sentences)
            self.add("translations", said, "translations", self.passes("evaluation", said * self.per_character))
        notes = []
        if self.needs.trains:
            seconds, how, note = self.training(kept * self.per_character)
            self.parts["training"], self.how["training"] = seconds, how
            notes += [note] if note else []
        if ask.knn:
            self.add("datastore", characters, "datastore", self.passes("datastore", tokens))
        if not self.needs.needs_endpoint:
            decoded = decoded_tokens(self.held_out / 2, tokens / max(1, counts.sentences))
            slower = 1.4 if ask.knn or ask.method in ("knn", "rewrite", "dexperts") else 1.0
            self.add("evaluation", decoded, f"evaluation {ask.method}", slower * self.passes("evaluation", decoded))
        seconds = sum(self.parts.values())
        sure = self.sure(seconds)
        weights = trained_weights(ask.method, ask.config, self.shape, counts.domains) or 0
        files = self.files(kept)
        peak = self.paces.get(f"peak {ask.method} {training.tokens_per_batch}")
        return Estimate(
            seconds=round(seconds, 1),
            low=round(seconds / SURE[sure], 1),
            high=round(seconds * SURE[sure], 1),
            parts={key: round(value, 1) for key, value in self.parts.items()},
            memory=int(peak.value) if peak else self.memory(weights, files),
            bundle=int(4 * weights + files + 20_000),
            # Beside the bundle: what the method prepared, and two checkpoints of weights, best weights and optimiser.
            disk=int(4 * weights + 2 * files + (32 * weights if self.needs.trains else 0) + characters * 12),
            weights=weights,
            sure=sure,
            device=self.device,
            notes=notes,
        )

    def passes(self, kind: str, tokens: float) -> float:
        return WORK[kind] * tokens / self.forward

    def kept(self) -> float:
        """Characters of the sentences that are learnt from: all but the held-out ones, and the best supported of those."""
        counts = self.counts
        share = counts.sourced + (1 - counts.sourced) * self.ask.training.keep_pairs
        return counts.characters * (1 - self.held_out / max(1, counts.sentences)) * share

    @property
    def held_out(self) -> int:
        """Sentences that are kept for validation; see `engine.steps.split_samples`."""
        return min(500, max(min(16, self.counts.sentences // 4), self.counts.sentences // 12))

    def training(self, tokens: float) -> tuple[float, str, str]:
        """Seconds, how sure, and a note for the user."""
        options = self.ask.training
        batch = options.tokens_per_batch * options.accumulate
        whole = max(1.0, 1.1 * tokens / options.tokens_per_batch)  # batches an epoch: padding takes its part
        updates = float(options.max_updates)
        if options.max_epochs is not None:
            updates = min(updates, whole * options.max_epochs / options.accumulate)
        used = self.paces.get(f"share {self.ask.method} {self.ask.budget}")
        if used and options.patience:
            updates *= used.value
        # A batch cannot hold more than there is.
        full = min(1.0, tokens * 1.1 / options.tokens_per_batch)
        passes = 1.5 if getattr(self.ask.config, "alpha", 0) or getattr(self.ask.config, "beta", 0) else 1.0
        found = self.paces.get(f"training {self.ask.method}")
        if found:
            seconds = passes * updates * batch * full / found.value
            how = "measured"
        else:
            each = TRAINING.get(self.ask.method, 1.0) * passes * (1.0 if self.half else SLOW)
            seconds = updates * batch * full * each / self.forward
            looks = 1 + updates / options.validate_every
            watched = 2 * options.watch * 20 * WORK["evaluation"] / 2 / self.forward
            seconds += looks * (watched + self.held_out * 30 / self.forward)
            how = "scaled" if self.known else "guessed"
        note = ""
        if options.max_minutes is not None and seconds > 60 * options.max_minutes:
            seconds, note = (
                60.0 * options.max_minutes,
                f"Training stops after {options.max_minutes:g} min at the latest.",
            )
            how = "measured"
        elif options.patience and not used:
            note = "Training may stop earlier, when nothing gets better any more."
        return seconds, how, note

    def sure(self, seconds: float) -> str:
        """The least sure kind that makes up a third of the time or more."""
        share = {
            kind: sum(self.parts[part] for part, how in self.how.items() if how == kind) / max(1e-9, seconds)
            for kind in SURE
        }
        if share["guessed"] >= 1 / 3:
            return "guessed"
        return "measured" if share["measured"] >= 2 / 3 else "scaled"

    def files(self, kept: float) -> float:
        """Bytes of what the method keeps beside its weights: memories, datastores, sentences."""
        shape, counts = self.shape, self.counts
        size = 0.0
        entries = kept * self.per_character
        if self.ask.method == "memory_adapter":
            size += self.remembered() * (4 * shape.d + 90)
        if self.ask.method in ("knn", "ngram_memory", "translation_memory", "llm_prompt"):
            size += kept * 6
        if self.ask.method == "translation_memory":
            size += counts.sentences * shape.d
        if self.ask.method == "knn" or self.ask.knn:
            size += entries * (2 * shape.d + 12 + (280 if entries > 20_000 else 0))
        return size

    def remembered(self) -> float:
        """Phrases that a memory adapter keeps."""
        most = getattr(self.ask.config, "phrases_per_layer", None)
        phrases = float(self.counts.phrases or self.counts.sentences * 12)
        return min(phrases, most * self.shape.decoder) if most else phrases

    def memory(self, weights: int, files: float) -> int:
        """Bytes at the peak: libraries, base, what is trained with its gradients and moments, and a batch's activations."""
        shape, options = self.shape, self.ask.training
        bytes_each = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}[self.settings.base_precision]
        total = PROCESS + shape.weights * bytes_each + 20 * weights + 2 * files
        tokens = options.tokens_per_batch if self.needs.trains else 4096
        # Per token and layer about 16 vectors of the hidden size are kept for the way back; logits three times over.
        layers = shape.encoder + 1.5 * shape.decoder
        total += tokens * 4 * (layers * (16 * shape.d + 2 * shape.hidden) + 4 * shape.words)
        return int(total)
