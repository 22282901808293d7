"""`tailormt bench …` and `tailormt reproduce`: their flags and what they print."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.base.decoding_options import Decoding
from engine.core.options import from_flags


def methods(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.workflows.benchmark.methods import MethodBench, bench_methods, table_text

    bench = MethodBench(
        Path(args.data),
        Path(args.output),
        base=args.base,
        tasks=[name.strip() for name in args.tasks.split(",") if name.strip()],
        systems=[name.strip() for name in args.systems.split(",") if name.strip()],
        sentences=args.sentences,
        lines=args.lines,
        budget=args.budget,
        decoding=from_flags(Decoding, args),
        seed=args.seed,
        training_options=args.training_option,
        pairs=args.pairs,
    )
    rows = bench_methods(bench, args.progress)
    return rows, table_text(rows)


def reproduced(args: argparse.Namespace) -> tuple[Any, str]:
    from dataclasses import replace

    from engine.workflows.benchmark.reproduce import SCALES, comparison_text, reproduce
    from engine.workflows.benchmark.row import Plan

    scale = SCALES[args.budget]
    if args.sentences is not None:
        scale = replace(scale, sentences=args.sentences)
    if args.lines is not None:
        scale = replace(scale, lines=args.lines)
    rows = reproduce(
        args.experiment, Plan(Path(args.data), Path(args.output), scale, args.base, args.seed), args.settings,
        tasks=[name.strip() for name in args.tasks.split(",") if name.strip()], progress=args.progress,
    )  # fmt: skip
    text = comparison_text(args.experiment, rows, args.base, scale)
    if args.write:
        from engine.workflows.benchmark.results import put_part

        flags = [
            f"--{name} {value}"
            for name in ("data", "tasks", "base", "budget", "sentences", "lines", "seed")
            if (value := getattr(args, name)) not in (None, "")
        ]
        command = f"    tailormt reproduce {args.experiment} {' '.join(flags)} -o {args.output}"
        put_part(Path(args.write), args.experiment, f"{text}\n\n{command}")
    return rows, text
