"""The commands `tailormt knn …`: a datastore for a plugin that has none, and new settings for one that has."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.decoding.knn.options import KnnOptions
from engine.errors import CorpusError, OptionError
from engine.files import check_writable
from engine.options import add_flags
from engine.terminal import TerminalProgress, table

if TYPE_CHECKING:
    from engine.decoding.knn.decoder import Knn
    from engine.methods.samples import SentencePair
    from engine.plugins import Plugin
    from engine.request import CustomizeRequest

__all__ = ["KNN_COMMANDS", "add_knn_commands"]

# What `knn tune` may change: everything else is how the datastore was made.
TUNED = ("k", "temperature", "weight", "adaptive", "finalists", "skip_above", "graph_breadth", "probe")


def add_knn_commands(knn: Any, command: Callable[..., argparse.ArgumentParser], samples_help: str) -> None:
    """The commands under `tailormt knn` and their flags; `command` makes one with the common flags."""
    found = command("add", "put a datastore of your samples into a copy of a plugin", knn)
    found.add_argument(
        "--plugin", required=True, metavar="PLUGIN.zip", help="the bundle to start from; it stays as it is"
    )
    found.add_argument("-o", "--output", required=True, metavar="PLUGIN.zip", help="the bundle to write")
    common(found, samples_help)
    add_flags(found, KnnOptions)
    found = command("tune", "choose k, T and λ of a plugin's datastore on held-out samples", knn)
    found.add_argument("plugin", metavar="PLUGIN.zip", help="a bundle with a datastore")
    found.add_argument("-o", "--output", default="", metavar="PLUGIN.zip", help="the bundle to write [the same file]")
    common(found, samples_help)
    add_flags(found, KnnOptions, only=TUNED)


def common(found: argparse.ArgumentParser, samples_help: str) -> None:
    found.add_argument("--samples", nargs="+", required=True, metavar="FILE", help=samples_help)
    found.add_argument("--base", default="", metavar="DIR", help="the plugin's base [one that knows the pair]")
    found.add_argument("--backward", default="", metavar="DIR", help="base of the other direction, where one is needed")
    found.add_argument("--download", action="store_true", help="allow a base to be fetched from the hub")
    found.add_argument("--workspace", metavar="DIR", help="folder for the steps' files; kept")


def knn_add(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.decoding.knn.make import make_knn
    from engine.options import from_flags
    from engine.plugins.repack import amend

    options = from_flags(KnnOptions, args)
    output = Path(args.output)
    check_writable(output, "the plugin")
    request, workspace = asked(args, "add", options)
    progress = TerminalProgress(quiet=args.quiet)
    try:
        pairs, plugin, base = ready(args, request, workspace, progress, train=True)
        if plugin.knn is not None:
            raise OptionError(
                f"{args.plugin} carries a datastore already. Choose new settings for it with `tailormt knn tune`, or start from "
                "the plugin without one."
            )
        knn, files, figures = make_knn(
            base, pairs["train"], pairs["valid"], options, workspace / "knn", plugin, progress
        )  # fmt: skip
    finally:
        progress.close()
    amend(Path(args.plugin), output, card={"knn": knn.options.to_mapping()}, files=files)
    clean(args, workspace)
    return summary(output, knn, figures), text_of(output, knn, figures)


def knn_tune(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.decoding.knn.adaptive import FILE, save_adaptive
    from engine.decoding.knn.make import retune
    from engine.options import from_flags
    from engine.plugins.repack import amend

    output = Path(args.output or args.plugin)
    check_writable(output, "the plugin")
    request, workspace = asked(args, "tune", from_flags(KnnOptions, args))
    progress = TerminalProgress(quiet=args.quiet)
    try:
        pairs, plugin, base = ready(args, request, workspace, progress, train=False)
        place = "knn" if plugin.knn is not None else "config"
        knn: Knn | None = plugin.knn or getattr(plugin.module, "knn", None)
        if knn is None:
            raise OptionError(f"{args.plugin} carries no datastore. Add one with `tailormt knn add`.")
        known = {" ".join(target.split()) for _, target in knn.datastore.texts}
        held_out = [one for one in pairs["valid"] if " ".join(one.target.split()) not in known]
        if not held_out:
            raise CorpusError("All these sentences are in the datastore. Give samples that it was not made from.")
        fresh = {**knn.options.to_mapping(), **dict.fromkeys(("k", "temperature", "weight"))}
        knn = knn.with_settings(from_flags(KnnOptions, args, {**fresh, "adaptive": False}))
        if knn.index is not None:
            from engine.decoding.knn.index import set_breadth

            set_breadth(knn.index, knn.options.index, knn.options)
        knn, figures = retune(base, knn, held_out, plugin if place == "knn" else None, progress)
    finally:
        progress.close()
    workspace.mkdir(parents=True, exist_ok=True)
    files = {FILE: save_adaptive(knn.adaptive, workspace)} if knn.adaptive is not None else {}
    drop = () if files else (FILE,)
    amend(Path(args.plugin), output, card={place: knn.options.to_mapping()}, files=files, without=drop)
    clean(args, workspace)
    return summary(output, knn, figures), text_of(output, knn, figures)


def asked(args: argparse.Namespace, what: str, options: KnnOptions) -> tuple[CustomizeRequest, Path]:
    """The samples' request as the main job has it, and the folder for its steps."""
    from engine.base.shelf import Shelf
    from engine.plugins import read_bundle_card
    from engine.request import CustomizeRequest
    from engine.samples import named_files

    card = read_bundle_card(args.plugin)
    request = CustomizeRequest(
        base=args.base or str(Shelf(args.settings).default(card["source"], card["target"])),
        source=card["source"], target=card["target"], samples=tuple(named_files(args.samples, args.settings.assets_dir)),
        method=card["method"], backward=args.backward, download=args.download,
    )  # fmt: skip
    if args.workspace:
        return request, Path(args.workspace)
    key = json.dumps(
        [what, str(Path(args.plugin).resolve()), request.to_mapping(), options.to_mapping()], sort_keys=True
    )
    return request, args.settings.home_dir / "work" / hashlib.sha256(key.encode()).hexdigest()[:16]


def ready(
    args: argparse.Namespace, request: CustomizeRequest, workspace: Path, progress: TerminalProgress, *, train: bool
) -> tuple[dict[str, list[SentencePair]], Plugin, Any]:
    """Sentence pairs of the samples (all held out where `train` is false), the plugin, and its base."""
    from engine.plugins import Plugin
    from engine.stamps import Stamps
    from engine.steps import checked, held, load_pair, make_pairs, read_samples, split_samples

    request = checked(request)
    with held(workspace):
        stamps = Stamps(workspace)
        corpus = read_samples(request, workspace, stamps, progress)
        learn, valid = split_samples(corpus) if train else ([], list(corpus.segments))
        pair = load_pair(request, args.settings)
        plugin = Plugin.load(args.plugin, pair.forward, cache=args.settings.home_dir / "unpacked")
        return make_pairs(learn, valid, pair, 1.0, stamps, progress), plugin, pair.forward


def clean(args: argparse.Namespace, workspace: Path) -> None:
    if not args.workspace:
        shutil.rmtree(workspace, ignore_errors=True)


def summary(output: Path, knn: Knn, figures: dict[str, Any]) -> dict[str, Any]:
    return {"plugin": str(output), "bytes": output.stat().st_size, "settings": knn.options.to_mapping(), **figures}


def text_of(output: Path, knn: Knn, figures: dict[str, Any]) -> str:
    """What a person wants to know of a datastore and its settings."""
    options = knn.options
    chosen = f"k {options.k}, T {options.temperature:g}, " if options.temperature else f"k {options.k}, "
    chosen += "λ by the adaptive network" if options.adaptive else f"λ {options.weight:g}"
    gain = figures["loss_base"] - figures["loss"]
    lines = [
        f"Plugin     {output} ({output.stat().st_size / 2**20:.1f} MiB)",
        f"Datastore  {len(knn.datastore):,} tokens, index {options.index}",
        f"Settings   {chosen}",
        f"Held out   loss {figures['loss_base']:.3f} -> {figures['loss']:.3f} nats a token, {figures['tokens']:,} tokens",
    ]
    if gain <= 0:
        lines.append("Note: the datastore does not help on these samples. Use samples nearer to what is translated.")
    rows: Sequence[dict[str, Any]] = figures["best"]
    grid = table(["k", "T", "λ", "loss"], [[r["k"], r["temperature"], r["weight"], f"{r['loss']:.4f}"] for r in rows])
    return "\n".join([*lines, "", grid])


KNN_COMMANDS = {"knn add": knn_add, "knn tune": knn_tune}
