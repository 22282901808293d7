"""`tailormt bench …` and `tailormt reproduce`: their flags and what they print."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.base.decoding_options import Decoding
from engine.cli.commands import Commands
from engine.core.options import add_flags, from_flags


def register(top: Commands) -> None:
    benches = top.group("bench", "experiments over public data")
    add_methods_flags(benches.add("methods", "every method on the same samples, one table", methods))
    add_reproduce_flags(
        top.add("reproduce", "repeat an experiment of the papers, with its scores next to theirs", reproduced)
    )


def add_methods_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with mtsc, domains and heldout")
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for plugins and results; a second run continues"
    )
    parser.add_argument(
        "--tasks", default="luxun,shake", help="luxun, shake, it, medical, law, koran, it_python [luxun,shake]"
    )
    parser.add_argument("--systems", default="", help="methods, with +knn to add kNN decoding, or auto [all methods]")
    parser.add_argument(
        "--pairs", action="store_true", help="use samples with their own sources, not only target sentences"
    )
    parser.add_argument("--base", default="", metavar="DIR", help="the base [the bundled one]")
    parser.add_argument("--sentences", type=int, default=2000, help="number of samples, at random; 0: all [2000]")
    parser.add_argument("--lines", type=int, default=0, help="only the first lines of each test; 0: all [0]")
    parser.add_argument(
        "--budget", default="quick", choices=("quick", "balanced", "best"), help="how long to train [quick]"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed for choosing sentences [1]")
    parser.add_argument(
        "--training-option", action="append", default=[], metavar="NAME=VALUE", help="a setting of training; repeatable"
    )
    add_flags(parser, Decoding)


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


def add_reproduce_flags(parser: argparse.ArgumentParser) -> None:
    from engine.workflows.benchmark.experiments import EXPERIMENTS

    parser.add_argument("experiment", metavar="NAME", help=", ".join(EXPERIMENTS))
    parser.add_argument(
        "--data", required=True, metavar="DIR", help="folder with mtsc, domains, heldout; for paper3-table7 parallel"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for plugins and rows; a second run continues"
    )
    parser.add_argument("--tasks", default="", help="some of the experiment's tasks [all]")
    parser.add_argument("--base", default="", metavar="DIR", help="the base [the bundled one]")
    parser.add_argument(
        "--budget", default="quick", choices=("quick", "balanced", "best"),
        help="quick: 1,000 samples and 100 lines, minutes a row on two cores; balanced: 4,000 and 250; best: all, for a GPU "
        "[quick]",
    )  # fmt: skip
    parser.add_argument(
        "--sentences", type=int, metavar="N", help="number of samples, at random; 0: all [the budget's]"
    )
    parser.add_argument(
        "--lines", type=int, metavar="N", help="only the first lines of each text; 0: all [the budget's]"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed for choosing samples [1]")
    parser.add_argument(
        "--write", default="", metavar="FILE.md", help="write the table to this file, replacing the previous one"
    )


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

        given = [
            f"--{name} {value}"
            for name in ("data", "tasks", "base", "budget", "sentences", "lines", "seed")
            if (value := getattr(args, name)) not in (None, "")
        ]
        command = f"    tailormt reproduce {args.experiment} {' '.join(given)} -o {args.output}"
        put_part(Path(args.write), args.experiment, f"{text}\n\n{command}")
    return rows, text
