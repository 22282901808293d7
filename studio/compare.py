"""The page Compare: the same base alone and with up to three plugins, sentence by sentence; what was read for a word; figures.

The address names the comparison, its order, its place and the word that is open. A hidden field holds the same, since an
event does not see an address that changed after the page was loaded.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from engine.comparison.systems import MOST_PLUGINS
from engine.errors import InputError, TailorError
from engine.store import ProjectRow
from engine.store.sheets import SheetRow
from studio.catalog import language_name
from studio.compare_figures import figure_cards
from studio.compare_reading import reading_panel, waiting_panel
from studio.compare_scripts import MARK, MENUS, PANEL, STATE, TABLE
from studio.compare_terms import terms_box
from studio.compare_views import (
    ORDERS,
    PAGE,
    Languages,
    compare_table,
    earlier_menu,
    export_menu,
    file_card,
    invitation,
    plugin_choices,
    progress_card,
    reading_card,
    share_menu,
)
from studio.comparing import Comparing
from studio.frame import guard, page, wanted
from studio.html import empty, gated, shown_if, view, visible_if, way
from studio.i18n import listed, tr, trn
from studio.service import Service

__all__ = ["Here", "build"]

TEXT = "With and without your plugins. Click a word to see what was read for it."
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}


@dataclass(frozen=True)
class Here:
    """What the address says beside the project: comparison, order, first line, and the open word as line.system.start-end."""

    comparison: int = 0
    order: str = "place"
    offset: int = 0
    word: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Here:
        """From the address or the hidden field; what is no value of its kind is left out."""

        def whole(name: str) -> int:
            text = str(values.get(name) or "0")
            return int(text) if text.isdecimal() else 0

        order = str(values.get("order") or "place")
        return cls(
            whole("comparison"), order if order in ORDERS else "place", whole("offset"), str(values.get("word") or "")
        )

    @classmethod
    def read(cls, text: str) -> Here:
        try:
            found = json.loads(text or "{}")
        except ValueError:
            found = {}
        return cls.of(found if isinstance(found, dict) else {})

    def text(self) -> str:
        return json.dumps(asdict(self))

    def at(self) -> tuple[int, int, int, int] | None:
        """The open word: line, system, start, end."""
        try:
            line, system, stretch = self.word.split(".")
            start, end = stretch.split("-")
            return int(line), int(system), int(start), int(end)
        except ValueError:
            return None


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/compare`."""
    desk = Comparing(service)
    with page(demo, service, "compare", "Compare", TEXT) as frame:
        with frame.actions:
            upload = gr.UploadButton("Open file…", file_types=sorted(_endings()), file_count="multiple", size="md")
            menus = view(classes="tm-menus", script=MENUS)
            run = gr.Button("Translate", variant="primary", interactive=False)
        nothing = view()
        with gated(gr.Row, elem_classes="tm-ask", equal_height=True) as ask:
            text = gr.Textbox(
                label="Sentences",
                show_label=False,
                placeholder="One sentence a line",
                lines=4,
                max_lines=4,
                scale=4,
                container=False,
            )
            file = view(classes="tm-file-box", visible="hidden")
            with gr.Column(scale=1, min_width=240, elem_classes="tm-fields"):
                plugins = gr.Dropdown(
                    [], label="Plugins, up to three", interactive=True, multiselect=True, max_choices=MOST_PLUGINS
                )
        state = view(script=STATE)
        with gr.Row(elem_classes="tm-compare-body"):
            table = view(classes="tm-compare-table", script=TABLE)
            panel = view(classes="tm-compare-panel", script=PANEL)
        figures = view(classes="tm-compare-figures", script=STATE)
        terms = terms_box()
        here = gr.Textbox("", visible="hidden")
        seen = gr.Textbox("", visible="hidden")
        number = gr.Textbox("", visible="hidden")

    def shown(project: ProjectRow, place: Here, sheet: SheetRow | None, asked: str = "") -> str:
        """The table of a comparison, or what stands in its place: `asked` is the number that was not found."""
        if sheet is None:
            return invitation(project, bool(service.store.plugins.list(project.id)), asked)
        known = Languages(
            project.source, project.target, language_name(project.source), project.base.rstrip("/").rsplit("/", 1)[-1]
        )
        offset = place.offset if place.offset < sheet.lines else 0
        store, job = service.store.sheets, desk.job(sheet)
        busy = job is not None and job.active and job.step_index == 0
        return compare_table(
            sheet, store.page(sheet.comparison_id, place.order, offset, PAGE), known,
            counts=None if busy else store.count(sheet.comparison_id), order=place.order, offset=offset, word=place.word,
            gone=desk.gone(project, sheet),
        )  # fmt: skip

    def need(project: ProjectRow, place: Here) -> SheetRow:
        """The comparison on the page. Raises InputError when it was deleted meanwhile."""
        sheet = desk.sheet(project, str(place.comparison or "new"))
        if sheet is None:
            raise InputError("This comparison is no longer there. Reload the page.")
        return sheet

    def below(sheet: SheetRow | None) -> str:
        if sheet is None or len(sheet.systems) < 2:
            return ""
        job = desk.job(sheet)
        metrics = []
        for system in sheet.systems[1:]:
            try:
                metrics.append(service.store.plugins.get(int(system["plugin_id"] or 0)).metrics)
            except TailorError:
                metrics.append({})
        return figure_cards(sheet, busy=job is not None and str(job.state) != "succeeded", plugins=metrics)

    def around(project: ProjectRow, sheet: SheetRow | None) -> str:
        titles = service.store.sheets.titles(project.id)
        menu = earlier_menu(titles, project.id, sheet) if titles else ""
        return menu + (share_menu(sheet) + export_menu(sheet) if sheet else "")

    def whole(project: ProjectRow, sheet: SheetRow | None, place: Here, asked: str = "") -> tuple[Any, ...]:
        """Everything below the actions, for a comparison that has just been opened or made."""
        at_file = sheet is not None and bool(sheet.file)
        lines = service.store.sheets.page(sheet.comparison_id, limit=500) if sheet and not at_file else []
        typed = "\n".join(line.source for line in lines) or service.catalog.demo_lines(project.source)
        number_ = sheet.comparison_id if sheet else 0
        return (
            gr.update(value=typed, visible=visible_if(not at_file)),
            gr.update(value=file_card(sheet, project.id) if sheet and at_file else "", visible=visible_if(at_file)),
            progress_card(desk.job(sheet)),
            shown(project, place, sheet, asked),
            below(sheet),
            around(project, sheet),
            replace(place, comparison=number_).text(),
        )

    def fill(request: gr.Request) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            start = way("/samples?project=new", tr("Go to Samples"))
            invite = empty(tr("Nothing to compare yet"), tr("A comparison belongs to a project."), start)
            off = gr.update(interactive=False)
            return (shown_if(False), off, off, invite, gr.skip(), gr.skip(), gr.skip(), *("",) * 6)
        rows = service.store.plugins.list(project.id)
        asked = str(request.query_params.get("plugin", ""))
        number_ = "new" if asked else str(request.query_params.get("comparison", ""))
        usual = service.store.defaults.get(project.id)
        sheet = desk.sheet(project, number_)
        place = Here.of(dict(request.query_params))
        if sheet is None or place.comparison != sheet.comparison_id:
            place = Here()
        chosen = [one["plugin_id"] for one in sheet.systems[1:]] if sheet else []
        if asked.isdecimal():
            chosen = [int(asked)]
        elif sheet is None or (len(sheet.systems) == 1 and sheet.file):
            chosen = [usual.id] if usual else []
        known = {row.id for row in rows}
        return (
            shown_if(True),
            gr.update(interactive=True),
            gr.update(interactive=True),
            "",
            gr.update(
                choices=plugin_choices(rows),
                value=[one for one in chosen if one in known],
                visible=visible_if(bool(rows)),
            ),
            *whole(project, sheet, place, number_),
            str(project.id),
        )

    def open_file(request: gr.Request, files: list[str], place: str) -> Iterator[tuple[Any, ...]]:
        project = service.need(wanted(request))
        names = listed([Path(file).name for file in files])
        yield gr.skip(), gr.skip(), reading_card(names), *(gr.skip(),) * 4
        try:
            sheet, typed = desk.opened(project, files)
        except TailorError:
            yield gr.skip(), gr.skip(), "", *(gr.skip(),) * 4
            raise
        if sheet is None:
            typed_in = gr.update(value=typed, visible=True), gr.update(value="", visible="hidden")
            yield *typed_in, *whole(project, None, Here())[2:]
        else:
            yield whole(project, sheet, Here())

    def work(project: ProjectRow, sheet: SheetRow, place: Here) -> Iterator[tuple[Any, ...]]:
        """Translate what is missing: at once, shown as it comes, or in a job."""
        if desk.long(sheet):
            job = desk.enqueue(sheet)
            yield shown(project, place, sheet), below(sheet), progress_card(job)
            return
        for _ in desk.fill(project, sheet):
            yield shown(project, place, sheet), gr.skip(), ""
        now = service.store.sheets.get(sheet.comparison_id)
        if now.revision != sheet.revision:
            return  # a dial was turned meanwhile: that event goes on
        sheet = desk.measure_at_once(project, now)
        yield shown(project, place, sheet), below(sheet), progress_card(desk.job(sheet))

    def translate(request: gr.Request, lines: str, chosen: list[int], place: str) -> Iterator[tuple[Any, ...]]:
        project = service.need(wanted(request))
        now = Here.read(place)
        busy = gr.update(interactive=False, value=tr("Translating"))
        yield gr.skip(), gr.skip(), gr.skip(), busy, gr.skip(), gr.skip(), gr.skip()
        like = desk.sheet(project, str(now.comparison)) if now.comparison else None
        if like is not None and like.file:
            sheet = desk.of_file(project, like, chosen or [])
        else:
            sheet = desk.typed(project, lines, chosen or [], like)
        now = Here(sheet.comparison_id, now.order if like else "place")
        yield shown(project, now, sheet), below(sheet), gr.skip(), gr.skip(), around(project, sheet), now.text(), ""
        for part in work(project, sheet, now):
            yield *part, gr.skip(), gr.skip(), gr.skip(), gr.skip()

    def release() -> Any:
        return gr.update(interactive=True, value=tr("Translate"))

    def goes_on(request: gr.Request, place: str) -> Iterator[tuple[Any, ...]]:
        """A page that was closed in the middle of its sentences goes on when it is opened again."""
        project, now = service.project(wanted(request)), Here.read(place)
        sheet = desk.sheet(project, str(now.comparison)) if project and now.comparison else None
        pending = sheet and not sheet.file and service.store.sheets.pending(sheet.comparison_id, 1)
        if project is None or sheet is None or not pending or desk.gone(project, sheet):
            yield gr.skip(), gr.skip(), gr.skip()
            return
        yield from work(project, sheet, now)

    def turn(request: gr.Request, place: str, event: gr.EventData) -> Iterator[tuple[Any, ...]]:
        project, now = service.need(wanted(request)), Here.read(place)
        sheet = desk.turn(project, need(project, now), int(event.system), float(event.strength))
        now = replace(now, comparison=sheet.comparison_id, word="")
        yield shown(project, now, sheet), below(sheet), gr.skip(), around(project, sheet), now.text(), ""
        for part in work(project, sheet, now):
            yield *part, gr.skip(), gr.skip(), gr.skip()

    def leaf(request: gr.Request, place: str, event: gr.EventData) -> tuple[Any, ...]:
        project, now = service.need(wanted(request)), Here.read(place)
        now = Here.of({**asdict(now), "order": event.order, "offset": str(event.offset)})
        return shown(project, now, desk.sheet(project, str(now.comparison))), now.text()

    def look(request: gr.Request, place: str, event: gr.EventData) -> Iterator[tuple[Any, ...]]:
        now = replace(Here.read(place), word=f"{event.line}.{event.system}.{event.start}-{event.end}")
        yield waiting_panel(str(event.word)[:80]), gr.skip()
        yield read(service.need(wanted(request)), now), now.text()

    def read(project: ProjectRow, now: Here) -> str:
        sheet, at = desk.sheet(project, str(now.comparison)), now.at()
        if sheet is None or at is None:
            return ""
        found = desk.read(project, sheet, *at)
        system = sheet.systems[at[1]]
        return reading_panel(
            found, system=str(system["name"]) if at[1] else tr("Vanilla"), strength=float(system["strength"]),
            source=project.source, target=project.target,
        )  # fmt: skip

    def read_again(request: gr.Request, place: str) -> Iterator[str]:
        """The word that the address names."""
        now, project = Here.read(place), service.project(wanted(request))
        yield waiting_panel("…") if now.at() and project else ""
        if now.at() and project:
            yield read(project, now)

    def close(place: str) -> tuple[str, str]:
        return "", replace(Here.read(place), word="").text()

    def act(request: gr.Request, place: str, event: gr.EventData) -> tuple[Any, ...]:
        """Measure or go on: both are the job; or cancel it."""
        project, now = service.need(wanted(request)), Here.read(place)
        sheet = need(project, now)
        if event.act == "cancel":
            job = desk.job(sheet)
            if job is not None and job.active:
                service.store.jobs.cancel(job.id)
        else:
            desk.enqueue(sheet)
            sheet = service.store.sheets.get(sheet.comparison_id)
        return progress_card(desk.job(sheet)), below(sheet)

    def fill_terms(request: gr.Request) -> tuple[str, str]:
        project = service.project(wanted(request))
        return shown_if(project is not None), desk.terms(project) if project else ""

    def keep_terms(request: gr.Request, words: str, place: str) -> tuple[str, str]:
        """Keep the project's terms, and measure the comparison on the page by them."""
        project, now = service.need(wanted(request)), Here.read(place)
        count = trn("{count} term is kept.", "{count} terms are kept.", desk.set_terms(project, words))
        sheet = desk.sheet(project, str(now.comparison)) if now.comparison else None
        if sheet is None or len(sheet.systems) < 2:
            return count, progress_card(desk.job(sheet))
        return count, progress_card(desk.enqueue(sheet))

    def poll(request: gr.Request, place: str, before: str) -> tuple[Any, ...]:
        """While a job is at work its progress, and after each part of it the table."""
        project, now = service.project(wanted(request)), Here.read(place)
        sheet = desk.sheet(project, str(now.comparison)) if project and now.comparison else None
        job = desk.job(sheet)
        stamp = f"{job.id} {job.state} {job.step} {job.done} {job.cancel_requested}" if job else ""
        if project is None or sheet is None or stamp == before.partition("/")[0]:
            return (gr.skip(),) * 4
        done = job is not None and not job.active
        fresh = shown(project, now, sheet)
        lines = str(zlib.crc32(fresh.partition("</tbody>")[0].encode()))  # a table that is the same is not drawn anew
        changed = done or lines != before.partition("/")[2]
        return (
            progress_card(job),
            fresh if changed else gr.skip(),
            below(sheet) if done else gr.skip(),
            f"{stamp}/{lines}",
        )

    def keep(request: gr.Request, place: str, event: gr.EventData) -> None:
        """A name, and nothing in it changes any more."""
        project = service.need(wanted(request))
        sheet = need(project, Here.read(place))
        service.store.sheets.update(sheet.comparison_id, title=str(event.title), kept=True)

    def remove(request: gr.Request, place: str) -> tuple[Any, ...]:
        project = service.need(wanted(request))
        desk.delete(need(project, Here.read(place)))
        return (*whole(project, None, Here()), "")

    parts = [text, file, state, table, figures, menus, here]
    ready = demo.load(guard(fill), None, [ask, run, upload, nothing, plugins, *parts, number], **QUIET)
    ready.then(guard(read_again), here, panel, **QUIET)
    ready.then(guard(fill_terms), None, [terms.gate, terms.text], **QUIET)
    ready.then(guard(goes_on), here, [table, figures, state], concurrency_limit=2, **QUIET)
    upload.upload(guard(open_file), [upload, here], parts, **QUIET).then(None, [here, number], None, js=MARK)
    run.click(
        guard(translate), [text, plugins, here], [table, figures, state, run, menus, here, panel],
        concurrency_limit=2, **QUIET,
    ).then(guard(release), None, run, **QUIET)  # fmt: skip
    # Not "always_last", which sends the data of the first event again instead of the last one's.
    table.dial(
        guard(turn), here, [table, figures, state, menus, here, panel],
        concurrency_limit=4, trigger_mode="multiple", **QUIET,
    )  # fmt: skip
    table.leaf(guard(leaf), here, [table, here], concurrency_limit=1, trigger_mode="multiple", **QUIET)
    table.word(guard(look), here, [panel, here], concurrency_limit=1, trigger_mode="multiple", **QUIET)
    panel.close(guard(close), here, [panel, here], **QUIET)
    state.act(guard(act), here, [state, figures], **QUIET)
    figures.act(guard(act), here, [state, figures], **QUIET)
    terms.save.click(guard(keep_terms), [terms.text, here], [terms.said, state], **QUIET)
    menus.keep(guard(keep), here, None, **QUIET)
    menus.remove(guard(remove), here, [*parts, panel], **QUIET)
    here.change(None, [here, number], None, js=MARK)
    frame.timer.tick(guard(poll, polled=True), [here, seen], [state, table, figures, seen], **QUIET)


def _endings() -> set[str]:
    from engine.corpora import READERS

    return {ending for one in READERS.values() for ending in one.endings}
