"""The sentences of the samples as HTML: views as tabs, a filter, a page of rows with what can be decided about each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.corpora.overrides import Decisions
from engine.corpora.warnings import NEAR_DUPLICATE
from studio.components.html import esc, lang_attribute, number, tag
from studio.components.templating import script
from studio.i18n.translate import mark, tr, translate_message
from studio.services.segments import PAGE, RANDOM, VIEWS, Item, Listing, View

BROWSE = script("sentence-list.js")

NOTHING = {
    "random": mark("No sentences have been read yet."),
    "kept": mark("No sentence matches."),
    "noticed": mark("No imported sentence has a warning."),
    "near": mark("There are no near-duplicates."),
    "skipped": mark("Nothing was skipped."),
    "decided": mark("No decisions yet. In the other views, exclude a sentence or keep one that a rule skipped."),
    "leaks": mark("No sentence of the samples appears in a test file. Add your test files below."),
}
DECIDED = {"exclude": (mark("excluded"), "bad"), "approve": (mark("kept by you"), "done")}


def sentence_card(
    listing: Listing,
    counts: Mapping[str, int | None],
    project: int,
    language: str,
    source_language: str,
    *,
    several: bool,
) -> str:
    """The card with tabs, filter and rows. `several`: the samples are more than one file."""
    view = listing.view
    rows = "".join(_row(one, language, source_language, view, several=several) for one in listing.items)
    position = tr("place") if several else tr("line")
    heads = (
        f'<thead><tr><th>{esc(tr("sentence"))}</th><th class="num">{esc(position)}</th>'
        f'<th><span class="tm-hidden">{esc(tr("decision"))}</span></th></tr></thead>'
    )
    nothing = f'<p class="tm-nothing">{esc(tr(NOTHING[view.view]))}</p>'
    if (view.words or view.reason or view.file or view.domain) and view.view != "random":
        nothing = f'<p class="tm-nothing">{esc(tr("No sentence matches."))}</p>'
    table = f'<table class="tm tm-sentences">{heads}<tbody>{rows}</tbody></table>' if rows else nothing
    return (
        f'<div class="tm-card tm-browser" id="sentences" data-query="{esc(view.query(at=view.at))}">{_tabs(view, counts, project)}'
        f"{_filter(listing, project)}{table}{_foot(listing, project)}</div>"
    )


def _link(view: View, project: int, **changes: object) -> str:
    query = view.query(**changes)
    return f'href="{esc(f"/samples?project={project}&{query}")}" data-go="{esc(query)}"'


def _tabs(view: View, counts: Mapping[str, int | None], project: int) -> str:
    links = ""
    for name, title in VIEWS.items():
        count = counts.get(name)
        if name in ("leaks", "near") and not count and name != view.view:
            continue
        shown = f" <small>{number(count)}</small>" if count is not None else ""
        current = ' aria-current="true"' if name == view.view else ""
        fresh = View(view=name)
        links += f"<a {_link(fresh, project)}{current}>{esc(tr(title))}{shown}</a>"
    return f'<nav class="tm-tabs" aria-label="{esc(tr("Views of the sentences"))}">{links}</nav>'


def _filter(listing: Listing, project: int) -> str:
    view = listing.view
    if view.view == "random":
        return ""
    fields = (
        f'<input type="search" data-filter="words" value="{esc(view.words)}" placeholder="{esc(tr("Search"))}" '
        f'aria-label="{esc(tr("Search the sentences"))}" maxlength="200">'
    )
    if listing.reasons:
        counted = {reason: f"{tr(reason)} ({number(count)})" for reason, count in listing.reasons.items()}
        options = f'<option value="">{esc(tr("any reason"))}</option>' + "".join(
            f'<option value="{esc(reason)}"{" selected" if reason == view.reason else ""}>{esc(words)}</option>'
            for reason, words in counted.items()
        )
        fields += f'<select data-filter="reason" aria-label="{esc(tr("Reason"))}">{options}</select>'
    for name, word, value in (("file", tr("file"), Path(view.file).name), ("domain", tr("domain"), view.domain)):
        if value:
            link = _link(view, project, **{name: ""})
            fields += (
                f'<span class="tm-chip">{esc(word)}: {esc(value)} <a {link} aria-label="{esc(tr("Any {what}", what=word))}">×</a>'
                "</span>"
            )
    return f'<div class="tm-find">{fields}<span class="tm-right">{_bulk(listing)}</span></div>'


def _bulk(listing: Listing) -> str:
    """Deciding on all that the view shows, where the view is narrow enough to be meant."""
    view, total = listing.view, listing.total
    if not total:
        return ""
    words = {
        "exclude": tr("Exclude all {count}", count=number(total)),
        "approve": tr("Keep all {count}", count=number(total)),
        "clear": tr("Reset all {count}", count=number(total)),
    }
    narrowed = bool(view.words or view.reason or view.file)
    actions = {
        "near": ["exclude"],
        "leaks": ["exclude"],
        "noticed": ["exclude", "approve"] if narrowed else [],
        "kept": ["exclude"] if view.words else [],
        "skipped": ["approve"] if narrowed and any(one.usable for one in listing.items) else [],
        "decided": ["clear"],
    }.get(view.view, [])
    return " ".join(
        f'<button type="button" class="tm-text-button" data-decide="{action}">{esc(words[action])}</button>'
        for action in actions
    )


def note_text(note: str) -> str:
    """What was noticed in the reader's language: the reason alone, or with what was found after a colon."""
    reason, colon, result = note.partition(": ")
    known = tr(note)
    return known if known != note or not colon else f"{tr(reason)}{tr(': ')}{result}"


def _row(one: Item, language: str, source_language: str, view: View, *, several: bool) -> str:
    text = f"<div{lang_attribute(language, auto=True)}>{esc(one.text)}</div>"
    if one.source is not None:
        text += f'<div class="tm-quiet"{lang_attribute(source_language, auto=True)}>{esc(one.source)}</div>'
    message = NEAR_DUPLICATE if view.view == "near" else view.reason
    tags = "".join(tag(note_text(note)) for note in one.notes if note != message)
    if one.domain and not view.domain:
        tags += tag(one.domain, "accent")
    if one.decided:
        tags += tag(tr(DECIDED[one.decided][0]), DECIDED[one.decided][1])
    if one.beside:
        word = tr("in {place}:" if view.view == "leaks" else "similar to {place}:", place=one.beside_location)
        text += (
            f'<div class="tm-beside"><span>{esc(word)}</span> '
            f"<span{lang_attribute(language, auto=True)}>{esc(one.beside)}</span></div>"
        )
    text += f'<div class="tm-tags">{tags}</div>' if tags else ""
    name = Path(one.file).name
    row = f"{esc(name)} {number(one.line)}" if several and name else number(one.line) if one.line else ""
    kind = ' class="tm-out"' if one.decided == "exclude" and view.view != "decided" else ""
    return f'<tr{kind}><td>{text}</td><td class="num quiet">{row}</td><td class="num tm-decide">{_buttons(one, view)}</td></tr>'


def _buttons(one: Item, view: View) -> str:
    if one.decided:
        actions = [("clear", tr("Reset"))]
    elif not one.usable:
        actions = []
    elif one.imported:
        odd = bool(one.notes) and view.view != "leaks"
        actions = [("approve", tr("Keep"))] * odd + [("exclude", tr("Exclude"))]
    else:
        actions = [("approve", tr("Keep"))]
    short = esc(one.text[:40])
    return " ".join(
        f'<button type="button" class="tm-text-button" data-decide="{action}" data-key="{esc(one.key)}" '
        f'aria-label="{word}: {short}">{word}</button>'
        for action, word in actions
    )


def _foot(listing: Listing, project: int) -> str:
    view, total = listing.view, listing.total
    if view.view == "random":
        if total < RANDOM:
            return ""
        return (
            f'<div class="tm-browser-foot"><span>{esc(tr("{count} random sentences", count=RANDOM))}</span>'
            f"<a {_link(view, project, seed=view.seed + 1)}>{esc(tr('Ten more'))}</a></div>"
        )
    if not total:
        return ""
    last = min(total, view.at + PAGE)
    where = tr("{first}–{last} of {all}", first=number(view.at + 1), last=number(last), all=number(total))
    links = ""
    if view.at:
        links += f"<a {_link(view, project, at=max(0, view.at - PAGE))}>{esc(tr('Back'))}</a>"
    if last < total:
        links += f"<a {_link(view, project, at=view.at + PAGE)}>{esc(tr('Next'))}</a>"
    return f'<div class="tm-browser-foot"><span>{esc(where)}</span>{links}</div>'


def change_bar(decisions: Decisions, waiting: bool) -> str:
    """What was decided since the samples were read, undo, and reading again; nothing where there is nothing to say."""
    if not decisions.steps and not waiting:
        return ""
    undo = tr("Undo: {what}", what=translate_message(decisions.last))
    undo = f'<button type="button" class="tm-text-button" data-undo>{esc(undo)}</button>' if decisions.steps else ""
    if not waiting:
        return f'<div class="tm-changes"><span>{esc(tr("Your decisions have been applied."))}</span> {undo}</div>'
    again = f'<button type="button" class="tm-text-button" data-again>{esc(tr("Read again now"))}</button>'
    return (
        f'<div class="tm-changes tm-waiting"><span>{esc(tr("Your decisions take effect at the next import or training."))}</span> '
        f"{undo} {again}</div>"
    )
