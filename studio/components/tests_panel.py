"""The panel of the page Samples for test files: the files, and their overlap with the samples."""

from __future__ import annotations

from typing import Any

import gradio as gr

from engine.corpora.leakage import TEST_FOLDER
from engine.store import ProjectRow
from studio.components.html import card_title, html_block
from studio.components.import_report import leak_card
from studio.components.import_status import job_line
from studio.components.layout import HEAVY, handle_errors, in_turn, requested_project
from studio.services.service import Service
from studio.services.uploads import RefusedError


class TestFilesPanel:
    """The panel: `files` lists the test files; the page's `status` shows the comparison with the samples."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def layout(self, script: str) -> None:
        """Lay out the panel; `script` triggers the events of the list."""
        with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
            card_title("Test files")
            self.files = html_block(script=script)
            self.add = gr.UploadButton("Check test-set overlap…", file_count="multiple", size="sm")

    def events(self, status: Any) -> None:
        """Wire the panel."""
        self.status = status
        self.add.upload(handle_errors(self.add_files, heavy=True), self.add, [self.files, status], **HEAVY)
        self.files.untest(handle_errors(self.remove_file), None, status, **in_turn("samples"))
        self.files.dismiss(handle_errors(self.dismiss), None, self.files, **in_turn("samples"))

    def files_html(self, project: ProjectRow) -> str:
        """The list of test files as HTML."""
        names = [file.name for file in self.service.test_files(project.id)]
        refused = self.service.refused(project.id, TEST_FOLDER)
        return leak_card(self.service.leaks(project.id), names, project.id, refused)

    def add_files(self, files: list[str] | None, request: gr.Request) -> dict[Any, Any]:
        """Add test files."""
        project = self.service.need(requested_project(request))
        try:
            return {self.status: job_line(self.service.add_tests(project, files or [])), self.files: self.files_html(project)}
        except RefusedError:
            return {self.status: gr.skip(), self.files: self.files_html(project)}

    def remove_file(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Remove a test file."""
        return {self.status: job_line(self.service.remove_test(self.service.need(requested_project(request)), str(event.name)))}

    def dismiss(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Remove a file from the list of refused files."""
        project = self.service.need(requested_project(request))
        self.service.dismiss(project, str(event.name), TEST_FOLDER)
        return {self.files: self.files_html(project)}
