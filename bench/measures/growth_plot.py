"""A plot of an item: seconds over size, both by powers of ten, as an SVG that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from measures.growing import Point

__all__ = ["plot"]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 260, 60, 30, 390, 226
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#444444")
TEMPLATE = Path(__file__).with_suffix(".svg")


def plot(title: str, points: Sequence[Point]) -> str:
    """The text of the SVG."""
    from jinja2 import Environment

    sizes = sorted({point.size for point in points})
    low, high = (math.log10(value) for value in (sizes[0], sizes[-1]))
    seconds = [math.log10(max(point.seconds, 1e-6)) for point in points]
    least, most = math.floor(min(seconds)), math.ceil(max(seconds))

    def x(size: float) -> float:
        return round(LEFT + (math.log10(size) - low) / max(1e-9, high - low) * (RIGHT - LEFT), 1)

    def y(power: float) -> float:
        return round(BOTTOM - (power - least) / max(1, most - least) * (BOTTOM - TOP), 1)

    lines = []
    for index, what in enumerate(dict.fromkeys(point.what for point in points)):
        series = [point for point in points if point.what == what]
        places = [(x(point.size), y(math.log10(max(point.seconds, 1e-6)))) for point in series]
        lines.append({"what": what, "points": places, "colour": COLOURS[index % len(COLOURS)], "place": TOP + 14 + 20 * index})
    environment = Environment(autoescape=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        title=title, width=WIDTH, height=HEIGHT, left=LEFT, top=TOP, right=RIGHT, bottom=BOTTOM, lines=lines,
        across=[(x(size), f"{size:,}") for size in sizes],
        up=[(y(power), told(10.0**power)) for power in range(least, most + 1)],
    )  # fmt: skip


def told(seconds: float) -> str:
    """`10 ms`."""
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size * 0.999:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:g} s"
