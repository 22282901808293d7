"""What the page Train asks for: plans and their estimates, runs with their curves, what can be cloned and compared.

Nothing here knows Gradio.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import InputError, TailorError
from engine.store import JobRow, PluginRow, ProjectRow
from studio.files import read_object, read_rows
from studio.i18n import tr
from studio.service import Service

if TYPE_CHECKING:
    from engine.estimate import Counts, Estimate

__all__ = ["WATCH", "Plan", "Runs", "own_settings", "preset"]

WATCH = 12  # sentences of each kind that a run from the studio translates at each validation
SETTINGS = ("method_options", "training_options", "knn_options")


@dataclass(frozen=True)
class Plan:
    """What the form holds: a run that could be started."""

    method: str
    budget: str
    base: str
    knn: bool = False
    method_options: Mapping[str, Any] = field(default_factory=dict)
    training_options: Mapping[str, Any] = field(default_factory=dict)
    knn_options: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> dict[str, dict[str, Any]]:
        """The settings that were changed, by kind; kinds without any are left out."""
        return {name: dict(getattr(self, name)) for name in SETTINGS if getattr(self, name)}


def preset(budget: str, method: str) -> dict[str, dict[str, Any]]:
    """What the form shows before anything is changed: the budget's settings, and that translations are watched."""
    from engine.training import budget_options

    chosen = budget_options(budget, method)
    return {"method": chosen["method"], "training": {**chosen["training"], "watch": WATCH}}


def own_settings(job: JobRow) -> dict[str, dict[str, Any]]:
    """The settings that a run was given beyond its budget's, by kind."""
    found = {}
    for name in SETTINGS:
        try:
            value = json.loads(job.arguments.get(name) or "{}")
        except ValueError:
            value = {}
        if isinstance(value, dict) and value:
            found[name] = value
    return found


class Runs:
    """The runs of a project."""

    def __init__(self, service: Service) -> None:
        self.service = service

    # -- before a start

    def counts(self, project: ProjectRow) -> Counts | None:
        """What the estimate needs to know of the samples; None while none are read."""
        from engine.estimate import Counts

        path = self.service.workspace(project.id) / "corpus.jsonl"
        if not path.exists():
            return None
        sentences, characters, sourced, domains = _count(path, path.stat().st_mtime_ns)
        if not sentences:
            return None
        return Counts(
            sentences,
            characters,
            self.service.phrase_count(project.id) or 0,
            sourced / sentences,
            domains,
            project.target,
        )

    def done(self, project: ProjectRow, base: str) -> frozenset[str]:
        """Steps of the samples as they are that need not be done again with that base."""
        if base != project.base:
            return frozenset()
        stamps = read_object(self.service.workspace(project.id) / "steps.json")
        samples = stamps.get("samples")
        return frozenset(
            step for step in ("phrases", "sources", "pairs") if samples and stamps.get(f"{step} of") == samples
        )

    def estimate(self, project: ProjectRow, plan: Plan) -> Estimate | None:
        """What the plan would take; None without samples. Raises OptionError on a setting that cannot be."""
        counts = self.counts(project)
        return None if counts is None else self._estimate(project, plan, counts)

    def _estimate(self, project: ProjectRow, plan: Plan, counts: Counts) -> Estimate:
        from engine.estimate import Ask, estimate
        from engine.methods import get_method
        from engine.training import TrainingOptions, budget_options

        known = budget_options(plan.budget, plan.method)
        config = get_method(plan.method).config_class.from_mapping({**known["method"], **plan.method_options})
        training = TrainingOptions.from_mapping({**known["training"], **plan.training_options})
        done = self.done(project, plan.base)
        ask = Ask(plan.base, plan.method, config, training, counts, plan.budget, plan.knn, done)
        return estimate(ask, self.service.settings)

    def estimates(self, project: ProjectRow, base: str, budget: str) -> dict[str, Estimate]:
        """One for each method under a budget, as it is; methods whose estimate cannot be made are left out."""
        from engine.methods import method_names

        found: dict[str, Estimate] = {}
        counts = self.counts(project)
        if counts is None:
            return found
        for name in method_names():
            with contextlib.suppress(TailorError):
                found[name] = self._estimate(
                    project, Plan(name, budget, base, training_options={"watch": WATCH}), counts
                )
        return found

    def bases(self, project: ProjectRow) -> list[tuple[str, str]]:
        """(label, path) of the bases that know the project's languages, its own first."""
        fitting = [
            one
            for one in self.service.catalog.bases()
            if not one["languages"] or {project.source, project.target} <= set(one["languages"])
        ]
        fitting.sort(key=lambda one: one["path"] != project.base)
        found = [
            (tr("{name} · {count} M weights", name=one["name"], count=f"{one['parameters'] / 1e6:.0f}"), one["path"])
            for one in fitting
        ]
        if project.base not in [path for _, path in found]:
            found.insert(0, (project.base.rstrip("/").rsplit("/", 1)[-1], project.base))
        return found

    def start(self, project: ProjectRow, plan: Plan) -> JobRow:
        """Queue the plan's run. Raises InputError without samples."""
        return self.service.start_run(
            project,
            plan.method,
            plan.budget,
            base=plan.base,
            knn=plan.knn,
            method_options=dict(plan.method_options),
            training_options=dict(plan.training_options),
            knn_options=dict(plan.knn_options),
        )

    # -- runs

    def of(self, project_id: int) -> list[JobRow]:
        """All runs, newest first."""
        return self.service.runs(project_id)

    def shown(self, jobs: Sequence[JobRow], wanted: str) -> JobRow | None:
        """The run that the address names; else the one at work, else the next one, else the newest."""
        named = next((job for job in jobs if str(job.id) == wanted), None)
        running = next((job for job in jobs if job.state == "running"), None)
        waiting = next((job for job in reversed(jobs) if job.state == "queued"), None)
        return named or running or waiting or (jobs[0] if jobs else None)

    def places(self) -> dict[int, int]:
        """{number of a waiting job: how many others of the whole queue come before it}."""
        waiting = sorted(job.id for job in self.service.store.jobs.list(states=("queued",)))
        running = len(self.service.store.jobs.list(states=("running",)))
        return {number: place + running for place, number in enumerate(waiting)}

    def curve(self, job: JobRow) -> list[dict[str, Any]]:
        """The figures of a run, update by update."""
        return self.service.curve(job.project_id or 0, job)

    def plugins(self, project_id: int) -> dict[int, PluginRow]:
        """{number of a run: its plugin}."""
        return {row.job_id: row for row in self.service.store.plugins.list(project_id) if row.job_id is not None}

    def plan_of(self, project: ProjectRow, number: str) -> Plan:
        """The settings of a run, to start another one with them. Raises InputError where it is not one of this project."""
        job = next((one for one in self.of(project.id) if str(one.id) == number), None)
        if job is None:
            raise InputError("That run is no longer there, so its settings cannot be taken over.")
        known = own_settings(job)
        base = str(job.arguments.get("base") or project.base)
        return Plan(
            str(job.arguments.get("method", "memory_adapter")),
            str(job.arguments.get("budget", "balanced")),
            base if Path(base).is_dir() else project.base,
            bool(job.arguments.get("knn", False)),
            known.get("method_options", {}),
            known.get("training_options", {}),
            known.get("knn_options", {}),
        )

    # -- the first look

    def look(self, project: ProjectRow) -> tuple[JobRow | None, dict[str, Any]]:
        """The newest job that makes the first look, and what the last one found; empty before there is one."""
        from engine.preview import FILE

        jobs = [job for job in self.service.store.jobs.list(project.id) if job.kind == "preview"]
        return (jobs[0] if jobs else None), read_object(self.service.workspace(project.id) / FILE)

    def look_again(self, project: ProjectRow) -> JobRow:
        """Queue a first look, unless one is under way. Raises InputError without samples."""
        from engine.jobs import enqueue

        if not self.service.sample_files(project.id):
            raise InputError("This project has no samples yet. Add some on the page Samples.")
        job, _ = self.look(project)
        if job is not None and job.active:
            return job
        return enqueue(self.service.store, "preview", self.service.request(project), project_id=project.id)


@lru_cache(maxsize=8)
def _count(path: Path, stamp: int) -> tuple[int, int, int, int]:
    """Sentences, their characters, how many have a source, and how many domains there are."""
    rows = read_rows(path)
    texts = [str(row.get("text", "")) for row in rows]
    sourced = sum(bool(row.get("source")) for row in rows)
    return len(rows), sum(map(len, texts)), sourced, len({str(row.get("domain", "")) for row in rows}) or 1
