"""The parts of the page Phrases besides the tree and the map: histograms, the table, one phrase in detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.store import JobRow, ProjectRow
from studio.components.html import empty, link_line, note, number, parted
from studio.components.layout import address, step_text
from studio.components.plotly import domain_colours
from studio.components.templating import piece, render, script
from studio.components.theme import layer_colours
from studio.i18n.translate import listed, tr, translate_message, trn
from studio.services.catalog import language_name
from studio.services.phrase_sentences import holding, spots
from studio.services.phrases import PhraseListRow, Phrases, PhraseView

TABLE_SCRIPT = script("phrase-table.js")
HISTOGRAM_SCRIPT = script("phrase-histogram.js")
MARK = script("phrase-mark.js")
KEEP = script("phrase-keep.js")
EXAMPLES = 2  # example sentences per phrase
HEIGHT = 132  # px of a histogram's columns, without the labels below


# -- histograms


@dataclass(frozen=True)
class Column:
    """A column of a histogram. A click filters by lengths from `low` to `high` (0: any) or by `layer` (-1: any)."""

    name: str
    title: str
    parts: Sequence[tuple[float, float, str]]  # top, height, colour; from the bottom up
    low: int = 0
    high: int = 0
    layer: int = -1
    pressed: bool = False
    marked: bool = False


def histograms(phrases: Phrases, view: PhraseView, chosen: PhraseListRow | None) -> str:
    """Histograms of the phrases in use, by length (coloured by the decoder layer that reads them) and by layer."""
    used = ~phrases.excluded
    lengths, layers = phrases.table.lengths[used], phrases.layers[used]
    longest = int(lengths.max()) if len(lengths) else 1
    counts = np.zeros((longest + 1, phrases.layer_count), dtype=np.int64)
    np.add.at(counts, (lengths, layers), 1)
    charts = [
        (tr("Phrases by length in tokens"), 300, length_columns(counts, view, chosen)),
        (tr("By layer"), 130, layer_columns(counts, view, chosen)),
    ]
    return render("phrase_histograms.html", charts=charts, height=HEIGHT, shades=layer_colours(phrases.layer_count))


def length_columns(counts: np.ndarray, view: PhraseView, chosen: PhraseListRow | None) -> list[Column]:
    """One column per length; `counts` are phrases by length and layer."""
    highest = max(1, int(counts.sum(1).max()))
    columns = []
    for length in range(1, len(counts)):
        read_in = [f"{layer + 1}" for layer in np.flatnonzero(counts[length])]
        title = tr(
            "{tokens}: {phrases} phrases",
            tokens=trn("{count} token", "{count} tokens", length), phrases=number(int(counts[length].sum())),
        )  # fmt: skip
        title += tr(", read in layer {numbers}", numbers=listed(read_in)) if read_in else ""
        columns.append(
            Column(
                f"{length}", title, stacked(counts[length] / highest), low=length, high=length,
                pressed=view.low == view.high == length, marked=bool(chosen and chosen.length == length),
            )
        )  # fmt: skip
    return columns


def layer_columns(counts: np.ndarray, view: PhraseView, chosen: PhraseListRow | None) -> list[Column]:
    """One column per layer; `counts` are phrases by length and layer."""
    by_layer = counts.sum(0)
    columns = []
    for layer, count in enumerate(by_layer.tolist()):
        read = np.flatnonzero(counts[:, layer])
        reach = tr("{low} to {high} tokens", low=read[0], high=read[-1]) if len(read) else tr("none")
        title = tr("Layer {number}: {count} phrases of {reach}", number=layer + 1, count=number(count), reach=reach)
        shares = np.zeros(len(by_layer))
        shares[layer] = count / max(1, int(by_layer.max()))
        columns.append(
            Column(
                f"{layer + 1}", title, stacked(shares), layer=layer,
                pressed=view.layer == layer, marked=bool(chosen and chosen.layer == layer),
            )
        )  # fmt: skip
    return columns


def stacked(shares: np.ndarray) -> list[tuple[float, float, str]]:
    """The parts of a column (top, height, colour), given each layer's share of the chart's height."""
    top, parts = float(HEIGHT), []
    for share, shade in zip(shares.tolist(), layer_colours(len(shares)), strict=True):
        if share > 0:
            tall = max(1.0, share * (HEIGHT - 6))
            top -= tall
            parts.append((top, tall, shade))
    return parts


# -- the table


def phrase_table(rows: Sequence[PhraseListRow], target: str, source: str, chosen: str = "") -> str:
    """The table: tick (in use or excluded), phrase, back-translation if any, label, tokens, occurrences, keyness, layer."""
    return render(
        "phrase_table.html",
        rows=rows,
        target=target,
        source=source,
        chosen=chosen,
        translated=any(row.source for row in rows),
        labelled=any(row.label not in ("", "statistical") for row in rows),
        compared=any(row.ratio is not None for row in rows),
        times_as_often=times_as_often,
    )


def times_as_often(row: PhraseListRow) -> str:
    """`12×`: 12 times as frequent as in general text; `≈ 39×` if general text lacks the phrase; a dash if unknown.

    If general text lacks the phrase, the factor is an estimate that rests on a pseudo-count.
    """
    if row.ratio is None or not row.own:
        return "–"
    factor = f"{short(2.0**row.ratio)}×"
    return factor if row.general else f"≈\u00a0{factor}"


def short(times: float) -> str:
    """A factor with as many digits as it needs: `170`, `5.1`, `0.04`."""
    return f"{times:,.0f}" if times >= 9.95 else f"{times:.1f}" if times >= 0.095 else f"{times:.2f}"


def page_line(first: int, row_count: int, match_count: int, phrases: Phrases, sentences: int) -> str:
    """Which rows are shown, and how many phrases and `sentences` are excluded."""
    line = tr("No phrase matches.")
    if row_count:
        last = first + row_count
        line = tr("{first}–{last} of {all}", first=number(first + 1), last=number(last), all=number(match_count))
    excluded = int(phrases.excluded.sum())
    if excluded and sentences:
        line += " · " + trn(
            "{gone} excluded, along with {count} sentence",
            "{gone} excluded, along with {count} sentences",
            sentences,
            gone=number(excluded),
        )
    elif excluded:
        line += " · " + tr("{count} excluded", count=number(excluded))
    return line


# -- one phrase


def detail_card(
    row: PhraseListRow | None, sentences: Sequence[Mapping[str, Any]], language: str, order: Sequence[str] = (), *,
    translating: bool = False,
) -> str:  # fmt: skip
    """A phrase in example sentences, its keyness, and the buttons to exclude, include or back-translate it; without a phrase,
    how to select one. `order`: the project's domains; `translating`: a back-translation is running.
    """
    if row is None:
        return render("phrase_unchosen.html")
    indices = holding(sentences, row.text, language)
    rates = [times / max(1, words) for _, times, words in row.per_domain]
    colours = domain_colours([name for name, _, _ in row.per_domain], order)
    domains = [
        (name or tr("no label"), times, 100 * rate / (sum(rates) or 1.0), colour)
        for (name, times, _), rate, colour in zip(row.per_domain, rates, colours, strict=True)
    ]
    return render(
        "phrase_detail.html",
        row=row,
        translating=translating,
        target=language,
        examples=[example(str(sentences[index]["text"]), row.text, language) for index in indices[:EXAMPLES]],
        sentences=len(indices),
        domains=domains,
        times_as_often=times_as_often,
        frequencies=tr(
            "{own} in 1,000 words here, {general} in general text",
            own=f"{1000 * row.own / max(1, row.words):.2g}",
            general=f"{1000 * row.general / max(1, row.general_words):.2g}",
        ),
        interval=f"95\u00a0% {short(2.0**row.low)}–{short(2.0**row.high)}×",
    )


def example(text: str, phrase: str, language: str) -> tuple[str, str, str]:
    """A sentence as the text before the phrase, the phrase, and the text after it."""
    match = spots(phrase, language).search(text)
    return parted(text, match.span() if match else None)


# -- other parts


def summary_line(phrases: Phrases, sentences: int) -> str:
    """The sentence under the heading."""
    lengths = phrases.table.lengths
    return tr(
        "{phrases} phrases of {low} to {high} tokens in {sentences} sentences.",
        phrases=number(len(phrases)), low=lengths.min(), high=lengths.max(), sentences=number(sentences),
    )  # fmt: skip


def page_address(project: ProjectRow, view: PhraseView) -> str:
    """The address to set and the phrase to circle on the map; read by phrase-mark.js."""
    query = view.query()
    url = address("phrases", project.id) + (f"&{query}" if query else "")
    return render("phrase_address.html", address=url, chosen=view.phrase)


def export_link(project: ProjectRow, view: PhraseView) -> str:
    """The link that downloads the table of a view."""
    return render("phrase_export.html", project=project.id, query=view.query())


def origin_card(parser: str, project: ProjectRow, general: bool) -> str:
    """Which parser extracted the phrases, and whether they are compared with general text."""
    return render("phrase_origin.html", parser=translate_message(parser), language=language_name(project.target), general=general)


def no_phrases(project: ProjectRow | None, job: JobRow | None = None) -> str:
    """The placeholder shown without phrases, with the next step, the progress of the extraction `job`, or why it failed."""
    link = link_line(address("samples", project.id if project else "new"), tr("Go to Samples"))
    if job is not None and job.state == "running":
        return empty(tr("No phrases yet"), step_text(job), piece("bar", job.fraction))
    failed = note(translate_message(job.error), bad=True) if job is not None and job.state == "failed" else ""
    return failed + empty(
        tr("No phrases yet"), tr("Phrases are extracted after your samples are read and the first look is made."), link
    )
