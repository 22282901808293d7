"""The rows of the store as plain frozen dataclasses. Times are UTC and aware; durations are seconds."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NotRequired, Required, TypedDict

from engine.core.json_object import Json
from engine.messages import Message


class TrailStep(TypedDict):
    """A step that a job began."""

    step: str
    index: int  # from 0
    begun: str  # ISO 8601, UTC
    attempt: int
    earlier: NotRequired[float]  # seconds that the attempts before took


class System(TypedDict):
    """What a comparison compares: the base alone (first, without a `plugin_id`), or a plugin at a strength."""

    name: str
    plugin_id: int | None
    method: str
    strength: float
    enforced: NotRequired[str]  # hash of the terms that are enforced in its translations; absent where none are


class JobFigures(TypedDict, total=False):
    """How far a job is; the fields of `JobRow` of the same names."""

    step: Required[str]
    step_index: int
    steps: int
    done: float
    total: float | None
    eta: float | None
    note: str
    metrics: Json
    trail: list[TrailStep]


class JobState(StrEnum):
    """The state of a job. `interrupted` means that its process ended unexpectedly: it can be resumed."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


SIGNIFICANT = 0.05  # below this p a difference is called significant

ACTIVE = (JobState.QUEUED, JobState.RUNNING)
RESUMABLE = (JobState.FAILED, JobState.CANCELLED, JobState.INTERRUPTED)
GAVE_WAY = Message("It was paused for a job requested in the meantime and will continue automatically.")


@dataclass(frozen=True)
class ProjectRow:
    """One customisation in the making: a language direction, a base model, and what is made for them."""

    id: int
    name: str
    source: str
    target: str
    base: str
    created: datetime.datetime
    updated: datetime.datetime


@dataclass(frozen=True)
class CorpusRow:
    """Samples of one project: `kept` sentences lie in `folder`; `skipped` counts the others by reason."""

    id: int
    project_id: int
    name: str
    state: str  # new, reading, ready, failed
    folder: str
    kept: int
    skipped: dict[str, int]
    report: Json
    created: datetime.datetime


@dataclass(frozen=True)
class PhraseSetRow:
    """The phrases found in a corpus: a JSONL file, how many, and which parser gave them."""

    id: int
    corpus_id: int
    path: str
    parser: str
    count: int
    created: datetime.datetime


@dataclass(frozen=True)
class JobRow:
    """A job: the request, its state, and its outcome."""

    id: int
    project_id: int | None
    kind: str
    arguments: Json
    state: JobState
    step: str
    step_index: int  # from 0
    steps: int
    done: float
    total: float | None
    eta: float | None  # seconds left in this step
    note: str
    metrics: Json  # the latest row of figures
    heartbeat: datetime.datetime | None
    worker: str
    pid: int | None
    attempt: int  # 1 at first, one more at each resume
    error: str
    result: Json
    log_path: str
    created: datetime.datetime
    started: datetime.datetime | None
    finished: datetime.datetime | None
    cancel_requested: bool
    owner: str  # who asked for it; empty where nobody signs in
    priority: int  # what is higher begins first
    device: str  # "cpu", "gpu", or empty for wherever models run
    trail: list[TrailStep]
    not_before: datetime.datetime | None
    retries: int  # attempts that ended without getting further, one after the other

    @property
    def active(self) -> bool:
        """Waiting or at work."""
        return self.state in ACTIVE

    @property
    def paused(self) -> bool:
        """Begun, and waiting while a job that came first is at work."""
        return self.state == JobState.QUEUED and self.note == GAVE_WAY

    @property
    def resumable(self) -> bool:
        """Ended without success, so that it can be queued again."""
        return self.state in RESUMABLE

    @property
    def fraction(self) -> float:
        """How much of the work is done, 0 to 1, every step counting the same. Steps that share a number count once, with the
        first of them, so that what follows it does not send the figure back; under the last number nothing is done before its end.
        """
        if self.state == JobState.SUCCEEDED:
            return 1.0
        part = min(1.0, self.done / self.total) if self.total else 0.0
        if self.step_index + 1 < self.steps and self._further:
            part = 1.0
        return min(1.0, (self.step_index + part) / max(1, self.steps))

    @property
    def _further(self) -> bool:
        """Whether another step of this attempt had the number of the one at work before it."""
        trail = self.trail or []
        now = next((one for one in reversed(trail) if one.get("step") == self.step), None)
        if now is None:
            return False
        here = (now.get("index"), now.get("attempt"))
        same = [one.get("step") for one in trail if (one.get("index"), one.get("attempt")) == here]
        return same.index(self.step) > 0

    @property
    def seconds(self) -> float | None:
        """How long it has been at work, or was: all attempts, without the waiting between them; None before the first."""
        if self.started is None:
            return self.earlier or None
        end = self.finished or datetime.datetime.now(datetime.UTC)
        if self.state == JobState.INTERRUPTED and self.heartbeat is not None:
            end = min(end, self.heartbeat)  # that its process was gone may have been noticed hours later
        return self.earlier + max(0.0, (end - self.started).total_seconds())  # the clock may have been set back since

    @property
    def earlier(self) -> float:
        """How many seconds the attempts before this one took."""
        return max((one.get("earlier", 0.0) for one in self.trail), default=0.0)


@dataclass(frozen=True)
class PluginRow:
    """A finished plugin bundle and its scores."""

    id: int
    project_id: int
    job_id: int | None
    name: str
    method: str
    path: str
    base_fingerprint: str
    metrics: Json
    created: datetime.datetime
    imported: bool = False

    @property
    def exists(self) -> bool:
        """Whether the bundle is still where it was written."""
        return Path(self.path).is_file()

    @property
    def harm(self) -> float:
        """BLEU that general text loses, where it loses significantly and held-out sentences do not gain significantly; 0
        otherwise, and where either was not measured.
        """
        names = [f"{text}bleu{end}" for text in ("", "general_") for end in ("_vanilla", "", "_p")]
        figures = [value for name in names if isinstance(value := self.metrics.get(name), int | float)]
        if len(figures) < len(names):
            return 0.0
        before, after, p, general_before, general_after, general_p = figures
        gains = after > before and p < SIGNIFICANT
        return 0.0 if gains or general_p >= SIGNIFICANT else max(0.0, general_before - general_after)


@dataclass(frozen=True)
class ComparisonRow:
    """Sentences translated by several systems side by side; `rows` is a list of mappings that the studio defines."""

    id: int
    project_id: int
    title: str
    rows: list[Json]
    created: datetime.datetime


@dataclass(frozen=True)
class WorkerRow:
    """A worker process that serves this store, and its last heartbeat."""

    name: str
    host: str
    pid: int
    job_id: int | None
    started: datetime.datetime
    heartbeat: datetime.datetime
