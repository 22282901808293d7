"""`tailormt reproduce`: an experiment of the papers as one command, with its figures next to theirs.

Rows are made like those of `tailormt bench methods` (one process each, common steps once, finished rows kept), and rows shared by
several experiments are made once.
"""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.base import BaseModel, read_card
from engine.base.decoding_options import Decoding
from engine.base.registry import BaseRegistry
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import OptionError
from engine.plugins import Plugin
from engine.workflows.benchmark.experiments import EXPERIMENTS, Experiment, layer_variants
from engine.workflows.benchmark.methods import SETTINGS, VANILLA, how_made, preset
from engine.workflows.benchmark.row import BenchmarkRow, Plan, Scale
from engine.workflows.benchmark.tasks import TASKS

ROUNDS = 3  # timing rounds, of which the median counts
SURE = 0.05  # p below which a difference from the base is marked
MARGIN = 8  # minimum number of sentences to time


SCALES = {"quick": Scale(1000, 100, "quick"), "balanced": Scale(4000, 250, "balanced"), "best": Scale(0, 0, "best")}


def reproduce(
    name: str, plan: Plan, settings: Settings, *, tasks: Sequence[str] = (), progress: Progress | None = None
) -> list[Json]:
    """One row per task and variant, with its figures under "found" and the paper's under "paper".

    A failed variant, for example without its data, has the message in "error". Rows are stored in the plan's folder; a second run
    makes only missing ones. Raises OptionError on an unknown experiment or task, MissingError without a base, Cancelled.
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
        experiment = replace(experiment, variants=layer_variants(decoder_layers(chosen[0], plan.base, settings)))
    progress.begin(experiment.title)
    cells = [(task, variant) for task in chosen for variant in experiment.variants]
    rows = []
    for done, (task, variant) in enumerate(cells):
        progress.advance(done, len(cells), f"{TASKS[task].title}, {variant.label}")
        row = BenchmarkRow(task, variant, experiment, plan, progress).load_or_make()
        rows.append({"task": task, "label": variant.label, "paper": dict(variant.paper.get(task, {})), **row})
    if any(measure.startswith("seconds@") for measure in experiment.measures):
        add_seconds(rows, experiment, plan, settings, progress)
    progress.advance(len(cells), len(cells))
    return rows


def decoder_layers(task: str, base: str, settings: Settings) -> int:
    """The number of decoder layers of the task's base."""
    spec = TASKS[task]
    return int(read_card(base or BaseRegistry(settings).default(spec.source, spec.target))["decoder_layers"])


# -- figure 5: translation times


def add_seconds(rows: list[Json], experiment: Experiment, plan: Plan, settings: Settings, progress: Progress) -> None:
    """Translate the same sentences by all systems in turn, in this process; the median time of each is added to its row."""
    for task in dict.fromkeys(row["task"] for row in rows):
        usable = [row for row in rows if row["task"] == task and "error" not in row]
        if not usable:
            continue
        spec = TASKS[task]
        position = plan.base or str(BaseRegistry(settings).default(spec.source, spec.target))
        model = BaseModel.load(position, spec.source, spec.target, settings=settings)
        texts = [line for line in (plan.folder / task / f"test.{spec.source}.txt").read_text("utf-8").splitlines() if line.strip()]
        plugins = {row["label"]: None if row["system"] == VANILLA else Plugin.load(row["bundle"], model) for row in usable}
        for measure in experiment.measures:
            size = int(measure.partition("@")[2] or 0)
            if size:
                times = timed(model, plugins, texts, size, progress)
                for row in usable:
                    row["found"][measure] = times[row["label"]]


def timed(base: BaseModel, plugins: Mapping[str, Any], texts: list[str], size: int, progress: Progress) -> dict[str, float]:
    """Median seconds of each system over the same sentences, `size` at a time."""
    from engine.decoding.translate import translate

    count = min(len(texts), max(size, MARGIN))
    batches = [texts[position : position + size] for position in range(0, count, size)]
    result: dict[str, list[float]] = {label: [] for label in plugins}
    for number in range(ROUNDS + 1):  # the first round is a warm-up
        for label, plugin in plugins.items():
            progress.check()
            begin = time.perf_counter()
            for batch in batches:
                # A high token limit, so that the batch size is the experiment's.
                translate(base, batch, plugin, decoding=Decoding(guard=False, batch_tokens=1_000_000))
            if number:
                result[label].append(time.perf_counter() - begin)
    return {label: round(statistics.median(times), 3) for label, times in result.items()}


# -- output


def comparison_text(name: str, rows: Sequence[Json], base: str, scale: Scale) -> str:
    """A Markdown table with the paper's figures in brackets beside ours, and how the experiments differ."""
    experiment = EXPERIMENTS[name]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    heads = [f"{TASKS[task].title}: {measure}" for task in tasks for measure in experiment.measures]
    lines = [
        f"### {experiment.title}",
        "",
        f"| | preset and changed settings | {' | '.join(heads)} |",
        f"|---|---|{'---:|' * len(heads)}",
    ]
    by = {(row["task"], row["label"]): row for row in rows}
    for label in dict.fromkeys(row["label"] for row in rows):
        cells = [cell_text(by.get((task, label)), measure) for task in tasks for measure in experiment.measures]
        setup = next((how for row in rows if row["label"] == label and (how := how_made(preset_of(row, scale)))), "")
        lines.append(f"| {label} | {setup} | {' | '.join(cells)} |")
    for row in rows:
        if "error" in row:
            lines.append(f"\n{TASKS[row['task']].title}, {row['label']}: {row['error']}")
    size = "all samples" if not scale.sentences else f"{scale.sentences:,} samples"
    much = "whole texts" if not scale.lines else f"{scale.lines:,} lines of each text"
    signature = next((row["signatures"]["BLEU"] for row in rows if row.get("signatures")), "")
    lines += [
        "",
        f"Ours, the paper's in brackets. Base {base or 'as bundled'}, {size}, {much}, budget {scale.budget}; "
        f"{platform.machine()}, {os.cpu_count()} cores, {datetime.date.today()}. BLEU {signature}.",
        f"{SETTINGS.removesuffix('.')}, but where that is what it varies.",
        f"What differs: {experiment.differs}",
    ]
    if any(row.get("p") is not None for row in rows):
        lines.insert(-1, f"`*`: differs from the base alone (paired bootstrap, p < {SURE}).")
    return "\n".join(lines)


def preset_of(row: Mapping[str, Any], scale: Scale) -> Json:
    """A row with its preset; all rows are made without the budgets' time limits."""
    return {**row, "preset": preset(str(row.get("system", VANILLA)), str(row.get("budget", scale.budget)), row.get("flags", ()))}


def cell_text(row: Mapping[str, Any] | None, measure: str) -> str:
    if row is None:
        return ""
    result, paper = row["found"].get(measure), row["paper"].get(measure)
    digits = 3 if measure == "valid_loss" or measure.startswith("own@") else 2 if measure.startswith("seconds") else 1
    ours = "-" if result is None else f"{result:.{digits}f}"
    if measure == "bleu" and row.get("p") is not None and row["p"] < SURE:
        ours += "*"
    return ours if paper is None else f"{ours} ({paper:g})"
