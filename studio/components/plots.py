"""The studio's charts as plotly figures. Text and grid colours come from the style sheet, so that dark mode works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studio.components.html import esc
from studio.components.theme import DOMAINS, FONTS, ROLES
from studio.i18n.translate import mark, tr

TRAIN = ROLES["accent"][0]
VALID = "#C97A00"
OTHER = "#8A8F98"


def loss_curve(rows: Sequence[Mapping[str, Any]], total: int | None = None) -> Any:
    """Training and validation loss by step, with the best checkpoint marked; `total` steps set the end of the axis."""
    other = points_of(rows, "other_memory_loss")
    lines = [(tr("training loss"), points_of(rows, "nll"), TRAIN)]
    lines += [(tr("validation loss"), valid := points_of(rows, "valid_loss"), VALID)]
    lines += [(tr("validation loss, other memory"), other, OTHER)] if other else []
    figure = _by_step(total)
    for name, points, colour in lines:
        _add(figure, name, points, colour, 3, "lines" if len(points) > 1 else "lines+markers")
    if valid:
        best = min(valid, key=lambda point: point[1])
        figure.add_scatter(
            x=[best[0]], y=[best[1]], name=tr("best checkpoint"), mode="markers", marker={"color": VALID, "size": 9},
            hovertemplate=at_step(3),
        )  # fmt: skip
    return figure


def bleu_curve(rows: Sequence[Mapping[str, Any]], total: int | None = None) -> Any:
    """BLEU of the monitored sentences by step: style and general text, each with the base's BLEU as a dotted line."""
    figure = _by_step(total)
    for name, key, colour in ((tr("style BLEU"), "style_bleu", TRAIN), (tr("general BLEU"), "general_bleu", VALID)):
        points = points_of(rows, key)
        _add(figure, name, points, colour, 1)
        if points and points[0][0] == 0:
            figure.add_hline(y=points[0][1], line={"color": colour, "width": 1, "dash": "dot"})
    return figure


MEASURES = {
    "valid_loss": (mark("validation loss"), 3),
    "nll": (mark("training loss"), 3),
    "style_bleu": (mark("style BLEU"), 1),
    "general_bleu": (mark("general BLEU"), 1),
}


def overlaid(runs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], measure: str) -> Any:
    """One measure of several runs by step, one colour per run. `runs`: name and rows; `measure`: a key of MEASURES."""
    name_of, digits = MEASURES[measure]
    figure = _by_step()
    for index, (name, rows) in enumerate(runs):
        # Without a point, plotly would leave the run out of the legend.
        points: Sequence[tuple[int, float | None]] = points_of(rows, measure) or [(0, None)]
        mode = "lines" if len(points) > 12 else "lines+markers"
        _add(figure, name, points, DOMAINS[index % len(DOMAINS)], digits, mode)
    figure.update_yaxes(title={"text": tr(name_of), "font": {"size": 12}})
    return figure


def points_of(rows: Sequence[Mapping[str, Any]], measure: str) -> list[tuple[int, float]]:
    """(step, value) of the rows that have the measure; some methods log their training loss only as `loss`."""
    values = [(row.get("step"), row.get(measure, row.get("loss") if measure == "nll" else None)) for row in rows]
    return [(step, value) for step, value in values if step is not None and value is not None]


def at_step(digits: int, name: str = "") -> str:
    """The plotly hover template for a point of a curve."""
    value = tr("step {step}: {value}", step="%{x:,}", value=f"%{{y:.{digits}f}}")
    return f"{value}<extra>{esc(name)}</extra>"


def _add(
    figure: Any, name: str, points: Sequence[tuple[int, float | None]], colour: str, digits: int, mode: str = "lines+markers"
) -> None:
    figure.add_scatter(
        x=[step for step, _ in points], y=[value for _, value in points], name=name, mode=mode,
        line={"color": colour, "width": 2}, cliponaxis=False, hovertemplate=at_step(digits, name),
    )  # fmt: skip


def _by_step(total: int | None = None) -> Any:
    """An empty figure with steps on the x axis, up to `total` if it is known."""
    import plotly.graph_objects as go

    figure = go.Figure()
    ink, line = ROLES["ink-2"][0], ROLES["line"][0]
    figure.update_layout(
        height=270,
        showlegend=True,
        margin={"l": 44, "r": 16, "t": 8, "b": 28},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 11.5, "color": ink, "family": ", ".join(FONTS)},
        legend={"orientation": "h", "y": -0.12, "x": 0, "font": {"size": 12}, "itemwidth": 30},
        hovermode="closest",
        dragmode="zoom",
    )
    figure.update_yaxes(gridcolor=line, zeroline=False)
    figure.update_xaxes(zeroline=False, showgrid=False, rangemode="tozero")
    if total:
        figure.update_xaxes(range=[0, total])
    return figure
