#!/usr/bin/env python3
"""Where the time goes: operators by torch's profiler, Python functions by py-spy's samples.

    OMP_NUM_THREADS=1 python bench/profiles.py vanilla memory training            # tables of operators
    py-spy record -f raw -o memory.txt -- python bench/profiles.py memory --seconds 30
    python bench/profiles.py --samples memory.txt                                 # a table of functions

What is profiled: `vanilla` translates a batch of sentences with the base, `memory` the same with a memory adapter, `training`
does updates of one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

WORKS = ("vanilla", "memory", "training")
TOP = 12
OURS = ("(engine/", "(transformers/models/", "(torch/autograd/graph")
BETWEEN = ("__torch_function__", "wrapper")  # what stands between a function and its operators


def work(setup: Any, name: str, phrases: int, batch: int) -> Callable[[], Any]:
    """What one turn of `name` does."""
    from measures.decode import translator
    from measures.learning import TOKENS, update

    if name == "training":
        return update(setup, "memory_adapter", setup.memory(phrases), TOKENS)[0]
    plugin = setup.plugin("memory_adapter", setup.memory(phrases), search="exact") if name == "memory" else None
    return translator(setup, setup.english[:batch], plugin)


def operators(run: Callable[[], Any], turns: int) -> list[tuple[str, float, int]]:
    """(operator, its own processor seconds, calls), the longest first."""
    from torch.profiler import ProfilerActivity, profile

    run()
    with profile(activities=[ProfilerActivity.CPU]) as result:
        for _ in range(turns):
            run()
    rows = [(event.key, event.self_cpu_time_total / 1e6, event.count) for event in result.key_averages()]
    return sorted(rows, key=lambda row: -row[1])


def operator_table(rows: list[tuple[str, float, int]]) -> str:
    total = sum(seconds for _, seconds, _ in rows)
    lines = ["| operator | share | calls |", "|---|---:|---:|"]
    lines += [f"| `{name}` | {seconds / total:.0%} | {count:,} |" for name, seconds, count in rows[:TOP]]
    rest = sum(seconds for _, seconds, _ in rows[TOP:])
    return "\n".join([*lines, f"| {len(rows) - TOP} others | {rest / total:.0%} | |", "", f"{total:.2f} s in all."])


def function_table(file: Path) -> str:
    """Shares of samples by the innermost function that is ours, the base model's, or the backward pass."""
    counts: Counter[str] = Counter()
    for line in file.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if "update.<locals>.run" not in stack and "translator.<locals>" not in stack:  # imports, the base, memories
            continue
        ours = [frame for frame in frames if any(part in frame for part in OURS) and not any(part in frame for part in BETWEEN)]
        counts[(ours or frames)[-1].rpartition(":")[0]] += int(count)
    total = sum(counts.values())
    lines = ["| innermost function | share of samples |", "|---|---:|"]
    return "\n".join([*lines, *(f"| `{name})` | {count / total:.0%} |" for name, count in counts.most_common(TOP))])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--phrases", type=int, default=1000, help="a layer [1000]")
    parser.add_argument("--batch", type=int, default=32, help="sentences [32]")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0, help="turns without a profiler, for py-spy")
    parser.add_argument("--samples", type=Path, help="py-spy's raw file, to be shown as a table")
    args = parser.parse_args()
    if args.samples:
        print(function_table(args.samples))
        return 0
    if strange := [name for name in args.works if name not in WORKS]:
        parser.error(f"There is no {strange[0]}. Known: {', '.join(WORKS)}.")
    from measures.setup import Setup

    setup = Setup()
    for name in args.works:
        run = work(setup, name, args.phrases, args.batch)
        if not args.seconds:
            print(f"### {name}\n\n{operator_table(operators(run, args.turns))}\n")
        until = time.monotonic() + args.seconds
        while time.monotonic() < until:
            run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
