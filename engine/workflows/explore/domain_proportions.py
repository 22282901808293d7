"""The domain proportions of a project for display: fitted right after its samples were read, and those of its plugins.

    <workspace>/proportions/           fitted on the frozen base, before any training
        pairs.jsonl                    the sentences they were fitted on: some of each domain, with sources
        proportions.safetensors, .json
        shown.json                     the data to display: corpus, held-out figures, a few sentences; or an error
    <workspace>/proportions/plugin-7/
        shown.json                     the same for a trained plugin's proportions

Missing sources are written by the frozen reverse model, so that the encoder is shown reading the language that it will read. This
takes most of the time, so only as many sentences are drawn as needed for `WORDS` subwords per domain.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from engine.core.atomic_files import read_json, read_jsonl, write_json, write_jsonl
from engine.core.progress import Progress
from engine.core.step_cache import content_hash
from engine.corpora import Segment
from engine.corpora.types import SentencePair
from engine.errors import CorpusError, InputError
from engine.methods.domain_mixing.config import DomainMixingConfig
from engine.methods.domain_mixing.domains import by_domain, with_general
from engine.methods.domain_mixing.model import ProportionModel
from engine.methods.domain_mixing.proportions import (
    check_domains,
    corpus_proportions,
    draw,
    fit_proportions,
    proportions,
    source_and_target,
)
from engine.methods.domain_mixing.shapes import Example, SentenceShares, Shown

if TYPE_CHECKING:
    from engine.base import BaseModel, LanguagePair
    from engine.plugins import Plugin

FOLDER = "proportions"
SHOWN = "shown.json"
PAIRS = "pairs.jsonl"
WORDS = 2500  # subwords per domain
EXAMPLES = 2  # example sentences per domain
VERSION = 1


def folder_of(workspace: Path, plugin: int | None = None) -> Path:
    """The folder of the proportions of a project, or of one of its plugins by number."""
    return workspace / FOLDER / f"plugin-{plugin}" if plugin else workspace / FOLDER


def explore_samples(
    segments: Sequence[Segment], pair: LanguagePair, workspace: Path, assets: Path, *, samples_key: str = "",
    words: int | None = None, progress: Progress | None = None,
) -> Shown:  # fmt: skip
    """Fit the proportions of the samples' domains; a single domain is contrasted with the bundled general text.

    `samples_key` identifies the samples; existing proportions with that key are reused. Raises CorpusError if there are no domains
    to distinguish (the error is stored and displayed), Cancelled.
    """
    progress, folder = progress or Progress(), folder_of(workspace)
    base, begin, words = pair.forward, time.monotonic(), words or WORDS
    key = content_hash(samples_key, base.fingerprint(), words, VERSION)
    result = read_shown(folder)
    if result.get("stamp") == key and "error" not in result:
        return result
    try:
        domains = with_general(by_domain(segments), base.target, assets, "auto", [segment.text for segment in segments])
        check_domains(domains)
        progress.begin("Fitting domain proportions", progress.index, progress.steps)
        pairs = drawn_pairs(domains, pair, words, progress)
        write_jsonl(
            folder / PAIRS,
            ({"source": a, "target": b, "domain": name} for name, domain_pairs in pairs.items() for a, b in domain_pairs),
            "the sentences of the proportions",
        )
        check_domains(pairs)
        model = fit_proportions(base, pairs, DomainMixingConfig(words=words), index=True, progress=progress)
    except CorpusError as error:
        write_json(folder / SHOWN, {"stamp": key, "error": error.message}, "the proportions")
        raise
    model.save(folder)
    summary: Shown = {
        "stamp": key,
        "seconds": round(time.monotonic() - begin, 1),
        "domains": model.domains,
        "sentences": {name: len(domain_pairs) for name, domain_pairs in pairs.items()},
        "held_out": model.held_out,
        "corpus": model.corpus,
        "examples": examples(base, model, pairs),
    }
    write_json(folder / SHOWN, summary, "the proportions")
    return summary


def explore_plugin(base: BaseModel, plugin: Plugin, number: int, workspace: Path, progress: Progress | None = None) -> Shown:
    """The same for the proportions that a plugin was trained with, on the sentences of `explore_samples`.

    Raises InputError if the plugin has none, or if those of the samples were not fitted.
    """
    progress, begin = progress or Progress(), time.monotonic()
    model = model_of(plugin, str(plugin.card.get("name") or "This plugin"))
    pairs: dict[str, list[tuple[str, str]]] = {}
    for pair in read_pairs(workspace / FOLDER / PAIRS, SentencePair):
        pairs.setdefault(pair.domain, []).append((pair.source, pair.target))
    if not pairs:
        raise InputError("Fit the proportions of the samples first; a plugin's are shown on the same sentences.")
    progress.begin("Reading domain proportions", progress.index, progress.steps)
    summary: Shown = {
        "seconds": 0.0,
        "domains": model.domains,
        "sentences": {name: len(pairs.get(name, ())) for name in model.domains},
        "held_out": {},
        "corpus": corpus_proportions(base, model, pairs, plugin=plugin, progress=progress),
        "examples": examples(base, model, pairs, plugin),
    }
    summary["seconds"] = round(time.monotonic() - begin, 1)
    write_json(folder_of(workspace, number) / SHOWN, summary, "the proportions")
    return summary


def sentence_shares(
    base: BaseModel, model: ProportionModel, source: str, translation: str, plugin: Plugin | None = None
) -> SentenceShares:
    """The proportions of a sentence's words as read by the encoder, and of its translation's words as read by the decoder."""
    shares: SentenceShares = {"source": source, "translation": translation}
    if "encoder" in model.layers and model.encoder_reads == "source":
        shares["encoder"] = proportions(base, model, source, "encoder", plugin=plugin)
    if "decoder" in model.layers:
        shares["decoder"] = proportions(base, model, translation, "decoder", source=source if model.sources else "", plugin=plugin)
    return shares


def drawn_pairs(
    domains: Mapping[str, Sequence[Any]], pair: LanguagePair, words: int, progress: Progress
) -> dict[str, list[tuple[str, str]]]:
    """Some sentences of each domain, up to `words` subwords, each with its source: the user's, or one written now."""
    from engine.decoding.greedy_search import back_translate

    selected = {
        name: [source_and_target(sample) for sample in draw(pair.forward, list(samples), words, random.Random(f"1/{name}"))[0]]
        for name, samples in domains.items()
    }
    missing = list(dict.fromkeys(target for domain_pairs in selected.values() for source, target in domain_pairs if not source))
    written_sources = dict(zip(missing, back_translate(pair.backward, missing, progress=progress), strict=True))
    return {
        name: [
            (source or written_sources[target], target)
            for source, target in domain_pairs
            if source or written_sources[target].strip()
        ]
        for name, domain_pairs in selected.items()
    }


def examples(
    base: BaseModel, model: ProportionModel, pairs: Mapping[str, Sequence[tuple[str, str]]], plugin: Plugin | None = None
) -> list[Example]:
    """Short sentences of each domain with their shares, for immediate display."""
    chosen = []
    for name in model.domains:
        short = sorted(pairs.get(name, ()), key=lambda pair: (abs(len(pair[0].split()) - 9), pair))[:EXAMPLES]
        chosen += [(name, *pair) for pair in short]
    return [{"domain": name, **sentence_shares(base, model, source, target, plugin)} for name, source, target in chosen]


def read_pairs(path: Path, kind: Any) -> list[Any]:
    return [kind(**row) for row in read_jsonl(path)] if path.is_file() else []


def read_shown(folder: Path) -> Shown:
    """The stored data to display in a folder; empty if there is none."""
    return cast("Shown", read_json(folder / SHOWN))


def model_of(plugin: Plugin, path: str) -> ProportionModel:
    """The trained proportions of a plugin. Raises InputError if its method has none."""
    if not plugin.method.capabilities.offers_proportions:
        raise InputError("{path} is of the method {method}, which has no domain proportions.", path=path, method=plugin.method.name)
    return plugin.module.proportion_model()  # type: ignore[operator]
