"""`tailormt reproduce`: an experiment of the papers as one command, its figures beside theirs.

Rows are made like those of `tailormt bench methods` (a process each, common steps once, finished rows kept), and rows that
several experiments share are made once.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.benching.experiments import EXPERIMENTS, Experiment, Variant, layer_variants
from engine.benching.methods import KNN, VANILLA, decoding_flags, hand_down, own_seconds, tailormt
from engine.benching.tasks import TASKS, dev_sentences, load_task
from engine.decoding.options import Decoding
from engine.errors import Cancelled, OptionError, TailorError
from engine.files import replacing, write_json
from engine.progress import Progress
from engine.settings import Settings
from engine.stamps import digest

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["SCALES", "Scale", "comparison_text", "reproduce"]

ROUNDS = 3  # of timing, of which the median counts
MARGIN = 8  # the least number of batches' worth of sentences is this over the batch size


@dataclass(frozen=True)
class Scale:
    """How much of it all: samples at random (0: all), lines of a text (0: all), and the budget of training."""

    sentences: int
    lines: int
    budget: str


SCALES = {
    "quick": Scale(1000, 100, "quick"),
    "balanced": Scale(4000, 250, "balanced"),
    "best": Scale(0, 0, "best"),
}


def reproduce(
    name: str,
    data: Path,
    folder: Path,
    settings: Settings,
    *,
    base: str = "",
    scale: Scale = SCALES["quick"],
    tasks: Sequence[str] = (),
    seed: int = 1,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """One row a task and variant, with its figures under "found" and the paper's under "paper". A variant that fails has its
    sentence in "error". Rows lie in `folder`; a second run makes only what is missing.

    Raises OptionError on an unknown experiment or task, InputError when the data is not there, Cancelled.
    """
    progress = progress or Progress()
    if name not in EXPERIMENTS:
        raise OptionError(f"There is no experiment {name}. Known: {', '.join(EXPERIMENTS)}.")
    experiment = EXPERIMENTS[name]
    chosen = tuple(tasks) or experiment.tasks
    for task in chosen:
        if task not in experiment.tasks:
            raise OptionError(f"{name} is not about {task}. Its tasks: {', '.join(experiment.tasks)}.")
    if not experiment.variants:
        experiment = replace(experiment, variants=layer_variants(decoder_layers(chosen[0], base, settings)))
    progress.begin(experiment.title)
    cells = [(task, variant) for task in chosen for variant in experiment.variants]
    rows = []
    for done, (task, variant) in enumerate(cells):
        progress.advance(done, len(cells), f"{TASKS[task].title}, {variant.label}")
        place = folder / task
        _, files = load_task(task, data, place, sentences=scale.sentences, lines=scale.lines, seed=seed)
        row = made(task, variant, experiment, files, place, scale, base, seed, data, progress)
        rows.append({"task": task, "label": variant.label, "paper": dict(variant.paper.get(task, {})), **row})
    if any(measure.startswith("seconds@") for measure in experiment.measures):
        add_seconds(rows, experiment, folder, base, settings, progress)
    progress.advance(len(cells), len(cells))
    return rows


def made(
    task: str, variant: Variant, experiment: Experiment, files: dict[str, Path], place: Path, scale: Scale, base: str,
    seed: int, data: Path, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """A row, from its file where it is kept, else made."""
    sentences = variant.sentences or scale.sentences
    wanted = {
        "system": variant.system, "flags": list(variant.flags), "sentences": sentences, "lines": scale.lines,
        "budget": scale.budget, "base": base, "seed": seed,
    }  # fmt: skip
    stem = f"{variant.system}-{digest(wanted)[:10]}"
    kept = place / f"{stem}.{experiment.text}.row.json"
    row = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    styled = "classifier" in experiment.measures or "perplexity" in experiment.measures
    if row and "error" not in row and (not styled or "classifier" in row["found"]):
        return {**row, "bundle": str(place / f"{stem}.zip")}
    about = TASKS[task]
    pair = ["--source", about.source, "--target", about.target, *(["--base", base] if base else [])]
    row = {**wanted, "found": {}}
    samples = files["samples"]  # to learn from; the style's figures are always by those of the scale
    try:
        if variant.sentences:
            # The same first sentences of the same order, so that each number of samples holds the smaller ones.
            own = place / f"samples.{sentences}"
            _, other = load_task(task, data, own, sentences=sentences, lines=1, seed=seed)
            samples = other["samples"]
        if experiment.text == "dev":
            files = {**files, **dev_files(task, data, place, scale.lines, pair, progress)}
        bundle = place / f"{stem}.zip"
        if variant.system != VANILLA and not bundle.exists():
            row |= plugin(variant, samples, pair, place, stem, scale.budget, progress)
        row["valid_loss"] = valid_losses(place / f"{stem}.workspace")  # of a plugin that another experiment made, too
        score(row, variant, experiment.text, files, pair, place, stem, styled, progress)
    except Cancelled:
        raise
    except TailorError as error:
        row["error"] = str(error)
    write_json(kept, row, "the experiment's row")
    return {**row, "bundle": str(place / f"{stem}.zip")}


def plugin(
    variant: Variant, samples: Path, pair: list[str], place: Path, stem: str, budget: str, progress: Progress
) -> dict[str, Any]:
    workspace = place / f"{stem}.workspace"
    if not variant.sentences and not any("phrase-option" in flag for flag in variant.flags):
        hand_down(place, workspace)
    knn = ["--knn"] if variant.system.endswith(KNN) else []
    found, _, peak = tailormt(
        progress, "customize", *pair, "--samples", str(samples), "--method", variant.system.removesuffix(KNN), *knn,
        *variant.flags, "--budget", budget, "--workspace", str(workspace), "-o", str(place / f"{stem}.zip"),
    )  # fmt: skip
    return {
        "seconds": own_seconds(found["seconds"]),
        "parameters": found.get("parameters", 0),
        "peak_gib": round(peak, 2),
    }


def valid_losses(workspace: Path) -> list[list[float]]:
    """(update, loss on held-out samples) of each validation of the training."""
    found = []
    for file in sorted(workspace.glob("**/metrics.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "valid_loss" in row:
                found.append([float(row["step"]), float(row["valid_loss"])])
    return found


def score(
    row: dict[str, Any], variant: Variant, text: str, files: dict[str, Path], pair: list[str], place: Path, stem: str,
    styled: bool, progress: Progress,
) -> None:  # fmt: skip
    """Translate the text and measure it, against vanilla where that is there."""
    output = place / f"{stem}.{text}.txt"
    bundle = [] if variant.system == VANILLA else ["--plugin", str(place / f"{stem}.zip")]
    decoding = decoding_flags(Decoding().to_mapping())
    tailormt(progress, "translate", *pair, *bundle, *decoding, str(files[f"{text}.source"]), "-o", str(output))
    vanilla = place / f"{VANILLA}-{digest(row['lines'], row['base'])[:10]}.{text}.txt"
    if variant.system == VANILLA:
        with replacing(vanilla, "the translations") as temporary:
            temporary.write_bytes(output.read_bytes())
    against = [f"{VANILLA}={vanilla}"] if variant.system != VANILLA and vanilla.exists() else []
    samples = ["--samples", str(files["samples"])] if styled else []
    report, _, _ = tailormt(
        progress, "evaluate", *against, f"{variant.label.replace('=', ' ')}={output}", "--reference",
        str(files[f"{text}.target"]), *pair, *samples, "--no-ter",
    )  # fmt: skip
    system = report["systems"][-1]
    row["found"] |= {
        name: system[name]["score"] for name in ("bleu", "chrf", "perplexity", "classifier") if system.get(name)
    }
    row["p"] = system["bleu"].get("p")
    row["signatures"] = report["signatures"]
    if row.get("valid_loss"):
        row["found"]["valid_loss"] = min(loss for _, loss in row["valid_loss"])


def dev_files(task: str, data: Path, place: Path, lines: int, pair: list[str], progress: Progress) -> dict[str, Path]:
    """Held-out sentences of the style and their machine translations, which are the sources, as the paper has them."""
    about = TASKS[task]
    target, source = place / f"dev.{about.target}.txt", place / f"dev.{about.source}.txt"
    sentences = dev_sentences(task, data)[: lines or None]
    text = "".join(f"{one}\n" for one in sentences)
    if not target.exists() or target.read_text(encoding="utf-8") != text or not source.exists():
        target.write_text(text, encoding="utf-8")
        back = ["--source", about.target, "--target", about.source, *pair[4:]]
        tailormt(progress, "translate", *back, str(target), "-o", str(source))
    return {"dev.source": source, "dev.target": target}


def decoder_layers(task: str, base: str, settings: Settings) -> int:
    """Of the base that the task is done with."""
    from engine.base import read_card
    from engine.base.shelf import Shelf

    about = TASKS[task]
    return int(read_card(base or Shelf(settings).default(about.source, about.target))["decoder_layers"])


# -- figure 5: seconds side by side


def add_seconds(
    rows: list[dict[str, Any]], experiment: Experiment, folder: Path, base: str, settings: Settings, progress: Progress
) -> None:
    """Translate the same sentences by all systems in turns, in this process; the median of each goes into its row."""
    from engine.base import BaseModel
    from engine.base.shelf import Shelf
    from engine.plugins import Plugin

    for task in dict.fromkeys(row["task"] for row in rows):
        about = TASKS[task]
        place = base or str(Shelf(settings).default(about.source, about.target))
        model = BaseModel.load(place, about.source, about.target, settings=settings)
        texts = [
            line
            for line in (folder / task / f"test.{about.source}.txt").read_text("utf-8").splitlines()
            if line.strip()
        ]
        usable = [row for row in rows if row["task"] == task and "error" not in row]
        plugins = {
            row["label"]: None if row["system"] == VANILLA else Plugin.load(row["bundle"], model) for row in usable
        }
        for measure in experiment.measures:
            size = int(measure.partition("@")[2] or 0)
            if size:
                times = timed(model, plugins, texts, size, progress)
                for row in usable:
                    row["found"][measure] = times[row["label"]]


def timed(
    base: BaseModel, plugins: Mapping[str, Any], texts: list[str], size: int, progress: Progress
) -> dict[str, float]:
    """Median seconds of each system over the same sentences, `size` at a time."""
    count = min(len(texts), max(size, MARGIN))
    batches = [texts[place : place + size] for place in range(0, count, size)]
    found: dict[str, list[float]] = {label: [] for label in plugins}
    for number in range(ROUNDS + 1):  # the first is not counted: memories are mapped, buffers made
        for label, one in plugins.items():
            progress.check()
            begin = time.perf_counter()
            for batch in batches:
                # As many tokens at once as there are: a batch is what the experiment says.
                base.translate(batch, one, decoding=Decoding(batch_tokens=1_000_000))
            if number:
                found[label].append(time.perf_counter() - begin)
    return {label: round(statistics.median(times), 3) for label, times in found.items()}


# -- what is shown


def comparison_text(name: str, rows: Sequence[dict[str, Any]], base: str, scale: Scale) -> str:
    """A Markdown table, the paper's figures in brackets beside ours, and what differs."""
    experiment = EXPERIMENTS[name]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    heads = [f"{TASKS[task].title}: {measure}" for task in tasks for measure in experiment.measures]
    lines = [f"### {experiment.title}", "", f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    by = {(row["task"], row["label"]): row for row in rows}
    for label in dict.fromkeys(row["label"] for row in rows):
        cells = [cell_text(by.get((task, label)), measure) for task in tasks for measure in experiment.measures]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    for row in rows:
        if "error" in row:
            lines.append(f"\n{TASKS[row['task']].title}, {row['label']}: {row['error']}")
    size = "all samples" if not scale.sentences else f"{scale.sentences:,} samples"
    much = "whole texts" if not scale.lines else f"{scale.lines:,} lines of each text"
    signature = next((row["signatures"]["BLEU"] for row in rows if row.get("signatures")), "")
    lines += [
        "",
        f"Ours, the paper's in brackets. Base {base or 'that came along'}, {size}, {much}, budget {scale.budget}; "
        f"{platform.machine()}, {os.cpu_count()} cores. BLEU {signature}.",
        f"What differs: {experiment.differs}",
    ]
    return "\n".join(lines)


def cell_text(row: Mapping[str, Any] | None, measure: str) -> str:
    if row is None:
        return ""
    found, paper = row["found"].get(measure), row["paper"].get(measure)
    digits = 3 if measure == "valid_loss" else 2 if measure.startswith("seconds") else 1
    ours = "-" if found is None else f"{found:.{digits}f}"
    return ours if paper is None else f"{ours} ({paper:g})"
