"""`tailormt evaluate`: scores existing translations, or a base and plugins on sentences that they translate first.

It shares its code with the studio's page Compare, so the same files yield the same figures.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.commands import Shown, load_base
from engine.core.progress import Progress
from engine.errors import OptionError
from engine.store.records import System

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.evaluation.evaluate import ExtraMetrics
    from engine.evaluation.style_scorers import StyleScorers
    from engine.store.comparisons import ComparisonLineRow
    from engine.workflows.compare.evaluate import EvalContext
    from engine.workflows.compare.export import Content
    from engine.workflows.compare.translate_missing import Translate


def evaluate(args: argparse.Namespace) -> Shown:
    """Score files, or systems on sentences. Raises OptionError for flags that cannot be combined."""
    if bool(args.input) == bool(args.system):
        raise OptionError("Give translations to score as NAME=FILE, or sentences to translate with --input; one of the two.")
    if (args.input or args.samples) and not args.source:
        raise OptionError("--source is needed: the language that is translated from.")
    if args.enforce_terms and not (args.input and args.terms):
        raise OptionError("--enforce-terms needs --input, the sentences, and --terms, the terminology.")
    return of_sentences(args) if args.input else of_files(args)


def of_files(args: argparse.Namespace) -> Shown:
    """Score existing translations. Raises OptionError if there is nothing to score them with."""
    from engine.evaluation import evaluate_files, read_lines

    if not (args.reference or args.samples or ((args.terms or args.settings.comet) and args.sources)):
        raise OptionError("Give --reference for BLEU and chrF, or --samples for the style's figures.")
    check_outputs(args)
    args.progress.resumes = False
    systems: dict[str, Path] = {}
    for system in args.system:
        name, mark, file = system.partition("=")
        name = name.strip() if mark else Path(system).stem
        if not name or name in systems:
            raise OptionError(f"{system}: give each system a name of its own, as NAME=FILE.")
        systems[name] = Path(file if mark else system)
    report = evaluate_files(
        systems,
        Path(args.reference) if args.reference else None,
        language=args.target,
        baseline=args.baseline or next(iter(systems)),
        seed=args.seed,
        further=dataclasses.replace(
            build_extra_metrics(args, read_lines(args.sources) if args.sources else None),
            style=scorers_of(args) if args.samples else None,
        ),
        progress=args.progress,
    )
    if args.output:
        write_all(args, content_of_files(args, systems, report.to_mapping()))
    return report.to_mapping(), report.table()


def build_extra_metrics(args: argparse.Namespace, sources: list[str] | None) -> ExtraMetrics:
    """The additional metrics requested on the command line."""
    from engine.corpora.terminology import read_terms
    from engine.evaluation.comet import Comet
    from engine.evaluation.evaluate import TRIALS, ExtraMetrics

    terms = read_terms(Path(args.terms), args.target, args.source) if args.terms else []
    return ExtraMetrics(args.ter, TRIALS, terms, sources, args.source, Comet.of(args.settings))


def content_of_files(args: argparse.Namespace, systems: dict[str, Path], report: dict[str, Any]) -> Content:
    """The lines of the files as a comparison, with the baseline first."""
    from engine.evaluation import read_lines
    from engine.store.comparisons import ComparisonLineRow
    from engine.workflows.compare.translate_missing import judged

    names = sorted(systems, key=lambda name: name != report["baseline"])
    texts = [read_lines(systems[name]) for name in names]
    blank: list[Any] = [None] * report["lines"]
    sources = read_lines(args.sources) if args.sources else [""] * report["lines"]
    references = read_lines(args.reference) if args.reference else blank
    lines = [
        judged(ComparisonLineRow(index, source, reference, row, [None] * len(texts), None, None), args.target)
        for index, (source, reference, *row) in enumerate(zip(sources, references, *texts, strict=False))
    ]
    return content_of_lines(
        args, Path(args.reference).name if args.reference else ", ".join(names), "",
        [{"name": name, "plugin_id": None, "method": "", "strength": 1.0} for name in names],
        {"text": report, "general": None, "notes": []}, lines, len(lines) if args.reference else 0,
    )  # fmt: skip


def content_of_lines(
    args: argparse.Namespace, title: str, base: str, systems: list[System], metrics: dict[str, Any],
    lines: list[ComparisonLineRow], references: int,
) -> Content:  # fmt: skip
    from engine.workflows.compare.export import Content

    return Content(
        title=title,
        source=args.source,
        target=args.target,
        base=base,
        created=datetime.datetime.now(datetime.UTC),
        systems=systems,
        figures=metrics,
        lines=lambda: iter(lines),
        count=len(lines),
        references=references,
    )


def check_outputs(args: argparse.Namespace) -> None:
    """Check that the requested files can be written, before any work."""
    from engine.core.atomic_files import check_writable

    for output in args.output:
        check_writable(Path(output), "the comparison")


def write_all(args: argparse.Namespace, content: Content) -> None:
    from engine.workflows.compare.export import write

    for output in args.output:
        write(content, Path(output))


def of_sentences(args: argparse.Namespace) -> Shown:
    """Translate sentences with a base and plugins, score them, and write them if requested."""
    from engine.core.step_cache import digest_files
    from engine.evaluation import Report
    from engine.workflows.compare.evaluate import measure
    from engine.workflows.compare.input import read_sentences
    from engine.workflows.compare.systems import SystemTranslator
    from engine.workflows.compare.translate_missing import ENFORCED, enforcing

    check_outputs(args)
    read = read_sentences(args.input, args.source, args.target)
    base = load_base(args)
    systems, paths = named_systems(args)
    translate = SystemTranslator.of_files(base, paths, args.settings.home_dir / "unpacked")
    extra_metrics, eval_context = build_extra_metrics(args, None), build_eval_context(args, base)
    if args.enforce_terms:
        systems = [{**system, "enforced": digest_files([args.terms])[0]} for system in systems]
        eval_context.notes.append(ENFORCED)
    lines = translated_lines(read.lines, systems, enforcing(translate, extra_metrics.terms), base.target, args.progress)
    metrics = measure(lines, systems, translate, eval_context, args.progress, extra_metrics)
    if args.output:
        title = Path(args.input[0]).name
        write_all(args, content_of_lines(args, title, base.name, systems, metrics, lines, read.references))
    parts = [
        f"{title}\n{Report.from_mapping(metrics[kind]).table()}"
        for kind, title in (("text", "These sentences"), ("general", "General text"))
        if metrics[kind]
    ]
    return {**metrics, "output": args.output}, "\n\n".join([*parts, *metrics["notes"], *read.notes])


def named_systems(args: argparse.Namespace) -> tuple[list[System], dict[str, Path]]:
    """The base and the plugins as systems of a comparison, and the plugins' bundles by system name.

    Raises OptionError for too many plugins or strengths.
    """
    from engine.plugins import read_bundle_card
    from engine.workflows.compare.systems import MOST_PLUGINS, VANILLA

    plugins, strengths = args.plugin or [], args.strength or []
    if len(plugins) > MOST_PLUGINS:
        raise OptionError(f"--plugin: up to {MOST_PLUGINS} plugins are compared at once.")
    if len(strengths) > len(plugins):
        raise OptionError("--strength: there are more strengths than plugins.")
    systems: list[System] = [{"name": VANILLA, "plugin_id": None, "method": "", "strength": 1.0}]
    paths: dict[str, Path] = {}
    for index, path in enumerate(plugins):
        card = read_bundle_card(Path(path))
        name, number = str(card["name"]), 2
        while name in paths or name == VANILLA:
            name, number = f"{card['name']} ({number})", number + 1
        strength = strengths[index] if index < len(strengths) else 1.0
        systems.append({"name": name, "plugin_id": None, "method": card["method"], "strength": strength})
        paths[name] = Path(path)
    return systems, paths


def translated_lines(
    sentences: list[tuple[str, str | None]], systems: list[System], translate: Translate, target: str, progress: Progress
) -> list[ComparisonLineRow]:
    from engine.jobs.handlers.compare import PART
    from engine.store.comparisons import ComparisonLineRow
    from engine.workflows.compare.evaluate import STEPS
    from engine.workflows.compare.translate_missing import judged, translated

    progress.begin("Translating", 0, STEPS)
    blank: list[Any] = [None] * len(systems)
    lines = [
        ComparisonLineRow(index, source, reference, list(blank), list(blank), None, None)
        for index, (source, reference) in enumerate(sentences)
    ]
    done: list[ComparisonLineRow] = []
    for begin in range(0, len(lines), PART):
        part = translated(lines[begin : begin + PART], systems, translate)
        done += [judged(line, target) for line in part]
        progress.advance(len(done), len(lines))
    return done


def build_eval_context(args: argparse.Namespace, base: BaseModel) -> EvalContext:
    """The context for measuring: the imported samples, a folder for them in the home folder, and a reverse base if any."""
    from engine.core.step_cache import content_hash
    from engine.jobs.handlers.compare import reverse_of
    from engine.workflows.compare.evaluate import EvalContext

    texts: list[str] = []
    sources: list[str | None] = []
    if args.samples:
        from engine.corpora import import_corpus
        from engine.corpora.bundled import named_files

        files = [Path(path) for path in named_files(args.samples, args.settings.assets_dir)]
        corpus = import_corpus(files, args.target, source_language=args.source)
        texts, sources = corpus.texts(), [segment.source for segment in corpus.segments]
    folder = args.settings.home_dir / "evaluation" / content_hash(base.fingerprint(), args.source, args.target, texts)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    backward = reverse_of(args.settings, args.source, args.target, base)
    return EvalContext(folder, args.settings, texts, sources, backward, args.seed, args.general)


def scorers_of(args: argparse.Namespace) -> StyleScorers:
    from engine.evaluation.style_scorers import learn_style

    base = load_base(args)
    eval_context = build_eval_context(args, base)
    return learn_style(
        eval_context.texts, base, eval_context.folder, eval_context.settings.assets_dir,
        backward=eval_context.backward, sources=eval_context.sources, progress=args.progress,
    )  # fmt: skip
