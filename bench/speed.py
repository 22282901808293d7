#!/usr/bin/env python3
"""The speed table: each measure with its limit, systems side by side in one run.

    make bench
    OMP_NUM_THREADS=1 python bench/speed.py --write bench/RESULTS.md
    python bench/speed.py --small                               # everything in small, to see that it runs
    python bench/speed.py --rows memory_vs_residual,knn --rounds 7 --json speed.json

Systems take turns, a round before the counted ones warms them, and a ratio is the median over rounds of the two times within one
round. "Measured" is processor time, which other work on the machine hardly changes; "by the clock" is what one waits.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]


def main(arguments: list[str] | None = None) -> int:
    """Measure the chosen rows; 0, or 2 where a row's name is unknown. A limit that is missed is no error, but told."""
    from measures.report import write_results
    from measures.row import Row, machine, table
    from measures.rows import ROWS
    from measures.setup import Setup

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help=f"which, by comma: {', '.join(ROWS)} [all]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="small sizes and one round: whether it runs, not how fast")
    parser.add_argument("--scale", type=float, default=1.0, help="of sizes: 0.1 measures with a tenth of them [1]")
    parser.add_argument("--base", default=str(ROOT / "assets/models/en-zh"))
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write machine and rows with all figures to this file")
    parser.add_argument("--write", type=Path, help="put the table into this file, in the place of the rows it had before")
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="rows that are not measured now, of earlier --json")
    args = parser.parse_args(arguments)
    chosen = [name.strip() for name in args.rows.split(",") if name.strip()]
    if unknown := [name for name in chosen if name not in ROWS]:
        print(f"There is no row {', '.join(unknown)}. There are: {', '.join(ROWS)}.", file=sys.stderr)
        return 2
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    rounds = 1 if args.small else args.rounds
    setup = Setup(args.base, args.source, args.target, rounds=rounds, small=args.small, scale=args.scale)
    rows: list[Row] = []
    runs: list[dict[str, Any]] = []
    try:
        for name in chosen:
            print(f"{name} …", file=sys.stderr, flush=True)
            begun = time.monotonic()
            result = ROWS[name](setup)
            print(f"{table(result)}\n{time.monotonic() - begun:.0f} s\n", file=sys.stderr, flush=True)
            rows += result
            runs = [machine(setup.rounds)]
            if args.json:  # after each, so that one that fails loses none of the others
                mappings = [row.to_mapping() for row in rows]
                args.json.write_text(json.dumps({"runs": runs, "rows": mappings}, indent=1) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(setup.scratch, ignore_errors=True)
    for file in args.read:
        before = json.loads(file.read_text(encoding="utf-8"))
        runs += before["runs"]
        rows += [Row.from_mapping(row) for row in before["rows"] if row["name"] not in chosen]
    rows.sort(key=lambda row: list(ROWS).index(row.name))
    if args.write:
        write_results(args.write, runs, rows)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
