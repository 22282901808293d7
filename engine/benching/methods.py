"""`tailormt bench methods`: every method on the same samples, one table.

A system is a method, or a method with kNN decoding on top ("memory_adapter+knn"). Each is made by `tailormt customize` in a
process of its own, and translates the task's test and a general text with the same decoding settings, so that the table shows
methods and not decoding. Finished cells are kept: a stopped bench goes on. What all systems of a task have in common (samples,
phrases, back-translated pairs) is made once and counts in nobody's seconds.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.benching.tasks import TASKS, load_task
from engine.decoding.options import Decoding
from engine.errors import Cancelled, OptionError, TailorError
from engine.files import write_json
from engine.methods import get_method, method_names
from engine.programs import last_line, run_program
from engine.progress import Progress
from engine.stamps import Stamps

__all__ = ["bench_methods", "default_systems", "table_text"]

VANILLA = "vanilla"
KNN = "+knn"
# Steps of a workspace that depend on the samples alone, in their order, with the files they leave.
COMMON = {
    "samples": ("corpus.jsonl", "import_report.json"),
    "phrases": ("phrases.jsonl", "phrases.info.json"),
    "pairs": ("pairs.jsonl",),
}


def default_systems() -> list[str]:
    """Vanilla, every method that calls no service, and the main method with kNN decoding."""
    names = [name for name in method_names() if not get_method(name).capabilities.needs_endpoint]
    return [VANILLA, *names, *([f"memory_adapter{KNN}"] if "knn" in names else [])]


def bench_methods(
    data: Path,
    folder: Path,
    *,
    base: str = "",
    tasks: Sequence[str] = ("luxun", "shake"),
    systems: Sequence[str] = (),
    sentences: int = 2000,
    lines: int = 0,
    budget: str = "quick",
    decoding: Decoding | None = None,
    seed: int = 1,
    training_options: Sequence[str] = (),
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """One row a task and system: BLEU, chrF2 and p on the task's test, BLEU on general text, seconds and sizes.

    `training_options` are NAME=VALUE over the budget's. A system that fails is a row with its sentence in `error`. Raises
    OptionError on an unknown task or system.
    """
    progress = progress or Progress()
    systems = list(dict.fromkeys([VANILLA, *(systems or default_systems())]))
    for system in systems[1:]:
        get_method(system.removesuffix(KNN))
    for task in tasks:
        if task not in TASKS:
            raise OptionError(f"There is no task {task}. Known: {', '.join(TASKS)}.")
    cells = [(task, system) for task in tasks for system in systems]
    progress.begin("Making and scoring plugins")
    rows = []
    for done, (task, system) in enumerate(cells):
        progress.advance(done, len(cells), f"{task}, {system}")
        place = folder / task
        kept = place / f"{system}.json"
        wanted = {
            "task": task, "system": system, "sentences": sentences, "lines": lines, "budget": budget, "seed": seed,
            "base": base, "decoding": (decoding or Decoding()).to_mapping(),
            **({"training_options": list(training_options)} if training_options else {}),
        }  # fmt: skip
        row = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        if {key: row.get(key) for key in wanted} != wanted or "error" in row:  # what failed is tried again
            _, files = load_task(task, data, place, sentences=sentences, lines=lines, seed=seed)
            row = {**wanted, **cell(task, system, files, place, wanted, progress)}
            write_json(kept, row, "the bench's result")
        rows.append(row)
    progress.advance(len(cells), len(cells))
    return rows


def cell(
    name: str, system: str, files: dict[str, Path], place: Path, wanted: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    """Make one system's plugin and score it."""
    base, budget = wanted["base"], wanted["budget"]
    task = TASKS[name]
    pair = ["--source", task.source, "--target", task.target, *(["--base", base] if base else [])]
    bundle = place / f"{system}.zip"
    row: dict[str, Any] = {}
    try:
        if system != VANILLA:
            knn = ["--knn"] if system.endswith(KNN) else []
            options = [part for one in wanted.get("training_options", ()) for part in ("--training-option", one)]
            hand_down(place, place / f"{system}.workspace")
            made, _, peak = tailormt(
                progress, "customize", *pair, "--samples", str(files["samples"]), "--method", system.removesuffix(KNN), *knn,
                "--budget", budget, *options, "--workspace", str(place / f"{system}.workspace"), "-o", str(bundle),
            )  # fmt: skip
            row |= {
                "seconds": own_seconds(made["seconds"]),
                "training_seconds": made["seconds"].get("training", 0.0),
                "parameters": made.get("parameters", 0),
                "bytes": bundle.stat().st_size,
                "peak_gib": round(peak, 2),
            }
        flags = decoding_flags(wanted["decoding"])
        plugin = [] if system == VANILLA else ["--plugin", str(bundle)]
        for kind in ("test", "general"):
            output = place / f"{system}.{kind}.txt"
            _, seconds, _ = tailormt(
                progress, "translate", *pair, *plugin, *flags, str(files[f"{kind}.source"]), "-o", str(output)
            )
            row[f"{kind}_seconds"] = round(seconds, 1)
            against = [f"{VANILLA}={place / f'{VANILLA}.{kind}.txt'}"] if system != VANILLA else []
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


def decoding_flags(decoding: Mapping[str, Any]) -> list[str]:
    """The settings as `tailormt translate` takes them."""
    return [part for key, value in decoding.items() for part in (f"--{key.replace('_', '-')}", str(value))]


def own_seconds(times: dict[str, float]) -> float:
    """What a system took without the steps that all of a task have in common."""
    return round(times["total"] - sum(times.get(step, 0.0) for step in COMMON), 1)


def hand_down(place: Path, workspace: Path) -> None:
    """Give a new workspace the common steps that others of the task have done. A stamp that does not fit is done again."""
    if workspace.exists():
        return
    stamps: dict[str, str] = {}
    for earlier in sorted(place.glob("*.workspace")):
        done = Stamps(earlier)
        for step, files in COMMON.items():
            if step in stamps or not done.get(step) or not all((earlier / name).is_file() for name in files):
                continue
            if done.get("samples") != stamps.get("samples", done.get("samples")):
                continue
            workspace.mkdir(exist_ok=True)
            for name in files:
                shutil.copyfile(earlier / name, workspace / name)
            stamps[step] = done.get(step)
    if stamps:
        write_json(workspace / "steps.json", stamps, "the steps' stamps")


def tailormt(progress: Progress, *flags: str) -> tuple[Any, float, float]:
    """Run a command in a process of its own; returns (its JSON, seconds, GiB of the largest child so far).

    Raises TailorError with the command's sentence when it fails, Cancelled when the user stops.
    """
    begin = time.monotonic()
    status, out, err = run_program([sys.executable, "-m", "engine.cli", *flags, "--json", "--quiet"], progress)
    if status:
        said = [line for line in err.splitlines() if line.startswith("tailormt: ")]
        raise TailorError(
            said[-1].removeprefix("tailormt: ")
            if said
            else f"tailormt {flags[0]} ended with {status}: {last_line(err)[:200]}"
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return json.loads(out), time.monotonic() - begin, peak


def table_text(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table, a task after another, with the machine."""
    lines = [
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", "",
        "| task | system | BLEU [95 %] | p | chrF2 | general BLEU | making s (training s) | weights | bundle MiB | translating s |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in rows:
        title = TASKS[row["task"]].title
        if "error" in row:
            lines.append(f"| {title} | {row['system']} | {row['error']} | | | | | | | |")
            continue
        bleu, chrf, general = row["test"]["bleu"], row["test"]["chrf"], row["general"]["bleu"]
        p = f"{bleu['p']:.3f}" if bleu.get("p") is not None else ""
        made = f"{row['seconds']:.0f} ({row['training_seconds']:.0f})" if "seconds" in row else ""
        lines.append(
            f"| {title} | {row['system']} | {bleu['score']:.2f} [{bleu['low']:.2f}, {bleu['high']:.2f}] | {p} | "
            f"{chrf['score']:.2f} | {general['score']:.2f} | {made} | {row.get('parameters', 0):,} | "
            f"{row.get('bytes', 0) / 2**20:.1f} | {row['test_seconds']:.0f} |"
        )
    return "\n".join(lines)
