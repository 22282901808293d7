"""The operations of the page Train: requests and estimates, runs and their curves, cloning, continuing. Independent of Gradio."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.atomic_files import read_json
from engine.errors import InputError, TailorError
from engine.jobs import enqueue
from engine.methods import method_names
from engine.store import JobRow, PluginRow, ProjectRow
from engine.store.queue import ASKED
from engine.training import BUDGETS, budget_options
from engine.workflows.customize.request import AUTO, CustomizeRequest, training_config
from engine.workflows.customize.steps import SOURCES, sources_in
from engine.workflows.estimate import CorpusStats, Estimate, estimate, estimate_each
from engine.workflows.preview import FILE
from studio.i18n.translate import tr
from studio.services.files import JsonRow, read_rows
from studio.services.service import Service

WATCH = 12  # sentences of each kind that a run started in the studio translates at each validation
SETTINGS = ("method_options", "training_options", "knn_options")
CHOSEN = ("method", "budget", "base", "knn", *SETTINGS)  # the fields of the form; all others follow from the project


def preset(budget: str, method: str) -> dict[str, dict[str, Any]]:
    """The initial settings of the form: the budget's, plus the number of monitored sentences."""
    if method == AUTO:
        return {"method": {}, "training": {**BUDGETS.get(budget, {}), "watch": WATCH}}
    chosen = budget_options(budget, method)
    return {"method": chosen["method"], "training": {**chosen["training"], "watch": WATCH}}


def own_settings(request: CustomizeRequest) -> dict[str, Mapping[str, Any]]:
    """The settings of a request in addition to its budget's, by kind; empty kinds are left out."""
    return {name: getattr(request, name) for name in SETTINGS if getattr(request, name)}


def stopped_by_time(job: JobRow) -> bool:
    """Whether a finished run stopped at the time limit; if it tried several methods, whether the best one did."""
    return str(job.state) == "succeeded" and job.result.get("stopped_by") == "max_minutes"


def request_that_made(job: JobRow) -> CustomizeRequest:
    """The request of a finished run; if it tried several methods, the request for only the one it chose."""
    original = CustomizeRequest.of_job(job.arguments)
    best = next((trial for trial in job.result.get("tried", ()) if trial["chosen"]), None)
    if best is None:
        return original
    training = {**original.training_options, **({"domain_filter": "on"} if best.get("domain_filter") else {})}
    if "replay" in job.result:  # resolved once the samples were known
        training["replay"] = job.result["replay"]
    shrink = {} if best.get("shrink") is None else {"shrink": best["shrink"]}
    options = {**original.method_options, **shrink}
    return original.replace(method=best["method"], knn=best["knn"], method_options=options, training_options=training)


class Runs:
    """The runs of a project."""

    def __init__(self, service: Service) -> None:
        self.service = service

    # -- before a start

    def counts(self, project: ProjectRow) -> CorpusStats | None:
        """The sample statistics needed for an estimate; None until samples have been read."""
        sentences, characters, sourced, domains = self.service.counted(project.id)
        if not sentences:
            return None
        return CorpusStats(
            sentences, characters, self.service.phrase_count(project.id) or 0, sourced / sentences, domains, project.target
        )

    def done(self, project: ProjectRow, base: str) -> frozenset[str]:
        """Completed steps that remain valid for the current samples and that base."""
        if base != project.base:
            return frozenset()
        steps = read_json(self.service.workspace(project.id) / "steps.json")
        samples = steps.get("samples")
        return frozenset(step for step in ("phrases", "sources", "pairs") if samples and steps.get(f"{step} of") == samples)

    def estimate(self, project: ProjectRow, request: CustomizeRequest) -> Estimate | None:
        """The estimate for a run; None without samples. Raises OptionError on an invalid setting."""
        counts, done = self._work(project, request.base)
        return estimate(request, counts, self.service.settings, done) if counts else None

    def _work(self, project: ProjectRow, base: str) -> tuple[CorpusStats | None, frozenset[str]]:
        """Sample statistics (None without samples) and completed steps for that base."""
        counts, done = self.counts(project), self.done(project, base)
        if counts is not None and base == project.base and not done & {"sources", "pairs"}:
            counts = replace(counts, written=self.written(project))
        return counts, done

    def written(self, project: ProjectRow) -> float:
        """The share of the samples that have no source of their own but for which an earlier run has generated one."""
        folder = self.service.workspace(project.id)
        corpus, *earlier = (folder / name for name in ("corpus.jsonl", *SOURCES))
        return _written(corpus, *(path.stat().st_mtime_ns if path.exists() else 0 for path in (corpus, *earlier)))

    def estimates(self, project: ProjectRow, base: str, budget: str) -> dict[str, Estimate]:
        """{method: estimate} under an unmodified budget; methods without an estimate are left out."""
        counts, done = self._work(project, base)
        requests = {
            name: CustomizeRequest(method=name, budget=budget, base=base, training_options={"watch": WATCH})
            for name in (AUTO, *method_names())
        }
        with contextlib.suppress(TailorError):
            return estimate_each(requests, counts, self.service.settings, done) if counts else {}
        return {}

    def bases(self, project: ProjectRow) -> list[tuple[str, str]]:
        """(label, path) of the bases that support the project's languages, the project's base first."""
        bases = [
            base
            for base in self.service.catalog.bases()
            if not base["languages"] or {project.source, project.target} <= set(base["languages"])
        ]
        bases.sort(key=lambda base: base["path"] != project.base)
        results = [
            (tr("{name} · {count} M parameters", name=base["name"], count=f"{base['parameters'] / 1e6:.0f}"), base["path"])
            for base in bases
        ]
        if project.base not in [path for _, path in results]:
            results.insert(0, (Path(project.base).name, project.base))
        return results

    # -- runs

    def of(self, project_id: int) -> list[JobRow]:
        """All runs of a project, newest first."""
        return self.service.runs(project_id)

    def displayed_run(self, jobs: Sequence[JobRow], requested: str) -> JobRow | None:
        """The run named in the address, else the running one, else the next one waiting, else the newest."""
        named = next((job for job in jobs if str(job.id) == requested), None)
        running = next((job for job in jobs if job.state == "running"), None)
        waiting = next((job for job in reversed(jobs) if job.state == "queued"), None)
        return named or running or waiting or (jobs[0] if jobs else None)

    def queue_positions(self) -> dict[int, int]:
        """{number of a waiting job: number of jobs ahead of it in the whole queue, including running ones}."""
        jobs = self.service.store.jobs.list(states=("queued",))
        waiting = [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.id))]
        running = len(self.service.store.jobs.list(states=("running",)))
        return {number: index + running for index, number in enumerate(waiting)}

    def curve(self, job: JobRow) -> list[JsonRow]:
        """The figures of a run, update by update."""
        return self.service.curve(job.project_id or 0, job)

    def plugins(self, project_id: int) -> dict[int, PluginRow]:
        """{number of a run: its plugin}."""
        return {row.job_id: row for row in self.service.store.plugins.list(project_id) if row.job_id is not None}

    def request_of(self, project: ProjectRow, number: str) -> CustomizeRequest:
        """The request of a run, to be reused for another one. Raises InputError if the project has no such run."""
        job = next((row for row in self.of(project.id) if str(row.id) == number), None)
        if job is None:
            raise InputError("That run no longer exists, so its settings cannot be reused.")
        original = CustomizeRequest.of_job(job.arguments)
        base = original.base if Path(original.base or "/-").is_dir() else project.base
        chosen = {name: getattr(original, name) for name in CHOSEN}
        return CustomizeRequest(**chosen | {"base": base, "method": original.method or AUTO})

    def continued(self, project: ProjectRow, job: JobRow) -> JobRow:
        """Queue a run that continues one stopped at its time limit, with the limit doubled. Raises InputError for other runs."""
        if not stopped_by_time(job):
            raise InputError("That run did not stop at the time limit, so there is nothing to continue.")
        original = request_that_made(job)
        minutes = 2 * float(training_config(original).max_minutes or 0)
        request = original.replace(output="", training_options={**original.training_options, "max_minutes": minutes})
        return self.service.start_run(project, request, continues=job.id)

    # -- the preview

    def look(self, project: ProjectRow) -> tuple[JobRow | None, dict[str, Any]]:
        """The newest preview job, and the latest preview; empty if there is none yet."""
        job = self.service.store.jobs.newest(project.id, "preview")
        return job, read_json(self.service.workspace(project.id) / FILE)

    def look_shown(self, project: ProjectRow) -> tuple[JobRow | None, dict[str, Any]]:
        """As `look`, but None for a job that has finished its preview and continues with phrases and proportions."""
        (job, result), file = self.look(project), self.service.workspace(project.id) / FILE
        modified = file.stat().st_mtime if result and file.exists() else 0.0
        if job is not None and job.active and job.created.timestamp() <= modified:
            job = None
        return job, result

    def look_again(self, project: ProjectRow) -> JobRow:
        """Queue a preview, or prioritise an active one. Raises InputError without samples."""
        jobs = self.service.store.jobs
        if not self.service.sample_files(project.id):
            raise InputError("This project has no samples yet. Add some on the page Samples.")
        job, _ = self.look(project)
        if job is not None and job.active:
            return jobs.hasten(job.id)
        request = self.service.request(project)
        return enqueue(self.service.store, "preview", request, project_id=project.id, priority=ASKED)


@lru_cache(maxsize=8)
def _written(corpus: Path, *modified: int) -> float:
    sources, rows = sources_in(corpus.parent), read_rows(corpus)
    return sum(not row.get("source") and str(row.get("text", "")) in sources for row in rows) / max(1, len(rows))
