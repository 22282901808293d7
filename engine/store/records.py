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
    """A step that a job has started."""

    step: str
    index: int  # from 0
    begun: str  # ISO 8601, UTC
    attempt: int
    earlier: NotRequired[float]  # seconds that earlier attempts took


class System(TypedDict):
    """A system in a comparison: the base only (first, without a `plugin_id`), or a plugin at a given strength."""

    name: str
    plugin_id: int | None
    method: str
    strength: float
    enforced: NotRequired[str]  # hash of the terms enforced in its translations; absent if there are none


class JobFigures(TypedDict, total=False):
    """The progress of a job; the fields have the same names as in `JobRow`."""

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


SIGNIFICANT = 0.05  # p-value below which a difference is significant

ACTIVE = (JobState.QUEUED, JobState.RUNNING)
RESUMABLE = (JobState.FAILED, JobState.CANCELLED, JobState.INTERRUPTED)
GAVE_WAY = Message("It was paused for a job requested in the meantime and will continue automatically.")


@dataclass(frozen=True)
class ProjectRow:
    """A customisation project: a language direction and a base model."""

    id: int
    name: str
    source: str
    target: str
    base: str
    created: datetime.datetime
    updated: datetime.datetime


@dataclass(frozen=True)
class CorpusRow:
    """Samples of a project: `folder` holds the `kept` sentences; `skipped` counts the rejected ones by reason."""

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
    """The phrases extracted from a corpus: a JSONL file, their number, and the parser used."""

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
    metrics: Json  # the latest row of metrics
    heartbeat: datetime.datetime | None
    worker: str
    pid: int | None
    attempt: int  # starts at 1, incremented each time the job is queued again
    error: str
    result: Json
    log_path: str
    created: datetime.datetime
    started: datetime.datetime | None
    finished: datetime.datetime | None
    cancel_requested: bool
    owner: str  # who requested it; empty if there are no accounts
    priority: int  # higher values run first
    device: str  # "cpu", "gpu", or empty for the device that runs models
    trail: list[TrailStep]
    not_before: datetime.datetime | None
    retries: int  # consecutive attempts that ended without further progress

    @property
    def active(self) -> bool:
        """Queued or running."""
        return self.state in ACTIVE

    @property
    def paused(self) -> bool:
        """Whether it was started, gave way to another job and is queued again."""
        return self.state == JobState.QUEUED and self.note == GAVE_WAY

    @property
    def resumable(self) -> bool:
        """Whether it ended without success and can be queued again."""
        return self.state in RESUMABLE

    @property
    def fraction(self) -> float:
        """The completed part of the work, 0 to 1, with equal weight per step.

        Steps that share an index count once, when the first of them ends, so that the value does not decrease. At the last
        index, the value follows the progress of the current step.
        """
        if self.state == JobState.SUCCEEDED:
            return 1.0
        part = min(1.0, self.done / self.total) if self.total else 0.0
        if self.step_index + 1 < self.steps and self._further:
            part = 1.0
        return min(1.0, (self.step_index + part) / max(1, self.steps))

    @property
    def _further(self) -> bool:
        """Whether an earlier step of this attempt had the same index as the current one."""
        trail = self.trail or []
        now = next((entry for entry in reversed(trail) if entry.get("step") == self.step), None)
        if now is None:
            return False
        key = (now.get("index"), now.get("attempt"))
        same = [entry.get("step") for entry in trail if (entry.get("index"), entry.get("attempt")) == key]
        return same.index(self.step) > 0

    @property
    def seconds(self) -> float | None:
        """Running time in seconds over all attempts, without the waiting between them; None before the first."""
        if self.started is None:
            return self.earlier or None
        end = self.finished or datetime.datetime.now(datetime.UTC)
        if self.state == JobState.INTERRUPTED and self.heartbeat is not None:
            end = min(end, self.heartbeat)  # its lost process may have been detected hours later
        return self.earlier + max(0.0, (end - self.started).total_seconds())  # the clock may have been set back

    @property
    def earlier(self) -> float:
        """How many seconds the earlier attempts took."""
        return max((entry.get("earlier", 0.0) for entry in self.trail), default=0.0)


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
        """Whether the bundle file still exists."""
        return Path(self.path).is_file()

    @property
    def harm(self) -> float:
        """The BLEU loss on general text if it is significant and the held-out set shows no significant gain; otherwise, or if
        either was not measured, 0.
        """
        names = [f"{text}bleu{end}" for text in ("", "general_") for end in ("_vanilla", "", "_p")]
        values = [value for name in names if isinstance(value := self.metrics.get(name), int | float)]
        if len(values) < len(names):
            return 0.0
        before, after, p, general_before, general_after, general_p = values
        gains = after > before and p < SIGNIFICANT
        return 0.0 if gains or general_p >= SIGNIFICANT else max(0.0, general_before - general_after)


@dataclass(frozen=True)
class ComparisonRow:
    """Sentences translated by several systems side by side; `rows` is a list of mappings defined by the studio."""

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
