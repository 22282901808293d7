"""The page Translate: a document in, the same document out in the other language; and a box for a short text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from engine.corpora.formats.documents.model import DocumentError
from engine.corpora.language import plainly_other
from engine.errors import CorpusError, InputError, StorageError, TransientError
from engine.jobs.handlers.documents import Documents
from engine.store import ProjectRow
from studio.components.base_note import add_base_note
from studio.components.documents_table import at_work, done_table, no_project, result_box, segments_card
from studio.components.editor import EDIT, Editor
from studio.components.file_fields import drop_field, large_files, reasons_of
from studio.components.html import esc, gated, shown_if, view, visible_if
from studio.components.import_report import unread_card
from studio.components.layout import HEAVY, LAST, MODEL, QUIET, StudioPage, guard, heading, in_turn, page, wanted
from studio.components.templating import script
from studio.i18n.translate import tr
from studio.pages.translate_preview import DocumentPreview
from studio.services.catalog import language_pair_text
from studio.services.document_segments import documents_of
from studio.services.service import Service
from studio.services.terminology import project_terms
from studio.services.translation import (
    MOST,
    Sentence,
    lines_of,
    plugin_choices,
    plugin_of,
    translate_lines,
    wanted_plugin,
)

TEXT = "Drop a document and get it back with its layout, or type a short text."
FORMATS = '<p class="tm-quiet tm-formats">Word, PowerPoint, Excel, OpenDocument, XLIFF, PO, SRT, WebVTT, HTML, Markdown, text</p>'
ACT = script("job-act.js")
REFUSED = "documents"  # the kind of the files that were not taken
# What was chosen and typed stands in the address, so that a reload or a link shows it again.
MARK = script("translate-mark.js")


class TranslatePage(StudioPage):
    """/translate: documents that are queued as jobs, and a short text that is translated at once."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        super().__init__(demo, service)
        self.editor = Editor(service)
        self.preview = DocumentPreview(service, self.editor)

    def layout(self) -> None:
        """The components."""
        with page(self.demo, self.service, "translate", "Translate", TEXT) as self.frame:
            with self.frame.actions:
                self.run = gr.Button("Translate documents", variant="primary", interactive=False)
            add_base_note(self.demo, self.service)
            self.nothing = view()
            with gated(gr.Column, elem_classes="tm-stack tm-translate") as self.form:
                with gr.Row(elem_classes="tm-card tm-pad tm-fields tm-with"):
                    self.plugin = gr.Dropdown([], label="Translate with", interactive=True, scale=3, min_width=240)
                    self.strength = gr.Slider(
                        0, 1, 1, step=0.05, label="Strength", interactive=True, scale=2, min_width=200
                    )
                    self.terms = gr.Checkbox(True, label="Enforce terminology", container=False, visible=False)
                    self.pair = view(classes="tm-quiet tm-right")
                with gr.Row(equal_height=True, elem_classes="tm-split tm-desk"):
                    with gr.Column(scale=2, min_width=260):
                        self.files = drop_field("Documents", 190)
                        view(FORMATS)
                    with gr.Column(scale=5, min_width=420, elem_classes="tm-card tm-pad tm-stack"):
                        self._lay_out_text()
            self.large = large_files()
            self.refused = view(script=script("samples-change.js"))
            self.at_work = view(script=ACT)
            self.done = view(script=ACT)
            self.preview.layout()
            self.project = gr.Textbox("", visible="hidden")

    def _lay_out_text(self) -> None:
        with gr.Row(elem_classes="tm-pairs", equal_height=True):
            self.text = gr.Textbox(
                label="Text", show_label=False, placeholder="Or type a short text here", lines=7, max_lines=12,
                container=False, elem_classes="tm-text",
            )  # fmt: skip
            self.result = view(classes="tm-answer", script=EDIT)
        with gr.Row(elem_classes="tm-below"):
            self.translate = gr.Button("Translate text", size="sm", min_width=120, scale=0)
            view('<p class="tm-quiet">Shift + Enter</p>')
            self.editor.layout()

    def events(self) -> None:
        """What calls which method."""
        text = [self.text, self.plugin, self.strength, self.terms]
        marked = [self.project, self.plugin, self.strength, self.text]
        tables = [self.at_work, self.done]
        shown = [self.terms, self.pair, self.result, self.preview.card, self.editor.count]
        everything = [self.frame.title, self.nothing, self.form, *marked, *shown, self.refused, *tables]
        poll, answer = guard(self.poll), guard(self.answer)
        self.demo.load(guard(self.fill), None, everything, **QUIET).then(answer, text, self.result, **MODEL)
        self.frame.timer.tick(guard(self.poll, polled=True), None, tables, **QUIET)
        self.plugin.input(guard(self.choose), self.plugin, self.strength, **LAST).then(None, marked, None, js=MARK)
        self.strength.release(None, marked, None, js=MARK)
        self.files.change(guard(self.drop), self.files, self.run, **QUIET)
        self.run.click(
            guard(self.queue, heavy=True), [self.files, self.plugin, self.strength, self.terms],
            [self.files, self.run, self.refused], **HEAVY,
        ).then(poll, None, tables, **QUIET)  # fmt: skip
        self.large.refuse(guard(self.refuse), None, self.refused, **in_turn("documents"))
        self.refused.dismiss(guard(self.dismiss), None, self.refused, **in_turn("documents"))
        for event in (self.translate.click, self.text.submit):
            event(answer, text, self.result, **MODEL).then(None, marked, None, js=MARK)
        for table in tables:
            table.act(guard(self.act), None, self.preview.card, **in_turn("documents")).then(
                poll, None, tables, **QUIET
            )
        self.preview.events()
        self.editor.events(self.result, self.preview.card)

    @property
    def documents(self) -> Documents:
        """The documents of the store, which is opened when a page is first asked for."""
        return documents_of(self.service)

    def fill(self, request: gr.Request) -> dict[Any, Any]:
        """The page for the project, plugin, strength and text of its address."""
        service, asked = self.service, request.query_params
        project = service.project(wanted(request))
        values = {self.frame.title: heading("Translate", TEXT), self.form: shown_if(project is not None)}
        if project is None:
            return (
                values
                | {self.nothing: no_project(), self.project: ""}
                | dict.fromkeys((self.refused, self.at_work, self.done), "")
            )
        chosen = wanted_plugin(service, project, str(asked.get("plugin", "")))
        choices = [(tr("base alone"), 0), *plugin_choices(service, project)]
        base = Path(project.base).name
        return values | {
            self.nothing: "",
            self.plugin: gr.update(choices=choices, value=chosen.id if chosen else 0),
            self.strength: gr.update(value=_strength(request), visible=visible_if(chosen is not None)),
            self.terms: gr.update(visible=visible_if(bool(project_terms(service, project)))),
            self.pair: esc(f"{language_pair_text(project.source, project.target)} · {tr('base {name}', name=base)}"),
            self.text: str(asked.get("text", ""))[:MOST],
            self.result: result_box([], project),
            self.preview.card: self.preview.asked(project, asked.get("document")),
            self.editor.count: self.editor.counted(project),
            self.project: str(project.id),
            **self._refused(project),
            **self._tables(project),
        }

    def _tables(self, project: ProjectRow) -> dict[Any, Any]:
        documents = self.documents.list(project.id)
        running = next(iter(self.service.store.jobs.list(states=("running",))), None)
        return {self.at_work: at_work(documents, running, project), self.done: done_table(documents, project)}

    def poll(self, request: gr.Request) -> dict[Any, Any]:
        """The documents, as far as they are."""
        project = self.service.project(wanted(request))
        return {self.at_work: gr.skip(), self.done: gr.skip()} if project is None else self._tables(project)

    def choose(self, plugin: int | None) -> dict[Any, Any]:
        """A plugin has a strength, the base alone has none."""
        return {self.strength: gr.update(visible=visible_if(bool(plugin)))}

    def drop(self, files: list[str] | None) -> dict[Any, Any]:
        """Documents can be translated once there are some."""
        return {self.run: gr.update(interactive=bool(files))}

    def queue(
        self, request: gr.Request, files: list[str] | None, plugin: int | None, strength: float, enforce: bool
    ) -> dict[Any, Any]:
        """Queue the documents that were dropped; those that cannot be translated are listed with the reason. Raises
        InputError where none was dropped.
        """
        project = self.service.need(wanted(request))
        if not files:
            raise InputError("Drop a document first.")
        row, terms = plugin_of(self.service, plugin), self.terms_of(project, enforce)
        paths, reasons = [Path(file) for file in files], {}
        for path in paths:
            try:
                self.documents.add(project, path, plugin=row, strength=float(strength) if row else 1.0, terms=terms)
            except (CorpusError, DocumentError, StorageError, TransientError) as error:
                reasons[path.name] = error.message.naming(str(path), path.name)
        self.service.refuse(project.id, reasons, REFUSED, [path.name for path in paths])
        return {self.files: gr.update(value=None), self.run: gr.update(interactive=False), **self._refused(project)}

    def refuse(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Documents that are too large are listed with the others that cannot be translated."""
        project = self.service.need(wanted(request))
        self.service.refuse(project.id, reasons_of(event, self.service.settings), REFUSED)
        return self._refused(project)

    def dismiss(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Say no more that a document was refused."""
        project = self.service.need(wanted(request))
        self.service.dismiss(project, str(event.name), REFUSED)
        return self._refused(project)

    def _refused(self, project: ProjectRow) -> dict[Any, Any]:
        return {self.refused: unread_card({}, refused=self.service.refused(project.id, REFUSED))}

    def act(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Cancel, resume, delete or preview a document."""
        project, job = self.service.need(wanted(request)), int(event.job)
        document = self.preview.own(project, job)
        if event.act == "preview":
            return {self.preview.card: segments_card(document, project)}
        if event.act in ("cancel", "resume", "delete"):
            getattr(self.documents, event.act)(job)
        return {self.preview.card: "" if event.act == "delete" else gr.skip()}

    def terms_of(self, project: ProjectRow, enforce: bool) -> str:
        """The project's terms, where they are to be enforced."""
        return project_terms(self.service, project) if enforce else ""

    def answer(
        self, request: gr.Request, text: str, plugin: int | None, strength: float, enforce: bool
    ) -> Iterator[dict[Any, Any]]:
        """The translation of a short text, line by line."""
        project = self.service.need(wanted(request))
        lines, waiting = lines_of(text), tr("Translating")
        yield {self.result: result_box([], project, wait=waiting if lines else "")}
        row, terms = plugin_of(self.service, plugin), self.terms_of(project, enforce)
        by: dict[str, Any] = {"plugin": row.id if row else 0, "strength": float(strength)}
        done: list[list[Sentence]] = []
        for sentences in translate_lines(self.service, project, lines, row, float(strength), terms):
            done.append(sentences)
            more = len(done) < len(lines)
            if sentences or not more:
                yield {self.result: result_box(done, project, wait=waiting if more else "", **by)}
        if other := plainly_other(" ".join(lines), project.source, project.target):
            yield {self.result: result_box(done, project, other=other, **by)}


def _strength(request: gr.Request) -> float:
    try:
        return min(1.0, max(0.0, float(request.query_params.get("strength", 1))))
    except ValueError:
        return 1.0


build = TranslatePage.build
