"""The page Rate: blind rounds over a saved comparison, their raters and links, and the table that comes out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import gradio as gr

from engine.errors import InputError
from studio.frame import address, guard, page, wanted
from studio.html import empty, esc, gated, number, shown_if, view, visible_if, way
from studio.i18n import moment, tr
from studio.ratings import manage_box, rater_table, result_cards
from studio.service import Service

if TYPE_CHECKING:
    from engine.evaluation.rounds import Texts
    from engine.store import ProjectRow, Store
    from engine.store.ratings import RoundRow

__all__ = ["build"]

TEXT = "Two translations without names: people say which is better. Each rater gets a page of their own."
USUAL = 40  # sentences offered for a new round
EXAMPLES = 5  # sentences of the samples that raters can unfold
LOCAL = ("127.0.0.1", "localhost", "::1")
ACT = """
element.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-act]');
  if (button) trigger('act', {act: button.dataset.act, number: button.dataset.number || ''});
  const copy = event.target.closest('[data-copy]');
  if (!copy) return;
  const field = copy.parentElement.querySelector('input');
  field.select();
  try { await navigator.clipboard.writeText(field.value); } catch (error) { document.execCommand('copy'); }
  copy.textContent = tmSay('Copied');
  setTimeout(() => { copy.textContent = tmSay('Copy link'); }, 1500);
});
"""
GO = "element.addEventListener('change', (event) => window.location.assign(event.target.value));"
LEAVE = "(place) => { if (place) window.location.assign(place); }"
# The round gets an address of its own without a reload.
MARK = """(number, project) => {
  if (!number) return;
  const address = new URL(window.location.href);
  address.search = '';
  address.searchParams.set('project', project);
  address.searchParams.set('round', number);
  window.history.replaceState(null, '', address);
}"""


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/rate`."""
    with page(demo, service, "rate", "Rate", TEXT) as frame:
        with frame.actions:
            around = view(script=GO)
            start = gr.Button("Start the round", variant="primary", visible="hidden")
        nothing = view()
        with gated(gr.Column, elem_classes="tm-card tm-pad tm-stack tm-fields tm-new-round") as form:
            comparison = gr.Dropdown([], label="Comparison", interactive=True)
            with gr.Row():
                one = gr.Dropdown([], label="System", interactive=True, min_width=160)
                two = gr.Dropdown([], label="Against", interactive=True, min_width=160)
                most = gr.Number(USUAL, label="Sentences at most", precision=0, minimum=1, min_width=120)
            preview = view(classes="tm-quiet")
            names = gr.Textbox(label="Raters", placeholder="One name a line", lines=3, max_lines=8)
            shows = gr.Checkbox(True, label="Raters can unfold five sentences of the samples, to know the style")
        with gated(gr.Column, elem_classes="tm-stack") as shown:
            results = view()
            people = view(script=ACT)
            with gr.Row(elem_classes="tm-one-line"):
                new = gr.Textbox(
                    label="Name of another rater", show_label=False, placeholder="Name of another rater", container=False,
                    max_length=80, scale=0, min_width=260,
                )  # fmt: skip
                add = gr.Button("Add a rater", scale=0, min_width=120)
            manage = view(script=ACT)
        current = gr.Textbox("", visible="hidden")
        project_number = gr.Textbox("", visible="hidden")
        leave = gr.Textbox("", visible="hidden")

    hidden, there = gr.update(visible=visible_if(False)), gr.update(visible=visible_if(True))

    def fill(request: gr.Request) -> dict[Any, Any]:
        project = service.project(wanted(request))
        saved = service.store.sheets.titles(project.id) if project else []
        rows = service.store.ratings.list(project.id) if project else []
        row = _wanted_round(request, rows)
        bare = {
            around: "",
            start: hidden,
            nothing: "",
            form: shown_if(False),
            shown: shown_if(False),
            current: "",
            project_number: "",
        }
        if project is None or not (saved or rows):
            return bare | {nothing: invitation(project)}
        bare |= {around: _around(rows, row, project), project_number: str(project.id)}
        if row is not None:
            return bare | {shown: shown_if(True), current: str(row.id)}
        if not saved:
            return bare | {nothing: invitation(project)}
        first = _wanted_comparison(request, [number_ for number_, *_ in saved])
        choices = [(f"{moment(made)} · {title}", number_) for number_, title, made in saved]
        menu = gr.update(choices=choices, value=first)
        return bare | {start: there, form: shown_if(True), comparison: menu} | systems(first, USUAL)

    def systems(chosen: int | None, limit: float | None) -> dict[Any, Any]:
        known = list(_texts(service, chosen).systems)
        first, second = known[min(1, len(known) - 1)], known[0]
        return {
            one: gr.update(choices=known, value=first),
            two: gr.update(choices=known, value=second),
            preview: count(chosen, first, second, limit),
        }

    def count(chosen: int | None, first: str | None, second: str | None, limit: float | None) -> str:
        return _preview(_texts(service, chosen), first or "", second or "", limit)

    def begin(
        request: gr.Request,
        chosen: int | None,
        first: str,
        second: str,
        limit: float | None,
        given: str,
        with_style: bool,
    ) -> dict[Any, Any]:
        from engine.evaluation.rounds import new_round

        project, texts = service.need(wanted(request)), _texts(service, chosen)
        sheet = service.store.sheets.get(int(chosen or 0))
        raters = [line.strip() for line in given.replace(",", "\n").splitlines() if line.strip()]
        if not raters:
            raise InputError("Name at least one rater: each gets a link of their own.")
        about = {
            "comparison": sheet.title,
            "systems": [system for system in sheet.systems if system["name"] in (first, second)],
            "examples": _examples(service, project.id) if with_style else [],
        }
        row = new_round(
            service.store, project.id, texts, first, second, raters=raters, sentences=_limit(limit),
            comparison_id=sheet.comparison_id, about=about,
        )  # fmt: skip
        rows = service.store.ratings.list(project.id)
        return {
            around: _around(rows, row, project),
            start: hidden,
            form: shown_if(False),
            shown: shown_if(True),
            current: str(row.id),
        }

    def poll(request: gr.Request, chosen: str) -> tuple[str, str, str]:
        if not chosen:
            return "", "", ""
        row, store = service.store.ratings.get(int(chosen)), service.store.ratings
        raters = store.raters(row.id)
        local = service.settings.host in LOCAL
        table = rater_table(raters, store.done(row.id), row, _origin(request), local)
        return result_cards(service.store, row), table, manage_box(row, raters)

    def add_rater(chosen: str, name: str) -> str:
        service.store.ratings.add_rater(int(chosen), name)
        return ""

    def act(chosen: str, event: gr.EventData) -> str:
        from engine.store.tables import now

        ratings, row = service.store.ratings, service.store.ratings.get(int(chosen))
        if event.act == "remove":
            ratings.remove_rater(int(event.number))
        elif event.act in ("close", "open"):
            ratings.update(row.id, closed=now() if event.act == "close" else None)
        elif event.act == "delete":
            ratings.delete(row.id)
            return address("rate", row.project_id)
        return ""

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    live = [results, people, manage]
    fields = [comparison, one, two, most]
    everything = [around, start, nothing, form, comparison, one, two, preview, shown, current, project_number]
    demo.load(guard(fill), None, everything, **quiet).then(guard(poll), current, live, **quiet)
    frame.timer.tick(guard(poll, polled=True), current, live, **quiet)
    comparison.input(guard(systems), [comparison, most], [one, two, preview], **quiet)
    for field in (one, two, most):
        field.input(guard(count), fields, preview, **quiet)
    start.click(guard(begin), [*fields, names, shows], [around, start, form, shown, current], **quiet).then(
        guard(poll), current, live, **quiet
    ).then(None, [current, project_number], None, js=MARK)
    for given in (add.click, new.submit):
        given(guard(add_rater), [current, new], new, **quiet).then(guard(poll), current, live, **quiet)
    manage.act(guard(act), current, leave, **quiet).then(guard(poll), current, live, **quiet).then(
        None, leave, None, js=LEAVE
    )


def invitation(project: ProjectRow | None) -> str:
    """What the page shows while there is nothing to rate."""
    more = (
        way(address("compare", project.id), tr("Go to Compare"))
        if project
        else way("/samples?project=new", tr("Go to Samples"))
    )
    return empty(tr("Nothing to rate yet"), tr("Raters judge the sentences of a saved comparison."), more)


def _wanted_round(request: gr.Request, rows: Sequence[RoundRow]) -> RoundRow | None:
    """The round of the address, else the newest; None where a new one is asked for."""
    number_ = str(request.query_params.get("round", ""))
    if number_ == "new" or request.query_params.get("comparison"):
        return None
    return next((row for row in rows if str(row.id) == number_), rows[0] if rows else None)


def _wanted_comparison(request: gr.Request, saved: Sequence[int]) -> int:
    number_ = str(request.query_params.get("comparison", ""))
    return next((one for one in saved if str(one) == number_), saved[0])


def _texts(service: Service, chosen: int | None) -> Texts:
    """What a comparison holds; kept while it stays as it is."""
    if not chosen:
        raise InputError("Choose a comparison.")
    sheets = service.store.sheets
    return _read(service.store, int(chosen), sheets.get(int(chosen)).revision, sheets.count(int(chosen))[0])


@lru_cache(maxsize=2)
def _read(store: Store, comparison: int, revision: int, done: int) -> Texts:
    from engine.evaluation.rounds import texts_of

    return texts_of(store, comparison)


def _limit(value: float | None) -> int:
    if value is None or value < 1:
        raise InputError("Give the number of sentences to be rated: at least 1.")
    return int(value)


def _preview(texts: Texts, one: str, two: str, limit: float | None) -> str:
    """How many sentences a round would ask."""
    from engine.evaluation.rounds import pick_items

    try:
        items, same = pick_items(texts, one, two, sentences=_limit(limit))
    except InputError as error:
        return f"<p>{esc(tr(str(error)))}</p>"
    left = " " + tr("{count} are the same in both and are left out.", count=number(same)) if same else ""
    minutes = max(1, round(len(items) / 3))
    said = tr("{count} sentences a rater, about {minutes} min.", count=number(len(items)), minutes=minutes)
    return f"<p>{esc(said)}{esc(left)}</p>"


def _examples(service: Service, project_id: int) -> list[str]:
    """Some sentences of the samples, not too long, the same ones for the same samples."""
    texts = [str(row.get("text", "")) for row in service.sentences(project_id)]
    fitting = [text for text in texts if 10 <= len(text) <= 200]
    return random.Random(len(texts)).sample(fitting, min(EXAMPLES, len(fitting)))


def _origin(request: gr.Request) -> str:
    """The address under which the reader's browser reaches the studio, so that a link copied here works elsewhere."""
    headers: Any = request.headers
    given = urlsplit(headers.get("origin") or headers.get("referer") or "")
    if given.scheme in ("http", "https") and given.netloc:
        return f"{given.scheme}://{given.netloc}"
    return f"http://{headers.get('host', 'localhost')}"


def _around(rows: Sequence[RoundRow], row: RoundRow | None, project: ProjectRow) -> str:
    """The other rounds as a menu, the downloads of this one, and the way to a new one."""
    place = esc(address("rate", project.id))
    options = "".join(
        f'<option value="{place}&amp;round={one.id}"{" selected" if row and one.id == row.id else ""}>'
        f"{esc(one.title)} · {esc(moment(one.created))}</option>"
        for one in rows
    )
    if row is None:
        if not rows:
            return ""
        return (
            f'<div class="tm-bar-links"><select class="tm-select" aria-label="{esc(tr("Round"))}">'
            f"<option selected>{esc(tr('New round'))}</option>{options}</select></div>"
        )
    links = "".join(
        f'<a class="tm-link-button" href="/download/ratings/{row.id}.{ending}" download>{ending.upper()}</a>'
        for ending in ("csv", "json")
    )
    return (
        f'<div class="tm-bar-links"><select class="tm-select" aria-label="{esc(tr("Round"))}">{options}</select>{links}'
        f'<a class="tm-link-button" href="{place}&amp;round=new">{esc(tr("New round"))}</a></div>'
    )
