"""The sentences of the samples as HTML: views as tabs, a filter, and a page of rows with the possible decisions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.corpora.overrides import Decisions
from engine.corpora.warnings import ANOTHER_LANGUAGE, NEAR_DUPLICATE
from studio.components.html import number
from studio.components.templating import render, script
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
    listing: Listing, counts: Mapping[str, int | None], project: int, language: str, source_language: str, *, several: bool
) -> str:
    """The card with tabs, filter and rows. `several`: the samples have more than one file."""
    view = listing.view
    narrowed = [(tr("file"), Path(view.file).name, view.query(file="")), (tr("domain"), view.domain, view.query(domain=""))]
    tabs = [
        {"name": name, "title": tr(title), "count": counts.get(name), "query": View(view=name).query()}
        for name, title in VIEWS.items()
        if name not in ("leaks", "near") or counts.get(name) or name == view.view
    ]
    foot, links = _foot(listing)
    return render(
        "sentence_list.html",
        view=view, project=project, language=language, source_language=source_language, several=several, tabs=tabs,
        reasons=listing.reasons, narrowed=[item for item in narrowed if item[1]], bulk=_bulk(listing),
        rows=[_row(item, view, several=several) for item in listing.items], nothing=_nothing(view), foot=foot, links=links,
    )  # fmt: skip


def _nothing(view: View) -> str:
    """The placeholder shown if there are no rows."""
    narrowed = bool(view.words or view.reason or view.file or view.domain) and view.view != "random"
    return tr("No sentence matches.") if narrowed else tr(NOTHING[view.view])


def _bulk(listing: Listing) -> list[tuple[str, str, str]]:
    """Bulk actions as (action, label, view query). They apply to the current view if it is filtered enough (empty query), or,
    in the unfiltered view of warnings, to the sentences in another language.
    """
    view, total = listing.view, listing.total
    if not total:
        return []
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
        "skipped": ["approve"] if narrowed and any(item.usable for item in listing.items) else [],
        "decided": ["clear"],
    }.get(view.view, [])
    if view.view == "noticed" and not narrowed and (foreign := listing.reasons.get(ANOTHER_LANGUAGE)):
        word = tr("Exclude all {count} in another language", count=number(foreign))
        return [("exclude", word, view.query(reason=ANOTHER_LANGUAGE))]
    return [(action, words[action], "") for action in actions]


def note_text(note: str) -> str:
    """A warning in the reader's language: the reason, with any details after a colon."""
    reason, colon, details = note.partition(": ")
    translated = tr(note)
    return translated if translated != note or not colon else f"{tr(reason)}{tr(': ')}{details}"


def _row(item: Item, view: View, *, several: bool) -> dict[str, object]:
    """The template values of a sentence."""
    message = NEAR_DUPLICATE if view.view == "near" else view.reason
    tags = [(note_text(note), "") for note in item.notes if note != message]
    if item.domain and not view.domain:
        tags.append((item.domain, "accent"))
    if item.decided:
        tags.append((tr(DECIDED[item.decided][0]), DECIDED[item.decided][1]))
    name = Path(item.file).name
    return {
        "item": item,
        "tags": tags,
        "out": item.decided == "exclude" and view.view != "decided",
        "location": f"{name} {number(item.line)}" if several and name else number(item.line) if item.line else "",
        "beside": tr("in {place}:" if view.view == "leaks" else "similar to {place}:", place=item.beside_location),
        "actions": _actions(item, view),
    }


def _actions(item: Item, view: View) -> list[tuple[str, str]]:
    """The decisions possible for a sentence, as (action, label)."""
    if item.decided:
        return [("clear", tr("Reset"))]
    if not item.usable:
        return []
    if not item.imported:
        return [("approve", tr("Keep"))]
    odd = bool(item.notes) and view.view != "leaks"
    return [("approve", tr("Keep"))] * odd + [("exclude", tr("Exclude"))]


def _foot(listing: Listing) -> tuple[str, list[tuple[str, str]]]:
    """The text on the rows shown, and the paging links as (label, view query)."""
    view, total = listing.view, listing.total
    if view.view == "random":
        if total < RANDOM:
            return "", []
        return tr("{count} random sentences", count=RANDOM), [(tr("Ten more"), view.query(seed=view.seed + 1))]
    if not total:
        return "", []
    last = min(total, view.at + PAGE)
    links = [(tr("Back"), view.query(at=max(0, view.at - PAGE)))] * bool(view.at)
    links += [(tr("Next"), view.query(at=view.at + PAGE))] * (last < total)
    return tr("{first}–{last} of {all}", first=number(view.at + 1), last=number(last), all=number(total)), links


def change_bar(decisions: Decisions, waiting: bool) -> str:
    """The bar with the last decision, undo, and reading again; empty without decisions or pending changes."""
    if not decisions.steps and not waiting:
        return ""
    last = translate_message(decisions.last) if decisions.steps else ""
    return render("decision_bar.html", waiting=waiting, last=last)
