"""The studio's charts as plotly figures. Text and grid colours come from the style sheet, so that dark mode holds."""

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
    """Training and validation loss by step, the best validation marked; `total` steps give the axis its end."""
    import plotly.graph_objects as go

    train = [
        (row["step"], row.get("nll", row.get("loss")))
        for row in rows
        if "step" in row and ("nll" in row or "loss" in row)
    ]
    valid = [(row["step"], row["valid_loss"]) for row in rows if row.get("valid_loss") is not None and "step" in row]
    other = [(row["step"], row["other_memory_loss"]) for row in rows if row.get("other_memory_loss") is not None]
    lines = [(tr("training loss"), train, TRAIN), (tr("validation loss"), valid, VALID)]
    lines += [(tr("validation loss, other memory"), other, OTHER)] if other else []
    figure = go.Figure()
    for name, points, colour in lines:
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[value for _, value in points],
            name=name,
            mode="lines" if len(points) > 1 else "lines+markers",
            line={"color": colour, "width": 2},
            hovertemplate=at_step("%{y:.3f}") + "<extra>" + name + "</extra>",
        )
    if valid:
        best = min(valid, key=lambda point: point[1])
        figure.add_scatter(
            x=[best[0]],
            y=[best[1]],
            name=tr("best checkpoint"),
            mode="markers",
            marker={"color": VALID, "size": 9},
            hovertemplate=at_step("%{y:.3f}") + "<extra></extra>",
        )
    _style(figure, height=270)
    figure.update_layout(showlegend=True)
    figure.update_xaxes(showgrid=False, rangemode="tozero")
    if total:
        figure.update_xaxes(range=[0, total])
    return figure


def bleu_curve(rows: Sequence[Mapping[str, Any]], total: int | None = None) -> Any:
    """BLEU of a few watched sentences by step: style and general text, each with the base's own as a dotted line."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, key, colour in ((tr("style BLEU"), "style_bleu", TRAIN), (tr("general BLEU"), "general_bleu", VALID)):
        points = [(row["step"], row[key]) for row in rows if row.get(key) is not None and "step" in row]
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[value for _, value in points],
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            hovertemplate=at_step("%{y:.1f}") + "<extra>" + name + "</extra>",
        )
        if points and points[0][0] == 0:
            figure.add_hline(y=points[0][1], line={"color": colour, "width": 1, "dash": "dot"})
    _style(figure, height=270)
    figure.update_layout(showlegend=True)
    figure.update_xaxes(showgrid=False, rangemode="tozero")
    if total:
        figure.update_xaxes(range=[0, total])
    return figure


MEASURES = {
    "valid_loss": (mark("validation loss"), 3),
    "nll": (mark("training loss"), 3),
    "style_bleu": (mark("style BLEU"), 1),
    "general_bleu": (mark("general BLEU"), 1),
}


def overlaid(runs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], measure: str) -> Any:
    """One measure of several runs by step, a colour a run. `runs`: name and rows; `measure`: a key of MEASURES."""
    import plotly.graph_objects as go

    name_of, digits = MEASURES[measure]
    figure = go.Figure()
    for index, (name, rows) in enumerate(runs):
        points = [
            (row["step"], row.get(measure, row.get("loss") if measure == "nll" else None))
            for row in rows
            if "step" in row
        ]
        points = [(step, value) for step, value in points if value is not None]
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[value for _, value in points],
            name=name,
            mode="lines" if len(points) > 12 else "lines+markers",
            line={"color": DOMAINS[index % len(DOMAINS)], "width": 2},
            hovertemplate=f"{at_step(f'%{{y:.{digits}f}}')}<extra>{esc(name)}</extra>",
        )
    _style(figure, height=270)
    figure.update_layout(showlegend=True)
    figure.update_yaxes(title={"text": tr(name_of), "font": {"size": 12}})
    figure.update_xaxes(showgrid=False, rangemode="tozero")
    return figure


def at_step(value: str) -> str:
    """The hover text of a point, as plotly fills it in."""
    return tr("step {step}: {value}", step="%{x:,}", value=value)


def _style(figure: Any, height: int) -> None:
    ink, line = ROLES["ink-2"][0], ROLES["line"][0]
    figure.update_layout(
        height=height,
        margin={"l": 44, "r": 16, "t": 8, "b": 28},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 11.5, "color": ink, "family": ", ".join(FONTS)},
        legend={"orientation": "h", "y": -0.12, "x": 0, "font": {"size": 12}, "itemwidth": 30},
        hovermode="closest",
        dragmode="zoom",
    )
    figure.update_yaxes(gridcolor=line, zeroline=False)
    figure.update_xaxes(zeroline=False)
