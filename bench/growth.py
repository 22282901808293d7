#!/usr/bin/env python3
"""Time and memory over the size of everything that grows: sentences, phrases, memories, plugins, projects, comparisons and
their lines, jobs, views of pages.

    python bench/growth.py                                  # all of it: a quarter of an hour on an idle core
    python bench/growth.py --items jobs,waiting --most 10000
    python bench/growth.py --items sentences --json sentences.json
    python bench/growth.py --items "" --read sentences.json --write docs/performance.md

Each size is measured in a process of its own, through the functions that the studio calls. Seconds are processor time, the
median of up to thirty calls; MiB are what the first call needed at its peak. A slope is that of log time over log size, by
least squares over the upper three sizes: 1 is linear, 0 does not grow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from measures.growing import Item, Point, growth, slope  # noqa: E402
from measures.growing_files import MEMORY, PHRASES, PLUGINS, SENTENCES  # noqa: E402
from measures.growing_rows import COMPARISONS, JOBS, LINES, PROJECTS, VIEWS, WAITING  # noqa: E402

ITEMS = {item.name: item for item in (SENTENCES, PHRASES, MEMORY, PLUGINS, PROJECTS, COMPARISONS, LINES, JOBS, WAITING, VIEWS)}
LINEAR = 1.15  # the slope above which something grows worse than linearly


def main(arguments: list[str] | None = None) -> int:
    """Measure the chosen items; 0, or 2 where an item's name is unknown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", default=",".join(ITEMS), help=f"which, by comma: {', '.join(ITEMS)} [all]")
    parser.add_argument("--most", type=int, default=0, help="the largest size, where an item's own is larger")
    parser.add_argument("--json", type=Path, help="write machine and points to this file")
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="items not measured now, of earlier --json")
    parser.add_argument("--write", type=Path, help="put the table into this file, and plots into images/growth beside it")
    args = parser.parse_args(arguments)
    chosen = [name.strip() for name in args.items.split(",") if name.strip()]
    if unknown := [name for name in chosen if name not in ITEMS]:
        print(f"There is no item {', '.join(unknown)}. There are: {', '.join(ITEMS)}.", file=sys.stderr)
        return 2
    runs, points = measured([ITEMS[name] for name in chosen], args.most, args.json)
    for file in args.read:
        before = json.loads(file.read_text(encoding="utf-8"))
        runs += [run for run in before["runs"] if run not in runs]
        read = [Point(**row) for row in before["points"] if row["item"] not in chosen]
        points = [point for point in points if point.item not in {earlier.item for earlier in read}] + read  # the last one counts
    points.sort(key=lambda point: list(ITEMS).index(point.item))
    if args.write:
        write(args.write, runs, points)
    print(table(points))
    return 0


def measured(items: Sequence[Item], most: int, file: Path | None) -> tuple[list[dict[str, Any]], list[Point]]:
    """The machine and the points; each size is written to the file as it comes."""
    from measures.row import machine

    points: list[Point] = []
    runs: list[dict[str, Any]] = []
    command = f"python bench/growth.py --items {','.join(item.name for item in items)}{f' --most {most}' if most else ''}"
    folder = Path(tempfile.mkdtemp(prefix="tailormt-growth-"))
    try:
        for item in items:
            for batch in growth(item, folder, most):
                points += batch
                runs = [{**machine(), "command": command}]
                for point in batch:
                    print(f"{item.title}, {point.size:,}: {point.what}: {shown(point.seconds)}", file=sys.stderr, flush=True)
                if file is not None:
                    data = {"runs": runs, "points": [asdict(point) for point in points]}
                    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return runs, points


def table(points: Sequence[Point]) -> str:
    """Markdown: a row for each call, a column for each size from a hundred."""
    sizes = [size for size in sorted({point.size for point in points}) if size >= 100]
    lines = [
        f"| what | {' | '.join(f'{size:,}' for size in sizes)} | MiB at the largest | slope |",
        f"|---|{'---:|' * (len(sizes) + 2)}",
    ]
    for name in dict.fromkeys(point.item for point in points):
        lines.append(f"| **{ITEMS[name].title}** |{' |' * (len(sizes) + 2)}")
        of_item = [point for point in points if point.item == name]
        for what in dict.fromkeys(point.what for point in of_item):
            series = sorted((point for point in of_item if point.what == what), key=lambda point: point.size)
            cells = {point.size: shown(point.seconds) for point in series}
            mib = "" if series[-1].mib is None else f"{series[-1].mib:,.0f}"
            steep = slope([point.size for point in series], [point.seconds for point in series])
            exponent = "" if steep is None else f"**{steep:.2f}**" if steep > LINEAR else f"{steep:.2f}"
            lines.append(f"| {what} | {' | '.join(cells.get(size, '') for size in sizes)} | {mib} | {exponent} |")
    return "\n".join(lines)


def shown(seconds: float) -> str:
    """`0.34 ms`, `12 ms`, `1.5 s`."""
    value, unit = (seconds * 1e3, "ms") if seconds < 0.9995 else (seconds, "s")
    digits = max(0, 1 - len(f"{value:.0f}") + (value < 1)) + (1 if value < 10 else 0)
    return f"{value:,.{digits}f} {unit}"


def write(path: Path, runs: Sequence[dict[str, Any]], points: Sequence[Point]) -> None:
    """The table and the plots, with the machine, in the place of those before."""
    from measures.growth_plot import plot
    from measures.report import told

    from engine.workflows.benchmark.results import put_part

    folder = path.parent / "images" / "growth"
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for name in dict.fromkeys(point.item for point in points):
        file = folder / f"{name}.svg"
        file.write_text(plot(ITEMS[name].title, [point for point in points if point.item == name]), encoding="utf-8")
        pictures.append(f"![{ITEMS[name].title}: seconds over size]({os.path.relpath(file, path.parent)})")
    where = "\n\n".join(f"    {run['command']}\n\n{told(run)}" for run in runs)
    put_part(path, "growth", f"{table(points)}\n\n{where}\n\n" + "\n".join(pictures))


if __name__ == "__main__":
    sys.exit(main())
