"""Summaries of all projects for the home page: state, counts, best score, time of the last change.

The number of store queries does not depend on the number of projects.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from engine.store import CorpusRow, JobRow, PluginRow, ProjectRow
from studio.i18n.translate import mark, percent, span, tr
from studio.services.scores import scores
from studio.services.service import Service

WORK = {"prepare": mark("reading samples"), "leakage": mark("comparing with test files"), "customize": mark("training")}
FAILED = {"prepare": mark("reading failed"), "customize": mark("training failed")}


@dataclass(frozen=True)
class Best:
    """The plugin with the largest gain over the base."""

    plugin: str
    metric: str
    before: float
    after: float


@dataclass(frozen=True)
class ProjectSummary:
    """The data of a project's card. `state` is a text and the kind of its tag; `next` is the page to open."""

    project: ProjectRow
    state: tuple[str, str]
    next: str
    changed: datetime.datetime
    sentences: int | None = None
    phrases: int | None = None
    plugins: int = 0
    files: int = 0
    busy: bool = False
    best: Best | None = None


def project_summaries(service: Service) -> list[ProjectSummary]:
    """All projects, the most recently changed first."""
    store = service.store
    corpora: dict[int, CorpusRow] = {}
    for corpus in store.corpora.list():
        corpora.setdefault(corpus.project_id, corpus)  # newest first
    phrases = {row.corpus_id: row.count for row in reversed(store.phrase_sets.list())}
    plugins: dict[int, list[PluginRow]] = {}
    for plugin in store.plugins.list():
        plugins.setdefault(plugin.project_id, []).append(plugin)
    active: dict[int, JobRow] = {}
    for job in store.jobs.list(states=("queued", "running")):
        if job.project_id is not None and (job.state == "running" or job.project_id not in active):
            active[job.project_id] = job
    last_jobs = store.jobs.last_of_each()
    results = []
    for project in store.projects.list():
        corpus_row = corpora.get(project.id)
        project_plugins, job_now = plugins.get(project.id, []), active.get(project.id)
        last = job_now or last_jobs.get(project.id)
        read = corpus_row.kept if corpus_row and corpus_row.state == "ready" else None
        moments = [project.updated, *(row.created for row in project_plugins[:1])]
        moments += [moment for moment in (last.finished or last.created,) if moment] if last else []
        results.append(
            ProjectSummary(
                project,
                state_of(last, read, project_plugins),
                "compare" if project_plugins else "train" if read is not None else "samples",
                max(moments),
                sentences=read,
                phrases=phrases.get(corpus_row.id) if corpus_row else None,
                plugins=len(project_plugins),
                files=len(service.sample_files(project.id)),
                busy=job_now is not None,
                best=best_of(project_plugins),
            )
        )
    return sorted(results, key=lambda summary: summary.changed, reverse=True)


def state_of(last: JobRow | None, sentences: int | None, plugins: Sequence[PluginRow]) -> tuple[str, str]:
    """The state of a project in a few words, and the kind of its tag."""
    if last is not None and last.active:
        words = tr(WORK.get(last.kind, "")) or tr("running")
        if last.paused:
            return tr("{what}: paused", what=words), "accent"
        if last.state == "queued":
            return tr("{what}: waiting", what=words), "accent"
        share = percent(last.fraction)
        if last.eta is None:
            return f"{words} {share}", "accent"
        progress = tr("{what} {share}, {time} left in this step", what=words, share=share, time=span(last.eta))
        return progress, "accent"
    if last is not None and last.state == "failed" and last.kind in FAILED:
        return tr(FAILED[last.kind]), "bad"
    if last is not None and last.state == "interrupted":
        return tr("interrupted"), "bad"
    if plugins:
        return tr("plugin ready"), "done"
    return (tr("samples read"), "") if sentences is not None else (tr("no samples read"), "")


def best_of(plugins: Sequence[PluginRow]) -> Best | None:
    """The plugin trained here with the largest BLEU gain over the base on style or held-out samples; None if none was measured.
    `plugins`: newest first.
    """
    # Plugins are compared by gain because held-out sets change with the samples and easier sentences raise every score.
    measured = [
        Best(row.name, "BLEU", score.before, score.after)
        for row in plugins
        for score in scores(row.metrics)
        if score.metric == "bleu" and score.kind != "general" and not row.imported
    ]
    return max(measured, key=lambda best: best.after - best.before, default=None)
