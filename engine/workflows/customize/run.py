"""One run of the main job: its resources and results, filled in by its steps in order."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.settings import Settings
from engine.core.step_cache import StepCache
from engine.training import TrainingOptions
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.throughput import NumberedProgress

if TYPE_CHECKING:
    from torch import nn

    from engine.base import LanguagePair
    from engine.corpora import Corpus, Segment
    from engine.methods import Artefacts, Method
    from engine.methods.data import Samples
    from engine.phrases.exclusions import Exclusions
    from engine.plugins import Plugin
    from engine.training.loop import Result

TRIED = "tried"  # in the folder of a run by `auto`: one folder per method


@dataclass(frozen=True)
class Datastore:
    """The bundle's files, settings and figures of kNN decoding on top of the method; empty by default."""

    files: dict[str, Path] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """What `auto` measured of one method: BLEU and chrF on held-out samples, BLEU on general text, and seconds."""

    method: str
    knn: bool
    bleu: float
    chrf: float
    general_bleu: float | None
    seconds: float
    chosen: bool = False
    domain_filter: bool = False
    shrink: float | None = None  # if it is not the budget's
    gain: float | None = None  # nats per token that a datastore takes from the held-out loss of the method that it is on top of

    @property
    def name(self) -> str:
        method = self.method if self.shrink is None else f"{self.method} (shrink {self.shrink:g})"
        return " + ".join([method, *["knn"] * self.knn, *["domain filter"] * self.domain_filter])


@dataclass
class Run:
    """A customization in progress.

    `workspace` contains what several runs may share, `folder` what belongs to this run only; `cache` and `run_cache` are their step
    caches. `times` are seconds by step.
    """

    request: CustomizeRequest
    workspace: Path
    folder: Path
    settings: Settings
    progress: NumberedProgress
    cache: StepCache
    run_cache: StepCache
    begin: float = field(default_factory=time.monotonic)
    automatic: bool = False  # several methods are tried, and the best is kept
    times: dict[str, float] = field(default_factory=dict)
    # Filled by the steps, in this order.
    corpus: Corpus = field(init=False)
    train: list[Segment] = field(init=False)
    valid: list[Segment] = field(init=False)
    method: Method = field(init=False)
    config: Any = field(init=False)
    training: TrainingOptions = field(init=False)
    pair: LanguagePair = field(init=False)
    exclusions: Exclusions = field(init=False)
    samples: Samples = field(init=False)
    artefacts: Artefacts = field(init=False)
    module: nn.Module = field(init=False)
    result: Result | None = None
    plugin: Plugin = field(init=False)
    datastore: Datastore = field(default_factory=Datastore)
    decoding: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)

    tried: list[Trial] = field(default_factory=list)  # by `auto`, the chosen one among them

    @property
    def memory_sizes(self) -> list[int]:
        """Phrases in each decoder layer's memory, or target tokens of a single memory; empty for a method without memory."""
        if self.artefacts.memory is None:
            return [self.artefacts.remembered] if self.artefacts.remembered else []
        return self.artefacts.memory.sizes

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Record the duration of the block."""
        start = time.monotonic()
        yield
        self.times[step] = round(time.monotonic() - start, 1)


@dataclass(frozen=True)
class Step:
    """A step of the main job, which fills in the run; skipped if it is not `needed`."""

    name: str
    do: Callable[[Run], None]
    needed: Callable[[Run], bool] = lambda run: True
