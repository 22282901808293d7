"""`tailormt bench methods`: every method on the same samples, in one table.

A system is a method, a method with kNN decoding on top ("memory_adapter+knn"), or "auto". Each is made by `tailormt customize` in a
separate process, and translates the task's test and a general text with the same decoding settings, so that the table compares
methods and not decoding. Finished cells are kept, so a stopped bench resumes. Steps common to all systems of a task (samples,
phrases, back-translated pairs) are done once and not included in any system's seconds.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.decoding_options import Decoding
from engine.core.atomic_files import read_json, write_json
from engine.core.json_object import Json
from engine.core.options import named_values
from engine.core.progress import Progress
from engine.core.step_cache import StepCache
from engine.core.subprocesses import last_line, run_program
from engine.errors import Cancelled, InputError, OptionError, TailorError
from engine.methods import get_method, method_names
from engine.workflows.benchmark.tasks import TASKS, BenchmarkTask, base_digest, load_task
from engine.workflows.customize.request import AUTO, CustomizeRequest, unlike_the_paper
from engine.workflows.customize.run import Trial

VANILLA = "vanilla"
KNN = "+knn"
# Cost of making and using a plugin, in translations by the base alone: on law 5 (kNN) to 30 (memory adapter).
PLUGIN = 10.0
SETTINGS = (
    "Settings that a row does not name are the method's defaults, which are its paper's; a row with others is not the "
    "paper's method."
)
# Steps of a workspace that depend only on the samples, in order, with their files.
COMMON = {
    "samples": ("corpus.jsonl", "import_report.json"),
    "phrases": ("phrases.jsonl", "phrases.info.json"),
    "pairs": ("pairs.jsonl",),
}


def default_systems() -> list[str]:
    """Vanilla, every method that calls no service, and the main method with kNN decoding."""
    names = [name for name in method_names() if not get_method(name).capabilities.needs_endpoint]
    return [VANILLA, *names, *([f"memory_adapter{KNN}"] if "knn" in names else [])]


@dataclass(frozen=True)
class MethodBench:
    """What to compare: systems (none: all) on tasks, made from `sentences` samples and scored on `lines` lines (0: all)."""

    data: Path
    folder: Path
    base: str = ""
    tasks: Sequence[str] = ("luxun", "shake")
    systems: Sequence[str] = ()
    sentences: int = 2000
    lines: int = 0
    budget: str = "quick"
    decoding: Decoding = Decoding()  # noqa: RUF009 - frozen
    seed: int = 1
    training_options: Sequence[str] = ()  # NAME=VALUE, overriding the budget's
    pairs: bool = False  # samples with their sources instead of target sentences only

    def identity(self, task: str, system: str) -> dict[str, object]:
        """The inputs of a row, as stored with it."""
        return {
            "task": task, "system": system, "sentences": self.sentences, "lines": self.lines, "budget": self.budget,
            "seed": self.seed, "base": self.base, "decoding": self.decoding.to_mapping(),
            "base_digest": base_digest(self.base, TASKS[task].source, TASKS[task].target),
            **({"training_options": list(self.training_options)} if self.training_options else {}),
            **({"pairs": True} if self.pairs else {}),
        }  # fmt: skip


def bench_methods(bench: MethodBench, progress: Progress | None = None) -> list[Json]:
    """One row per task and system: BLEU, chrF2 and p on the task's test, BLEU on general text, seconds and sizes.

    A failed system is a row with the message in `error`. Raises OptionError on an unknown task or system.
    """
    progress, tasks = progress or Progress(), bench.tasks
    systems = list(dict.fromkeys([VANILLA, *(bench.systems or default_systems())]))
    for system in systems[1:]:
        if system != AUTO:
            get_method(system.removesuffix(KNN))
    for task in tasks:
        if task not in TASKS:
            raise OptionError(f"There is no task {task}. Known: {', '.join(TASKS)}.")
    cells = [(task, system) for task in tasks for system in systems]
    work = [1.0 if system == VANILLA else PLUGIN for _, system in cells]
    progress.begin("Making and scoring plugins")
    rows: list[Json] = []
    for task, system in cells:
        progress.advance(sum(work[: len(rows)]), sum(work), f"{task}, {system}")
        folder = bench.folder / task
        cached = folder / f"{system}.json"
        identity = bench.identity(task, system)
        row = read_json(cached)
        if {key: row.get(key) for key in identity} != identity or "error" in row:  # failed rows are retried
            _, files = load_task(task, bench.data, folder, sentences=bench.sentences, lines=bench.lines, seed=bench.seed)
            row = {**identity, **cell(bench, task, system, files, progress)}
            write_json(cached, row, "the bench's result")
        rows.append(row)
    progress.advance(sum(work), sum(work))
    return rows


def cell(bench: MethodBench, name: str, system: str, files: Mapping[str, Path], progress: Progress) -> Json:
    """Make one system's plugin and score it."""
    base, budget, position = bench.base, bench.budget, bench.folder / name
    task = TASKS[name]
    pair = ["--source", task.source, "--target", task.target, *(["--base", base] if base else [])]
    bundle = position / f"{system}.zip"
    row: Json = {}
    try:
        if system != VANILLA:
            knn = ["--knn"] if system.endswith(KNN) else []
            options = [part for option in bench.training_options for part in ("--training-option", option)]
            hand_down(position, position / f"{system}.workspace")
            summary, _, peak = tailormt(
                progress, "customize", *pair, "--samples", str(samples_file(task, files, pairs=bench.pairs)), "--method",
                system.removesuffix(KNN), *knn, "--budget", budget, *options,
                "--workspace", str(position / f"{system}.workspace"), "-o", str(bundle),
            )  # fmt: skip
            row |= {
                **costs(summary, peak),
                "training_seconds": summary["seconds"].get("training", 0.0),
                "bytes": bundle.stat().st_size,
                "preset": preset(system, budget, options) + choice(summary.get("tried", ())),
            }
        flags = decoding_flags(bench.decoding.to_mapping())
        plugin = [] if system == VANILLA else ["--plugin", str(bundle)]
        for kind in ("test", "general"):
            output = position / f"{system}.{kind}.txt"
            _, seconds, _ = tailormt(progress, "translate", *pair, *plugin, *flags, str(files[f"{kind}.source"]), "-o", str(output))
            row[f"{kind}_seconds"] = round(seconds, 1)
            against = [f"{VANILLA}={position / f'{VANILLA}.{kind}.txt'}"] if system != VANILLA else []
            report, _, _ = tailormt(
                progress, "evaluate", *against, f"{system}={output}", "--reference", str(files[f"{kind}.target"]),
                "--target", task.target, "--no-ter",
            )  # fmt: skip
            row[kind] = report["systems"][-1]
            row["signatures"] = report["signatures"]
    except Cancelled:
        raise
    except TailorError as error:
        row["error"] = str(error)
    return row


def samples_file(task: BenchmarkTask, files: Mapping[str, Path], *, pairs: bool) -> Path:
    """The samples that a plugin is made from. Raises InputError if sources are required and missing."""
    kind = "pairs" if pairs else "samples"
    if kind not in files:
        raise InputError(f"The samples of {task.title} have no sources.")
    return files[kind]


def costs(summary: Json, peak: float) -> Json:
    """The costs of making a plugin, from the summary of `tailormt customize`; `peak` in GiB."""
    shared = sum(summary["seconds"].get(step, 0.0) for step in COMMON)  # steps common to all systems of a task
    return {
        "seconds": round(summary["seconds"]["total"] - shared, 1),
        "parameters": summary.get("parameters", 0),
        "peak_gib": round(peak, 2),
        "training": summary.get("training", ""),
    }


def preset(system: str, budget: str, flags: Sequence[str] = ()) -> str:
    """How a system is made, for its row: the budget, and settings that differ from the method's defaults, which are its paper's;
    `flags` are those of `tailormt customize`.
    """
    if system in (VANILLA, AUTO):
        return budget if system == AUTO else ""
    options: dict[str, dict[str, str]] = {"--method-option": {}, "--training-option": {}}
    for flag, value in itertools.pairwise(flags):
        if flag in options:
            options[flag] |= named_values([value], flag)
    request = CustomizeRequest(method=system.removesuffix(KNN), budget=budget, method_options=options["--method-option"])
    unlike = unlike_the_paper(request)
    training = ", ".join(f"{name} = {value}" for name, value in options["--training-option"].items())
    return f"{budget}{training and f', {training}'}{unlike and f'; {unlike}'}"


def choice(tried: Sequence[Mapping[str, Any]]) -> str:
    """What `auto` chose among its trials, `: houlsby_adapter + knn`; empty for other methods."""
    return "".join(f": {Trial(**trial).name}" for trial in tried if trial["chosen"])


def how_made(row: Mapping[str, Any]) -> str:
    """A row's preset, and how its training ended if it stopped before its last update."""
    stopped = str(row.get("training") or "")
    return "; ".join(part for part in (row.get("preset", ""), stopped if stopped.startswith("stopped") else "") if part)


def decoding_flags(decoding: Mapping[str, Any]) -> list[str]:
    """The settings as flags of `tailormt translate`."""
    results: list[str] = []
    for key, value in decoding.items():
        name = key.replace("_", "-")
        results += [f"--{name}" if value else f"--no-{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
    return results


def hand_down(folder: Path, workspace: Path) -> None:
    """Copy common steps finished by other systems of the task to a new workspace. A step whose key does not match is repeated."""
    if workspace.exists():
        return
    cache: dict[str, str] = {}
    for earlier in sorted(folder.glob("*.workspace")):
        done = StepCache(earlier)
        for step, files in COMMON.items():
            if step in cache or not done.get(step) or not all((earlier / name).is_file() for name in files):
                continue
            if done.get("samples") != cache.get("samples", done.get("samples")):
                continue
            workspace.mkdir(exist_ok=True)
            for name in files:
                shutil.copyfile(earlier / name, workspace / name)
            cache[step] = done.get(step)
    if cache:
        write_json(workspace / "steps.json", cache, "the keys of the steps")


def tailormt(progress: Progress, *flags: str) -> tuple[Any, float, float]:
    """Run a command in a separate process; returns (its JSON, seconds, GiB of the largest child so far).

    Raises TailorError with the command's message when it fails, Cancelled when the user stops.
    """
    begin = time.monotonic()
    status, out, err = run_program([sys.executable, "-m", "engine.cli", *flags, "--json", "--quiet"], progress)
    if status:
        texts = [line for line in err.splitlines() if line.startswith("tailormt: ")]
        raise TailorError(
            texts[-1].removeprefix("tailormt: ") if texts else f"tailormt {flags[0]} ended with {status}: {last_line(err)[:200]}"
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return json.loads(out), time.monotonic() - begin, peak


def table_text(rows: Sequence[Json]) -> str:
    """The rows as a Markdown table, task by task, with the machine."""
    lines = [
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", "",
        "| task | system | preset and changed settings | BLEU [95 %] | p | chrF2 | general BLEU | making s (training s) | "
        "weights | bundle MiB | translating s |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in rows:
        title = TASKS[row["task"]].title
        if "error" in row:
            lines.append(f"| {title} | {row['system']} | | {row['error']} | | | | | | | |")
            continue
        bleu, chrf, general = row["test"]["bleu"], row["test"]["chrf"], row["general"]["bleu"]
        p = f"{bleu['p']:.3f}" if bleu.get("p") is not None else ""
        making_time = f"{row['seconds']:.0f} ({row['training_seconds']:.0f})" if "seconds" in row else ""
        lines.append(
            f"| {title} | {row['system']} | {how_made(row)} | {bleu['score']:.2f} [{bleu['low']:.2f}, {bleu['high']:.2f}] | {p} | "
            f"{chrf['score']:.2f} | {general['score']:.2f} | {making_time} | {row.get('parameters', 0):,} | "
            f"{row.get('bytes', 0) / 2**20:.1f} | {row['test_seconds']:.0f} |"
        )
    return "\n".join([*lines, "", SETTINGS])
