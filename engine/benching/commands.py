"""`tailormt bench …`: its flags and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.decoding.options import Decoding
from engine.options import add_flags, from_flags

__all__ = ["BENCH_COMMANDS", "add_methods_flags"]


def add_methods_flags(found: argparse.ArgumentParser) -> None:
    """Flags of `tailormt bench methods`."""
    found.add_argument("--data", required=True, metavar="DIR", help="folder with mtsc, domains and heldout")
    found.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for plugins and results; a second run goes on"
    )
    found.add_argument(
        "--tasks", default="luxun,shake", help="luxun, shake, it, medical, law, koran, it_python [luxun,shake]"
    )
    found.add_argument("--systems", default="", help="methods, with +knn for kNN decoding on top [all]")
    found.add_argument("--base", default="", metavar="DIR", help="the base [the one that came along]")
    found.add_argument("--sentences", type=int, default=2000, help="of the samples, at random; 0: all [2000]")
    found.add_argument("--lines", type=int, default=0, help="of each test, the first; 0: all [0]")
    found.add_argument(
        "--budget", default="quick", choices=("quick", "balanced", "best"), help="how long to train [quick]"
    )
    found.add_argument("--seed", type=int, default=1, help="of the choice of sentences [1]")
    found.add_argument(
        "--training-option", action="append", default=[], metavar="NAME=VALUE", help="a setting of training; repeatable"
    )
    add_flags(found, Decoding)


def methods(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.benching.methods import bench_methods, table_text
    from engine.terminal import TerminalProgress

    rows = bench_methods(
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
        progress=TerminalProgress(quiet=args.quiet),
    )
    return rows, table_text(rows)


BENCH_COMMANDS = {"bench methods": methods}
