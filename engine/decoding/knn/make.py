"""Making kNN decoding for a base, customized or not: the datastore, its index, the settings. Done once a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.decoding.knn.decoder import FILES, Knn
from engine.decoding.knn.options import KnnOptions
from engine.errors import CorpusError, OptionError
from engine.files import write_json
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.methods.samples import SentencePair
    from engine.plugins import Plugin

__all__ = ["another", "bleu_with", "check_method", "make_knn", "retune"]

SETTLED = "knn.json"
MOST = 60  # held-out sentences that finalists translate


def check_method(plugin: Plugin | None) -> None:
    """Raises OptionError where a datastore can add nothing: the method has one, or does not decode with the base."""
    if plugin is None:
        return
    offers = plugin.method.capabilities
    if plugin.module is not None and getattr(plugin.module, "knn", None) is not None:
        raise OptionError(f"The method {plugin.method.name} brings a datastore of its own already. Leave out --knn.")
    if not offers.offers_likelihood:
        raise OptionError(
            f"The method {plugin.method.name} gives no probabilities that kNN decoding could be mixed with."
        )


def make_knn(
    base: BaseModel,
    train: Sequence[SentencePair],
    valid: Sequence[SentencePair],
    options: KnnOptions,
    folder: Path,
    plugin: Plugin | None = None,
    progress: Progress | None = None,
) -> tuple[Knn, dict[str, Path], dict[str, Any]]:
    """Datastore of `train`, index, and settings chosen on `valid`; returns it, its files in `folder`, and figures.

    Files of a finished call are used again. Figures: `entries`, `index`, `seconds`, `loss_base`, `loss`, `best`.
    """
    from engine.decoding.knn.datastore import Datastore
    from engine.decoding.knn.index import build_index, kind_for
    from engine.training.data import Pairs

    progress = progress or Progress()
    check_method(plugin)
    done = folder / SETTLED
    if done.exists():
        kept = json.loads(done.read_text(encoding="utf-8"))
        knn = Knn.open(folder, base, KnnOptions.from_mapping(kept["options"]))
        return knn, files_in(folder), kept["figures"]
    start = time.monotonic()
    progress.begin("Recording the datastore", progress.index, progress.steps)
    datastore = Datastore.build(
        base, Pairs.encode(base, train), plugin, place=options.keys, max_entries=options.max_entries, progress=progress
    )
    kind = kind_for(len(datastore), options)
    assert datastore.keys is not None
    progress.begin("Indexing the datastore", progress.index, progress.steps)
    knn = Knn(datastore, build_index(datastore.keys, kind, options), options.replace(index=kind), base.device)
    if not options.keep_keys and kind == "ivfpq":
        knn.forget_keys()  # tuned as it will be used
    knn, figures = retune(base, knn, valid, plugin, progress)
    figures = {
        "entries": len(datastore), "index": kind, "seconds": round(time.monotonic() - start, 1), **figures
    }  # fmt: skip
    files = knn.save(folder)
    write_json(done, {"options": knn.options.to_mapping(), "figures": figures}, "the kNN settings")
    return knn, files, figures


def another(
    base: BaseModel,
    knn: Knn,
    pairs: Sequence[SentencePair],
    folder: Path,
    progress: Progress | None = None,
    plugin: Plugin | None = None,
) -> tuple[Knn, dict[str, Path]]:
    """A datastore of other pairs with the settings of `knn`, by the base alone or customized; and its files in `folder`."""
    from engine.decoding.knn.datastore import Datastore
    from engine.decoding.knn.index import build_index
    from engine.training.data import Pairs

    options = knn.options
    datastore = Datastore.build(
        base, Pairs.encode(base, pairs), plugin, place=options.keys, max_entries=options.max_entries, progress=progress
    )
    assert datastore.keys is not None
    if options.adaptive and (options.k or 1) > len(datastore):
        raise CorpusError(
            f"These samples have {len(datastore)} tokens, fewer than the {options.k} neighbours looked up."
        )
    index = build_index(datastore.keys, options.index, options)
    fresh = Knn(datastore, index, options, base.device, knn.adaptive)
    if not options.keep_keys and options.index == "ivfpq":
        fresh.forget_keys()
    return fresh, fresh.save(folder)


def retune(
    base: BaseModel, knn: Knn, valid: Sequence[SentencePair], plugin: Plugin | None = None, progress: Progress | None = None
) -> tuple[Knn, dict[str, Any]]:  # fmt: skip
    """Choose on `valid` what the options leave open; figures of the choice, also where nothing was left open."""
    from engine.decoding.knn.tune import tune
    from engine.training.data import Pairs

    progress = progress or Progress()
    progress.begin("Choosing kNN settings", progress.index, progress.steps)
    return tune(
        base,
        knn,
        Pairs.encode(base, valid),
        plugin,
        translated=bleu_with(base, plugin, valid[:MOST]),
        progress=progress,
    )


def bleu_with(base: BaseModel, plugin: Plugin | None, pairs: Sequence[SentencePair]) -> Callable[[Knn], float]:
    """BLEU of translations of the pairs with a datastore, over the plugin's method where there is one."""
    from engine.evaluation.metrics import metrics
    from engine.plugins import Plugin as Loaded

    sources, references = [one.source for one in pairs], [one.target for one in pairs]

    def value(knn: Knn) -> float:
        if plugin is not None:
            found = base.translate(sources, Loaded(plugin.method, plugin.module, plugin.card, plugin.folder, knn))
        else:
            with base.lock, knn.attach(base):
                found = base.translate(sources)
        return float(metrics(base.target)["BLEU"].corpus_score(found, [references]).score)

    return value


def files_in(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in FILES if (folder / name).exists()}
