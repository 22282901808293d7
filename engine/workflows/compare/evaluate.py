"""The figures of a comparison, on its own sentences and on general text, each with an interval and p against vanilla.

BLEU and chrF need references; the style's perplexity and classifier score need only the samples. General text shows how a plugin
affects text that it was not made for.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.core.step_cache import content_hash
from engine.errors import CorpusError
from engine.evaluation.evaluate import ExtraMetrics, evaluate
from engine.evaluation.general_text import baseline_key, general_is_kept, general_pairs, keep_translations, kept_in, translations
from engine.messages import Message, mark
from engine.store.records import System
from engine.workflows.compare.systems import SystemTranslator
from engine.workflows.compare.translate_missing import largest_change

if TYPE_CHECKING:
    from engine.evaluation.style_scorers import StyleScorers
    from engine.store.comparisons import ComparisonLineRow

STEPS = 7  # of a complete comparison: loading, translating, three of the style's scorers, general text, scoring
SAMPLES = 1000  # bootstrap resamples
PART = 16  # general sentences translated between two checks for cancellation


@dataclass(frozen=True)
class EvalContext:
    """What figures are based on besides the sentences: the style's samples (with their sources, if any), the reverse model and the
    settings for general text, and the folder of stored scorers and translations.
    """

    folder: Path
    settings: Settings
    texts: Sequence[str] = ()
    sources: Sequence[str | None] = ()
    backward: BaseModel | None = None
    seed: int = 12345
    general: bool = True
    notes: list[str] = field(default_factory=list)


def measure(
    lines: Sequence[ComparisonLineRow],
    systems: Sequence[System],
    translate: SystemTranslator,
    eval_context: EvalContext,
    progress: Progress,
    extra_metrics: ExtraMetrics | None = None,
) -> dict[str, Any]:
    """Figures that can be written as JSON: "text" and "general" (mappings of `engine.evaluation.Report`, or None), "style" (facts
    about its scorers, or None), "decoding" (by system), "notes", "measured".

    Raises Cancelled; finished scorers and translations are kept.
    """
    scorers = style_scorers(translate.base, eval_context, progress)
    general = measure_general(systems, translate, eval_context, progress) if eval_context.general else None
    progress.begin("Scoring", 6, STEPS)
    with_reference = [line for line in lines if line.reference]
    used = with_reference or list(lines)
    notes = list(eval_context.notes)
    if with_reference and len(with_reference) < len(lines):
        notes.append(
            Message("Measured on the {count:,} of {all:,} sentences that have a reference.", count=len(used), all=len(lines))
        )
    metrics = ExtraMetrics(style=scorers)
    if extra_metrics:
        metrics = dataclasses.replace(extra_metrics, style=scorers, sources=[line.source for line in used])
    report = None
    if with_reference or scorers is not None or (extra_metrics is not None and extra_metrics.comet_scores(None)):
        report = evaluate(
            {str(system["name"]): [line.texts[i] or "" for line in used] for i, system in enumerate(systems)},
            [line.reference or "" for line in used] if with_reference else None,
            language=translate.base.target,
            baseline=str(systems[0]["name"]),
            samples=SAMPLES,
            seed=eval_context.seed,
            further=metrics,
            progress=progress,
        ).to_mapping()
    return {
        "text": report,
        "general": general,
        "style": scorers.to_mapping() if scorers else None,
        "decoding": {str(system["name"]): translate.decoding(system) for system in systems},
        "notes": notes,
        "measured": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def style_scorers(base: BaseModel, eval_context: EvalContext, progress: Progress) -> StyleScorers | None:
    """The scorers of the samples, trained if necessary; None without samples, or with a note if there are too few."""
    from engine.evaluation.style_scorers import learn_style

    if not eval_context.texts:
        return None
    try:
        return learn_style(
            eval_context.texts, base, eval_context.folder, eval_context.settings.assets_dir,
            backward=eval_context.backward, sources=eval_context.sources, progress=progress, steps=range(2, STEPS),
        )  # fmt: skip
    except CorpusError as error:
        eval_context.notes.append(error.message)
        return None


def measure_general(
    systems: Sequence[System], translate: SystemTranslator, eval_context: EvalContext, progress: Progress
) -> dict[str, Any] | None:
    """BLEU and chrF of every system on general text; None, with a note, if there is none in the language."""
    progress.begin("Translating general text", 5, STEPS)
    base = translate.base
    pairs = general_pairs_of(eval_context, progress)
    if not pairs:
        eval_context.notes.append(
            mark("General text is not scored: no general sample of the language is bundled, or there is no reverse model.")
        )
        return None
    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    outputs: dict[str, list[str]] = {}
    total = len(systems) * len(sources)
    for system in systems:
        folder, key = general_cache_key(sources, system, translate, eval_context)
        result = translations(folder, key, len(sources))
        if result is None:
            result = []
            for begin in range(0, len(sources), PART):
                progress.advance(len(outputs) * len(sources) + begin, total, str(system["name"]))
                result += translate(system, sources[begin : begin + PART])
            keep_translations(folder, key, result)
        outputs[str(system["name"])] = result
    progress.advance(total, total)
    return evaluate(
        outputs, references, language=base.target, baseline=str(systems[0]["name"]), samples=SAMPLES, seed=eval_context.seed
    ).to_mapping()


def is_cached(systems: Sequence[System], translate: SystemTranslator, eval_context: EvalContext) -> bool:
    """Whether all scorers and translations needed by `measure` are already stored, so that it takes no time."""
    from engine.evaluation.style_scorers import load_style

    base = translate.base
    if eval_context.texts and load_style(eval_context.texts, base, eval_context.folder) is None:
        return False
    if not eval_context.general or eval_context.backward is None:
        return bool(eval_context.texts)
    if not general_is_kept(eval_context.backward, eval_context.settings):
        return False
    sources = [source for source, _ in general_pairs_of(eval_context)]
    locations = (general_cache_key(sources, system, translate, eval_context) for system in systems)
    return all(translations(folder, key, len(sources)) is not None for folder, key in locations)


def general_pairs_of(eval_context: EvalContext, progress: Progress | None = None) -> list[tuple[str, str]]:
    """The general text on which plugins are evaluated when they are made."""
    if eval_context.backward is None:
        return []
    return general_pairs(eval_context.backward, eval_context.settings, exclude=eval_context.texts, progress=progress)


def general_cache_key(
    sources: Sequence[str], system: System, translate: SystemTranslator, eval_context: EvalContext
) -> tuple[Path, str]:
    """The folder and the key of a system's translations of general text. Those of the base alone are the ones that plugins are
    compared with when they are made; others depend on the bundle's content, the strength and the decoding.
    """
    base, plugin = translate.base, translate.plugin(system)
    if plugin is None:
        return kept_in(eval_context.settings), baseline_key(base, sources)
    # Bundles are unpacked to a folder named after their content.
    name = plugin.folder.name if plugin.folder else plugin.name
    made_by = [name, float(system["strength"]), translate.decoding(system)]
    return eval_context.folder, content_hash(base.fingerprint(), base.source, base.target, list(sources), made_by)


def scored_by_style(lines: Sequence[ComparisonLineRow], scorers: StyleScorers) -> Iterator[ComparisonLineRow]:
    """Lines without references, scored by the classifier's probability of the style, 0 to 100."""
    if scorers.classifier is None:
        return
    lone = [line for line in lines if not line.reference]
    columns = [scorers.classifier.score([line.texts[i] or "" for line in lone]) for i in range(len(lines[0].texts))]
    for index, line in enumerate(lone):
        scores: list[float | None] = [round(100 * column[index], 2) for column in columns]
        yield dataclasses.replace(line, scores=scores, change=largest_change(scores))
