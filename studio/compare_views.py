"""What the page Compare shows, as safe HTML: the table with its dials and marks, the state of the work, the menus."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.comparison.export import FORMATS
from engine.comparison.marks import marks
from engine.comparison.systems import has_dial
from engine.progress import duration
from engine.store import JobRow
from engine.store.sheets import LineRow, SheetRow
from studio.difference import runs_html
from studio.html import bar, esc, lang_attribute, note, number, tag

__all__ = [
    "ORDERS",
    "PAGE",
    "Languages",
    "compare_table",
    "earlier_menu",
    "export_menu",
    "file_card",
    "progress_card",
    "reading_card",
    "share_menu",
]

PAGE = 25  # lines on a page
ORDERS = {
    "place": "in their order",
    "difference": "most different first",
    "better": "largest gain first",
    "worse": "largest loss first",
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
    count = f"{number(sheet.lines)} {'sentence' if sheet.lines == 1 else 'sentences'}"
    heads = (
        f'<th class="n"><span class="tm-hidden">number</span></th><th>{esc(languages.source_name)} {tag(count)}</th>'
    )
    heads += f"<th>Vanilla {tag('base ' + languages.base)}</th>"
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
        dial = f'<div class="tm-dial">deleted{f", strength {strength:g}" if has_dial(method) else ""}</div>'
    else:
        dial = _dial(place, str(system["name"]), strength) if has_dial(method) else ""
    return f"<th>{esc(system['name'])} {tag(method.replace('_', ' '), 'accent')}{dial}</th>"


def _dial(place: int, name: str, strength: float) -> str:
    return (
        f'<div class="tm-dial"><label for="tm-strength-{place}">strength<span class="tm-hidden"> of {esc(name)}</span>'
        f'</label><input id="tm-strength-{place}" data-system="{place}" type="range" min="0" max="1" step="0.05" '
        f'value="{strength:g}"><output>{strength:g}</output></div>'
    )


def _row(line: LineRow, systems: Sequence[Mapping[str, Any]], languages: Languages, gone: Collection[int]) -> str:
    cells = ""
    for place, runs in enumerate(marks(line.texts, languages.target)):
        if line.texts[place] is None:
            cells += f'<td class="tm-pending">{"–" if place in gone else "…"}</td>'
            continue
        name = "vanilla" if not place else str(systems[place]["name"])
        cells += (
            f'<td{lang_attribute(languages.target)}><div class="tm-words" dir="auto" tabindex="0" role="group" '
            f'data-line="{line.place}" data-system="{place}" aria-label="{esc(name)}, sentence {line.place + 1}">'
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
    return f'<div class="tm-score">{f"chrF {score:.0f}" if line.reference else f"style {score:.0f} %"}</div>'


def _foot(sheet: SheetRow, counts: tuple[int, int] | None, order: str, offset: int) -> str:
    done, different = counts or (0, 0)
    if len(sheet.systems) < 2:
        words = "The base alone. Choose a plugin to see what it changes."
        words = words if done == sheet.lines else f"{number(done)} of {number(sheet.lines)} done"
        legend = ""
    else:
        count = f"{number(different)} of {number(sheet.lines)} sentences differ"
        words = count if done == sheet.lines else f"{number(done)} of {number(sheet.lines)} done"
        legend = (
            '<span><mark class="new">changed by a plugin</mark> <mark class="old">vanilla wording</mark></span>'
            if different
            else ""
        )
    words = words if counts else ""
    return (
        f'<div class="tm-compare-foot"><span>{words}</span>{_order(sheet, order)}{legend}'
        f"{_pager(sheet.lines, offset)}</div>"
    )


def _order(sheet: SheetRow, order: str) -> str:
    if sheet.lines < 2 or len(sheet.systems) < 2:
        return ""
    scored = sheet.references or sheet.figures.get("style")
    known = {name: text for name, text in ORDERS.items() if scored or name in ("place", "difference")}
    options = "".join(
        f'<option value="{name}"{" selected" if name == order else ""}>{text}</option>' for name, text in known.items()
    )
    return f'<label>sorted <select data-order class="tm-plain-select">{options}</select></label>'


def _pager(lines: int, offset: int) -> str:
    if lines <= PAGE:
        return ""
    last = min(lines, offset + PAGE)
    back = "" if offset else " disabled"
    forth = "" if last < lines else " disabled"
    return (
        f'<span class="tm-right">{number(offset + 1)}–{number(last)} of {number(lines)} '
        f'<button type="button" class="tm-text-button" data-offset="{max(0, offset - PAGE)}"{back}>Back</button> '
        f'<button type="button" class="tm-text-button" data-offset="{last}"{forth}>Next</button></span>'
    )


def file_card(sheet: SheetRow, project_id: int) -> str:
    """In the place of the typed sentences: the file, what is in it, and the way back to typing."""
    references = (
        "with references"
        if sheet.references == sheet.lines
        else f"{number(sheet.references)} of them with references"
        if sheet.references
        else "without references"
    )
    return (
        f'<div class="tm-file"><b>{esc(sheet.file)}</b><p>{number(sheet.lines)} sentences, {references}. Choose plugins and '
        f'press Translate; the work goes on when you close the page.</p><p><a href="/compare?project={project_id}&amp;'
        'comparison=new">Type sentences instead</a></p></div>'
    )


def reading_card(names: str) -> str:
    """While an opened file is read."""
    return f'<div class="tm-card tm-pad tm-working"><div class="tm-card-head"><h2>Reading {esc(names)}</h2></div></div>'


def progress_card(job: JobRow | None) -> str:
    """The job of this comparison while it waits or works, or why it stopped; nothing else."""
    if job is None or str(job.state) == "succeeded":
        return ""
    if job.active:
        waiting = str(job.state) == "queued"
        step = "Waiting for a worker" if waiting else f"{job.step or 'Starting'} ({job.step_index + 1} of {job.steps})"
        far = (
            f"{number(job.done)} of {number(job.total)}" if job.total and job.total > 1 and job.step_index == 0 else ""
        )
        left = f"{duration(job.eta)} left in this step" if job.eta is not None and not waiting else ""
        words = " · ".join(filter(None, (step, far, left)))
        button = "Cancelling" if job.cancel_requested else "Cancel"
        off = " disabled" if job.cancel_requested else ""
        return (
            f'<div class="tm-card tm-pad tm-working"><div class="tm-card-head"><h2>{esc(words)}</h2><button type="button" '
            f'class="tm-text-button" data-cancel="{job.id}"{off}>{button}</button></div>{bar(job.fraction)}</div>'
        )
    said = {"failed": job.error or "It failed.", "cancelled": "Cancelled. What was done is kept."}
    words = said.get(str(job.state), "It was interrupted. What was done is kept.")
    more = '<button type="button" class="tm-text-button" data-again>Go on</button>'
    return f'<div class="tm-failed">{note(words, bad=str(job.state) == "failed")}{more}</div>'


def earlier_menu(
    titles: Sequence[tuple[int, str, datetime.datetime]], project_id: int, sheet: SheetRow | None
) -> str:  # fmt: skip
    """Links to the project's comparisons, the newest first, and to a new one."""
    current = sheet.comparison_id if sheet else 0
    links = "".join(
        f'<li><a href="/compare?project={project_id}&amp;comparison={number_}"'
        f'{" aria-current=true" if number_ == current else ""}><span dir="auto">{esc(title)}</span>'
        f"<small>{made:%d %b %H:%M}</small></a></li>"
        for number_, title, made in titles
    )
    delete = (
        '<details class="tm-delete"><summary>Delete the one shown…</summary><button type="button" class="tm-link-button" '
        "data-remove>Delete it for good</button></details>"
        if sheet
        else ""
    )
    return (
        '<details class="tm-menu"><summary class="tm-link-button">Earlier</summary><div class="tm-menu-box tm-earlier">'
        f'<a class="tm-new" href="/compare?project={project_id}&amp;comparison=new">New comparison</a>'
        f'<ul class="tm-menu-list">{links}</ul>{delete}</div></details>'
    )


def share_menu(sheet: SheetRow) -> str:
    """A name and the address, which from then on opens exactly this."""
    kept = (
        "Kept: this address opens exactly this comparison. A turned dial makes a new one."
        if sheet.kept
        else "Once it is shared, nothing in it changes any more."
    )
    return (
        '<details class="tm-menu"><summary class="tm-link-button">Share</summary><div class="tm-menu-box">'
        f'<label>Name<input type="text" data-title value="{esc(sheet.title)}" maxlength="120"></label>'
        '<label>Address<input type="text" data-link readonly value=""></label>'
        f'<p class="tm-quiet">{kept}</p><button type="button" class="tm-link-button" data-share>Copy link</button>'
        "</div></details>"
    )


def export_menu(sheet: SheetRow) -> str:
    """One link a format."""
    links = "".join(
        f'<li><a href="/download/comparisons/{sheet.comparison_id}?format={name}" download>{esc(one.title)}</a></li>'
        for name, one in FORMATS.items()
    )
    return (
        '<details class="tm-menu"><summary class="tm-link-button">Export</summary>'
        f'<ul class="tm-menu-box tm-menu-list">{links}</ul></details>'
    )
