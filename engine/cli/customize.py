"""The commands that make a plugin from samples, run single steps of this, estimate it, and list the methods."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.cli.commands import Shown, base_path
from engine.cli.terminal import comparison
from engine.core.atomic_files import check_writable
from engine.core.options import describe, named_values
from engine.core.progress import duration
from engine.core.text_table import table
from engine.corpora.bundled import named_files
from engine.workflows.customize.request import CustomizeRequest


def request_of(args: argparse.Namespace) -> CustomizeRequest:
    values = {item.name: getattr(args, item.name) for item in describe(CustomizeRequest) if hasattr(args, item.name)}
    for kind in ("method", "training", "corpus", "knn", "phrase"):
        values[f"{kind}_options"] = named_values(getattr(args, f"{kind}_option", None), f"--{kind}-option")
    values["base"] = base_path(args)
    values["samples"] = named_files(args.samples, args.settings.assets_dir)
    return CustomizeRequest.from_mapping({key: value for key, value in values.items() if value is not None})


@contextlib.contextmanager
def workspace_of(args: argparse.Namespace, request: CustomizeRequest) -> Iterator[Path]:
    """The folder given with --workspace, which is kept; else one in the home folder.

    The latter is reused by the same command and removed when the command has succeeded.
    """
    if args.workspace:
        yield Path(args.workspace)
        return
    key = {**request.to_mapping(), "output": str(Path(request.output).resolve()), "base": str(Path(request.base).resolve())}
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    folder = args.settings.home_dir / "work" / name
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def customize(args: argparse.Namespace) -> Shown:
    from engine.workflows.customize.pipeline import customize as run

    request = request_of(args)
    check_writable(Path(request.output), "the plugin")
    with workspace_of(args, request) as workspace:
        summary = run(request, workspace, args.progress, args.settings)
    return summary, summary_text(summary)


def estimate(args: argparse.Namespace) -> Shown:
    from engine.workflows.estimate import estimate_samples

    result = estimate_samples(request_of(args), args.settings)
    steps = ", ".join(f"{name} {duration(seconds)}" for name, seconds in result.parts.items())
    lines = [
        f"Time       {duration(result.seconds)} ({duration(result.low)} to {duration(result.high)}), {result.sentence}",
        f"Steps      {steps}",
        f"Memory     {result.memory / 2**30:.1f} GiB, {result.device}",
        f"Disk       {result.disk / 2**20:.1f} MiB while it works, {result.bundle / 2**20:.1f} MiB for the plugin",
        f"Weights    {result.weights:,}",
    ]
    return result.to_mapping(), "\n".join([*lines, *(f"Note: {note}" for note in result.notes)])


def summary_text(summary: dict[str, Any]) -> str:
    """A summary for the user after a customization."""
    metrics, times = summary["metrics"], summary["seconds"]
    trained, loss = "none", ""
    if "updates" in summary:
        trained = f"{summary['training']}, best at {summary['best_update']}, {summary['parameters']:,} weights"
        loss = f"loss {metrics['validation_loss_before']:.3f} -> {metrics['validation_loss']:.3f} nats per token; "
    unlike = summary["unlike_the_paper"]
    held_out = "not measured, since that would call the service"
    if "bleu" in metrics:
        bleu = f"BLEU {metrics['bleu_vanilla']} -> {metrics['bleu']}"
        held_out = f"{loss}{bleu} on {metrics['held_out_sentences']} of your own sentences"
        if "general_bleu" in metrics:
            held_out += f", {metrics['general_bleu_vanilla']} -> {metrics['general_bleu']} on general text"
    memory = f", {summary['phrases']:,} phrases" if summary["phrases"] else ""
    if count := sum(summary["memory"]):
        memory += f", {count:,} {'' if summary['phrases'] else 'tokens '}remembered"
    lines = [
        f"Plugin     {summary['plugin']} ({summary['bytes'] / 2**20:.1f} MiB)",
        f"Samples    {summary['sentences']:,} sentences{memory}",
        f"Training   {trained}, {summary['device']}",
        f"Budget     {summary['budget']}{unlike and f'; unlike the paper: {unlike}'}",
        f"Held out   {held_out}",
        "Time       " + ", ".join(f"{key} {value:.0f} s" for key, value in times.items()),
        f"Phrases    {summary['parser'] or 'not needed'}",
    ]
    if datastore := summary.get("knn"):
        lines.insert(3, f"Datastore  {datastore['entries']:,} tokens, index {datastore['index']}; held-out loss with it "
                     f"{datastore['loss_base']:.3f} -> {datastore['loss']:.3f}")  # fmt: skip
    if tried := summary.get("tried"):
        lines.append(comparison(tried))
    return "\n".join([*lines, *(f"Note: {warning}" for warning in summary["warnings"])])


def phrases(args: argparse.Namespace) -> Shown:
    from engine.phrases import PhraseSet
    from engine.workflows.customize.pipeline import prepare

    request = request_of(args)
    summary = prepare(request, Path(args.workspace), args.progress, args.settings)
    result = PhraseSet.load(Path(args.workspace) / "phrases.jsonl")
    rows = [[length, count] for length, count in result.by_length().items()]
    examples = sorted(result.phrases, key=lambda p: (-p.count, -p.length))[:10]
    text = "\n\n".join(
        [
            f"{summary['sentences']:,} sentences, {summary['phrases']:,} phrases. {summary['parser']}",
            table(["length", "phrases"], rows),
            table(["phrase", "length", "count"], [[p.text, p.length, p.count] for p in examples]),
        ]
    )
    return {**summary, "by_length": result.by_length()}, text


def run_until(args: argparse.Namespace, step: str) -> dict[str, Any]:
    from engine.workflows.customize.pipeline import customize as run

    request = request_of(args)
    summary = run(request, Path(args.workspace), args.progress, args.settings, stop_after=step)
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


def methods(args: argparse.Namespace) -> Shown:
    from engine.methods import get_method, method_names

    records = [{"name": name, **get_method(name).capabilities.to_mapping()} for name in method_names()]
    rows = [[r["name"], needs(r), r["summary"]] for r in records]
    return records, table(["method", "needs", "what it does"], rows)


def needs(record: dict[str, Any]) -> str:
    """What a method needs, in words."""
    results = ["samples in the target language"]
    if record["needs_bilingual"]:
        results = ["samples in both languages"]
    if record["needs_domains"] > 1:
        results.append(f"{record['needs_domains']} domains")
    return ", ".join(results)


def run_demo(args: argparse.Namespace) -> Shown:
    from engine.cli.demo import demo

    result = demo(args.settings, Path(args.output), args.progress, args.to)
    return result
