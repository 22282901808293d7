"""Jobs behind the pages that explore samples: domain proportions, the map of phrases, the ablation of a plugin's memory."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel, LanguagePair
from engine.core.atomic_files import read_jsonl
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.core.step_cache import content_hash
from engine.corpora import Corpus
from engine.errors import Cancelled, CorpusError, InputError
from engine.methods import get_method
from engine.methods.domain_mixing.shapes import Shown
from engine.plugins import Plugin
from engine.store.queue import AUTOMATIC
from engine.store.records import PluginRow

if TYPE_CHECKING:
    from engine.jobs.registry import JobContext

HELD_OUT = 100  # maximum number of held-out sentences


def check_ablation(arguments: Mapping[str, Any]) -> Json:
    """The arguments: the plugin's id, sources and references (both empty for the held-out set), and the memories to
    compare `against` (default: all).

    Raises InputError or OptionError for invalid arguments.
    """
    from engine.methods.ablation import KINDS, kinds_of
    from engine.plugins.ablate import Ablation, check_lines

    try:
        number = int(arguments["plugin_id"])
    except (KeyError, TypeError, ValueError):
        raise InputError("A job that exchanges a memory needs plugin_id, the plugin's number.") from None
    sources, references = (list(arguments.get(name) or ()) for name in ("sources", "references"))
    against = kinds_of(",".join(arguments.get("against") or KINDS))
    if sources or references:
        check_lines(Ablation(sources, references, against))
    return {"plugin_id": number, "sources": sources, "references": references, "against": against}


def ablation(context: JobContext) -> Json:
    """Translate with a plugin's memory and with replacements of it; see `engine.plugins.ablate`."""
    from engine.plugins.ablate import Ablation, ablate_bundle

    arguments, row = context.job.arguments, _plugin(context, int(context.job.arguments["plugin_id"]))
    sources, references = arguments.get("sources") or [], arguments.get("references") or []
    if not sources:
        sources, references = _held_out(context)
    request = Ablation(sources, references, arguments["against"])
    report = ablate_bundle(
        Path(row.path), request, base=_pair(context).forward, settings=context.settings, progress=context.progress
    )
    for variant in (report["base"], *report["variants"]):
        variant.pop("translations", None)  # too large for a row of the store
    return report


def _held_out(context: JobContext) -> tuple[list[str], list[str]]:
    """Sources and targets from the project's held-out set. Raises InputError if it is empty."""
    file = context.workspace / "pairs.jsonl"
    rows = read_jsonl(file) if file.exists() else ()
    pairs = [(row["source"], row["target"]) for row in rows if row["part"] == "valid"][:HELD_OUT]
    if not pairs:
        raise InputError("No samples of this project were held out. Enter sentences and their translations.")
    return [source for source, _ in pairs], [target for _, target in pairs]


def after_samples(context: JobContext) -> Callable[[Corpus, LanguagePair], None]:
    """A function to call once samples are read, which fits the domain proportions; errors in it do not fail the job."""

    def fit(corpus: Corpus, pair: LanguagePair) -> None:
        if context.job.project_id is None:
            return
        try:
            _fit(context, corpus, pair)
        except Cancelled:
            raise
        except CorpusError as error:
            print(f"no domain proportions: {error}", flush=True)
        except Exception:  # must not fail the job
            traceback.print_exc()

    return fit


def proportions(context: JobContext) -> Json:
    """Fit the domain proportions of a project's samples and, with `plugin_id`, read those of a plugin."""
    from engine.workflows.explore.domain_proportions import explore_plugin

    corpus, pair = Corpus.load(context.workspace), _pair(context)
    result = _fit(context, corpus, pair)
    number = context.job.arguments.get("plugin_id")
    if number is not None:
        row = _plugin(context, int(number))
        plugin = Plugin.load(row.path, pair.forward, cache=context.settings.home_dir / "unpacked")
        result = explore_plugin(pair.forward, plugin, row.id, context.workspace, context.progress)
    return {"domains": result["domains"], "seconds": result["seconds"]}


def proportions_of_plugin(context: JobContext, plugin_id: int, method: str) -> None:
    """Queue reading the domain proportions of a new plugin, if its method offers them."""
    if get_method(method).capabilities.offers_proportions:
        context.store.jobs.enqueue(
            "proportions", {"plugin_id": plugin_id}, project_id=context.job.project_id, owner=context.job.owner, priority=AUTOMATIC
        )


def phrase_map(context: JobContext) -> Json:
    """Draw the map of a project's phrases."""
    from engine.phrases.table import open_table
    from engine.workflows.explore.phrase_map import make_map

    context.progress.begin("Loading the base", 0, 3)
    project = context.store.projects.get(_project(context))
    base = BaseModel.load(project.base, project.source, project.target, settings=context.settings)
    table = open_table(context.workspace, project.target, context.settings.assets_dir, progress=context.progress)
    context.progress.begin("Reading phrases", 1, 3)
    return make_map(table, base, context.workspace, progress=context.progress)


def _fit(context: JobContext, corpus: Corpus, pair: LanguagePair) -> Shown:
    from engine.workflows.explore.domain_proportions import explore_samples

    progress: Progress = context.progress
    return explore_samples(
        corpus.segments,
        pair,
        context.workspace,
        context.settings.assets_dir,
        samples_key=content_hash([[segment.text, segment.source or "", segment.domain] for segment in corpus.segments]),
        progress=progress,
    )


def _pair(context: JobContext) -> LanguagePair:
    context.progress.begin("Loading the base")
    project = context.store.projects.get(_project(context))
    return LanguagePair.load(project.base, project.source, project.target, settings=context.settings)


def _plugin(context: JobContext, number: int) -> PluginRow:
    row = context.store.plugins.get(number)
    if row.project_id != context.job.project_id:
        raise InputError("{row} is not a plugin of this project.", row=row.name)
    return row


def _project(context: JobContext) -> int:
    if context.job.project_id is None:
        raise InputError("This job belongs to a project; name one.")
    return context.job.project_id
