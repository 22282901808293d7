"""The comparison job: translates missing texts, and measures if requested or without cost. It resumes where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.core.atomic_files import read_jsonl
from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.corpora.terminology import parse_terms
from engine.errors import InputError, TailorError
from engine.evaluation.evaluate import TRIALS, ExtraMetrics
from engine.messages import Message
from engine.store.records import System
from engine.workflows.compare.evaluate import STEPS, EvalContext, is_cached, measure, scored_by_style
from engine.workflows.compare.systems import SystemTranslator
from engine.workflows.compare.translate_missing import ENFORCED, Translate, enforcing, fill

if TYPE_CHECKING:
    from engine.jobs.registry import JobContext
    from engine.store import ProjectRow, Store

CLOSELY = 1000  # lines up to which TER and randomisation tests of all figures take only seconds
PART = 16  # lines per part; stops are checked and results shown after each
FEW = 60  # lines up to which a part has only four, so that the user sees results earlier
PARTS_COUNTED = 64  # parts between two counts of the finished lines


def check(arguments: Mapping[str, Any]) -> Json:
    """The arguments: `comparison_id`, `terms` to count and enforce if any, and `measure` if false.

    Without `measure`, figures are computed only if all their inputs are already cached. Raises InputError without an id.
    """
    more: Json = {"terms": str(arguments["terms"])} if arguments.get("terms") else {}
    if not arguments.get("measure", True):
        more["measure"] = False
    try:
        return {"comparison_id": int(arguments["comparison_id"]), **more}
    except (KeyError, TypeError, ValueError):
        raise InputError("A job that compares needs comparison_id, the comparison's number.") from None


def run(context: JobContext) -> Json:
    """Fill the comparison and measure it; returns its id and the number of sentences, and of those that differ."""
    from engine.evaluation.style_scorers import load_style
    from engine.serving.model_cache import ModelCache

    store, progress, arguments = context.store, context.progress, context.job.arguments
    number = int(arguments["comparison_id"])
    sheet = store.sheets.get(number)
    project = store.projects.get(sheet.project_id)
    extra_metrics = build_extra_metrics(context.settings, project, sheet.lines, str(arguments.get("terms", "")))
    measure_requested = bool(arguments.get("measure", True))
    steps = STEPS if measure_requested else 2
    progress.begin("Loading the base", 0, steps)
    translate = translator_of(store, project, ModelCache(context.settings))
    eval_context = build_eval_context(context.settings, context.workspace, project, translate.base)
    if sheet.lines > CLOSELY:
        eval_context.notes.append(
            Message(
                "For more than {count:,} sentences, use `tailormt evaluate` to compute TER and approximate randomisation.",
                count=CLOSELY,
            )
        )
    if any(system.get("enforced") for system in sheet.systems):
        eval_context.notes.append(ENFORCED)
    while True:
        _translate(context, number, enforcing(translate, extra_metrics.terms), project.target, steps)
        sheet = store.sheets.get(number)
        if not measure_requested and (
            context.settings.comet or len(sheet.systems) < 2 or not is_cached(sheet.systems, translate, eval_context)
        ):
            metrics = None
        else:
            lines = list(store.sheets.lines(number))
            metrics = measure(lines, sheet.systems, translate, eval_context, progress, extra_metrics)
        if sheet.revision == store.sheets.get(number).revision and not store.sheets.pending(number, 1):
            break  # otherwise a strength was changed meanwhile
    if metrics is not None:
        store.sheets.update(number, figures=metrics)
        scorers = load_style(eval_context.texts, translate.base, eval_context.folder) if eval_context.texts else None
        again = list(scored_by_style(lines, scorers)) if scorers is not None else []
        for begin in range(0, len(again), 1000):
            store.sheets.rescored(number, again[begin : begin + 1000])
    return {"comparison_id": number, "sentences": sheet.lines, "different": store.sheets.count(number)[1]}


def _translate(context: JobContext, number: int, translate: Translate, language: str, steps: int) -> None:
    """Translate missing lines; existing ones count as done."""
    store, progress = context.store, context.progress
    lines = store.sheets.get(number).lines
    progress.begin("Translating", 1, steps)
    done = store.sheets.count(number)[0]
    progress.advance(done, lines)
    for parts, lately in enumerate(fill(store, number, translate, language, PART if lines > FEW else 4), start=1):
        # Counting reads every line, so it is done rarely; a changed strength reduces the number of finished lines.
        done = store.sheets.count(number)[0] if parts % PARTS_COUNTED == 0 else min(done + len(lately), lines)
        progress.advance(done, lines)


def build_extra_metrics(settings: Settings, project: ProjectRow, lines: int, terms: str) -> ExtraMetrics:
    """The additional metrics of a comparison with this number of lines; `terms` is the text of a glossary."""
    from engine.evaluation.comet import Comet

    parsed_terms = parse_terms(terms.splitlines(), Message("The terms"), project.target, project.source)
    closely = lines <= CLOSELY
    return ExtraMetrics(closely, TRIALS if closely else 0, parsed_terms, source_language=project.source, comet=Comet.of(settings))


def translator_of(store: Store, project: ProjectRow, models: Any) -> SystemTranslator:
    """A translator with the project's base and plugins, cached in `models` (engine.serving.model_cache.ModelCache).

    Raises InputError for a plugin whose bundle is missing.
    """
    base = models.base(project.base, project.source, project.target)

    def load(system: System) -> Any:
        row = store.plugins.get(int(system["plugin_id"] or 0))
        if not row.exists:
            raise InputError("The bundle of {row} no longer exists. Train it again or import it.", row=row.name)
        return models.plugin(row.path, base)

    return SystemTranslator(base, load)


def build_eval_context(settings: Settings, workspace: Path, project: ProjectRow, base: BaseModel) -> EvalContext:
    """The context for measuring: the project's samples, and a reverse base if any."""
    file = workspace / "corpus.jsonl"
    rows = list(read_jsonl(file)) if file.exists() else []
    texts, sources = [str(row["text"]) for row in rows], [row.get("source") for row in rows]
    folder = workspace / "evaluation"
    folder.mkdir(parents=True, exist_ok=True)
    return EvalContext(folder, settings, texts, sources, reverse_of(settings, project.source, project.target, base))


def reverse_of(settings: Settings, source: str, target: str, base: BaseModel) -> BaseModel | None:
    """The base in the reverse direction if supported, else the registry's default for it; None if there is none."""
    from engine.base.registry import BaseRegistry

    try:
        return base.for_direction(target, source)
    except TailorError:
        pass
    try:
        return BaseModel.load(BaseRegistry(settings).default(target, source), target, source, settings=settings)
    except TailorError:
        return None
