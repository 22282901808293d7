"""The first page: every project as a card with what can be done with it, or the invitation to start one; the tour's door."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import InputError
from engine.projects import delete_project
from studio.cards import license_line
from studio.catalog import pair_said, sample_types
from studio.door.who import guest
from studio.frame import address, guard, heading, page
from studio.html import esc, number, tag, view
from studio.i18n import day, tr, trn
from studio.projects import Glance, glances
from studio.service import Service
from studio.starting import open_terms
from studio.tour import SAMPLE, Tour
from studio.uploads import stash

__all__ = ["ago", "build", "project_card"]

TEXT = "One project a style: its samples, its plugins, its comparisons."
GO = "(address) => { if (address) window.location.assign(address) }"
LONGEST_NAME = 80
# One dialog of each kind for all cards. The browser's own <dialog> keeps the keyboard inside and closes on Escape.
ASK = f"""
<dialog class="tm-dialog" data-dialog="rename" aria-labelledby="tm-rename-title"><form method="dialog">
<h2 id="tm-rename-title">Rename the project</h2>
<label>Name<input type="text" name="name" maxlength="{LONGEST_NAME}" required autocomplete="off"></label>
<div class="tm-dialog-row"><button type="button" class="tm-link-button" data-close>Cancel</button>
<button type="submit" class="tm-link-button tm-filled">Rename</button></div></form></dialog>
<dialog class="tm-dialog" data-dialog="delete" aria-labelledby="tm-delete-title"><form method="dialog">
<h2 id="tm-delete-title">Delete <b data-name></b>?</h2><p data-what></p>
<p>Its samples, phrases, plugins and comparisons are removed from this machine. This cannot be undone.</p>
<div class="tm-dialog-row"><button type="button" class="tm-link-button" data-close autofocus>Keep it</button>
<button type="submit" class="tm-link-button tm-danger">Delete</button></div></form></dialog>
"""
# The dialogs stay while the cards are shown anew; the cards' buttons find them in the page.
CARDS = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-ask]');
  if (!button) return;
  const dialog = document.querySelector(`[data-dialog="${button.dataset.ask}"]`);
  dialog.dataset.project = button.dataset.project;
  const field = dialog.querySelector('input'), name = dialog.querySelector('[data-name]');
  if (field) field.value = button.dataset.name;
  if (name) {
    name.textContent = button.dataset.name;
    dialog.querySelector('[data-what]').textContent = button.dataset.what;
  }
  dialog.showModal();
  if (field) field.select();
});
"""
ANSWER = """
element.addEventListener('click', (event) => {
  const dialog = event.target.closest('dialog');
  if (event.target.closest('[data-close]') || event.target === dialog) dialog.close();
});
element.addEventListener('submit', (event) => {
  const dialog = event.target.closest('dialog');
  const project = dialog.dataset.project;
  if (dialog.dataset.dialog === 'rename') trigger('rename', {project, name: dialog.querySelector('input').value});
  else trigger('delete', {project});
});
"""
TOUR = """
element.addEventListener('click', (event) => {
  if (event.target.closest('[data-tour]')) trigger('tour', {});
});
"""


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/`."""
    tour = Tour(service)
    with page(demo, service, "", "Projects", TEXT) as frame:
        with frame.actions:
            new = view()
        cards = view(script=CARDS)
        with gr.Column(visible=False, elem_classes="tm-card tm-first") as first:
            view("<b>Drop your sentences here, or start with a sample</b>", classes="tm-first-words")
            drop = gr.File(
                label="Files", show_label=False, file_count="multiple", file_types=sample_types(), height=150,
                elem_classes="tm-drop",
            )  # fmt: skip
            view(
                '<a class="tm-link-button tm-filled" href="/samples?project=new">Choose files or a sample</a>',
                classes="tm-first-words",
            )
        with gr.Column(visible=False, elem_classes="tm-terms") as terms:
            licence = view()
            tick = gr.Checkbox(label="I accept these terms", container=False, elem_classes="tm-plain")
        door = view(script=TOUR)
        dialogs = view(ASK, script=ANSWER, classes="tm-dialogs")
        goto = gr.Textbox(visible="hidden")
        busy = gr.Textbox("busy", visible="hidden")

    def shown() -> tuple[str, str]:
        rows = glances(service)
        if not rows:
            return heading("Projects", ""), ""
        count = trn("{count} project, the latest first.", "{count} projects, the latest first.", len(rows))
        body = "".join(project_card(row) for row in rows)
        return heading("Projects", count), f'<div class="tm-grid tm-homes">{body}</div>'

    def fill() -> tuple[Any, ...]:
        title, body = shown()
        some = bool(service.store.projects.list())
        asked = _terms(service) if not some or tour.fresh else []
        line = license_line(asked[0]) if asked else ""
        return (
            title, body, _new() if some else "", gr.update(visible=not some), tour_door(tour, some),
            gr.update(visible=bool(asked)), line,
        )  # fmt: skip

    def poll(busy: str) -> tuple[Any, ...]:
        # While nothing is at work there is nothing new to see here.
        active = bool(service.store.jobs.list(states=("queued", "running"), limit=1))
        if not active and not busy:
            return (gr.skip(),) * 3
        return (*shown(), "busy" if active else "")

    def rename(event: gr.EventData) -> tuple[str, str]:
        name = " ".join(str(event.name).split())[:LONGEST_NAME]
        if not name:
            raise InputError("A project needs a name.")
        service.store.projects.update(int(event.project), name=name)
        return shown()

    def delete(event: gr.EventData) -> tuple[Any, ...]:
        number_of = int(event.project)
        name = service.store.projects.get(number_of).name
        delete_project(service.settings, service.store, number_of)
        gr.Info(esc(name), duration=5, title=tr("Deleted"))
        return fill()

    def take(files: list[str] | None) -> str:
        return f"/samples?project=new&files={stash([Path(file) for file in files or []], service.settings)}"

    def begin(agreed: bool) -> str:
        return address("samples", tour.start(agreed).id)

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    everything = [frame.title, cards, new, first, door, terms, licence]
    demo.load(guard(fill), None, everything, **quiet)
    frame.timer.tick(guard(poll, polled=True), busy, [frame.title, cards, busy], **quiet)
    dialogs.rename(guard(rename), None, [frame.title, cards], **quiet)
    dialogs.delete(guard(delete), None, everything, **quiet)
    drop.upload(guard(take), drop, goto, **quiet).then(None, goto, None, js=GO)
    door.tour(guard(begin), tick, goto, **quiet).then(None, goto, None, js=GO)


def _new() -> str:
    return f'<a class="tm-link-button tm-filled" href="/samples?project=new">{esc(tr("New project"))}</a>'


def _terms(service: Service) -> Sequence[Any]:
    """Cards of what the tour uses whose licence was not accepted yet."""
    bases = service.catalog.bases()
    return [one for one, _ in open_terms(service, bases[0]["path"])] if bases else []


def tour_door(tour: Tour, projects: bool) -> str:
    """The way into the tour: plain to see on the first day, a quiet line later."""
    try:
        corpus = tour.service.catalog.sample(SAMPLE)
    except InputError:
        return ""
    going = tour.project()
    if going is not None:
        words, text = tr("Go on with the tour"), ""
    else:
        words = tr("Take the tour")
        text = tr(
            "through all pages with a bundled sample, {name}: {count} sentences. Some minutes.",
            name=corpus.title, count=number(corpus.lines),
        )  # fmt: skip
    kind = "tm-door" if not projects else "tm-door tm-later"
    return (
        f'<p class="{kind}"><button type="button" class="tm-text-button" data-tour>{esc(words)}</button> '
        f'<span class="tm-quiet">{esc(text)}</span></p>'
    )


def project_card(one: Glance) -> str:
    """Name, languages, state, what there is, the best figure, when it changed; rename and delete below."""
    row = one.project
    parts = [tr("No sentences read yet")]
    if one.sentences is not None:
        parts = [trn("{count} sentence", "{count} sentences", one.sentences)]
        parts += [trn("{count} phrase", "{count} phrases", one.phrases)] if one.phrases is not None else []
    plugins = trn("{count} plugin", "{count} plugins", one.plugins) if one.plugins else ""
    counts = " · ".join([*parts, *([plugins] if plugins else [])])
    best = ""
    if one.best is not None:
        best = (
            f'<p class="tm-best" title="{esc(one.best.plugin)}">{esc(one.best.metric)} <s>{one.best.before:.1f}</s> → '
            f"<b>{one.best.after:.1f}</b> <span>{esc(tr('best plugin, held-out samples'))}</span></p>"
        )
    what = trn("{count} file of samples", "{count} files of samples", one.files)
    what = tr("{one}, {two}.", one=what, two=plugins) if plugins else tr("{one}.", one=what)
    name, changed = esc(row.name), tr("changed {when}", when=ago(one.changed))
    buttons = "".join(
        f'<button type="button" class="tm-text-button" data-ask="{ask}" data-project="{row.id}" data-name="{name}" '
        f'data-what="{esc(what)}" aria-label="{word} {name}">{word}</button>'
        for ask, word in (("rename", tr("Rename")), ("delete", tr("Delete")))
    )
    known = guest()
    if known is not None and known.account is not None:
        buttons = f'<a href="/members/{row.id}">{esc(tr("Members"))}</a>{buttons}'
    return (
        '<article class="tm-card tm-pad tm-home"><h3 aria-level=2>'
        f'<a href="{esc(address(one.next, row.id))}">{name}</a> {tag(*one.state)}</h3>'
        f'<p class="tm-quiet">{esc(pair_said(row.source, row.target))}</p>'
        f'<p class="tm-quiet">{esc(counts)}</p>{best}'
        f'<div class="tm-home-foot"><span class="tm-quiet">{esc(changed)}</span>{buttons}</div></article>'
    )


def ago(moment: datetime.datetime) -> str:
    """A moment in the past as a person says it: `just now`, `5 min ago`, `3 days ago`, `12 March 2026`."""
    seconds = (datetime.datetime.now(datetime.UTC) - moment).total_seconds()
    if seconds < 60:
        return tr("just now")
    if seconds < 5400:
        return tr("{count} min ago", count=round(seconds / 60))
    if seconds < 129600:
        return tr("{count} h ago", count=round(seconds / 3600))
    if seconds < 30 * 86400:
        return tr("{count} days ago", count=round(seconds / 86400))
    return day(moment)
