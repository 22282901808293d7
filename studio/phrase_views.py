"""What the page Phrases shows, as HTML and SVG: histograms, the table, one phrase in detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.store import ProjectRow
from studio.catalog import language_name
from studio.frame import address
from studio.html import bar, card, empty, esc, lang_attribute, note, number, tag, way
from studio.i18n import listed, tr, trn
from studio.phrase_data import Phrases, PhraseView, Row
from studio.phrase_sentences import spots
from studio.plotted import domain_colours, figure
from studio.theme import DOMAINS, layer_colours
from studio.told import told

__all__ = [
    "HISTOGRAM_SCRIPT",
    "KEEP",
    "MARK",
    "TABLE_SCRIPT",
    "detail_card",
    "histograms",
    "map_figure",
    "map_invite",
    "map_state",
    "no_phrases",
    "origin_card",
    "phrase_table",
    "times_as_often",
    "tree_card",
    "where_line",
]

TABLE_SCRIPT = """
const pick = (event) => {
  if (event.target.closest('input')) return;
  const row = event.target.closest('tr[data-key]');
  if (!row || (event.type === 'keydown' && event.key !== 'Enter')) return;
  element.querySelectorAll('tr[aria-selected]').forEach((one) => one.removeAttribute('aria-selected'));
  row.setAttribute('aria-selected', 'true');
  trigger('pick', {phrase: row.dataset.key});
};
element.addEventListener('click', pick);
element.addEventListener('keydown', pick);
// A tick that the user changed keeps its state when rows are put in its place: the row says what it is.
watch('value', () => element.querySelectorAll('[data-keep]').forEach((box) => { box.checked = box.hasAttribute('checked'); }));
element.addEventListener('change', (event) => {
  const box = event.target.closest('[data-keep]');
  if (box) trigger('keep', {phrase: box.dataset.keep, keep: box.checked});
});
"""
HISTOGRAM_SCRIPT = """
const choose = (event) => {
  const bar = event.target.closest('[data-low]');
  if (!bar || (event.type === 'keydown' && !['Enter', ' '].includes(event.key))) return;
  event.preventDefault();
  const on = bar.getAttribute('aria-pressed') === 'true';
  trigger('bar', {low: on ? '0' : bar.dataset.low, high: on ? '0' : bar.dataset.high, layer: on ? '-1' : bar.dataset.layer});
};
element.addEventListener('click', choose);
element.addEventListener('keydown', choose);
"""

# The address follows what is looked at, and the map rings the chosen phrase.
MARK = """
const mark = () => {
  const here = element.querySelector('[data-address]');
  if (!here) return;
  window.history.replaceState(null, '', here.dataset.address);
  window.tmChosen = here.dataset.chosen;
  window.dispatchEvent(new CustomEvent('tm-chosen', {detail: here.dataset.chosen}));
};
watch('value', mark);
"""
KEEP = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-keep]');
  if (button) trigger('keep', {phrase: button.dataset.keep, keep: button.dataset.on === 'true'});
});
"""


# -- histograms


def histograms(found: Phrases, view: PhraseView, chosen: Row | None) -> str:
    """Phrases in use by length, coloured by the decoder layer that reads them, and by layer; bars can be pressed."""
    used = ~found.excluded
    lengths, layers = found.table.lengths[used], found.layers[used]
    shades = layer_colours(found.layer_count)
    longest = int(lengths.max()) if len(lengths) else 1
    counts = np.zeros((longest + 1, found.layer_count), dtype=np.int64)
    np.add.at(counts, (lengths, layers), 1)
    most = max(1, int(counts.sum(1).max()))
    bars = []
    for length in range(1, longest + 1):
        names = [f"{layer + 1}" for layer in range(found.layer_count) if counts[length, layer]]
        says = tr(
            "{tokens}: {phrases} phrases",
            tokens=trn("{count} token", "{count} tokens", length), phrases=number(int(counts[length].sum())),
        )  # fmt: skip
        says += tr(", read in layer {numbers}", numbers=listed(names)) if names else ""
        pressed = view.low == view.high == length
        bars.append(
            Bar(
                f"{length}",
                counts[length] / most,
                says,
                (length, length, -1),
                pressed,
                bool(chosen and chosen.length == length),
            )
        )
    by_layer = counts.sum(0)
    most_in_layer = max(1, int(by_layer.max()))
    of_layers = []
    for layer in range(found.layer_count):
        some = np.flatnonzero(counts[:, layer])
        reach = tr("{low} to {high} tokens", low=some[0], high=some[-1]) if len(some) else tr("none")
        shares = np.zeros(found.layer_count)
        shares[layer] = by_layer[layer] / most_in_layer
        count = number(int(by_layer[layer]))
        says = tr("Layer {number}: {count} phrases of {reach}", number=layer + 1, count=count, reach=reach)
        of_layers.append(
            Bar(
                f"{layer + 1}", shares, says, (0, 0, layer), view.layer == layer, bool(chosen and chosen.layer == layer)
            )
        )
    legend = "".join(f'<li><i style="background:{shade}"></i>{place + 1}</li>' for place, shade in enumerate(shades))
    return (
        f'<div class="tm-hists"><figure><figcaption>{esc(tr("Phrases by length in tokens"))}</figcaption>'
        f"{column_chart(bars, shades, 300)}</figure><figure><figcaption>{esc(tr('By layer'))}</figcaption>"
        f"{column_chart(of_layers, shades, 130)}</figure></div>"
        f'<ul class="tm-layers" aria-label="{esc(tr("Decoder layers"))}"><li>{esc(tr("layer"))}</li>{legend}</ul>'
    )


class Bar:
    """A column: its name, the share of the chart's height of each layer, what it says, what a press filters by."""

    def __init__(
        self, name: str, shares: np.ndarray, says: str, wish: tuple[int, int, int], pressed: bool, marked: bool
    ) -> None:
        self.name, self.shares, self.says, self.wish, self.pressed, self.marked = (
            name,
            shares,
            says,
            wish,
            pressed,
            marked,
        )


def column_chart(bars: Sequence[Bar], shades: Sequence[str], width: int) -> str:
    high, step = 132.0, width / max(1, len(bars))
    wide = min(30.0, step * 0.74)
    body = ""
    for place, one in enumerate(bars):
        x, y, parts = place * step + (step - wide) / 2, high, ""
        for share, shade in zip(one.shares, shades, strict=True):
            if share > 0:
                tall = max(1.0, float(share) * (high - 6))
                y -= tall
                parts += f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{shade}"/>'
        low, top, layer = one.wish
        kind = "tm-column-bar" + (" marked" if one.marked else "")
        body += (
            f'<g class="{kind}" role="button" tabindex="0" aria-pressed="{str(one.pressed).lower()}" '
            f'aria-label="{esc(one.says)}" data-low="{low}" data-high="{top}" data-layer="{layer}"><title>{esc(one.says)}</title>'
            f'<rect class="tm-hit" x="{place * step:.1f}" y="0" width="{step:.1f}" height="{high + 22:.0f}" rx="4"/>{parts}'
            f'<text x="{place * step + step / 2:.1f}" y="{high + 15:.0f}">{esc(one.name)}</text></g>'
        )
    return f'<svg viewBox="0 0 {width} {high + 24:.0f}" role="group" aria-label="{esc(tr("Columns"))}">{body}</svg>'


# -- the table


def phrase_table(rows: Sequence[Row], target: str, source: str, chosen: str = "") -> str:
    """A tick (in use or left out), phrase, back-translation where there is one, label, tokens, times, keyness, layer."""
    translated = any(row.source for row in rows)
    kinds = any(row.label not in ("", "statistical") for row in rows)
    compared = any(row.ratio is not None for row in rows)
    how = tr("How many times as often as in general text")
    heads = [
        (f"<span class='tm-hidden'>{esc(tr('in use'))}</span>", ""),
        (esc(tr("phrase")), ""),
        *([(esc(tr("back-translation")), "")] if translated else []),
        *([(esc(tr("kind")), "")] if kinds else []),
        (esc(tr("tokens")), "num"),
        (esc(tr("times")), "num"),
        *([(f"<span title='{esc(how)}'>{esc(tr('vs general'))}</span>", "num")] if compared else []),
        (esc(tr("layer")), "num"),
    ]
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in heads)
    body = ""
    for row in rows:
        use = tr("Use {phrase}", phrase=row.text)
        cells = [
            f'<td class="tm-tick"><input type="checkbox" data-keep="{esc(row.text)}" aria-label="{esc(use)}"'
            f"{'' if row.excluded else ' checked'}></td>",
            f'<td class="tm-phrase"{lang_attribute(target)}>{esc(row.text)}</td>',
        ]
        if translated:
            cells.append(f'<td class="quiet"{lang_attribute(source)}>{esc(row.source)}</td>')
        if kinds:
            cells.append(f'<td class="quiet">{esc(tr(row.label))}</td>')
        cells += [f'<td class="num">{row.length}</td>', f'<td class="num">{number(row.count)}</td>']
        if compared:
            cells.append(f'<td class="num{"" if row.sure else " quiet"}">{esc(times_as_often(row))}</td>')
        cells.append(f'<td class="num">{tag(row.layer + 1, "accent") if row.layer >= 0 else "–"}</td>')
        state = ' aria-selected="true"' if chosen and row.text == chosen else ""
        body += f'<tr data-key="{esc(row.text)}" tabindex="0"{state}{" class=tm-out" if row.excluded else ""}>{"".join(cells)}</tr>'
    return f'<table class="tm tm-click tm-phrases"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def times_as_often(row: Row) -> str:
    """`12×`: as often again as in general text; `39×+` where general text never has it; a dash where nothing is known."""
    if row.ratio is None or not row.own:
        return "–"
    times = 2.0**row.ratio
    shown = f"{times:.0f}×" if times >= 9.95 else f"{times:.1f}×" if times >= 0.095 else f"{times:.2f}×"
    return shown if row.general else f"{shown}+"


# -- one phrase


def detail_card(row: Row, sentences: Sequence[Mapping[str, Any]], places: Sequence[int], target: str, held: int) -> str:
    """A phrase where it stands, how typical it is, and the buttons that leave it out or take it back.

    `places` are sentences that hold it, `held` how many there are.
    """
    shown = "".join(
        f'<p class="tm-example"{lang_attribute(target)}>{marked(str(sentences[place]["text"]), row.text, target)}</p>'
        for place in places
    )
    count = trn("once", "{count} times", row.count)
    where = tr("read in layer {number}", number=row.layer + 1) if row.layer >= 0 else tr("left out of the memory")
    facts = f"{trn('{count} token', '{count} tokens', row.length)} · {count} · {where}"
    more = " · " + tr("in {count} sentences", count=number(held)) if held > len(places) else ""
    source = f'<p class="tm-quiet">{esc(row.source)}</p>' if row.source else ""
    button = (
        f'<button class="tm-link-button tm-small" data-keep="{esc(row.text)}" data-on="{str(row.excluded).lower()}">'
        f"{esc(tr('Take back in' if row.excluded else 'Leave out'))}</button>"
    )
    body = (
        f'<div class="tm-card-head"><h2{lang_attribute(target)}>{esc(row.text)}</h2>{button}</div>{source}{shown}'
        f'<p class="tm-quiet">{esc(facts)}{esc(more)}</p>{keyness_lines(row)}{domain_strip(row)}'
    )
    return f'<div class="tm-card tm-pad tm-detail">{body}</div>'


def marked(text: str, phrase: str, language: str) -> str:
    """A sentence with the phrase in it marked, escaped."""
    found = spots(phrase, language).search(text)
    if found is None:
        return esc(text)
    place, end = found.span()
    return f"{esc(text[:place])}<b>{esc(text[place:end])}</b>{esc(text[end:])}"


def keyness_lines(row: Row) -> str:
    """How much more often than in general text, with what makes it sure."""
    if row.ratio is None:
        return ""
    own = 1000 * row.own / max(1, row.words)
    general = 1000 * row.general / max(1, row.general_words)
    sides = tr("{own} in 1,000 words here, {general} in general text", own=f"{own:.2g}", general=f"{general:.2g}")
    span = f"95 % {2.0**row.low:.2g}–{2.0**row.high:.2g}×"
    sure = tr("log-likelihood {value}, {p}", value=f"{row.log_likelihood:.1f}", p=tr(row.significance))
    said = (
        tr("{times} as often as in general text", times=times_as_often(row))
        if row.sure
        else tr("No sure difference from general text")
    )
    return f'<p class="tm-keyness"><b>{esc(said)}</b><br><span class="tm-quiet">{esc(sides)} · {esc(span)} · {esc(sure)}</span></p>'


def domain_strip(row: Row) -> str:
    """How often the phrase stands in each domain, for as many words of each; nothing where there is one."""
    if len(row.per_domain) < 2:
        return ""
    rates = [times / max(1, words) for _, times, words in row.per_domain]
    total = sum(rates) or 1.0
    colours = [DOMAINS[min(place, len(DOMAINS) - 1)] for place in range(len(rates))]
    strip = "".join(
        f'<i style="width:{100 * rate / total:.1f}%;background:{colour}"></i>'
        for rate, colour in zip(rates, colours, strict=True)
        if rate
    )
    legend = "".join(
        f'<li><i style="background:{colour}"></i><span>{esc(name)}</span>{number(times)}</li>'
        for (name, times, _), colour in zip(row.per_domain, colours, strict=True)
    )
    name = esc(tr("Shares of the domains"))
    return f'<div class="tm-strip" role="img" aria-label="{name}">{strip}</div><ul class="tm-legend">{legend}</ul>'


# -- the rest


def origin_card(parser: str, project: ProjectRow, general: bool) -> str:
    """Who found the phrases, and what they are compared with."""
    language = language_name(project.target)
    text = told(parser) or tr("Phrases of {language} text.", language=language)
    why = tr("Short phrases are read low in the decoder, long ones high.")
    compared = (
        tr("Typical phrases stand more often here than in the bundled general text, beyond what chance explains.")
        if general
        else tr(
            "No general text is bundled for {language}, so nothing says which phrases are typical.", language=language
        )
    )
    return card(
        f'<p class="tm-quiet" style="margin:0">{esc(text)}<br>{esc(why)}<br>{esc(compared)}</p>',
        tr("Where they come from"),
    )


def no_phrases(project: ProjectRow | None) -> str:
    """The empty page with the next step."""
    link = way(address("samples", project.id if project else "new"), tr("Go to Samples"))
    return empty(tr("No phrases yet"), tr("They are found while your samples are read."), link)


def map_state(job: Any | None) -> str:
    """How far the map is, while it is drawn; why it failed."""
    if job is None or job.state in ("succeeded", "cancelled"):
        return ""
    if job.active:
        line = tr(job.step) if job.step else tr("Waiting for a worker")
        return f'<p class="tm-quiet">{esc(line)}</p>{bar(job.fraction)}'
    return note(job.error or tr("The map was not finished. Draw it again."), bad=True)


def map_invite() -> str:
    """What the map would show."""
    what = tr(
        "Every phrase as a point: phrases that the base reads alike lie close together. Drawing takes some seconds for a "
        "thousand phrases."
    )
    return f'<p class="tm-quiet" style="margin:0">{esc(what)}</p>'


def where_line(first: int, shown: int, fitting: int, found: Phrases, sentences: int) -> str:
    """Which rows are shown, and what is left out."""
    line = tr("No phrase fits.")
    if shown:
        last = first + shown
        line = tr("{first}–{last} of {all}", first=number(first + 1), last=number(last), all=number(fitting))
    gone = int(found.excluded.sum())
    if gone and sentences:
        line += " · " + trn(
            "{gone} left out with {count} sentence",
            "{gone} left out with {count} sentences",
            sentences,
            gone=number(gone),
        )
    elif gone:
        line += " · " + tr("{count} left out", count=number(gone))
    return line


def tree_card(at: int, count: int, body: str) -> str:
    """The sentence's tree with its number and the way to its neighbours."""

    def arrow(to: int, sign: str, name: str) -> str:
        off = "" if 0 <= to < count else " disabled"
        return f'<button class="tm-arrow" data-step="{to}" aria-label="{esc(name)}"{off}>{sign}</button>'

    where = tr("Sentence {place} of {all}", place=number(at + 1), all=number(count))

    return (
        f'<div class="tm-card tm-tree-card"><div class="tm-card-head"><h2>{esc(where)}</h2><span>'
        f"{arrow(at - 1, '◂', tr('Previous sentence'))}{arrow(at + 1, '▸', tr('Next sentence'))}</span></div>{body}</div>"
    )


def map_figure(project: ProjectRow, stamp: int, layers: int) -> str:
    """The map's place, and what its points are coloured by."""
    colours = {"layer_colours": layer_colours(layers), "domain_colours": domain_colours([""] * 8)}
    choice = (
        f'<fieldset class="tm-colour"><legend>{esc(tr("Coloured by"))}</legend><label><input type="radio" name="map-colour" '
        f'data-colour value="layer" checked> {esc(tr("layer"))}</label><label><input type="radio" name="map-colour" data-colour '
        f'value="domain"> {esc(tr("domain"))}</label></fieldset>'
    )
    shape = figure("map", colours, source=f"/tm/projects/{project.id}/phrase-map?v={stamp}", label=tr("Map of phrases"))
    return f'<div class="tm-plots">{choice}{shape}<p class="tm-quiet tm-map-about"></p></div>'
