"""The page Translate: documents translated with their layout kept, and a box for a short text."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from engine.corpora.formats.documents.model import DocumentError
from engine.errors import CorpusError, InputError, StorageError, TransientError
from engine.jobs.handlers.documents import Documents
from engine.store import ProjectRow
from studio.components.base_note import add_base_note
from studio.components.documents_table import at_work, done_table, no_project, result_box
from studio.components.editor import Editor
from studio.components.file_fields import drop_field
from studio.components.html import esc, hidden_text, html_block, toggle_value, toggled, visible_if
from studio.components.layout import HEAVY, LAST, MODEL, QUIET, StudioPage, handle_errors, heading, in_turn, page, requested_project
from studio.components.templating import script
from studio.i18n.translate import tr
from studio.pages import Values
from studio.pages.translate_preview import DocumentPreview
from studio.pages.translate_refused import RefusedDocuments
from studio.pages.translate_text import ShortText, terms_of
from studio.services.catalog import language_pair_text
from studio.services.document_segments import documents_of
from studio.services.service import Service
from studio.services.terminology import project_terms
from studio.services.translation import MOST, plugin_choices, plugin_of, strength_of, wanted_plugin

TEXT = "Drop a document and get it back with its layout, or type a short text."
FORMATS = "Word, PowerPoint, Excel, OpenDocument, XLIFF, PO, SRT, WebVTT, HTML, Markdown, text"
ACT = script("job-act.js")
# Keeps the selection and the text in the address, so that reloads and links restore them.
MARK = script("translate-mark.js")


class TranslatePage(StudioPage):
    """/translate: documents queued as jobs, and a short text translated at once."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        super().__init__(demo, service)
        self.editor = Editor(service)
        self.preview = DocumentPreview(service, self.editor)
        self.short = ShortText(service, self.editor)
        self.refused = RefusedDocuments(service)

    def layout(self) -> None:
        """Create the components."""
        with page(self.demo, self.service, "translate", "Translate", TEXT) as self.frame:
            with self.frame.actions:
                self.run = gr.Button("Translate documents", variant="primary", interactive=False)
            add_base_note(self.frame, self.service)
            self.nothing = html_block()
            with toggled(gr.Column, elem_classes="tm-stack tm-translate") as self.form:
                with gr.Row(elem_classes="tm-card tm-pad tm-fields tm-with"):
                    self.plugin = gr.Dropdown([], label="Translate with", interactive=True, scale=3, min_width=240)
                    self.strength = gr.Slider(0, 1, 1, step=0.05, label="Strength", interactive=True, scale=2, min_width=200)
                    self.terms = gr.Checkbox(True, label="Enforce terminology", container=False, visible=False)
                    self.pair = html_block(classes="tm-quiet tm-right")
                with gr.Row(equal_height=True, elem_classes="tm-split tm-desk"):
                    with gr.Column(scale=2, min_width=260):
                        self.files = drop_field("Documents", 190)
                        html_block(FORMATS, classes="tm-quiet tm-formats")
                    with gr.Column(scale=5, min_width=420, elem_classes="tm-card tm-pad tm-stack"):
                        self.short.layout()
            self.refused.layout()
            self.at_work = html_block(script=ACT)
            self.done = html_block(script=ACT)
            self.preview.layout()
            self.project = hidden_text()

    def events(self) -> None:
        """Wire the events."""
        text = [self.short.text, self.plugin, self.strength, self.terms]
        marked = [self.project, self.plugin, self.strength, self.short.text]
        tables = [self.at_work, self.done]
        outputs = [self.terms, self.pair, self.short.result, self.preview.card, self.editor.count]
        everything = [self.frame.title, self.nothing, self.form, *marked, *outputs, self.refused.card, *tables]
        poll, answer = handle_errors(self.poll), handle_errors(self.short.answer)
        self.demo.load(handle_errors(self.fill), None, everything, **QUIET).then(answer, text, self.short.result, **MODEL)
        self.frame.timer.tick(handle_errors(self.poll, polled=True), None, tables, **QUIET)
        self.plugin.input(handle_errors(self.choose), self.plugin, self.strength, **LAST).then(None, marked, None, js=MARK)
        self.strength.release(None, marked, None, js=MARK)
        self.files.change(handle_errors(self.drop), self.files, self.run, **QUIET)
        self.run.click(
            handle_errors(self.queue, heavy=True), [self.files, self.plugin, self.strength, self.terms],
            [self.files, self.run, self.refused.card], **HEAVY,
        ).then(poll, None, tables, **QUIET)  # fmt: skip
        self.refused.events()
        for event in (self.short.translate.click, self.short.text.submit):
            event(answer, text, self.short.result, **MODEL).then(None, marked, None, js=MARK)
        for table in tables:
            table.act(handle_errors(self.preview.act), None, self.preview.card, **in_turn("documents")).then(
                poll, None, tables, **QUIET
            )
        self.preview.events()
        self.editor.events(self.short.result, self.preview.card)

    @property
    def documents(self) -> Documents:
        """Operations on the documents of the store, which is opened on first use."""
        return documents_of(self.service)

    def fill(self, request: gr.Request) -> Values:
        """Fill the page for the project, plugin, strength and text in its address."""
        service, parameters = self.service, request.query_params
        project = service.project(requested_project(request))
        values = {self.frame.title: heading("Translate", TEXT), self.form: toggle_value(project is not None)}
        if project is None:
            return (
                values
                | {self.nothing: no_project(), self.project: ""}
                | dict.fromkeys((self.refused.card, self.at_work, self.done), "")
            )
        chosen = wanted_plugin(service, project, str(parameters.get("plugin", "")))
        choices = [(tr("base alone"), 0), *plugin_choices(service, project)]
        base = Path(project.base).name
        return values | {
            self.nothing: "",
            self.plugin: gr.update(choices=choices, value=chosen.id if chosen else 0),
            self.strength: gr.update(value=strength_of(parameters.get("strength")), visible=visible_if(chosen is not None)),
            self.terms: gr.update(visible=visible_if(bool(project_terms(service, project)))),
            self.pair: esc(f"{language_pair_text(project.source, project.target)} · {tr('base {name}', name=base)}"),
            self.short.text: str(parameters.get("text", ""))[:MOST],
            self.short.result: result_box([], project),
            self.preview.card: self.preview.requested(project, parameters.get("document")),
            self.editor.count: self.editor.counted(project),
            self.project: str(project.id),
            **self.refused.listed(project.id),
            **self._tables(project),
        }

    def _tables(self, project: ProjectRow) -> Values:
        documents = self.documents.list(project.id)
        running = next(iter(self.service.store.jobs.list(states=("running",))), None)
        return {self.at_work: at_work(documents, running, project), self.done: done_table(documents, project)}

    def poll(self, request: gr.Request) -> Values:
        """Refresh the documents and their progress."""
        project = self.service.project(requested_project(request))
        return {self.at_work: gr.skip(), self.done: gr.skip()} if project is None else self._tables(project)

    def choose(self, plugin: int | None) -> Values:
        """Show the strength for a plugin and hide it for the base alone."""
        return {self.strength: gr.update(visible=visible_if(bool(plugin)))}

    def drop(self, files: list[str] | None) -> Values:
        """Enable the button if there are documents."""
        return {self.run: gr.update(interactive=bool(files))}

    def queue(self, request: gr.Request, files: list[str] | None, plugin: int | None, strength: float, enforce: bool) -> Values:
        """Queue the dropped documents; those that cannot be translated are listed with the reason. Raises InputError without
        documents.
        """
        project = self.service.need(requested_project(request))
        if not files:
            raise InputError("Drop a document first.")
        row, terms = plugin_of(self.service, plugin), terms_of(self.service, project, enforce)
        paths, reasons = [Path(file) for file in files], {}
        for path in paths:
            try:
                self.documents.add(project, path, plugin=row, strength=float(strength) if row else 1.0, terms=terms)
            except (CorpusError, DocumentError, StorageError, TransientError) as error:
                reasons[path.name] = error.message.naming(str(path), path.name)
        refused = self.refused.add(project.id, reasons, [path.name for path in paths])
        return {self.files: gr.update(value=None), self.run: gr.update(interactive=False), **refused}


build = TranslatePage.build
