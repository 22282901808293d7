"""The preview of the page Translate: a translated document, segment by segment, editable in place."""

from __future__ import annotations

import gradio as gr

from engine.core.numerals import whole_number
from engine.errors import InputError, TailorError
from engine.jobs.handlers.documents import TranslatedDocument
from engine.store import ProjectRow
from studio.components.documents_table import segments_card
from studio.components.editor import EDIT, Editor
from studio.components.html import html_block
from studio.components.layout import HEAVY, handle_errors, in_turn, requested_project
from studio.components.templating import script
from studio.pages import Values
from studio.services.document_segments import documents_of, edit_document
from studio.services.service import Service


class DocumentPreview:
    """A card with a page of segments; empty until a document is selected or named in the address."""

    def __init__(self, service: Service, editor: Editor) -> None:
        self.service, self.editor = service, editor

    def layout(self) -> None:
        self.card = html_block(script=script("translate-preview.js") + EDIT)

    def events(self) -> None:
        saved = [self.editor.reply, self.editor.count]
        self.card.leaf(handle_errors(self.change_page), None, self.card, **in_turn("documents"))
        self.card.save(handle_errors(self.save, heavy=True), None, saved, trigger_mode="multiple", **HEAVY)

    def project_document(self, project: ProjectRow, job: int) -> TranslatedDocument:
        """The document of that job. Raises InputError if it belongs to another project."""
        document = documents_of(self.service).get(job)
        if document.job.project_id != project.id:
            raise InputError("This document belongs to another project. Reload the page.")
        return document

    def requested(self, project: ProjectRow, number: object) -> str:
        """The preview of the document named in the address; empty if it names none."""
        try:
            document = self.project_document(project, whole_number(number) or 0) if number else None
        except TailorError:
            return ""
        return segments_card(document, project) if document else ""

    def act(self, request: gr.Request, event: gr.EventData) -> Values:
        """Cancel, resume, delete or preview a document."""
        project, job = self.service.need(requested_project(request)), int(event.job)
        document = self.project_document(project, job)
        if event.act == "preview":
            return {self.card: segments_card(document, project)}
        if event.act in ("cancel", "resume", "delete"):
            getattr(documents_of(self.service), event.act)(job)
        return {self.card: "" if event.act == "delete" else gr.skip()}

    def change_page(self, request: gr.Request, event: gr.EventData) -> Values:
        """Show another page of the preview, or close it."""
        project, job = self.service.need(requested_project(request)), int(event.job)
        return {self.card: segments_card(self.project_document(project, job), project, int(event.offset)) if job else ""}

    def save(self, request: gr.Request, event: gr.EventData) -> Values:
        """Save an edited segment in the document and, on request, in the samples."""
        self.project_document(self.service.need(requested_project(request)), int(event.document))
        edit_document(self.service, int(event.document), int(event.segment), str(event.translation))
        if event.learn:
            return self.editor.learn(request, event)
        return {self.editor.reply: self.editor.done(event), self.editor.count: gr.skip()}
