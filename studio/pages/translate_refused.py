"""The documents on the page Translate that could not be queued, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import gradio as gr

from engine.messages import Message
from studio.components.file_fields import large_files, reasons_of
from studio.components.html import html_block
from studio.components.import_report import unread_card
from studio.components.layout import handle_errors, in_turn, requested_project
from studio.components.templating import script
from studio.pages import Values
from studio.services.service import Service

KIND = "documents"  # kind under which refused files are recorded


class RefusedDocuments:
    """The list of documents that could not be queued; it is kept until each is dismissed."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def layout(self) -> None:
        """Create the components."""
        self.large = large_files()
        self.card = html_block(script=script("samples-change.js"))

    def events(self) -> None:
        """Wire the events."""
        self.large.refuse(handle_errors(self.refuse), None, self.card, **in_turn("documents"))
        self.card.dismiss(handle_errors(self.dismiss), None, self.card, **in_turn("documents"))

    def listed(self, project_id: int) -> Values:
        """The card with the documents refused so far."""
        return {self.card: unread_card({}, refused=self.service.refused(project_id, KIND))}

    def add(self, project_id: int, reasons: Mapping[str, Message], names: Sequence[str] = ()) -> Values:
        """Record documents by name with the reason; `names` are all that were dropped, which replace earlier entries."""
        self.service.refuse(project_id, reasons, KIND, names)
        return self.listed(project_id)

    def refuse(self, request: gr.Request, event: gr.EventData) -> Values:
        """List documents that are too large."""
        project = self.service.need(requested_project(request))
        return self.add(project.id, reasons_of(event, self.service.settings))

    def dismiss(self, request: gr.Request, event: gr.EventData) -> Values:
        """Remove a document from the list."""
        project = self.service.need(requested_project(request))
        self.service.dismiss(project, str(event.name), KIND)
        return self.listed(project.id)
