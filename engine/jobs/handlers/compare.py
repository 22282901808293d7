"""A comparison as a job: translate what is missing, learn what is to be learnt, measure. It goes on where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.core.json_object import Json
from engine.errors import InputError, TailorError
from engine.messages import Message
from engine.workflows.compare.evaluate import STEPS, EvalContext, measure, scored_by_style
from engine.workflows.compare.systems import Translator
from engine.workflows.compare.translate_missing import fill

if TYPE_CHECKING:
    from pathlib import Path

    from engine.base import BaseModel
    from engine.core.settings import Settings
    from engine.evaluation.evaluate import ExtraMetrics
    from engine.jobs.registry import JobContext
    from engine.store import ProjectRow, Store
    from engine.store.records import System

CLOSELY = 1000  # lines up to which TER, 50 ms each in Chinese, and ten thousand trials of every figure take seconds
PART = 16  # lines between two looks at whether to stop, and until they can be read


def check(arguments: Mapping[str, Any]) -> Json:
    """The job's arguments: the comparison's number, and terms to be used, where there are some. Raises InputError without a
    number.
    """
    terms = {"terms": str(arguments["terms"])} if arguments.get("terms") else {}
    try:
        return {"comparison_id": int(arguments["comparison_id"]), **terms}
    except (KeyError, TypeError, ValueError):
        raise InputError("A job that compares needs comparison_id, the comparison's number.") from None


def run(context: JobContext) -> Json:
    """Fill and measure the comparison; returns its number and how many sentences differ."""
    from engine.evaluation.style_scorers import load_style
    from engine.serving.model_cache import ModelCache

    store, progress = context.store, context.progress
    number = int(context.job.arguments["comparison_id"])
    sheet = store.sheets.get(number)
    project = store.projects.get(sheet.project_id)
    further = further_of(context.settings, project, sheet.lines, str(context.job.arguments.get("terms", "")))
    progress.begin("Translating", 0, STEPS)
    translate = translator_of(store, project, ModelCache(context.settings))
    done = store.sheets.count(number)[0]
    progress.advance(done, sheet.lines)
    for part in fill(store, number, translate, project.target, PART):
        done += len(part)
        progress.advance(done, sheet.lines)
    ground = ground_of(context.settings, context.workspace, project, translate.base)
    if sheet.lines > CLOSELY:
        ground.notes.append(
            Message(
                "Of more than {count:,} sentences, TER and approximate randomisation are left to `tailormt evaluate`.",
                count=CLOSELY,
            )
        )
    while True:
        sheet = store.sheets.get(number)
        lines = list(store.sheets.lines(number))
        figures = measure(lines, sheet.systems, translate, ground, progress, further)
        if sheet.revision == store.sheets.get(number).revision:
            break  # else a strength was changed while this was measured
        for _ in fill(store, number, translate, project.target, PART):
            progress.check()
    store.sheets.update(number, figures=figures)
    scorers = load_style(ground.texts, translate.base, ground.folder) if ground.texts else None
    if scorers is not None:
        again = list(scored_by_style(lines, scorers))
        for begin in range(0, len(again), 1000):
            store.sheets.rescored(number, again[begin : begin + 1000])
    return {"comparison_id": number, "sentences": sheet.lines, "different": store.sheets.count(number)[1]}


def further_of(settings: Settings, project: ProjectRow, lines: int, terms: str) -> ExtraMetrics:
    """What a comparison of so many lines has beside the usual figures; `terms` is a glossary's text."""
    from engine.evaluation.comet import Comet
    from engine.evaluation.evaluate import TRIALS, ExtraMetrics
    from engine.evaluation.terminology import parse_terms

    wanted = parse_terms(terms.splitlines(), "The terms", project.target, project.source)
    closely = lines <= CLOSELY
    return ExtraMetrics(
        closely, TRIALS if closely else 0, wanted, source_language=project.source, comet=Comet.of(settings)
    )


def translator_of(store: Store, project: ProjectRow, models: Any) -> Translator:
    """Translates with the project's base and its plugins, held in `models` (engine.serving.model_cache.ModelCache)."""
    base = models.base(project.base, project.source, project.target)

    def load(system: System) -> Any:
        row = store.plugins.get(int(system["plugin_id"] or 0))
        if not row.exists:
            raise InputError(
                "The bundle of {row} is no longer at {path}. Train it again or import it.", row=row.name, path=row.path
            )
        return models.plugin(row.path, base)

    return Translator(base, load)


def ground_of(settings: Settings, workspace: Path, project: ProjectRow, base: BaseModel) -> EvalContext:
    """The project's samples, and the base turned round where it translates both ways, else the shelf's reverse one."""
    import json

    texts: list[str] = []
    sources: list[str | None] = []
    file = workspace / "corpus.jsonl"
    if file.exists():
        with file.open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                texts.append(str(row["text"]))
                sources.append(row.get("source"))
    folder = workspace / "evaluation"
    folder.mkdir(parents=True, exist_ok=True)
    return EvalContext(
        folder, settings.assets_dir, texts, sources, reverse_of(settings, project.source, project.target, base)
    )


def reverse_of(settings: Settings, source: str, target: str, base: BaseModel) -> BaseModel | None:
    """The base turned round, else the first of the shelf that translates back; None where there is none."""
    from engine.base import BaseModel
    from engine.base.registry import BaseRegistry

    try:
        return base.directed(target, source)
    except TailorError:
        pass
    try:
        return BaseModel.load(BaseRegistry(settings).default(target, source), target, source, settings=settings)
    except TailorError:
        return None
