"""Replacing the samples of a plugin without training, for methods that look sentences up."""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.base import BaseModel, LanguagePair
from engine.core.json_object import Json
from engine.core.languages import language_message
from engine.core.progress import Progress
from engine.core.settings import Settings, load_settings
from engine.corpora import import_corpus
from engine.corpora.types import SentencePair
from engine.errors import CorpusError, OptionError
from engine.evaluation.plausibility import weigh
from engine.methods import Method, get_method
from engine.methods.data import with_sources
from engine.methods.knn.build import replacement
from engine.plugins.bundle import CONFIG, DOMAIN_FILTER, MANIFEST, WEIGHTS, open_bundle, read_bundle_card
from engine.plugins.domain_filter import DomainFilter
from engine.plugins.export import write_bundle
from engine.plugins.plugin import Plugin


def check_swap(method: Method) -> None:
    """Raise OptionError if the samples of a plugin of this method cannot be replaced."""
    if not method.capabilities.offers_swap:
        raise OptionError(
            "A plugin of the method {method} has learned its samples into its weights, so they cannot be "
            "replaced. Build a new plugin with `tailormt customize`.",
            method=method.name,
        )


def swap_bundle(
    path: Path,
    output: Path,
    samples: Sequence[str],
    *,
    base: str,
    backward: str = "",
    download: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Json:
    """Write `output`: the bundle `path` with `samples` (files) instead of its own; returns counts.

    Samples without sources are translated back by `backward` if the method or its domain filter needs sources. Raises
    OptionError if the method does not support it, CorpusError on unusable samples, BundleError, StorageError.
    """
    progress, settings = progress or Progress(), settings or load_settings()
    card = read_bundle_card(path)
    method = get_method(card["method"])
    check_swap(method)
    progress.begin("Reading samples", 0, 3)
    corpus = import_corpus([Path(sample) for sample in samples], card["target"], source_language=card["source"], progress=progress)
    if not corpus.segments:
        raise CorpusError(
            "The samples contain no usable sentence in {target}. Provide others.", target=language_message(card["target"])
        )
    with open_bundle(path) as bundle:
        has_filter = DOMAIN_FILTER in bundle.namelist()
    # An additional datastore needs pairs, and a domain filter is trained on sources.
    needs_sources = method.capabilities.swaps_pairs or "knn" in card or has_filter
    lacking = needs_sources and any(segment.source is None for segment in corpus.segments)
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        if lacking:
            pair = LanguagePair.load(base, card["source"], card["target"], backward=backward, download=download, settings=settings)
            forward = pair.forward
            progress.begin("Writing source sentences", 1, 3)
            pairs = with_sources(corpus.segments, pair.backward, Path(folder) / "sources.partial.jsonl", progress)
            if method.capabilities.needs_plausibility:
                pairs = weighed(pairs, pair, settings, progress)
        else:
            forward = BaseModel.load(base, card["source"], card["target"], download=download, settings=settings)
            pairs = with_sources(corpus.segments, None, Path(folder), progress)
        plugin = Plugin.load(path, forward, cache=settings.home_dir / "unpacked")
        progress.begin("Replacing the samples", 2, 3)
        replaced = method.replace_samples(forward, plugin.module, pairs, Path(folder), progress).files
        if plugin.knn is not None:
            replaced |= replacement(forward, plugin.knn, pairs, Path(folder), progress, plugin)[1]
        if plugin.domain_filter is not None:
            replaced |= filter_of(pairs, forward, settings, Path(folder))
        write_bundle(output, described(plugin, len(pairs)), {**copied_files(plugin), **replaced})
    return {"output": str(output), "method": method.name, "sentences": len(pairs), "bytes": output.stat().st_size}


def weighed(pairs: Sequence[SentencePair], pair: LanguagePair, settings: Settings, progress: Progress) -> list[SentencePair]:
    """The pairs, with the plausibility of those sources that the base wrote."""
    from engine.corpora.general_text import general_sentences

    general = general_sentences(settings.assets_dir, pair.forward.source)
    values = iter(weigh(pair, [(sample.source, sample.target) for sample in pairs if sample.synthetic], general, progress))
    return [replace(sample, plausibility=next(values).plausibility) if sample.synthetic else sample for sample in pairs]


def filter_of(pairs: Sequence[SentencePair], base: BaseModel, settings: Settings, folder: Path) -> dict[str, Path]:
    """A domain filter for the samples, a tenth of which is held out to set its threshold; empty if there are too few."""
    from engine.corpora.general_text import general_sentences

    sources = [pair.source for pair in pairs if pair.source]
    training, held_out = [source for i, source in enumerate(sources) if i % 10], sources[::10]
    domain_filter = DomainFilter.learn(
        base, training, general_sentences(settings.assets_dir, base.source, exclude=sources), held_out
    )
    return {DOMAIN_FILTER: domain_filter.save(folder)} if domain_filter is not None else {}


def copied_files(plugin: Plugin) -> dict[str, Path]:
    """The files of a loaded bundle that a copy keeps, including the weights."""
    assert plugin.folder is not None
    skipped = {CONFIG, MANIFEST, "README.md", DOMAIN_FILTER}
    files = {file.name: file for file in sorted(plugin.folder.iterdir()) if file.name not in skipped}
    return {WEIGHTS: files.pop(WEIGHTS), **files}


def described(plugin: Plugin, sentences: int) -> Json:
    """The bundle's configuration for its new samples, without the metrics, which were measured with the old ones."""
    assert plugin.folder is not None
    adapter_config: Json = json.loads((plugin.folder / CONFIG).read_text(encoding="utf-8"))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    provenance = {**adapter_config["provenance"], "sentences": sentences, "samples_exchanged": now}
    return {**adapter_config, "provenance": provenance, "metrics": {}}
