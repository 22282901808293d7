"""The form that adds files or bundled samples to a project and sets how all of them are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.store import ProjectRow
from studio.components.choosers import CHOOSE, sample_cards
from studio.components.file_fields import drop_field, path_field
from studio.components.html import html_block, quiet_line
from studio.components.import_options import ImportOptions
from studio.components.import_status import job_line
from studio.components.layout import HEAVY, QUIET, handle_errors, requested_project
from studio.components.new_project_form import chosen_corpora
from studio.components.settings_fields import COLLECTED
from studio.i18n.translate import tr
from studio.services.catalog import language_name
from studio.services.new_project import labels_of
from studio.services.service import Service
from studio.services.uploads import RefusedError, paths_offered, server_files


class MoreFilesForm:
    """The form in a column of the page Samples, visible if a project is selected; `status` shows its jobs."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.options = ImportOptions()

    def layout(self) -> None:
        """Lay out the fields."""
        with gr.Column(visible=False, elem_classes="tm-more-files") as self.column:
            quiet_line("Add more files to this project. All files are then read again.")
            self.files = drop_field("Add files", 120)
            with gr.Row(elem_classes="tm-path"):
                self.path = path_field(self.service.settings)
                offered = paths_offered(self.service.settings)
                self.add = gr.Button("Add", size="sm", scale=0, min_width=80, visible=offered)
            with gr.Accordion("Add a bundled sample", open=False, elem_classes="tm-advanced"):
                self.samples = html_block(script=CHOOSE)
            with gr.Accordion("How files are read", open=False, elem_classes="tm-advanced"):
                self.options.layout()
                self.read_again = gr.Button("Read again with these settings", size="sm", scale=0)

    def events(self, status: Any) -> None:
        """Wire the fields; `status` is the component that shows the queued jobs."""
        self.status = status
        self.samples.choose(handle_errors(self.add_samples, heavy=True), None, [self.samples, status], **HEAVY)
        self.files.upload(handle_errors(self.add_files, heavy=True), self.files, [self.files, status], **HEAVY)
        self.add.click(handle_errors(self.add_path, heavy=True), self.path, [self.path, status], **HEAVY)
        self.read_again.click(handle_errors(self.read_with_options), self.options.values, status, js=COLLECTED, **QUIET)

    @property
    def filled(self) -> list[Any]:
        """The components that `fill` sets."""
        return [self.column, self.samples, self.options.fields]

    def fill(self, project: ProjectRow) -> dict[Any, Any]:
        """The form for a project."""
        return {
            self.column: gr.update(visible=True),
            self.samples: self._samples_offered(project),
            **self.options.fill(self.service.import_options(project.id)),
        }

    def add_samples(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Add the bundled corpus that was clicked."""
        project = self.service.need(requested_project(request))
        corpora = chosen_corpora(self.service, event)
        files = [file for corpus in corpora for file in corpus.files]
        job = self.service.add_samples(project, files, labels_of(corpora))
        return {self.status: job_line(job), self.samples: self._samples_offered(project)}

    def add_files(self, files: list[str] | None, request: gr.Request) -> dict[Any, Any]:
        """Add uploaded files."""
        return {self.files: None, **self._add(self.service.need(requested_project(request)), files or [])}

    def add_path(self, path: str, request: gr.Request) -> dict[Any, Any]:
        """Add a file, or the files of a folder, on the server."""
        project = self.service.need(requested_project(request))
        return {self.path: "", **self._add(project, server_files(path or "", self.service.settings))}

    def _add(self, project: ProjectRow, files: Sequence[str | Path]) -> dict[Any, Any]:
        """Queue the files; if all are refused, the page's list of unread files reports them."""
        try:
            return {self.status: job_line(self.service.add_samples(project, files))}
        except RefusedError:
            return {self.status: gr.skip()}

    def read_with_options(self, request: gr.Request, options: str) -> dict[Any, Any]:
        """Read all files again with the settings of the form."""
        project = self.service.need(requested_project(request))
        self.service.set_import_options(project.id, self.options.changed(options))
        return {self.status: job_line(self.service.read_again(project))}

    def _samples_offered(self, project: ProjectRow) -> str:
        """Bundled corpora in the project's target language that it does not contain yet and whose licence is accepted."""
        names = {file.name for file in self.service.sample_files(project.id)}
        corpora = [
            corpus
            for corpus in self.service.catalog.samples()
            if corpus.target == project.target
            and self.service.catalog.accepted(corpus.card, corpus.files[0].parent)
            and not any(file.name in names for file in corpus.files)
        ]
        title = tr("In {language}; each file becomes its own domain.", language=language_name(project.target))
        return sample_cards(corpora, title)
