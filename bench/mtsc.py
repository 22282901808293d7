#!/usr/bin/env python3
"""Quality on MTSC: Lu Xun (English to Chinese) and Shakespeare (Chinese to English), human-translated test pairs.

For each direction and number of sentences: make a plugin from that many target-side sentences with `tailormt customize`,
then score vanilla, plugin, and plugin at half strength on the same test file with the same decoding. Prints a table and
writes it with all figures to --out. Finished cells are kept there, so a stopped bench goes on.

    python bench/mtsc.py                                 # 250 and 2,000 sentences, both directions
    python bench/mtsc.py --sizes 250,2000,all --budget best
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MTSC = ROOT.parent / "shared" / "data" / "mtsc"
TASKS = {
    "luxun": {"source": "en", "target": "zh", "train": "train.luxun.random.zh"},
    "shake": {"source": "zh", "target": "en", "train": "train.shake.all.en"},
}


def tailormt(*flags: str) -> tuple[Any, float, float]:
    """Run one command with --json; returns (result, seconds, peak GiB of the largest process so far)."""
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli", *flags, "--json"], stdout=subprocess.PIPE, cwd=ROOT, check=False
    )
    if done.returncode:
        sys.exit(f"tailormt {' '.join(flags)} ended with {done.returncode}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return json.loads(done.stdout), time.monotonic() - begin, peak


def sample(task: dict[str, str], size: str, seed: int, folder: Path) -> Path:
    """`size` sentences at random of the task's training file, in a file of their own."""
    lines = [line for line in (MTSC / task["train"]).read_text(encoding="utf-8").split("\n") if line.strip()]
    if size != "all":
        random.Random(seed).shuffle(lines)
        lines = lines[: int(size)]
    file = folder / f"{task['target']}.{size}.{seed}.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def cell(name: str, size: str, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One plugin, made and scored."""
    task = TASKS[name]
    pair = ["--source", task["source"], "--target", task["target"], "--base", args.base]
    bundle = folder / f"{name}.{size}.zip"
    samples = sample(task, size, args.seed, folder)
    options = [flag for option in args.training_option for flag in ("--training-option", option)]
    options += [flag for option in args.method_option for flag in ("--method-option", option)]
    made, seconds, peak = tailormt(
        "customize", *pair, "--samples", str(samples), "--budget", args.budget, *options,
        "--workspace", str(folder / f"{name}.{size}.{args.budget}"), "-o", str(bundle),
    )  # fmt: skip
    source = MTSC / f"test.{name}.{task['source']}"
    # The plugin's decoding settings, for vanilla too: the table is to show what the plugin does, not what decoding does.
    decoding = [part for key, value in made["decoding"].items() for part in (f"--{key.replace('_', '-')}", str(value))]
    systems, times = [], {}
    for label, extra in {
        "vanilla": [],
        "vanilla, default decoding": None,  # with the settings a user has without a plugin
        "adapter": ["--plugin", str(bundle)],
        "adapter, half strength": ["--plugin", str(bundle), "--strength", "0.5"],
    }.items():
        output = folder / f"{name}.{size}.{label.replace(', ', '-').replace(' ', '-')}.txt"
        _, times[label], _ = tailormt(
            "translate", *pair, *([] if extra is None else [*extra, *decoding]), str(source), "-o", str(output)
        )
        systems.append(f"{label}={output}")
    report, _, _ = tailormt(
        "evaluate", *systems, "--reference", str(MTSC / f"test.{name}.{task['target']}"), "--target", task["target"],
        "--baseline", "vanilla",
    )  # fmt: skip
    return {
        "task": name, "sentences": size, "budget": args.budget, "options": options, "decoding": decoding, "seed": args.seed,
        "customize": made, "seconds": round(seconds, 1), "peak_gib": round(peak, 2), "translate_seconds": times, "report": report,
    }  # fmt: skip


def rows(found: dict[str, Any]) -> list[str]:
    """The cell's lines of the table."""
    times, lines = found["customize"]["seconds"], []
    for system in found["report"]["systems"]:
        bleu, chrf = system["bleu"], system["chrf"]
        p = f"{bleu['p']:.3f}" if bleu.get("p") is not None else ""
        extra = (
            f"{times['training']:.0f} s / {found['seconds']:.0f} s | {found['peak_gib']:.1f}"
            if system["name"] == "adapter"
            else " | "
        )
        lines.append(
            f"| {found['task']} | {found['sentences']} | {system['name']} | {bleu['score']:.2f} [{bleu['low']:.2f}, "
            f"{bleu['high']:.2f}] | {chrf['score']:.2f} | {p} | {extra} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="250,2000", help="numbers of sentences, or all")
    parser.add_argument("--tasks", default="luxun,shake")
    parser.add_argument("--base", default=str(ROOT / "assets" / "models" / "en-zh"))
    parser.add_argument("--budget", default="balanced")
    parser.add_argument("--training-option", action="append", default=[])
    parser.add_argument("--method-option", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out", default=str(Path(tempfile.gettempdir()) / "tailormt-mtsc"), help="folder for the results"
    )
    args = parser.parse_args()
    if not MTSC.exists():
        sys.exit(f"The MTSC data is not at {MTSC}; see bench/README.md.")
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print("| style | sentences | system | BLEU [95 %] | chrF | p | training / whole job | peak GiB |")
    print("|---|---|---|---|---|---|---|---|")
    for size in args.sizes.split(","):
        for name in args.tasks.split(","):
            selected = folder / f"{name}.{size}.{args.budget}.json"
            if not selected.exists():
                selected.write_text(
                    json.dumps(cell(name, size, args, folder), ensure_ascii=False, indent=1), encoding="utf-8"
                )
            print("\n".join(rows(json.loads(selected.read_text(encoding="utf-8")))), flush=True)


if __name__ == "__main__":
    main()
