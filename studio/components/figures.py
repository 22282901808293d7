"""The figures of an evaluation as cards: before and after, with interval and p, style and general text side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studio.components.templating import render
from studio.i18n.translate import tr
from studio.services.scores import scores


def figure_row(metrics: Mapping[str, Any]) -> str:
    """One card a score; nothing where a plugin has none."""
    cards = [
        {"title": one.title, "before": f"{one.before:.1f}", "after": f"{one.after:.1f}", "below": one.sure}
        for one in scores(metrics)
    ]
    before, after = metrics.get("validation_loss_before"), metrics.get("validation_loss")
    if isinstance(before, int | float) and isinstance(after, int | float):
        change = f"{100 * (after - before) / before:+.0f} %".replace("-", "−") if before else ""
        below = tr("{change} · lower is better", change=change)
        losses = {"before": f"{before:.2f}", "after": f"{after:.2f}"}
        cards.append({"title": tr("Validation loss"), "below": below, **losses})
    return render("figures.html", cards=cards) if cards else ""
