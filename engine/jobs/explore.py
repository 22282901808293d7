"""Jobs that make something to be looked at: domain proportions of samples and plugins, the map of phrases."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.errors import Cancelled, CorpusError, InputError
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base import LanguagePair
    from engine.corpora import Corpus
    from engine.jobs.kinds import JobContext
    from engine.store.rows import PluginRow

__all__ = ["after_samples", "phrase_map", "proportions", "proportions_of_plugin"]


def after_samples(context: JobContext) -> Callable[[Corpus, LanguagePair], None]:
    """Fits the proportions as soon as the samples are read; what stands in the way is kept for their page."""

    def fit(corpus: Corpus, pair: LanguagePair) -> None:
        if context.job.project_id is None:
            return
        try:
            _fit(context, corpus, pair)
        except Cancelled:
            raise
        except CorpusError as error:
            print(f"no domain proportions: {error}", flush=True)
        except Exception:  # the samples are read, whatever happens to a picture of them
            traceback.print_exc()

    return fit


def proportions(context: JobContext) -> dict[str, Any]:
    """Fit the proportions of a project's samples, or read those of its plugin `plugin_id`."""
    from engine.corpora import Corpus
    from engine.methods.domain_mixing.explore import explore_plugin
    from engine.plugins import Plugin

    corpus, pair = Corpus.load(context.workspace), _pair(context)
    shown = _fit(context, corpus, pair)
    number = context.job.arguments.get("plugin_id")
    if number is not None:
        row = _plugin(context, int(number))
        plugin = Plugin.load(row.path, pair.forward, cache=context.settings.home_dir / "unpacked")
        shown = explore_plugin(pair.forward, plugin, row.id, context.workspace, context.progress)
    return {"domains": shown["domains"], "seconds": shown["seconds"]}


def proportions_of_plugin(context: JobContext, plugin_id: int, method: str) -> None:
    """Queue the reading of a new plugin's proportions, where its method has some."""
    from engine.methods import get_method

    if get_method(method).capabilities.offers_proportions:
        context.store.jobs.enqueue(
            "proportions", {"plugin_id": plugin_id}, project_id=context.job.project_id, owner=context.job.owner,
            priority=context.job.priority,
        )  # fmt: skip


def phrase_map(context: JobContext) -> dict[str, Any]:
    """Draw the map of a project's phrases."""
    from engine.base import BaseModel
    from engine.phrases.map import make_map
    from engine.phrases.table import open_table

    context.progress.begin("Loading the base", 0, 3)
    project = context.store.projects.get(_project(context))
    base = BaseModel.load(project.base, project.source, project.target, settings=context.settings)
    table = open_table(context.workspace, project.target, context.settings.assets_dir, progress=context.progress)
    context.progress.begin("Reading phrases", 1, 3)
    return make_map(table, base, context.workspace, progress=context.progress)


def _fit(context: JobContext, corpus: Corpus, pair: LanguagePair) -> dict[str, Any]:
    from engine.methods.domain_mixing.explore import explore_samples
    from engine.stamps import digest

    progress: Progress = context.progress
    return explore_samples(
        corpus.segments,
        pair,
        context.workspace,
        context.settings.assets_dir,
        stamp=digest([[one.text, one.source or "", one.domain] for one in corpus.segments]),
        progress=progress,
    )


def _pair(context: JobContext) -> LanguagePair:
    from engine.base import LanguagePair

    context.progress.begin("Loading the base")
    project = context.store.projects.get(_project(context))
    return LanguagePair.load(project.base, project.source, project.target, settings=context.settings)


def _plugin(context: JobContext, number: int) -> PluginRow:
    row = context.store.plugins.get(number)
    if row.project_id != context.job.project_id:
        raise InputError(f"{row.name} is no plugin of this project.")
    return row


def _project(context: JobContext) -> int:
    if context.job.project_id is None:
        raise InputError("This job belongs to a project; name one.")
    return context.job.project_id
