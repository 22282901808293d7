"""The figures of a comparison: on its own sentences, and on general text beside it, each with interval and p against vanilla.

BLEU and chrF need references; the style's perplexity and classifier score need only the samples. General text shows what a
plugin does where it was not asked for.
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
from engine.evaluation.general_text import (
    baseline_key,
    general_is_kept,
    general_pairs,
    keep_translations,
    kept_in,
    translations,
)
from engine.messages import Message, mark
from engine.store.records import System
from engine.workflows.compare.systems import SystemTranslator
from engine.workflows.compare.translate_missing import largest_change

if TYPE_CHECKING:
    from engine.evaluation.style_scorers import StyleScorers
    from engine.store.comparisons import ComparisonLineRow

STEPS = 7  # of a comparison with everything: loading, translating, three of the style's scorers, general text, scoring
SAMPLES = 1000  # bootstrap resamples
PART = 16  # general sentences translated between two looks at whether to stop


@dataclass(frozen=True)
class EvalContext:
    """What figures rest on beside the sentences: the style's samples (with sources where they have some), the reverse model
    and the settings for general text, and the folder where what was learnt and translated is kept.
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
    ground: EvalContext,
    progress: Progress,
    further: ExtraMetrics | None = None,
) -> dict[str, Any]:
    """Figures as JSON can hold them: "text" and "general" (reports as `engine.evaluation.Report` maps them, or None),
    "style" (what its scorers rest on, or None), "decoding" (by system), "notes", "measured".

    Raises Cancelled; what was learnt and translated until then is kept.
    """
    scorers = style_scorers(translate.base, ground, progress)
    general = measure_general(systems, translate, ground, progress) if ground.general else None
    progress.begin("Scoring", 6, STEPS)
    with_reference = [line for line in lines if line.reference]
    used = with_reference or list(lines)
    notes = list(ground.notes)
    if with_reference and len(with_reference) < len(lines):
        notes.append(
            Message(
                "Measured on the {count:,} of {all:,} sentences that have a reference.", count=len(used), all=len(lines)
            )
        )
    extra = ExtraMetrics(style=scorers)
    if further:
        extra = dataclasses.replace(further, style=scorers, sources=[line.source for line in used])
    report = None
    if with_reference or scorers is not None or (further is not None and further.comet_scores(None)):
        report = evaluate(
            {str(system["name"]): [line.texts[i] or "" for line in used] for i, system in enumerate(systems)},
            [line.reference or "" for line in used] if with_reference else None,
            language=translate.base.target,
            baseline=str(systems[0]["name"]),
            samples=SAMPLES,
            seed=ground.seed,
            further=extra,
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


def style_scorers(base: BaseModel, ground: EvalContext, progress: Progress) -> StyleScorers | None:
    """Those of the samples, learnt where that was not done; None, with a note, where there are too few of them."""
    from engine.evaluation.style_scorers import learn_style

    if not ground.texts:
        return None
    try:
        return learn_style(
            ground.texts, base, ground.folder, ground.settings.assets_dir,
            backward=ground.backward, sources=ground.sources, progress=progress, steps=range(2, STEPS),
        )  # fmt: skip
    except CorpusError as error:
        ground.notes.append(error.message)
        return None


def measure_general(
    systems: Sequence[System], translate: SystemTranslator, ground: EvalContext, progress: Progress
) -> dict[str, Any] | None:
    """BLEU and chrF of every system on general text; None, with a note, where there is none of the language."""
    progress.begin("Translating general text", 5, STEPS)
    base = translate.base
    pairs = general_pairs_of(ground, progress)
    if not pairs:
        ground.notes.append(
            mark(
                "General text is not scored: no general sample of the language is bundled, or there is no "
                "reverse model."
            )
        )
        return None
    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    made: dict[str, list[str]] = {}
    total = len(systems) * len(sources)
    for system in systems:
        folder, key = general_place(sources, system, translate, ground)
        result = translations(folder, key, len(sources))
        if result is None:
            result = []
            for begin in range(0, len(sources), PART):
                progress.advance(len(made) * len(sources) + begin, total, str(system["name"]))
                result += translate(system, sources[begin : begin + PART])
            keep_translations(folder, key, result)
        made[str(system["name"])] = result
    progress.advance(total, total)
    return evaluate(
        made, references, language=base.target, baseline=str(systems[0]["name"]), samples=SAMPLES, seed=ground.seed
    ).to_mapping()


def ready(systems: Sequence[System], translate: SystemTranslator, ground: EvalContext) -> bool:
    """Whether all that `measure` would have to learn or translate is kept already, so that it takes no time."""
    from engine.evaluation.style_scorers import load_style

    base = translate.base
    if ground.texts and load_style(ground.texts, base, ground.folder) is None:
        return False
    if not ground.general or ground.backward is None:
        return bool(ground.texts)
    if not general_is_kept(ground.backward, ground.settings):
        return False
    sources = [source for source, _ in general_pairs_of(ground)]
    kept = (general_place(sources, system, translate, ground) for system in systems)
    return all(translations(folder, key, len(sources)) is not None for folder, key in kept)


def general_pairs_of(ground: EvalContext, progress: Progress | None = None) -> list[tuple[str, str]]:
    """The general text on which plugins are measured when they are made."""
    if ground.backward is None:
        return []
    return general_pairs(ground.backward, ground.settings, exclude=ground.texts, progress=progress)


def general_place(
    sources: Sequence[str], system: System, translate: SystemTranslator, ground: EvalContext
) -> tuple[Path, str]:
    """The folder and the key of a system's translations of general text: those of the base alone are the ones that plugins are
    measured against when they are made, others belong to the bundle's content, the strength and the decoding.
    """
    base, plugin = translate.base, translate.plugin(system)
    if plugin is None:
        return kept_in(ground.settings), baseline_key(base, sources)
    # Bundles are unpacked to a folder that their content names.
    name = plugin.folder.name if plugin.folder else plugin.name
    made_by = [name, float(system["strength"]), translate.decoding(system)]
    return ground.folder, content_hash(base.fingerprint(), base.source, base.target, list(sources), made_by)


def scored_by_style(lines: Sequence[ComparisonLineRow], scorers: StyleScorers) -> Iterator[ComparisonLineRow]:
    """Lines without references, scored by how sure the classifier is of the style, 0 to 100."""
    if scorers.classifier is None:
        return
    lone = [line for line in lines if not line.reference]
    columns = [scorers.classifier.score([line.texts[i] or "" for line in lone]) for i in range(len(lines[0].texts))]
    for index, line in enumerate(lone):
        scores: list[float | None] = [round(100 * column[index], 2) for column in columns]
        yield dataclasses.replace(line, scores=scores, change=largest_change(scores))
