"""Whether a plugin's memory matters: its translations with its memory and with replacements, without any training.

For each replacement the plugin is loaded afresh, so that no memory carries over.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel, LanguagePair
from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import Settings, load_settings
from engine.corpora import Segment, import_corpus
from engine.errors import CorpusError, InputError, OptionError
from engine.methods import get_method
from engine.methods.ablation import HOLDS, KINDS, Material, UnavailableError
from engine.plugins.plugin import Plugin

if TYPE_CHECKING:
    from engine.evaluation.report import Report
    from engine.phrases import PhraseOptions

TRUE, BASE = "true", "base"
STEPS_OF = {BASE: "Translating with the base", TRUE: "Translating with the memory"}


@dataclass(frozen=True)
class Ablation:
    """The settings of a comparison.

    `against` are kinds of `engine.methods.ablation.KINDS`, `foreign` files of general text instead of the bundled one;
    `decoding` is the plugin's if None.
    """

    sources: Sequence[str]
    references: Sequence[str]
    against: Sequence[str] = KINDS
    foreign: Sequence[Path] = ()
    decoding: Decoding | None = None
    phrase_options: PhraseOptions | None = None
    seed: int = 1


def check_ablate(card: Mapping[str, Any]) -> None:
    """Raise OptionError if a plugin, according to its bundle's card, has no memory that could be replaced."""
    if not get_method(card["method"]).capabilities.has_memory and "knn" not in card:
        raise OptionError(
            "A plugin of the method {method} has no memory, only weights, so there is nothing to replace. "
            "Specify a plugin of memory_adapter, knn, ngram_memory or translation_memory, or one with a "
            "datastore (--knn).",
            method=card["method"],
        )


def check_lines(ablation: Ablation) -> None:
    """Raise InputError unless there are sources with one reference each; OptionError on an unknown memory."""
    sources, references = len(ablation.sources), len(ablation.references)
    if sources != references:
        raise InputError(
            "There are {sources:,} source sentences and {references:,} references. Provide a reference for "
            "each source, line by line.",
            sources=sources,
            references=references,
        )
    if not any(line.strip() for line in ablation.references):
        raise InputError("There is no sentence to translate. Provide sources and references, one sentence per line.")
    for kind in ablation.against:
        if kind not in KINDS:
            raise OptionError(
                "against: there is no memory {kind!r} to compare with. Known: {kinds}.", kind=kind, kinds=", ".join(KINDS)
            )


def ablate_bundle(
    path: Path,
    ablation: Ablation,
    *,
    base: BaseModel,
    backward: str = "",
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Translate and score with each memory; results are reproducible for a given seed.

    Returns {"plugin", "method", "lines", "seed", "signatures", "base": {bleu, chrf, nll}, "variants": [{"memory", "bleu",
    "chrf", "nll", "p", "changed", "reason", "translations"}]}. `nll` is in nats per target token of the reference, `p` of BLEU
    against "true" by paired bootstrap resampling, `changed` the number of translations that differ from those of "true". A
    memory that is not available for the plugin has a `reason` and no figures. Raises OptionError, InputError, BundleError.
    """
    from engine.decoding.translate import translate
    from engine.evaluation.evaluate import evaluate
    from engine.plugins.bundle import read_bundle_card

    progress, settings = progress or Progress(), settings or load_settings()
    card = read_bundle_card(path)
    check_ablate(card)
    check_lines(ablation)
    decoding = ablation.decoding or base.decoding(card["decoding"])
    names = [BASE, TRUE, *ablation.against]
    systems: dict[str, list[str]] = {}
    losses: dict[str, float] = {}
    reasons: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="tailormt-ablate-") as folder:
        material = material_of(ablation, base, backward, settings, Path(folder), progress)
        for number, name in enumerate(names):
            progress.begin(STEPS_OF.get(name, "Translating with another memory"), number, len(names))
            plugin = None if name == BASE else Plugin.load(path, base, cache=settings.home_dir / "unpacked")
            try:
                if plugin is not None and name != TRUE:
                    exchange_memory(base, plugin, name, material)
            except (UnavailableError, CorpusError) as reason:  # too few samples for this memory
                reasons[name] = reason.message
                continue
            systems[name] = translate(base, ablation.sources, plugin, decoding=decoding, progress=progress)
            losses[name] = mean_loss(base, ablation, plugin)
    report = evaluate(systems, ablation.references, language=base.target, baseline=TRUE)
    return {
        "plugin": card["name"],
        "method": card["method"],
        "lines": len(ablation.sources),
        "seed": ablation.seed,
        "signatures": dict(report.signatures),
        "base": {key: value for key, value in row(BASE, report, losses, systems, reasons).items() if key in FIGURES},
        "variants": [row(name, report, losses, systems, reasons) for name in names[1:]],
    }


FIGURES = ("bleu", "chrf", "nll", "p", "translations")


def material_of(
    ablation: Ablation, base: BaseModel, backward: str, settings: Settings, folder: Path, progress: Progress
) -> Material:
    """The material of the replacement memories; the reverse base is loaded when first needed."""
    from engine.phrases import PhraseOptions

    def pair() -> LanguagePair:
        if backward:
            return LanguagePair(base, BaseModel.load(backward, base.target, base.source, settings=settings))
        return LanguagePair(base, base.for_direction(base.target, base.source))

    pairs = zip(ablation.sources, ablation.references, strict=True)
    texts = {"oracle": [Segment(target, source) for source, target in pairs if source.strip() and target.strip()]}
    if "foreign" in ablation.against:
        texts["foreign"] = foreign_text(ablation, base, settings)
    return Material(base, texts, folder, settings, ablation.phrase_options or PhraseOptions(), pair, ablation.seed, progress)


def foreign_text(ablation: Ablation, base: BaseModel, settings: Settings) -> list[Segment]:
    """The user's general text, or the bundled sample, without the test sentences. Raises CorpusError."""
    from engine.corpora.general_text import general_sentences

    if ablation.foreign:
        result = list(import_corpus(ablation.foreign, base.target, source_language=base.source).segments)
    else:
        result = [Segment(text) for text in general_sentences(settings.assets_dir, base.target)]
    test_sentences = {" ".join(line.split()) for line in ablation.references}
    return [segment for segment in result if " ".join(segment.text.split()) not in test_sentences]


def exchange_memory(base: BaseModel, plugin: Plugin, kind: str, material: Material) -> None:
    """Replace the memory of a loaded plugin: its method's and, if any, its datastore."""
    from engine.methods.knn.ablation import another_datastore

    if plugin.method.capabilities.has_memory:
        plugin.method.ablate(base, plugin.module, kind, material)
        plugin.module.to(base.dtype)
    if plugin.knn is not None:
        plugin.knn = another_datastore(base, plugin.knn, kind, material, plugin)


def mean_loss(base: BaseModel, ablation: Ablation, plugin: Plugin | None) -> float:
    """Negative log-likelihood of the references, in nats per token."""
    from engine.decoding.scoring import score

    pairs = [pair for pair in zip(ablation.sources, ablation.references, strict=True) if pair[1].strip()]
    scored = score(base, pairs, plugin)
    return -sum(total for total, _ in scored) / max(1, sum(count for _, count in scored))


def row(
    name: str, report: Report, losses: Mapping[str, float], systems: Mapping[str, Sequence[str]], reasons: Mapping[str, str]
) -> dict[str, Any]:
    """A variant's figures, or the reason why it is not available."""
    if name in reasons:
        return {"memory": name, **dict.fromkeys(FIGURES), "reason": reasons[name]}
    scores = next(system for system in report.systems if system.name == name)
    assert scores.bleu is not None
    assert scores.chrf is not None
    return {
        "memory": name,
        "bleu": round(scores.bleu.score, 3),
        "chrf": round(scores.chrf.score, 3),
        "nll": round(losses[name], 4),
        "p": None if scores.bleu.p is None else round(scores.bleu.p, 4),
        "changed": sum(a != b for a, b in zip(systems[name], systems[TRUE], strict=True)),
        "translations": list(systems[name]),
    }


def table_rows(result: Mapping[str, Any]) -> list[list[str]]:
    """The variants as table cells: memory, its content, BLEU, chrF, NLL, p, changed lines or the reason for missing figures."""
    rows = []
    for variant in [{"memory": "no plugin", **result["base"]}, *result["variants"]]:
        name = variant["memory"]
        holds = HOLDS.get(name, "as it is" if name == TRUE else "the base alone")
        if variant.get("reason"):
            rows.append([name, holds, "", "", "", "", variant["reason"]])
            continue
        p = "" if variant["p"] is None else f"{variant['p']:.3f}"
        changed = "" if variant.get("changed") is None or name == TRUE else str(variant["changed"])
        rows.append([name, holds, f"{variant['bleu']:.2f}", f"{variant['chrf']:.2f}", f"{variant['nll']:.3f}", p, changed])
    return rows
