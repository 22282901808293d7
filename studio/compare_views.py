"""What the page Compare shows, as safe HTML: the table with its dials and marks, the state of the work, the menus."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.comparison.export import FORMATS
from engine.comparison.marks import marks
from engine.comparison.systems import has_dial
from engine.store import JobRow, PluginRow, ProjectRow
from engine.store.sheets import LineRow, SheetRow
from studio.catalog import pair_said
from studio.difference import runs_html
from studio.frame import address
from studio.html import bar, empty, esc, lang_attribute, note, number, tag, way
from studio.i18n import mark, moment, span, tr, trn

__all__ = [
    "ORDERS",
    "PAGE",
    "Languages",
    "compare_table",
    "earlier_menu",
    "export_menu",
    "file_card",
    "invitation",
    "plugin_choices",
    "progress_card",
    "reading_card",
    "share_menu",
]

PAGE = 25  # lines on a page
ORDERS = {
    "place": mark("in their order"),
    "difference": mark("most different first"),
    "better": mark("largest gain first"),
    "worse": mark("largest loss first"),
}


@dataclass(frozen=True)
class Languages:
    """Codes of both languages, the source's name, and the base's short name."""

    source: str
    target: str
    source_name: str
    base: str


def compare_table(
    sheet: SheetRow, lines: Sequence[LineRow], languages: Languages, *, counts: tuple[int, int] | None, order: str = "place",
    offset: int = 0, word: str = "", gone: Collection[int] = (),
) -> str:  # fmt: skip
    """A page of the comparison: source, the base alone, a column a plugin. `counts` are those of `Sheets.count`, None while a
    job says how far it is; `word` is the open one, as line.system.start-end; `gone` are systems whose plugin is no longer there.
    """
    systems = sheet.systems
    columns = '<col class="n"><col class="source">' + "<col>" * len(systems)
    count = trn("{count} sentence", "{count} sentences", sheet.lines)
    heads = f'<th class="n"><span class="tm-hidden">{esc(tr("number"))}</span></th>'
    heads += f"<th>{esc(languages.source_name)} {tag(count)}</th>"
    heads += f"<th>{esc(tr('Vanilla'))} {tag(tr('base {name}', name=languages.base))}</th>"
    heads += "".join(_head(place, system, place in gone) for place, system in enumerate(systems) if place)
    body = "".join(_row(line, systems, languages, gone) for line in lines)
    return (
        f'<div class="tm-card tm-compare-card" data-comparison="{sheet.comparison_id}" data-word="{esc(word)}">'
        f'<div class="tm-scroll" tabindex="-1">'
        f'<table class="tm tm-compare tm-of-{len(systems)}"><colgroup>{columns}</colgroup><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{_foot(sheet, counts, order, offset)}</div>"
    )


def _head(place: int, system: Mapping[str, Any], gone: bool) -> str:
    method, strength = str(system["method"]), float(system["strength"])
    if gone:
        said = tr("deleted, strength {value}", value=f"{strength:g}") if has_dial(method) else tr("deleted")
        dial = f'<div class="tm-dial">{esc(said)}</div>'
    else:
        dial = _dial(place, str(system["name"]), strength) if has_dial(method) else ""
    return f"<th>{esc(system['name'])} {tag(tr(method.replace('_', ' ')), 'accent')}{dial}</th>"


def _dial(place: int, name: str, strength: float) -> str:
    return (
        f'<div class="tm-dial"><label for="tm-strength-{place}">{esc(tr("strength"))}'
        f'<span class="tm-hidden">{esc(tr(" of {name}", name=name))}</span>'
        f'</label><input id="tm-strength-{place}" data-system="{place}" type="range" min="0" max="1" step="0.05" '
        f'value="{strength:g}"><output>{strength:g}</output></div>'
    )


def _row(line: LineRow, systems: Sequence[Mapping[str, Any]], languages: Languages, gone: Collection[int]) -> str:
    cells = ""
    for place, runs in enumerate(marks(line.texts, languages.target)):
        if line.texts[place] is None:
            cells += f'<td class="tm-pending">{"–" if place in gone else "…"}</td>'
            continue
        name = tr("Vanilla") if not place else str(systems[place]["name"])
        says = tr("{name}, sentence {number}", name=name, number=line.place + 1)
        cells += (
            f'<td{lang_attribute(languages.target)}><div class="tm-words" dir="auto" tabindex="0" role="group" '
            f'data-line="{line.place}" data-system="{place}" aria-label="{esc(says)}">'
            f"{runs_html(runs, 'new' if place else 'old')}</div>{_score(line, place)}</td>"
        )
    reference = (
        f'<div class="tm-reference" dir="auto"{lang_attribute(languages.target)}>{esc(line.reference)}</div>'
        if line.reference
        else ""
    )
    text = f'<div dir="auto">{esc(line.source)}</div>{reference}'
    return (
        f'<tr><td class="n">{line.place + 1}</td><td class="source"{lang_attribute(languages.source)}>{text}</td>'
        f"{cells}</tr>"
    )


def _score(line: LineRow, place: int) -> str:
    """A sentence's own score, small: chrF where it has a reference, else how sure the classifier is of the style."""
    score = line.scores[place] if place < len(line.scores) else None
    if score is None:
        return ""
    said = f"chrF {score:.0f}" if line.reference else tr("style {value} %", value=f"{score:.0f}")
    return f'<div class="tm-score">{esc(said)}</div>'


def _foot(sheet: SheetRow, counts: tuple[int, int] | None, order: str, offset: int) -> str:
    done, different = counts or (0, 0)
    far = tr("{some} of {all} done", some=number(done), all=number(sheet.lines))
    if len(sheet.systems) < 2:
        words = tr("The base alone. Choose a plugin to see what it changes.")
        words = words if done == sheet.lines else far
        legend = ""
    else:
        count = tr("{some} of {all} sentences differ", some=number(different), all=number(sheet.lines))
        words = count if done == sheet.lines else far
        legend = (
            f'<span><mark class="new">{esc(tr("changed by a plugin"))}</mark> '
            f'<mark class="old">{esc(tr("vanilla wording"))}</mark></span>'
            if different
            else ""
        )
    words = words if counts else ""
    return (
        f'<div class="tm-compare-foot"><span>{esc(words)}</span>{_order(sheet, order)}{legend}'
        f"{_pager(sheet.lines, offset)}</div>"
    )


def _order(sheet: SheetRow, order: str) -> str:
    if sheet.lines < 2 or len(sheet.systems) < 2:
        return ""
    scored = sheet.references or sheet.figures.get("style")
    known = {name: text for name, text in ORDERS.items() if scored or name in ("place", "difference")}
    options = "".join(
        f'<option value="{name}"{" selected" if name == order else ""}>{esc(tr(text))}</option>'
        for name, text in known.items()
    )
    return f'<label>{esc(tr("sorted"))} <select data-order class="tm-plain-select">{options}</select></label>'


def _pager(lines: int, offset: int) -> str:
    if lines <= PAGE:
        return ""
    last = min(lines, offset + PAGE)
    where = tr("{first}–{last} of {all}", first=number(offset + 1), last=number(last), all=number(lines))
    back = "" if offset else " disabled"
    forth = "" if last < lines else " disabled"
    return (
        f'<span class="tm-right">{esc(where)} '
        f'<button type="button" class="tm-text-button" data-offset="{max(0, offset - PAGE)}"{back}>{esc(tr("Back"))}</button> '
        f'<button type="button" class="tm-text-button" data-offset="{last}"{forth}>{esc(tr("Next"))}</button></span>'
    )


def file_card(sheet: SheetRow, project_id: int) -> str:
    """In the place of the typed sentences: the file, what is in it, and the way back to typing."""
    references = (
        tr("{count} sentences, with references.", count=number(sheet.lines))
        if sheet.references == sheet.lines
        else tr(
            "{count} sentences, {some} of them with references.",
            count=number(sheet.lines),
            some=number(sheet.references),
        )
        if sheet.references
        else tr("{count} sentences, without references.", count=number(sheet.lines))
    )
    press = tr("Choose plugins and press Translate; the work goes on when you close the page.")
    return (
        f'<div class="tm-file"><b>{esc(sheet.file)}</b><p>{esc(references)} {esc(press)}</p>'
        f'<p><a href="/compare?project={project_id}&amp;comparison=new">{esc(tr("Type sentences instead"))}</a></p></div>'
    )


def reading_card(names: str) -> str:
    """While an opened file is read."""
    head = f"<h2>{esc(tr('Reading {names}', names=names))}</h2>"
    return f'<div class="tm-card tm-pad tm-working"><div class="tm-card-head">{head}</div></div>'


def progress_card(job: JobRow | None) -> str:
    """The job of this comparison while it waits or works, or why it stopped; nothing else."""
    if job is None or str(job.state) == "succeeded":
        return ""
    if job.active:
        waiting = str(job.state) == "queued"
        step = tr(job.step or "Starting") + tr(" ({place} of {all})", place=job.step_index + 1, all=job.steps)
        step = tr("Waiting for a worker") if waiting else step
        far = (
            tr("{used} of {all}", used=number(job.done), all=number(job.total))
            if job.total and job.total > 1 and job.step_index == 0
            else ""
        )
        left = tr("{time} left in this step", time=span(job.eta)) if job.eta is not None and not waiting else ""
        words = " · ".join(filter(None, (step, far, left)))
        button = tr("Cancelling") if job.cancel_requested else tr("Cancel")
        off = " disabled" if job.cancel_requested else ""
        return (
            f'<div class="tm-card tm-pad tm-working"><div class="tm-card-head"><h2>{esc(words)}</h2><button type="button" '
            f'class="tm-text-button" data-cancel="{job.id}"{off}>{esc(button)}</button></div>{bar(job.fraction)}</div>'
        )
    said = {"failed": job.error or tr("It failed."), "cancelled": tr("Cancelled. What was done is kept.")}
    words = said.get(str(job.state), tr("It was interrupted. What was done is kept."))
    more = f'<button type="button" class="tm-text-button" data-again>{esc(tr("Go on"))}</button>'
    return f'<div class="tm-failed">{note(words, bad=str(job.state) == "failed")}{more}</div>'


def earlier_menu(
    titles: Sequence[tuple[int, str, datetime.datetime]], project_id: int, sheet: SheetRow | None
) -> str:  # fmt: skip
    """Links to the project's comparisons, the newest first, and to a new one."""
    current = sheet.comparison_id if sheet else 0
    links = "".join(
        f'<li><a href="/compare?project={project_id}&amp;comparison={number_}"'
        f'{" aria-current=true" if number_ == current else ""}><span dir="auto">{esc(title)}</span>'
        f"<small>{esc(moment(made))}</small></a></li>"
        for number_, title, made in titles
    )
    delete = (
        f'<details class="tm-delete"><summary>{esc(tr("Delete the one shown…"))}</summary><button type="button" '
        f'class="tm-link-button" data-remove>{esc(tr("Delete it for good"))}</button></details>'
        if sheet
        else ""
    )
    return (
        f'<details class="tm-menu"><summary class="tm-link-button">{esc(tr("Earlier"))}</summary>'
        '<div class="tm-menu-box tm-earlier">'
        f'<a class="tm-new" href="/compare?project={project_id}&amp;comparison=new">{esc(tr("New comparison"))}</a>'
        f'<ul class="tm-menu-list">{links}</ul>{delete}</div></details>'
    )


def share_menu(sheet: SheetRow) -> str:
    """A name and the address, which from then on opens exactly this."""
    kept = (
        tr("Kept: this address opens exactly this comparison. A turned dial makes a new one.")
        if sheet.kept
        else tr("Once it is shared, nothing in it changes any more.")
    )
    return (
        f'<details class="tm-menu"><summary class="tm-link-button">{esc(tr("Share"))}</summary><div class="tm-menu-box">'
        f'<label>{esc(tr("Name"))}<input type="text" data-title value="{esc(sheet.title)}" maxlength="120"></label>'
        f'<label>{esc(tr("Address"))}<input type="text" data-link readonly value=""></label>'
        f'<p class="tm-quiet">{esc(kept)}</p><button type="button" class="tm-link-button" data-share>'
        f"{esc(tr('Copy link'))}</button>"
        "</div></details>"
    )


def export_menu(sheet: SheetRow) -> str:
    """One link a format."""
    links = "".join(
        f'<li><a href="/download/comparisons/{sheet.comparison_id}?format={name}" download>{esc(tr(one.title))}</a></li>'
        for name, one in FORMATS.items()
    )
    return (
        f'<details class="tm-menu"><summary class="tm-link-button">{esc(tr("Export"))}</summary>'
        f'<ul class="tm-menu-box tm-menu-list">{links}</ul></details>'
    )


def plugin_choices(rows: Sequence[PluginRow]) -> list[tuple[str, int]]:
    """Names and numbers; of several with one name, versions of each other, when each was made."""
    names = Counter(row.name for row in rows)
    return [(f"{row.name} ({moment(row.created)})" if names[row.name] > 1 else row.name, row.id) for row in rows]


def invitation(project: ProjectRow, has_plugins: bool, asked: str = "") -> str:
    """What stands where the table will be; `asked` is the number of a comparison that is not there."""
    more = "" if has_plugins else way(address("train", project.id), tr("Train a plugin"))
    if asked not in ("", "new"):
        words = tr(
            "It may have been deleted, or it belongs to another project. Type sentences or open a file for a new one."
        )
        return empty(tr("This comparison is not there"), words, more)
    words = (
        tr("Type sentences or open a file, then translate.")
        if has_plugins
        else tr("There is no plugin yet; the base alone translates.")
    )
    languages = pair_said(project.source, project.target)
    return empty(tr("Compare {languages}", languages=languages), words, more)
