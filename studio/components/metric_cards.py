"""The figures below a comparison: one card per metric and kind of text, with interval and p."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from engine.store.comparisons import ComparisonRecord
from engine.workflows.compare.metric_rows import MetricRow, figure_rows, share_rows, sure, value
from engine.workflows.compare.systems import VANILLA
from studio.components.html import number
from studio.components.templating import render
from studio.i18n.translate import mark, tr, translate_message
from studio.services.scores import scores

FEW = 30  # below this number of sentences, the page warns that the figures are uncertain
LOWER = ("perplexity", "ter")
FOLDED = ("ter",)  # metrics without a card
ACCURACY = (
    ("style", mark("{share} of sample sentences")),
    ("general", mark("{share} of general sentences")),
    ("reworded", mark("{share} of sample sentences as paraphrased by the base")),
)


def figure_cards(sheet: ComparisonRecord, *, busy: bool, plugins: Sequence[Mapping[str, Any]] = (), moved: bool = False) -> str:
    """Cards of the measured metrics with notes; before measuring, the button to measure. `plugins` are the plugins' metrics from
    training, shown until then, and greyed out if a strength has `moved` from the 1 at which they were measured.
    """
    rows = figure_rows(sheet.figures)
    if not rows:
        earlier = Markup(figure_row(plugins[0])) if len(plugins) == 1 else ""
        return render("metric_cards.html", rows=[], earlier=earlier, moved=moved, busy=busy, references=sheet.references)
    groups: dict[tuple[str, str], list[MetricRow]] = {}
    for row in rows:
        if row.metric not in FOLDED:
            groups.setdefault((row.kind, row.metric), []).append(row)
    lines = int((sheet.figures.get("text") or {}).get("lines", 0))
    return render(
        "metric_cards.html",
        earlier="",
        groups=[{"title": title_text(group[0]), "rows": [_shown(row) for row in group]} for group in groups.values()],
        rows=[_shown(row) for row in rows],
        shares=share_rows(sheet.figures),
        randomised=any(row.p_ar is not None for row in rows),
        named=named,
        few=lines if lines < FEW else 0,
        about=_about(sheet.figures, rows),
        signatures=[
            (name, kind == "general", text)
            for kind in ("text", "general")
            for name, text in ((sheet.figures.get(kind) or {}).get("signatures") or {}).items()
        ],
    )


def _shown(row: MetricRow) -> dict[str, str]:
    """The template values of a figure, for its card and the table of all figures."""
    digits = 0 if row.metric in ("classifier", "perplexity") else 1
    interval = f"{number(row.low, digits)}–{number(row.high, digits)}"
    change = ""
    if row.before is not None:
        change = f"{row.score - row.before:+.1f}"
        if row.metric == "perplexity" and row.before:
            change = f"{100 * (row.score - row.before) / row.before:+.0f} %"
    parts = [f"95 % {interval}", change.replace("-", "−"), sure(row.p)]
    return {
        "title": title_text(row),
        "system": named(row.system),
        "value": value(row.metric, row.score),
        "interval": interval,
        "sure": " · ".join(part.replace(" ", "\u00a0") for part in parts if part),
        "p": _chance(row.p),
        "p_ar": _chance(row.p_ar),
    }


def named(system: str) -> str:
    """A system's name in the page's columns."""
    return tr("Vanilla") if system == VANILLA else system


def _chance(p: float | None) -> str:
    """A p-value without `p =`, which is in the column head."""
    return sure(p).removeprefix("p ").removeprefix("= ")


def title_text(row: MetricRow) -> str:
    """`BLEU, style`: metric and kind of text, with "lower is better" if that applies."""
    metric, _, kind = row.title.partition(", ")
    title = tr("{metric}, {text}", metric=tr(metric), text=tr(kind)) if kind else tr(metric)
    return title + tr(", lower is better") if row.metric in LOWER else title


def _about(figures: Mapping[str, Any], rows: Sequence[MetricRow]) -> list[str]:
    """Notes on the basis of the figures: texts, classifier, language model, decoding settings, tests."""
    report, general, style = figures.get("text") or {}, figures.get("general") or {}, figures.get("style") or {}
    notes = []
    if report:
        notes.append(tr("Style: {count} sentences of this comparison.", count=number(report["lines"])))
    if general:
        lines = number(general["lines"])
        notes.append(tr("General text: {count} bundled everyday sentences; their sources are back-translations.", count=lines))
    if style.get("accuracy"):
        notes.append(_accuracy(style["accuracy"]))
    if style:
        notes.append(
            tr(
                "Perplexity: of a language model trained on {count} sample sentences, per {unit}; on unseen samples it is {value}.",
                count=number(style["sentences"]),
                unit=tr(str(style["unit"])),
                value=number(style["held_out_perplexity"]),
            )
        )
    for name, settings in (figures.get("decoding") or {}).items():
        if settings:
            settings_text = ", ".join(f"{key.replace('_', ' ')} {setting}" for key, setting in settings.items())
            notes.append(
                tr(
                    "{name} decodes with its own settings ({settings}); vanilla with the defaults.",
                    name=name,
                    settings=settings_text,
                )
            )
    notes += [translate_message(note) for note in figures.get("notes", [])]
    notes.append(tr("Intervals and p: paired bootstrap with 1,000 resamples, p against vanilla."))
    if any(row.p_ar is not None for row in rows):
        notes.append(tr("Among all figures beside it: approximate randomisation with 10,000 trials."))
    return notes


def _accuracy(accuracy: Mapping[str, Any]) -> str:
    """The note on the accuracy of the style classifier."""
    kinds = [tr(words, share=f"{accuracy[name]:.0f} %") for name, words in ACCURACY if accuracy.get(name) is not None]
    return tr(
        "Style classifier: {share} accuracy on {count} texts held out from its training ({kinds}).",
        share=f"{accuracy['all']:.0f} %",
        count=number(accuracy["texts"]),
        kinds=", ".join(kinds),
    )


def figure_row(metrics: Mapping[str, Any]) -> str:
    """One card per score; empty if the plugin has none."""
    cards = [
        {"title": score.title, "before": f"{score.before:.1f}", "after": f"{score.after:.1f}", "below": score.sure}
        for score in scores(metrics)
    ]
    before, after = metrics.get("validation_loss_before"), metrics.get("validation_loss")
    if isinstance(before, int | float) and isinstance(after, int | float):
        change = f"{100 * (after - before) / before:+.0f} %".replace("-", "−") if before else ""
        below = tr("{change} · lower is better", change=change)
        losses = {"before": f"{before:.2f}", "after": f"{after:.2f}"}
        cards.append({"title": tr("Validation loss"), "below": below, **losses})
    return render("figures.html", cards=cards) if cards else ""
