"""The command `tailormt proportions`: domain proportions of the words of samples and sentences."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.commands import load_base
from engine.core.options import from_flags
from engine.core.progress import Progress
from engine.core.text_table import table
from engine.corpora import CorpusOptions, import_corpus
from engine.corpora.formats.text_lines import read_lines
from engine.errors import InputError

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.methods.domain_mixing.model import ProportionModel
    from engine.methods.domain_mixing.shapes import SentenceProportions
    from engine.plugins import Plugin

LISTED = 12  # words listed per domain


def proportions(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.methods.domain_mixing.proportions import proportions_of
    from engine.plugins import Plugin
    from engine.workflows.explore.domain_proportions import model_of

    if bool(args.samples) + bool(args.plugin) + bool(args.model) == 0 or (args.plugin and (args.samples or args.model)):
        raise InputError("Give --samples to fit proportions on, or --model with fitted ones, or a --plugin.")
    language = args.source if args.side == "encoder" else args.target
    sentences = [args.sentence] if args.sentence else read_lines(args.input, language) if args.input else []
    if not sentences and not args.samples:
        raise InputError("Give a SENTENCE, or a file of them with --input.")
    args.progress.begin("Loading the base")
    base = load_base(args)
    plugin: Plugin | None = None
    if args.plugin:
        plugin = Plugin.load(args.plugin, base)
        model = model_of(plugin, args.plugin)
    else:
        model = fitted(args, base)
    results: list[SentenceProportions] = []
    if sentences:
        args.progress.begin("Reading sentences")
        results = proportions_of(
            base, model, sentences, args.side, plugin=plugin, progress=args.progress,
            sources=sources_of(base, model, sentences, args.side, args.progress),
        )  # fmt: skip
    value = {**model.to_mapping(), "corpus": model.corpus, "sentences": results}
    return value, "\n\n".join([*corpus_text(model), *map(sentence_text, results)])


def fitted(args: argparse.Namespace, base: BaseModel) -> ProportionModel:
    """Fit proportions on the samples and save them to --model, if given; without samples, load them from there."""
    from engine.corpora.bundled import named_files
    from engine.methods.domain_mixing.config import DomainMixingConfig
    from engine.methods.domain_mixing.domains import by_domain, with_general
    from engine.methods.domain_mixing.model import ProportionModel
    from engine.methods.domain_mixing.proportions import fit_proportions

    if not args.samples:
        return ProportionModel.load(Path(args.model), base)
    config = from_flags(DomainMixingConfig, args)
    files = named_files(args.samples, args.settings.assets_dir)
    args.progress.begin("Reading samples")
    corpus = import_corpus(
        files, args.target, source_language=args.source, domains=args.domains,
        options=CorpusOptions(domain_from_file=len(files) > 1), progress=args.progress,
    )  # fmt: skip
    domains = with_general(by_domain(corpus.segments), args.target, args.settings.assets_dir, config.general, corpus.texts())
    args.progress.begin("Fitting domain proportions")
    model = fit_proportions(base, domains, config, progress=args.progress)
    if args.model:
        model.save(Path(args.model))
    return model


def sources_of(base: BaseModel, model: ProportionModel, sentences: list[str], side: str, progress: Progress) -> list[str] | None:
    """Back-translations as sources for a decoder that was fitted with sources; None if not needed or not possible."""
    from engine.decoding.greedy_search import back_translate
    from engine.methods.domain_mixing.proportions import reversed_base

    other = reversed_base(base) if model.sources and side == "decoder" else None
    return back_translate(other, sentences, progress=progress) if other is not None else None


def corpus_text(model: ProportionModel) -> list[str]:
    """The quality of the fit on held-out words, and the words of each domain."""
    blocks = []
    for side, result in model.corpus.items():
        held_out = model.held_out[side]
        rows = [
            [layer, f"{proportion:.2f}", f"{right:.0%}"]
            for layer, proportion, right in zip(
                held_out["layers"], held_out["own_proportion"], held_out["words_leaning_right"], strict=True
            )
        ]
        blocks.append(
            f"The {side}, on {held_out['words']} words held out; of {held_out['sentences']} held-out sentences "
            f"{held_out['sentences_leaning_right']:.0%} lean to their own domain.\n"
            + table(["layer", "own proportion", "words leaning towards it"], rows)
        )
        lists = result["words"]
        for name in result["domains"]:
            blocks.append(f"{name}: " + ", ".join(row["text"] for row in lists["of"][name][:LISTED]))
        blocks.append("Shared: " + ", ".join(row["text"] for row in lists["shared"][:LISTED]))
    return blocks


def sentence_text(shares: SentenceProportions) -> str:
    """A table of the words of a sentence and their proportions."""
    rows = [[word["text"], *(f"{p:.2f}" for p in word["proportions"])] for word in shares["words"]]
    if shares["mean"] is not None:
        rows.append(["(all)", *(f"{p:.2f}" for p in shares["mean"])])
    return shares["sentence"] + "\n" + table(["word", *shares["domains"]], rows)
