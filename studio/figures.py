"""The figures of an evaluation as cards: before and after, with interval and p, style and general text side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studio.html import figure

__all__ = ["figure_row", "scores"]


def scores(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scores in a plugin's metrics as {title, before, after, low, high, p}, as many as there are."""
    return []


def figure_row(metrics: Mapping[str, Any]) -> str:
    """One card a score; nothing where a plugin has none."""
    cards = ""
    for one in scores(metrics):
        difference = one["after"] - one["before"]
        sure = f"{difference:+.1f}".replace("-", "−")
        if one.get("p") is not None:
            sure += " · p < 0.001" if one["p"] < 0.001 else f" · p = {one['p']:.3f}"
        cards += figure(one["title"], f"{one['before']:.1f}", f"{one['after']:.1f}", sure)
    return f'<div class="tm-figures">{cards}</div>' if cards else ""
