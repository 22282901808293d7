"""Builds kNN decoding for a base, customized or not: the datastore, its index and the settings, once per folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.base import BaseModel
from engine.core.atomic_files import write_json
from engine.core.progress import Progress
from engine.corpora.types import SentencePair
from engine.errors import CorpusError, OptionError
from engine.evaluation.metrics import metrics
from engine.methods.batches import Pairs
from engine.methods.knn.datastore import Datastore
from engine.methods.knn.decoder import FILES, Knn
from engine.methods.knn.index import build_index, kind_for
from engine.methods.knn.options import KnnOptions
from engine.methods.knn.tune import tune
from engine.methods.knn.tune_sentence import tune_sentence
from engine.methods.trained import TrainedMethod

SETTLED = "knn.json"
MOST = 60  # held-out sentences translated to compare finalists
# Nats per token by which global retrieval must be better to be chosen. At equal likelihood, retrieval by sentence translates better
# and affects other text less, because of its gate (docs/methods/knn.md).
GAIN = 0.25
COMPARED = 200_000  # maximum entries for which auto also tries exact global search


def check_method(plugin: TrainedMethod | None) -> None:
    """Raises OptionError if the plugin's method already has a datastore or provides no probabilities to mix with it."""
    if plugin is None:
        return
    offers = plugin.method.capabilities
    if plugin.module is not None and getattr(plugin.module, "knn", None) is not None:
        raise OptionError("The method {method} already has its own datastore. Omit --knn.", method=plugin.method.name)
    if not offers.offers_likelihood:
        raise OptionError("The method {method} does not provide probabilities to mix with kNN decoding.", method=plugin.method.name)


def make_knn(
    base: BaseModel,
    train: Sequence[SentencePair],
    valid: Sequence[SentencePair],
    options: KnnOptions,
    folder: Path,
    plugin: TrainedMethod | None = None,
    progress: Progress | None = None,
    general: Callable[[], Sequence[SentencePair]] = tuple,
) -> tuple[Knn, dict[str, Path], dict[str, Any]]:
    """Build a datastore of `train` and its index, and choose settings on `valid`. `general` returns pairs of general text, which a
    learned gate should leave unchanged. Returns kNN decoding, its files in `folder`, and figures.

    Files of a finished call are reused. Figures include `entries`, `retrieval`, `index`, `seconds`, `loss_base`, `loss`, `best`.
    """
    progress = progress or Progress()
    check_method(plugin)
    done = folder / SETTLED
    if done.exists():
        data = json.loads(done.read_text(encoding="utf-8"))
        knn = Knn.open(folder, base, KnnOptions.from_mapping(data["options"]))
        return knn, files_in(folder), data["figures"]
    start = time.monotonic()
    progress.begin("Recording the datastore", progress.index, progress.steps)
    datastore = _record(base, train, options, plugin, progress)
    knn, figures = choose_settings(base, datastore, valid, options, plugin, progress, general)
    figures = {
        "entries": len(datastore), "retrieval": knn.options.retrieval, "index": knn.options.index,
        "seconds": round(time.monotonic() - start, 1), **figures,
    }  # fmt: skip
    files = knn.save(folder)
    write_json(done, {"options": knn.options.to_mapping(), "figures": figures}, "the kNN settings")
    return knn, files, figures


def _record(
    base: BaseModel, pairs: Sequence[SentencePair], options: KnnOptions, plugin: TrainedMethod | None, progress: Progress | None
) -> Datastore:
    """The datastore of the pairs, with keys recorded at `options.keys`."""
    return Datastore.build(
        base, Pairs.encode(base, pairs), plugin, location=options.keys, max_entries=options.max_entries, progress=progress
    )


def retrieval_of(options: KnnOptions) -> str:
    """The requested retrieval; for auto, the one that the other settings imply, if any. Raises OptionError if they conflict."""
    if options.retrieval == "sentence" and options.adaptive:
        raise OptionError("retrieval: sentence has its own gate and cannot use the adaptive network. Omit one of them.")
    if options.retrieval != "auto":
        return options.retrieval
    if options.adaptive or options.temperature is not None or options.index != "auto":
        return "global"  # a given T applies to squared distances
    return "auto" if options.shortlist is None and options.threshold is None else "sentence"


def choose_settings(
    base: BaseModel, datastore: Datastore, valid: Sequence[SentencePair], options: KnnOptions, plugin: TrainedMethod | None,
    progress: Progress, general: Callable[[], Sequence[SentencePair]] = tuple,
) -> tuple[Knn, dict[str, Any]]:  # fmt: skip
    """kNN decoding with the retrieval and the settings that are best on `valid`, and figures of the choice."""
    retrieval = retrieval_of(options)
    by_sentence: tuple[Knn, dict[str, Any]] | None = None
    if retrieval != "global":
        chosen = options.replace(retrieval="sentence", index="flat")
        by_sentence = retune(base, Knn(datastore.in_eight_bits(), None, chosen, base.device), valid, plugin, progress, general())
        if retrieval == "sentence" or len(datastore) > COMPARED:
            return by_sentence
    kind = kind_for(len(datastore), options)
    chosen = options.replace(retrieval="global", index=kind)
    if by_sentence is not None:
        # Compared with exact search, so that an index is built only if it will be used.
        exact = Knn(datastore, None, chosen.replace(index="flat"), base.device)
        if retune(base, exact, valid, plugin, progress)[1]["loss"] >= by_sentence[1]["loss"] - GAIN:
            return by_sentence
    progress.begin("Indexing the datastore", progress.index, progress.steps)
    knn = Knn(datastore, build_index(datastore.vectors(), kind, options), chosen, base.device)
    if not options.keep_keys and kind == "ivfpq":
        knn.forget_keys()  # so that settings are tuned without keys, as in use
    return retune(base, knn, valid, plugin, progress)


def replacement(
    base: BaseModel,
    knn: Knn,
    pairs: Sequence[SentencePair],
    folder: Path,
    progress: Progress | None = None,
    plugin: TrainedMethod | None = None,
) -> tuple[Knn, dict[str, Path]]:
    """A datastore of other pairs with the settings of `knn`, recorded with `plugin` attached, if any; and its files in `folder`.

    Raises CorpusError if adaptive decoding would need more neighbours than the pairs have tokens.
    """
    options = knn.options
    datastore = _record(base, pairs, options, plugin, progress)
    if options.adaptive and (options.k or 1) > len(datastore):
        raise CorpusError(
            "These samples have {count} tokens, fewer than the {k} neighbours to retrieve.", count=len(datastore), k=options.k
        )
    by_sentence = options.retrieval == "sentence"
    datastore = datastore.in_eight_bits() if by_sentence else datastore
    index = None if by_sentence else build_index(datastore.vectors(), options.index, options)
    new_knn = Knn(datastore, index, options, base.device, knn.adaptive, knn.gate)
    if not by_sentence and not options.keep_keys and options.index == "ivfpq":
        new_knn.forget_keys()
    return new_knn, new_knn.save(folder)


def retune(
    base: BaseModel, knn: Knn, valid: Sequence[SentencePair], plugin: TrainedMethod | None = None, progress: Progress | None = None,
    general: Sequence[SentencePair] = (),
) -> tuple[Knn, dict[str, Any]]:  # fmt: skip
    """Choose the options that are not set on `valid`. Returns figures of the choice even if all options were set."""
    progress = progress or Progress()
    progress.begin("Choosing kNN settings", progress.index, progress.steps)
    if knn.reader is not None:
        return tune_sentence(base, knn, Pairs.encode(base, valid), plugin, progress, Pairs.encode(base, general))
    return tune(base, knn, Pairs.encode(base, valid), plugin, translated=bleu_with(base, plugin, valid[:MOST]), progress=progress)


def bleu_with(base: BaseModel, plugin: TrainedMethod | None, pairs: Sequence[SentencePair]) -> Callable[[Knn], float]:
    """A function that returns the BLEU of translating the pairs with a datastore, together with the plugin if any."""
    from engine.decoding.translate import translate

    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]

    def value(knn: Knn) -> float:
        if plugin is not None:
            translations = translate(base, sources, plugin.with_datastore(knn))
        else:
            with base.lock, knn.attach(base):
                translations = translate(base, sources)
        return float(metrics(base.target)["BLEU"].corpus_score(translations, [references]).score)

    return value


def files_in(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in FILES if (folder / name).exists()}
