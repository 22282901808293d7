"""The page Translate: a document in, the same document out in the other language; and a box for a short text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.errors import InputError
from studio.catalog import pair_said
from studio.frame import guard, heading, page, wanted
from studio.html import esc, gated, shown_if, view, visible_if
from studio.i18n import tr
from studio.papers import at_work, done_table, no_project, result_box
from studio.service import Service

if TYPE_CHECKING:
    from engine.documents.library import Documents
    from engine.store import PluginRow, ProjectRow

__all__ = ["build"]

TEXT = "Drop a document and get it back with its layout, or type a short text."
MOST = 4000  # characters of a short text; more is a document
ACT = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act]');
  if (button) trigger('act', {act: button.dataset.act, job: button.dataset.job});
});
"""
# What was chosen and typed stands in the address, so that a reload or a link shows it again.
MARK = """(project, plugin, strength, text) => {
  const address = new URL(window.location.href);
  if (project) address.searchParams.set('project', project);
  address.searchParams.set('plugin', plugin || 0);
  if (plugin && Number(strength) !== 1) address.searchParams.set('strength', strength);
  else address.searchParams.delete('strength');
  if (text && text.length <= 1200) address.searchParams.set('text', text);
  else address.searchParams.delete('text');
  window.history.replaceState(null, '', address);
}"""


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/translate`."""
    from engine.documents import ENDINGS
    from engine.documents.library import Documents

    with page(demo, service, "translate", "Translate", TEXT) as frame:
        with frame.actions:
            run = gr.Button("Translate documents", variant="primary", interactive=False)
        nothing = view()
        with gated(gr.Column, elem_classes="tm-stack tm-translate") as ask:
            with gr.Row(elem_classes="tm-card tm-pad tm-fields tm-with"):
                plugin = gr.Dropdown([], label="Translate with", interactive=True, scale=3, min_width=240)
                strength = gr.Slider(0, 1, 1, step=0.05, label="Strength", interactive=True, scale=2, min_width=200)
                pair = view(classes="tm-quiet tm-right")
            with gr.Row(equal_height=True, elem_classes="tm-split tm-desk"):
                with gr.Column(scale=2, min_width=260):
                    drop = gr.File(
                        label="Documents",
                        show_label=False,
                        file_count="multiple",
                        file_types=sorted(ENDINGS),
                        height=190,
                        elem_classes="tm-drop",
                    )
                    view(
                        '<p class="tm-quiet tm-formats">Word, OpenDocument, XLIFF, PO, SRT, WebVTT, HTML, Markdown, text</p>'
                    )
                with gr.Column(scale=5, min_width=420, elem_classes="tm-card tm-pad tm-stack"):
                    with gr.Row(elem_classes="tm-pairs", equal_height=True):
                        text = gr.Textbox(
                            label="Text",
                            show_label=False,
                            placeholder="Or type a short text here",
                            lines=7,
                            max_lines=12,
                            container=False,
                            elem_classes="tm-text",
                        )
                        result = view(classes="tm-answer")
                    with gr.Row(elem_classes="tm-below"):
                        say = gr.Button("Translate text", size="sm", min_width=120, scale=0)
                        view('<p class="tm-quiet">Shift + Enter</p>')
        moving = view(script=ACT)
        papers = view(script=ACT)
        number = gr.Textbox("", visible="hidden")

    documents = _documents(service, Documents)

    def fill(request: gr.Request) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            return heading("Translate", TEXT), no_project(), shown_if(False), *(gr.skip(),) * 5, "", "", ""
        rows = _choices(service, project)
        chosen = _wanted_plugin(service, project, str(request.query_params.get("plugin", "")))
        typed = str(request.query_params.get("text", ""))[:MOST]
        return (
            heading("Translate", TEXT),
            "",
            shown_if(True),
            gr.update(choices=[(tr("base alone"), 0), *rows], value=chosen.id if chosen else 0),
            gr.update(value=_strength(request), visible=visible_if(chosen is not None)),
            _pair(project),
            typed,
            result_box([], [], project),
            *listed(project),
            str(project.id),
        )

    def listed(project: ProjectRow) -> tuple[str, str]:
        found = documents().list(project.id)
        running = next(iter(service.store.jobs.list(states=("running",))), None)
        return at_work(found, running), done_table(found, project)

    def poll(request: gr.Request) -> tuple[Any, Any]:
        project = service.project(wanted(request))
        return (gr.skip(), gr.skip()) if project is None else listed(project)

    def queue(request: gr.Request, files: list[str] | None, chosen: int | None, share: float) -> tuple[Any, Any]:
        project = service.need(wanted(request))
        if not files:
            raise InputError("Drop a document first.")
        row = _plugin(service, chosen)
        for file in files:
            documents().add(project, Path(file), plugin=row, strength=float(share) if row else 1.0)
        return gr.update(value=None), gr.update(interactive=False)

    def act(request: gr.Request, event: gr.EventData) -> None:
        paper = documents().get(int(event.job))
        if paper.job.project_id != service.need(wanted(request)).id:
            raise InputError("This document belongs to another project. Reload the page.")
        if event.act == "cancel":
            documents().cancel(paper.job.id)
        elif event.act == "resume":
            documents().resume(paper.job.id)
        elif event.act == "delete":
            documents().delete(paper.job.id)

    def answer(request: gr.Request, typed: str, chosen: int | None, share: float) -> Iterator[str]:
        project = service.need(wanted(request))
        if not typed.strip():
            yield result_box([], [], project)
            return
        if len(typed) > MOST:
            raise InputError(
                tr(
                    "This text has {count} characters. Save it as a file and drop it as a document.",
                    count=f"{len(typed):,}",
                )
            )
        yield result_box([], [], project, wait=tr("Translating"))
        texts: list[str] = []
        doubts: list[str] = []
        lines = typed.strip("\n").split("\n")
        for line, (shown, doubt) in zip(lines, _answers(service, project, lines, chosen, share), strict=True):
            texts.append(shown)
            doubts += [doubt] if doubt else []
            more = len(texts) < len(lines)
            if line.strip() or not more:
                yield result_box(texts, doubts, project, wait=tr("Translating") if more else "")

    def chose(chosen: int | None) -> Any:
        return gr.update(visible=visible_if(bool(chosen)))

    def dropped(files: list[str] | None) -> Any:
        return gr.update(interactive=bool(files))

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    asked = [text, plugin, strength]
    kept = [number, plugin, strength, text]
    outputs = [frame.title, nothing, ask, plugin, strength, pair, text, result, moving, papers, number]
    demo.load(guard(fill), None, outputs, **quiet).then(guard(answer), asked, result, concurrency_limit=2, **quiet)
    frame.timer.tick(guard(poll, polled=True), None, [moving, papers], **quiet)
    plugin.input(guard(chose), plugin, strength, **quiet).then(None, kept, None, js=MARK)
    strength.release(None, kept, None, js=MARK)
    drop.change(guard(dropped), drop, run, **quiet)
    run.click(guard(queue), [drop, plugin, strength], [drop, run], **quiet).then(
        guard(poll), None, [moving, papers], **quiet
    )
    for event in (say.click, text.submit):
        event(guard(answer), asked, result, concurrency_limit=2, **quiet).then(None, kept, None, js=MARK)
    for place in (moving, papers):
        place.act(guard(act), None, None, **quiet).then(guard(poll), None, [moving, papers], **quiet)


def _documents(service: Service, kind: type[Documents]) -> Any:
    """The documents of the store, which is opened when a page is first asked for."""
    return lambda: kind(service.store, service.settings)


def _choices(service: Service, project: ProjectRow) -> list[tuple[str, int]]:
    """The project's plugins whose bundles are there, older versions by their numbers."""
    found = []
    for one in service.library.versions(project.id):
        for row in one.rows:
            name = (
                one.name if row is one.newest else tr("{name}, version {number}", name=one.name, number=one.number(row))
            )
            if row.exists:
                found.append((name, row.id))
    return found


def _wanted_plugin(service: Service, project: ProjectRow, told: str) -> PluginRow | None:
    """The plugin that the address names; the project's default where it names none."""
    if told == "0":
        return None
    rows = service.store.plugins.list(project.id)
    named = next((row for row in rows if str(row.id) == told and row.exists), None)
    return named or service.store.defaults.get(project.id)


def _strength(request: gr.Request) -> float:
    try:
        return min(1.0, max(0.0, float(request.query_params.get("strength", 1))))
    except ValueError:
        return 1.0


def _plugin(service: Service, chosen: int | None) -> PluginRow | None:
    return service.store.plugins.get(int(chosen)) if chosen else None


def _pair(project: ProjectRow) -> str:
    base = project.base.rstrip("/").rsplit("/", 1)[-1]
    return esc(f"{pair_said(project.source, project.target)} · {tr('base {name}', name=base)}")


def _answers(
    service: Service, project: ProjectRow, lines: list[str], chosen: int | None, share: float
) -> Iterator[tuple[str, str]]:
    """(translation, doubt) of each line, as they are made: as a document of these lines is translated."""
    from engine.decoding.options import Decoding
    from engine.documents import BaseTranslator, Finished, Unit, translate_units
    from engine.documents.model import text_of
    from engine.progress import Progress

    base = service.base_model(project)
    row = _plugin(service, chosen)
    loaded = service.plugin(row, base) if row else None
    strength = float(share) if row else 1.0
    decoding = Decoding.from_mapping(loaded.card.get("decoding", {})) if loaded and strength else None
    translator = BaseTranslator(base, loaded, strength, decoding)
    finished = Finished(None, "")
    for line in lines:
        if not line.strip():
            yield "", ""
            continue
        (result,) = translate_units([Unit([line])], translator, finished, Progress())
        yield text_of(result.parts), result.doubt
