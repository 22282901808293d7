"""The commands of `tailormt`: each reads its arguments, calls the engine, and returns what is to be shown.

A command returns (value, text): the value is printed by --json, the text otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.accounts.commands import ACCOUNT_COMMANDS
from engine.artefacts.commands import ARTEFACT_COMMANDS
from engine.base.commands import BASE_COMMANDS
from engine.base.train import commands as train_base
from engine.benching.commands import BENCH_COMMANDS
from engine.client.commands import CLIENT_COMMANDS
from engine.comparison.commands import COMPARISON_COMMANDS
from engine.corpora.commands import CORPUS_COMMANDS
from engine.decoding.knn.commands import KNN_COMMANDS
from engine.documents import commands as documents
from engine.errors import OptionError
from engine.evaluation.commands import RATING_COMMANDS
from engine.files import check_writable, replacing
from engine.jobs.backends.commands import REPLICA_COMMANDS
from engine.jobs.commands import JOB_COMMANDS
from engine.lines import read_input
from engine.methods.domain_mixing.commands import PROPORTION_COMMANDS
from engine.parsers.commands import PARSER_COMMANDS
from engine.plugins.commands import PLUGIN_COMMANDS
from engine.samples import named_files
from engine.store.commands import STORE_COMMANDS
from engine.terminal import TerminalProgress, table
from engine.upkeep.commands import UPKEEP_COMMANDS

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.pipeline import CustomizeRequest
    from engine.plugins import Plugin, PluginStack

__all__ = ["COMMANDS"]

Shown = tuple[Any, str]


def progress_of(args: argparse.Namespace) -> TerminalProgress:
    return TerminalProgress(quiet=getattr(args, "quiet", False))


def overrides(pairs: list[str] | None, what: str) -> str:
    """KEY=VALUE flags as the JSON text that a request holds."""
    values: dict[str, Any] = {}
    for pair in pairs or []:
        key, mark, value = pair.partition("=")
        if not mark:
            raise OptionError(f"{what} {pair}: write it as name=value.")
        values[key.strip().replace("-", "_")] = value.strip()
    return json.dumps(values) if values else ""


def request_of(args: argparse.Namespace) -> CustomizeRequest:
    from engine.options import describe
    from engine.pipeline import CustomizeRequest

    values = {item.name: getattr(args, item.name) for item in describe(CustomizeRequest) if hasattr(args, item.name)}
    values["method_options"] = overrides(getattr(args, "method_option", None), "--method-option")
    values["training_options"] = overrides(getattr(args, "training_option", None), "--training-option")
    values["corpus_options"] = overrides(getattr(args, "corpus_option", None), "--corpus-option")
    values["knn_options"] = overrides(getattr(args, "knn_option", None), "--knn-option")
    values["phrase_options"] = overrides(getattr(args, "phrase_option", None), "--phrase-option")
    values["base"] = values.get("base") or default_base(args)
    values["samples"] = named_files(args.samples, args.settings.assets_dir)
    return CustomizeRequest.from_mapping({key: value for key, value in values.items() if value is not None})


def default_base(args: argparse.Namespace) -> str:
    """The first base on the shelf that translates between the languages, for commands without --base."""
    from engine.base.shelf import Shelf

    return str(Shelf(args.settings).default(args.source, args.target))


@contextlib.contextmanager
def workspace_of(args: argparse.Namespace, request: CustomizeRequest) -> Iterator[Path]:
    """The folder named by --workspace, which stays; else one in the home folder, found again by the same command and
    removed when the command has succeeded.
    """
    if args.workspace:
        yield Path(args.workspace)
        return
    key = {
        **request.to_mapping(),
        "output": str(Path(request.output).resolve()),
        "base": str(Path(request.base).resolve()),
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    folder = args.settings.home_dir / "work" / name
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def customize(args: argparse.Namespace) -> Shown:
    from engine.pipeline import customize as run

    request = request_of(args)
    check_writable(Path(request.output), "the plugin")
    progress = progress_of(args)
    with workspace_of(args, request) as workspace:
        summary = run(request, workspace, progress, args.settings)
    progress.close()
    return summary, summary_text(summary)


def estimate(args: argparse.Namespace) -> Shown:
    from engine.estimate import estimate_request
    from engine.progress import duration

    found = estimate_request(request_of(args), args.settings)
    steps = ", ".join(f"{name} {duration(seconds)}" for name, seconds in found.parts.items())
    lines = [
        f"Time       {duration(found.seconds)} ({duration(found.low)} to {duration(found.high)}), {found.sentence}",
        f"Steps      {steps}",
        f"Memory     {found.memory / 2**30:.1f} GiB, {found.device}",
        f"Disk       {found.disk / 2**20:.1f} MiB while it works, {found.bundle / 2**20:.1f} MiB for the plugin",
        f"Weights    {found.weights:,}",
    ]
    return found.to_mapping(), "\n".join([*lines, *(f"Note: {note}" for note in found.notes)])


def summary_text(summary: dict[str, Any]) -> str:
    """What a person wants to know after a customization."""
    figures, times = summary["metrics"], summary["seconds"]
    trained, loss = "none", ""
    if "updates" in summary:
        trained = f"{summary['updates']} updates, best at {summary['best_update']}, {summary['parameters']:,} weights"
        loss = f"loss {figures['validation_loss_before']:.3f} -> {figures['validation_loss']:.3f} nats a token; "
    held_out = "not measured, since that would call the service"
    if "bleu" in figures:
        bleu = f"BLEU {figures['bleu_vanilla']} -> {figures['bleu']}"
        held_out = f"{loss}{bleu} on {figures['held_out_sentences']} of your own sentences"
        if "general_bleu" in figures:
            held_out += f", {figures['general_bleu_vanilla']} -> {figures['general_bleu']} on general text"
    lines = [
        f"Plugin     {summary['plugin']} ({summary['bytes'] / 2**20:.1f} MiB)",
        f"Samples    {summary['sentences']:,} sentences, {summary['phrases']:,} phrases, {sum(summary['memory']):,} remembered",
        f"Training   {trained}, {summary['device']}",
        f"Held out   {held_out}",
        "Time       " + ", ".join(f"{key} {value:.0f} s" for key, value in times.items()),
        f"Phrases    {summary['parser'] or 'not needed'}",
    ]
    if about := summary.get("knn"):
        lines.insert(3, f"Datastore  {about['entries']:,} tokens, index {about['index']}; held-out loss with it "
                     f"{about['loss_base']:.3f} -> {about['loss']:.3f}")  # fmt: skip
    return "\n".join([*lines, *(f"Note: {warning}" for warning in summary["warnings"])])


def phrases(args: argparse.Namespace) -> Shown:
    from engine.phrases import PhraseSet
    from engine.pipeline import prepare

    request, progress = request_of(args), progress_of(args)
    summary = prepare(request, Path(args.workspace), progress, args.settings)
    progress.close()
    found = PhraseSet.load(Path(args.workspace) / "phrases.jsonl")
    rows = [[length, count] for length, count in found.by_length().items()]
    examples = sorted(found.phrases, key=lambda p: (-p.count, -p.length))[:10]
    text = "\n\n".join(
        [
            f"{summary['sentences']:,} sentences, {summary['phrases']:,} phrases. {summary['parser']}",
            table(["length", "phrases"], rows),
            table(["phrase", "length", "count"], [[p.text, p.length, p.count] for p in examples]),
        ]
    )
    return {**summary, "by_length": found.by_length()}, text


def run_until(args: argparse.Namespace, step: str) -> dict[str, Any]:
    from engine.pipeline import customize as run

    request, progress = request_of(args), progress_of(args)
    summary = run(request, Path(args.workspace), progress, args.settings, until=step)
    progress.close()
    return summary


def memory(args: argparse.Namespace) -> Shown:
    summary = run_until(args, "memory")
    rows = [[i, size] for i, size in enumerate(summary["memory"])]
    return summary, table(["layer", "phrases"], rows)


def train(args: argparse.Namespace) -> Shown:
    summary = run_until(args, "training")
    return summary, (
        f"{summary['updates']} updates, validation loss {summary['first_loss']:.3f} -> {summary['best_loss']:.3f} at "
        f"{summary['best_update']}, stopped by {summary['stopped_by']}. `tailormt customize` with the same settings and "
        "workspace writes the bundle."
    )


# -- using plugins


def load_base(args: argparse.Namespace) -> BaseModel:
    from engine.base import BaseModel

    base = args.base or default_base(args)
    loaded = BaseModel.load(base, args.source, args.target, download=args.download, settings=args.settings)
    if args.settings.threads:
        import torch

        torch.set_num_threads(args.settings.threads)
    return loaded


def load_plugin(args: argparse.Namespace, base: BaseModel) -> Plugin | PluginStack | None:
    """The plugin of --plugin; several are stacked in the order given."""
    from engine.plugins import Plugin, PluginStack

    loaded = [Plugin.load(path, base, cache=args.settings.home_dir / "unpacked") for path in args.plugin or []]
    return PluginStack(loaded) if len(loaded) > 1 else loaded[0] if loaded else None


def translate(args: argparse.Namespace) -> Shown:
    from engine.decoding.options import Decoding
    from engine.options import from_flags

    document = documents.document_of(args)
    lines = documents.sentences(document, args.source) if document else read_input(args.input, args.source)
    if args.output != "-":
        check_writable(Path(args.output), "the translation")
    base = load_base(args)
    plugin = load_plugin(args, base)
    if args.dry_run:
        from engine.plugins.preview import preview

        return preview(base, plugin, lines)
    decoding = from_flags(Decoding, args, plugin.card.get("decoding") if plugin and args.strength else None)
    if document:
        return documents.translate_file(args, base, plugin, decoding)
    progress = progress_of(args)
    progress.begin("Translating")
    results = base.translate(lines, plugin, strength=args.strength, decoding=decoding, progress=progress)
    progress.close()
    text = "\n".join(" ".join(line.split()) for line in results)
    if args.output != "-":
        with replacing(Path(args.output), "the translation") as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        return {"output": args.output, "lines": len(results)}, ""
    return {"translations": results}, text


def compare(args: argparse.Namespace) -> Shown:
    from engine.decoding.options import Decoding
    from engine.options import from_flags

    lines = read_input(args.input, args.source)
    base = load_base(args)
    plugin = load_plugin(args, base)
    decoding = from_flags(Decoding, args, plugin.card.get("decoding") if plugin and args.strength else None)
    progress = progress_of(args)
    progress.begin("Translating with the base", 0, 2)
    vanilla = base.translate(lines, decoding=decoding, progress=progress)
    progress.begin("Translating with the plugin", 1, 2)
    customized = base.translate(lines, plugin, strength=args.strength, decoding=decoding, progress=progress)
    progress.close()
    rows = [{"source": a, "vanilla": b, "customized": c} for a, b, c in zip(lines, vanilla, customized, strict=True)]
    changed = sum(row["vanilla"] != row["customized"] for row in rows)
    text = table(["source", "vanilla", plugin.name if plugin else "plugin"], [list(row.values()) for row in rows])
    return rows, f"{text}\n\n{changed} of {len(rows)} sentences differ."


def methods(args: argparse.Namespace) -> Shown:
    from engine.methods import get_method, method_names

    records = [{"name": name, **get_method(name).capabilities.to_mapping()} for name in method_names()]
    rows = [[r["name"], needs(r), r["summary"]] for r in records]
    return records, table(["method", "needs", "what it does"], rows)


def needs(record: dict[str, Any]) -> str:
    """What a method needs, in words."""
    found = ["samples in the target language"]
    if record["needs_bilingual"]:
        found = ["samples in both languages"]
    if record["needs_domains"] > 1:
        found.append(f"{record['needs_domains']} domains")
    return ", ".join(found)


def run_demo(args: argparse.Namespace) -> Shown:
    from engine.demo import demo

    progress = progress_of(args)
    result = demo(args.settings, Path(args.output), progress)
    progress.close()
    return result


# -- processes


def worker(args: argparse.Namespace) -> Shown:
    from engine.jobs.worker import run
    from engine.logs import set_up_logs

    set_up_logs(args.settings.log_format, logging.INFO if args.settings.log_format == "json" else logging.WARNING)
    run(args.settings, once=args.once)
    return {"stopped": True}, ""


def serve(args: argparse.Namespace) -> Shown:
    import importlib

    # The engine knows nothing of the studio; this command is the one place that starts it, by name.
    importlib.import_module("studio.app").launch(args.settings, open_browser=args.open)
    return {"stopped": True}, ""


COMMANDS = {
    "customize": customize,
    "estimate": estimate,
    "translate": translate,
    "compare": compare,
    **COMPARISON_COMMANDS,
    "methods": methods,
    **BASE_COMMANDS,
    **CORPUS_COMMANDS,
    "phrases": phrases,
    "memory": memory,
    "train": train,
    "base train": train_base.train,
    **PARSER_COMMANDS,
    **KNN_COMMANDS,
    **PROPORTION_COMMANDS,
    **PLUGIN_COMMANDS,
    **JOB_COMMANDS,
    **RATING_COMMANDS,
    **BENCH_COMMANDS,
    **STORE_COMMANDS,
    **ARTEFACT_COMMANDS,
    **UPKEEP_COMMANDS,
    **CLIENT_COMMANDS,
    **ACCOUNT_COMMANDS,
    **REPLICA_COMMANDS,
    "demo": run_demo,
    "worker": worker,
    "serve": serve,
    "studio": serve,
}
