"""The commands `tailormt knn …`: add a datastore to a plugin, and tune the settings of an existing one."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.commands import base_path
from engine.core.atomic_files import check_writable
from engine.core.options import from_flags
from engine.core.text_table import table
from engine.errors import CorpusError, OptionError
from engine.methods.knn.options import KnnOptions
from engine.workflows.customize.request import CustomizeRequest

if TYPE_CHECKING:
    from engine.base import LanguagePair
    from engine.corpora.types import SentencePair
    from engine.methods.knn.decoder import Knn
    from engine.plugins import Plugin


def knn_add(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.methods.knn.build import make_knn
    from engine.plugins.repack import amend

    options = from_flags(KnnOptions, args)
    output = Path(args.output)
    check_writable(output, "the plugin")
    request, workspace = request_of(args, "add", options)
    pairs, plugin, pair = load_inputs(args, request, workspace, train=True)
    if plugin.knn is not None:
        raise OptionError(
            f"{args.plugin} carries a datastore already. Choose new settings for it with `tailormt knn tune`, or start from "
            "the plugin without one."
        )
    knn, files, metrics = make_knn(
        pair.forward, pairs["train"], pairs["valid"], options, workspace / "knn", plugin, args.progress,
        lambda: general_pairs(args, pair, pairs),
    )  # fmt: skip
    amend(Path(args.plugin), output, card={"knn": knn.options.to_mapping()}, files=files)
    clean(args, workspace)
    return summary(output, knn, metrics), text_of(output, knn, metrics)


def knn_tune(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.methods.knn.adaptive import FILE as ADAPTIVE
    from engine.methods.knn.adaptive import save_adaptive
    from engine.methods.knn.build import retrieval_of, retune
    from engine.methods.knn.gate import FILE as GATE
    from engine.plugins.repack import amend

    output = Path(args.output or args.plugin)
    check_writable(output, "the plugin")
    request, workspace = request_of(args, "tune", from_flags(KnnOptions, args))
    pairs, plugin, pair = load_inputs(args, request, workspace, train=False)
    position = "knn" if plugin.knn is not None else "config"
    knn: Knn | None = plugin.knn or getattr(plugin.module, "knn", None)
    if knn is None:
        raise OptionError(f"{args.plugin} carries no datastore. Add one with `tailormt knn add`.")
    datastore_texts = {" ".join(target.split()) for _, target in knn.datastore.texts}
    held_out = [sample for sample in pairs["valid"] if " ".join(sample.target.split()) not in datastore_texts]
    if not held_out:
        raise CorpusError("All these sentences are in the datastore. Give samples that it was not made from.")
    cleared = {**knn.options.to_mapping(), **dict.fromkeys(("k", "shortlist", "threshold", "temperature", "weight"))}
    knn = knn.with_settings(from_flags(KnnOptions, args, {**cleared, "adaptive": False}))
    retrieval_of(knn.options)  # raises if options cannot be combined
    if knn.index is not None:
        from engine.methods.knn.index import set_breadth

        set_breadth(knn.index, knn.options.index, knn.options)
    general = general_pairs(args, pair, pairs) if knn.reader is not None else []
    knn, metrics = retune(pair.forward, knn, held_out, plugin if position == "knn" else None, args.progress, general)
    workspace.mkdir(parents=True, exist_ok=True)
    files = {ADAPTIVE: save_adaptive(knn.adaptive, workspace)} if knn.adaptive is not None else {}
    files |= {GATE: knn.gate.save(workspace)} if knn.gate is not None else {}
    drop = [name for name in (ADAPTIVE, GATE) if name not in files]
    amend(Path(args.plugin), output, card={position: knn.options.to_mapping()}, files=files, without=drop)
    clean(args, workspace)
    return summary(output, knn, metrics), text_of(output, knn, metrics)


def request_of(args: argparse.Namespace, action: str, options: KnnOptions) -> tuple[CustomizeRequest, Path]:
    """The samples as a request for a customization, and the workspace for its steps."""
    from engine.corpora.bundled import named_files
    from engine.plugins import read_bundle_card

    card = read_bundle_card(args.plugin)
    request = CustomizeRequest(
        base=base_path(args, card),
        source=card["source"], target=card["target"], samples=tuple(named_files(args.samples, args.settings.assets_dir)),
        method=card["method"], backward=args.backward, download=args.download,
    )  # fmt: skip
    if args.workspace:
        return request, Path(args.workspace)
    key = json.dumps([action, str(Path(args.plugin).resolve()), request.to_mapping(), options.to_mapping()], sort_keys=True)
    return request, args.settings.home_dir / "work" / hashlib.sha256(key.encode()).hexdigest()[:16]


def load_inputs(
    args: argparse.Namespace, request: CustomizeRequest, workspace: Path, *, train: bool
) -> tuple[dict[str, list[SentencePair]], Plugin, LanguagePair]:
    """Sentence pairs of the samples (all held out if `train` is false), the plugin, and its base in both directions."""
    from engine.core.step_cache import StepCache
    from engine.plugins import Plugin
    from engine.workflows.customize import steps

    request = steps.validated(request)
    with steps.workspace_lock(workspace):
        cache = StepCache(workspace)
        corpus = steps.read_samples(request, workspace, cache, args.progress)
        learn, valid = steps.split_samples(corpus) if train else ([], list(corpus.segments))
        pair = steps.load_pair(request, args.settings)
        plugin = Plugin.load(args.plugin, pair.forward, cache=args.settings.home_dir / "unpacked")
        return steps.make_pairs(learn, valid, pair, None, cache, args.progress), plugin, pair


def general_pairs(args: argparse.Namespace, pair: LanguagePair, pairs: dict[str, list[SentencePair]]) -> list[SentencePair]:
    """Pairs of general text, on which a learned gate should not act."""
    from engine.evaluation.general_text import learnable_pairs

    targets = [sample.target for part in pairs.values() for sample in part]
    return learnable_pairs(pair, args.settings, exclude=targets, progress=args.progress)


def clean(args: argparse.Namespace, workspace: Path) -> None:
    if not args.workspace:
        shutil.rmtree(workspace, ignore_errors=True)


def summary(output: Path, knn: Knn, metrics: dict[str, Any]) -> dict[str, Any]:
    return {"plugin": str(output), "bytes": output.stat().st_size, "settings": knn.options.to_mapping(), **metrics}


def text_of(output: Path, knn: Knn, metrics: dict[str, Any]) -> str:
    """A summary for the user of a datastore and its settings."""
    options = knn.options
    by_sentence = options.retrieval == "sentence"
    chosen = f"k {options.k}, T {options.temperature:g}, " if options.temperature else f"k {options.k}, "
    if by_sentence:
        gate = f"θ {options.threshold:g}, " if options.threshold is not None else "a learned gate, "
        chosen = f"{options.shortlist} samples a sentence, {chosen}{gate}"
    chosen += "λ by the adaptive network" if options.adaptive else f"λ {options.weight:g}"
    gain = metrics["loss_base"] - metrics["loss"]
    lines = [
        f"Plugin     {output} ({output.stat().st_size / 2**20:.1f} MiB)",
        f"Datastore  {len(knn.datastore):,} tokens, {'by sentence' if by_sentence else f'index {options.index}'}",
        f"Settings   {chosen}",
        f"Held out   loss {metrics['loss_base']:.3f} -> {metrics['loss']:.3f} nats per token, {metrics['tokens']:,} tokens",
    ]
    if gain <= 0:
        lines.append("Note: the datastore does not help on these samples. Use samples nearer to what is translated.")
    rows: Sequence[dict[str, Any]] = metrics["best"]
    titles = {"shortlist": "samples", "k": "k", "temperature": "T", "threshold": "θ", "weight": "λ", "loss": "loss"}
    columns = {name: title for name, title in titles.items() if name in rows[0]}
    grid = table(list(columns.values()), [[row[name] for name in columns] for row in rows])
    return "\n".join([*lines, "", grid])
