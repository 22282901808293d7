"""The figures below a comparison: a card a metric with interval and p, general text always beside the style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.comparison.figures import Row, figure_rows, share_rows, sure, value
from engine.comparison.systems import VANILLA
from engine.store.sheets import SheetRow
from studio.html import esc, number
from studio.i18n import mark, tr
from studio.told import told

__all__ = ["figure_cards"]

FEW = 30  # sentences below which figures say little
LOWER = ("perplexity", "ter")
FOLDED = ("ter",)  # not on a card of its own
ACCURACY = (
    ("style", mark("{share} of sample sentences")),
    ("general", mark("{share} of general sentences")),
    ("reworded", mark("{share} of sample sentences as the base alone puts them")),
)


def figure_cards(sheet: SheetRow, *, busy: bool, plugins: Sequence[Mapping[str, Any]] = ()) -> str:
    """Cards of what was measured, and what it rests on; before that the way to measure. `plugins` are their metrics from
    training, shown until there is something better.
    """
    rows = figure_rows(sheet.figures)
    if not rows:
        return _invitation(sheet, busy, plugins)
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.metric not in FOLDED:
            groups.setdefault((row.kind, row.metric), []).append(row)
    cards = "".join(_card(group) for group in groups.values())
    return f'<div class="tm-figures">{cards}</div>{_further(sheet.figures, rows)}{_rests_on(sheet)}'


def _card(rows: Sequence[Row]) -> str:
    title = title_said(rows[0])
    if len(rows) == 2:
        base, plugin = rows
        body = (
            f'<div class="value"><s>{value(base.metric, base.score)}</s><span>→</span>{value(plugin.metric, plugin.score)}'
            f"</div><p>{_sure(plugin)}</p>"
        )
    else:
        body = "".join(
            f'<div class="tm-figure-row"><span>{esc(named(row.system))}</span><b>{value(row.metric, row.score)}</b>'
            f"<small>{_sure(row) if row.before is not None else _interval(row)}</small></div>"
            for row in rows
        )
    return f'<div class="tm-card tm-figure"><h2>{esc(title)}</h2>{body}</div>'


def _further(figures: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """All figures in a table, with those that have no card: TER, p by approximate randomisation, length, copied words."""
    shares = share_rows(figures)
    if not shares and all(row.p_ar is None for row in rows):
        return ""
    heads = [f"<th>{esc(name)}</th>" for name in (tr("figure"), tr("system"))]
    heads += [
        f'<th class="num">{esc(name)}</th>'
        for name in (tr("score"), tr("95 % interval"), tr("p, bootstrap"), tr("p, randomisation"))
    ]
    body = "".join(
        f'<tr><td>{esc(title_said(row))}</td><td>{esc(named(row.system))}</td><td class="num">{value(row.metric, row.score)}</td>'
        f'<td class="num">{_interval(row).removeprefix("95 % ")}</td><td class="num">{_chance(row.p)}</td>'
        f'<td class="num">{_chance(row.p_ar)}</td></tr>'
        for row in rows
    )
    body += "".join(
        f'<tr><td>{esc(tr(one.title))}</td><td>{esc(named(one.system))}</td><td class="num">{esc(one.text)}</td>'
        f"{'<td></td>' * 3}</tr>"
        for one in shares
    )
    return (
        f'<details class="tm-more tm-rests"><summary>{esc(tr("All figures"))}</summary><div class="tm-scroll" tabindex="0">'
        f'<table class="tm tm-all-figures"><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></details>"
    )


def named(system: str) -> str:
    """A system as the page's columns name it."""
    return tr("Vanilla") if system == VANILLA else system


def _chance(p: float | None) -> str:
    """Without its `p =`, which the column's head says."""
    return esc(sure(p).removeprefix("p ").removeprefix("= "))


def title_said(row: Row) -> str:
    """`BLEU, style`: metric and kind of text; and which way is better where one might not know."""
    metric, _, kind = row.title.partition(", ")
    said = tr("{metric}, {text}", metric=tr(metric), text=tr(kind)) if kind else tr(metric)
    return said + tr(", lower is better") if row.metric in LOWER else said


def _sure(row: Row) -> str:
    change = "" if row.before is None else f"{row.score - row.before:+.1f}".replace("-", "−")
    if row.metric == "perplexity" and row.before:
        change = f"{100 * (row.score - row.before) / row.before:+.0f} %".replace("-", "−")
    parts = filter(None, (change, _interval(row), sure(row.p)))
    return esc(" · ".join(part.replace(" ", "\u00a0") for part in parts))


def _interval(row: Row) -> str:
    digits = 0 if row.metric in ("classifier", "perplexity") else 1
    return f"95 % {number(row.low, digits)}–{number(row.high, digits)}"


def _invitation(sheet: SheetRow, busy: bool, plugins: Sequence[Mapping[str, Any]]) -> str:
    from studio.figures import figure_row

    earlier = figure_row(plugins[0]) if len(plugins) == 1 else ""
    if busy:
        return earlier
    what = (
        tr(
            "BLEU, chrF, style classifier and perplexity of these sentences, and general text beside them, with intervals."
        )
        if sheet.references
        else tr("Style classifier and perplexity of these sentences, and general text beside them, with intervals.")
    )
    return (
        f'{earlier}<p class="tm-quiet tm-measure"><button type="button" class="tm-text-button" data-measure>'
        f"{esc(tr('Measure'))}</button> {esc(what)} {esc(tr('It takes some minutes the first time in a project.'))}</p>"
    )


def _rests_on(sheet: SheetRow) -> str:
    figures = sheet.figures
    report, general, style = figures.get("text") or {}, figures.get("general") or {}, figures.get("style") or {}
    scant = tr("{count} sentences are few: look at the intervals.", count=number(report.get("lines", 0)))
    few = f'<p class="tm-quiet">{esc(scant)}</p>' if 0 < report.get("lines", 0) < FEW else ""
    parts = []
    if report:
        parts.append(tr("Style: {count} sentences of this comparison.", count=number(report["lines"])))
    if general:
        parts.append(
            tr(
                "General text: {count} bundled everyday sentences; their sources are back-translations.",
                count=number(general["lines"]),
            )
        )
    if style.get("accuracy"):
        parts.append(_accuracy(style["accuracy"]))
    if style:
        parts.append(
            tr(
                "Perplexity: a language model of {count} sample sentences, per {unit}; on samples that it had not seen it is "
                "{value}.",
                count=number(style["sentences"]),
                unit=tr(str(style["unit"])),
                value=number(style["held_out_perplexity"]),
            )
        )
    tuned = {name: one for name, one in (figures.get("decoding") or {}).items() if one}
    for name, settings in tuned.items():
        said = ", ".join(f"{key.replace('_', ' ')} {one}" for key, one in settings.items())
        parts.append(
            tr(
                "{name} decodes with its own settings ({settings}); vanilla with the defaults.",
                name=name,
                settings=said,
            )
        )
    parts += [told(str(one)) for one in figures.get("notes", [])]
    parts.append(tr("Intervals and p: paired bootstrap with 1,000 resamples, p against vanilla."))
    if any(row.p_ar is not None for row in figure_rows(figures)):
        parts.append(tr("Among all figures beside it: approximate randomisation with 10,000 trials."))
    signatures = "".join(
        f"<li>{esc(name)}{esc(tr(', general text')) if kind == 'general' else ''}: <code>{esc(text)}</code></li>"
        for kind in ("text", "general")
        for name, text in ((figures.get(kind) or {}).get("signatures") or {}).items()
    )
    body = "".join(f"<li>{esc(part)}</li>" for part in parts)
    return (
        f'{few}<details class="tm-more tm-rests"><summary>{esc(tr("What these figures rest on"))}</summary>'
        f"<ul>{body}{signatures}</ul>"
        "</details>"
    )


def _accuracy(accuracy: Mapping[str, Any]) -> str:
    """How far the classifier can be trusted."""
    kinds = [
        tr(words, share=f"{accuracy[name]:.0f} %")
        for name, words in ACCURACY
        if accuracy.get(name) is not None
    ]  # fmt: skip
    return tr(
        "Style classifier: right for {share} of {count} texts kept out of its training ({kinds}).",
        share=f"{accuracy['all']:.0f} %",
        count=number(accuracy["texts"]),
        kinds=", ".join(kinds),
    )
