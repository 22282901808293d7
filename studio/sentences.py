"""The sentences of the samples as HTML: views as tabs, a filter, a page of rows with what can be decided about each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.corpora.decisions import Decisions
from engine.corpora.notice import NEAR_DUPLICATE
from studio.html import esc, lang_attribute, number, tag
from studio.segments import PAGE, RANDOM, VIEWS, Item, Listing, View

__all__ = ["BROWSE", "change_bar", "sentence_card"]

# Links carry the address of what they show, so they also work by themselves; here they only spare the reload.
BROWSE = """
const root = () => element.querySelector('[data-query]');
const go = (changes) => {
  const query = new URLSearchParams(root().dataset.query);
  query.delete('at');
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  trigger('go', {to: query.toString()});
};
element.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-go]');
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    trigger('go', {to: link.dataset.go});
  }
  const button = event.target.closest('button[data-decide]');
  if (button) trigger('decide', {action: button.dataset.decide, key: button.dataset.key || '', query: root().dataset.query});
  if (event.target.closest('button[data-undo]')) trigger('undo', {});
  if (event.target.closest('button[data-again]')) trigger('again', {});
});
element.addEventListener('change', (event) => {
  if (event.target.matches('[data-filter]')) go({[event.target.dataset.filter]: event.target.value});
});
element.addEventListener('search', (event) => {
  if (event.target.matches('[data-filter]') && !event.target.value) go({words: ''});
}, true);
"""

NOTHING = {
    "random": "No sentences were read yet.",
    "kept": "No sentence fits.",
    "noticed": "Nothing odd was found in what was kept.",
    "near": "No sentence is like another.",
    "skipped": "Nothing was skipped.",
    "decided": "Nothing decided yet. Exclude a sentence, or keep one that a rule skipped, in one of the other views.",
    "leaks": "No sentence of the samples stands in a test file. Name your test files below.",
}
DECIDED = {"exclude": ("excluded", "bad"), "approve": ("kept by you", "done")}


def sentence_card(
    found: Listing,
    counts: Mapping[str, int | None],
    project: int,
    language: str,
    source_language: str,
    *,
    several: bool,
) -> str:
    """The card with tabs, filter and rows. `several`: the samples are more than one file."""
    view = found.view
    rows = "".join(_row(one, language, source_language, view, several=several) for one in found.items)
    place = "place" if several else "line"
    heads = f'<thead><tr><th>sentence</th><th class="num">{place}</th><th aria-label="decision"></th></tr></thead>'
    nothing = f'<p class="tm-nothing">{esc(NOTHING[view.view])}</p>'
    if (view.words or view.reason or view.file or view.domain) and view.view != "random":
        nothing = '<p class="tm-nothing">No sentence fits.</p>'
    table = f'<table class="tm tm-sentences">{heads}<tbody>{rows}</tbody></table>' if rows else nothing
    return (
        f'<div class="tm-card tm-browser" id="sentences" data-query="{esc(view.query(at=view.at))}">{_tabs(view, counts, project)}'
        f"{_filter(found, project)}{table}{_foot(found, project)}</div>"
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
        links += f"<a {_link(fresh, project)}{current}>{esc(title)}{shown}</a>"
    return f'<nav class="tm-tabs" aria-label="Views of the sentences">{links}</nav>'


def _filter(found: Listing, project: int) -> str:
    view = found.view
    if view.view == "random":
        return ""
    fields = (
        f'<input type="search" data-filter="words" value="{esc(view.words)}" placeholder="Search" '
        'aria-label="Search the sentences" maxlength="200">'
    )
    if found.reasons:
        options = '<option value="">any reason</option>' + "".join(
            f'<option value="{esc(reason)}"{" selected" if reason == view.reason else ""}>{esc(reason)} ({number(count)})</option>'
            for reason, count in found.reasons.items()
        )
        fields += f'<select data-filter="reason" aria-label="Reason">{options}</select>'
    for name, value in (("file", Path(view.file).name), ("domain", view.domain)):
        if value:
            link = _link(view, project, **{name: ""})
            fields += (
                f'<span class="tm-chip">{esc(name)}: {esc(value)} <a {link} aria-label="Any {esc(name)}">×</a></span>'
            )
    return f'<div class="tm-find">{fields}<span class="tm-right">{_bulk(found)}</span></div>'


def _bulk(found: Listing) -> str:
    """Deciding on all that the view shows, where the view is narrow enough to be meant."""
    view, total = found.view, found.total
    if not total:
        return ""
    narrowed = bool(view.words or view.reason or view.file)
    actions = {
        "near": [("exclude", "Exclude all")],
        "leaks": [("exclude", "Exclude all")],
        "noticed": [("exclude", "Exclude all"), ("approve", "Keep all")] if narrowed else [],
        "kept": [("exclude", "Exclude all")] if view.words else [],
        "skipped": [("approve", "Keep all")] if narrowed and any(one.usable for one in found.items) else [],
        "decided": [("clear", "Reset all")],
    }.get(view.view, [])
    return " ".join(
        f'<button type="button" class="tm-text-button" data-decide="{action}">{words} {number(total)}</button>'
        for action, words in actions
    )


def _row(one: Item, language: str, source_language: str, view: View, *, several: bool) -> str:
    text = f'<div{lang_attribute(language)} dir="auto">{esc(one.text)}</div>'
    if one.source is not None:
        text += f'<div class="tm-quiet"{lang_attribute(source_language)} dir="auto">{esc(one.source)}</div>'
    told = NEAR_DUPLICATE if view.view == "near" else view.reason
    tags = "".join(tag(note) for note in one.notes if note != told)
    if one.domain and not view.domain:
        tags += tag(one.domain, "accent")
    if one.decided:
        tags += tag(*DECIDED[one.decided])
    if one.beside:
        word = "in" if view.view == "leaks" else "like"
        text += (
            f'<div class="tm-beside"><span>{word} {esc(one.beside_place)}:</span> '
            f'<span{lang_attribute(language)} dir="auto">{esc(one.beside)}</span></div>'
        )
    text += f'<div class="tm-tags">{tags}</div>' if tags else ""
    name = Path(one.file).name
    place = f"{esc(name)} {number(one.line)}" if several and name else number(one.line) if one.line else ""
    kind = ' class="tm-out"' if one.decided == "exclude" and view.view != "decided" else ""
    return f'<tr{kind}><td>{text}</td><td class="num quiet">{place}</td><td class="num tm-decide">{_buttons(one, view)}</td></tr>'


def _buttons(one: Item, view: View) -> str:
    if one.decided:
        actions = [("clear", "Reset")]
    elif not one.usable:
        actions = []
    elif one.kept:
        odd = bool(one.notes) and view.view != "leaks"
        actions = [("approve", "Keep")] * odd + [("exclude", "Exclude")]
    else:
        actions = [("approve", "Keep")]
    short = esc(one.text[:40])
    return " ".join(
        f'<button type="button" class="tm-text-button" data-decide="{action}" data-key="{esc(one.key)}" '
        f'aria-label="{word}: {short}">{word}</button>'
        for action, word in actions
    )


def _foot(found: Listing, project: int) -> str:
    view, total = found.view, found.total
    if view.view == "random":
        if total < RANDOM:
            return ""
        return (
            f'<div class="tm-browser-foot"><span>{RANDOM} at random, to see what is in there</span>'
            f"<a {_link(view, project, seed=view.seed + 1)}>Ten others</a></div>"
        )
    if not total:
        return ""
    last = min(total, view.at + PAGE)
    links = ""
    if view.at:
        links += f"<a {_link(view, project, at=max(0, view.at - PAGE))}>Back</a>"
    if last < total:
        links += f"<a {_link(view, project, at=view.at + PAGE)}>Next</a>"
    return f'<div class="tm-browser-foot"><span>{number(view.at + 1)}–{number(last)} of {number(total)}</span>{links}</div>'


def change_bar(decisions: Decisions, waiting: bool) -> str:
    """What was decided since the samples were read, undo, and reading again; nothing where there is nothing to say."""
    if not decisions.steps and not waiting:
        return ""
    undo = (
        f'<button type="button" class="tm-text-button" data-undo>Undo: {esc(decisions.last)}</button>'
        if decisions.steps
        else ""
    )
    if not waiting:
        return f'<div class="tm-changes"><span>Your decisions are in.</span> {undo}</div>'
    again = '<button type="button" class="tm-text-button" data-again>Read again now</button>'
    return (
        '<div class="tm-changes tm-waiting"><span>Your decisions count from the next reading or training.</span> '
        f"{undo} {again}</div>"
    )
