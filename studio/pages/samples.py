"""The page Samples: add sentences, see which were kept or skipped and why, and decide on individual ones."""

from __future__ import annotations

import gradio as gr

from engine.errors import InputError
from engine.store import JobRow, ProjectRow
from studio.components.file_fields import large_files, reasons_of
from studio.components.html import hidden_text, html_block
from studio.components.import_report import files_card, side_cards, unread_card
from studio.components.import_status import is_reading, job_line, next_link, summary, translations_card
from studio.components.layout import QUIET, StudioPage, handle_errors, heading, in_turn, page, requested_project
from studio.components.more_files_form import MoreFilesForm
from studio.components.new_project_form import NewProjectForm
from studio.components.templating import script
from studio.components.tests_panel import TestFilesPanel
from studio.pages import Values
from studio.pages.samples_sentences import SentenceBrowser
from studio.services.files import JsonRow
from studio.services.segments import View
from studio.services.service import Service
from studio.services.uploads import all_refused

TEXT = "Sentences in the style you want, in the target language, with translations where you have them."
CHANGE = script("samples-change.js")
ACT = script("job-act.js")


class SamplesPage(StudioPage):
    """/samples: the form for a new project, or the files, sentences and test files of an existing one."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        super().__init__(demo, service)
        self.new_project = NewProjectForm(service)
        self.more_files = MoreFilesForm(service)
        self.tests = TestFilesPanel(service)
        self.browser = SentenceBrowser(service)

    def layout(self) -> None:
        with page(self.demo, self.service, "samples", "Samples", TEXT) as self.frame:
            with self.frame.actions:
                self.next_step = html_block()
                self.read = gr.Button("Read samples", variant="primary", visible=False)
            self.new_project.layout()
            self.large = large_files()
            self.status = html_block(script=ACT)
            self.files = html_block(script=CHANGE)
            with gr.Row(visible=False, elem_classes="tm-split tm-samples") as self.sentences:
                with gr.Column(scale=5, min_width=420, elem_classes="tm-stack"):
                    self.browser.layout()
                with gr.Column(scale=2, min_width=250, elem_classes="tm-stack"):
                    self.side = html_block()
                    self.tests.layout(CHANGE)
            self.more_files.layout()
            self.version = hidden_text()

    def events(self) -> None:
        form = self.new_project
        head = [self.frame.title, self.next_step, self.status, self.files, self.sentences]
        state = [*head, *self.browser.shown, self.side, self.tests.files, self.version]
        outputs = [*state, self.browser.query, self.read, *form.filled, *self.more_files.filled]
        self.demo.load(handle_errors(self.fill), form.base, outputs, **QUIET).then(
            handle_errors(form.refresh_bases), None, [form.base, *form.of_base], **QUIET
        )
        self.frame.timer.tick(handle_errors(self.poll, polled=True), [self.browser.query, self.version], state, **QUIET)
        form.events(self.read)
        self.more_files.events(self.status)
        self.tests.events(self.status)
        changed = [self.files, self.status]
        self.files.remove(handle_errors(self.remove_file), None, changed, **in_turn("samples"))
        self.files.dismiss(handle_errors(self.dismiss), None, changed, **in_turn("samples"))
        self.files.restore(handle_errors(self.restore_file), None, changed, **in_turn("samples"))
        self.large.refuse(handle_errors(self.refuse), None, changed, **in_turn("samples"))
        self.files.again(handle_errors(self.read_again), None, changed, **QUIET)
        self.files.relabel(handle_errors(self.label_file), None, self.status, **in_turn("samples"))
        self.status.act(handle_errors(self.act_on_job), None, self.status, **in_turn("samples"))
        self.browser.decisions.again(handle_errors(self.read_again), None, changed, **QUIET)
        self.browser.events(self.files, self.tests.files)

    # -- what the page shows

    def fill(self, request: gr.Request, base: str | None) -> Values:
        project = self.service.project(requested_project(request))
        if project is None:
            return {
                self.frame.title: heading("Samples", TEXT),
                self.read: gr.update(visible=True),
                **self.new_project.fill(request, base),
            }
        view = View.of(dict(request.query_params))
        query = view.query(at=view.at)
        return {
            **self._state(project),
            **self._sentences(project, query),
            self.version: self.service.sentences_version(project.id),
            self.browser.query: query,
            **self.more_files.fill(project),
        }

    def poll(self, request: gr.Request, query: str, version: str) -> Values:
        """Update the state; sentences are resent only if something has changed, so that users keep their position."""
        project = self.service.project(requested_project(request))
        if project is None:
            return {self.version: gr.skip()}
        state, now = self._state(project), self.service.sentences_version(project.id)
        return state if now == version else {**state, **self._sentences(project, query), self.version: now}

    def _state(self, project: ProjectRow) -> Values:
        """The heading, the state of the import, the files, and the next step."""
        service = self.service
        job, report = service.reading(project.id), service.report(project.id)
        busy = is_reading(job)
        return {
            self.frame.title: heading("Samples", summary(report, project) if report else TEXT),
            self.next_step: next_link(project) if report and not busy else "",
            self.status: job_line(job, bool(report)),
            self.files: self._files(project, report, job),
            self.sentences: gr.update(visible=bool(report)),
        }

    def _files(self, project: ProjectRow, report: JsonRow, job: JobRow | None) -> str:
        """Unread files, the note on translations, and the files; `job` is the last import."""
        service, busy = self.service, is_reading(job)
        failed = job is not None and job.state == "failed"  # its card then offers to read again
        leaked = int(service.leaks(project.id).get("samples", 0))
        sentences, _, with_source, _ = service.counted(project.id)
        unread, removed = service.unread_files(project.id, busy=busy), service.removed_samples(project.id)
        changed = not failed and not service.reading_files(project.id) and service.files_changed(project.id)
        return (
            unread_card(unread, removed, service.refused(project.id), changed=changed)
            + (translations_card(sentences, with_source) if report and not busy else "")
            + files_card(report, project.target, service.labels(project.id), project.id, leaked, removed)
        )

    def _sentences(self, project: ProjectRow, query: str) -> Values:
        """The decisions, the sentences, the figures next to them, and the test files."""
        report = self.service.report(project.id)
        if not report:
            return {}
        side, tests = side_cards(report), self.tests.files_html(project)
        return {**self.browser.listed(project, query), self.side: side, self.tests.files: tests}

    # -- what the user does

    def remove_file(self, request: gr.Request, event: gr.EventData) -> Values:
        project = self.service.need(requested_project(request))
        if len(self.service.sample_files(project.id)) == 1:
            raise InputError("This is the project's only file. Add another one first, or start a new project.")
        self.service.remove_sample(project, str(event.name))
        return self._changed(project)

    def dismiss(self, request: gr.Request, event: gr.EventData) -> Values:
        """Remove a file from the list of refused files."""
        project = self.service.need(requested_project(request))
        self.service.dismiss(project, str(event.name))
        return self._changed(project)

    def refuse(self, request: gr.Request, event: gr.EventData) -> Values:
        """List files that are too large among the unread ones. Raises InputError if there is no project."""
        project, reasons = self.service.project(requested_project(request)), reasons_of(event, self.service.settings)
        if project is None:
            raise all_refused(list(reasons.values()))
        self.service.refuse(project.id, reasons)
        return self._changed(project)

    def restore_file(self, request: gr.Request, event: gr.EventData) -> Values:
        project = self.service.need(requested_project(request))
        self.service.restore_sample(project, str(event.name))
        return self._changed(project)

    def _changed(self, project: ProjectRow) -> Values:
        """The files and the state of the import after a change."""
        state = self._state(project)
        return {component: state[component] for component in (self.files, self.status)}

    def label_file(self, request: gr.Request, event: gr.EventData) -> Values:
        project = self.service.need(requested_project(request))
        return {self.status: job_line(self.service.label_sample(project, str(event.name), str(event.label)))}

    def act_on_job(self, request: gr.Request, event: gr.EventData) -> Values:
        """Cancel the job, or read the samples again."""
        project = self.service.need(requested_project(request))
        if event.act == "cancel":
            self.service.store.jobs.cancel(int(event.job))
        else:
            self.service.read_again(project)
        return {self.status: job_line(self.service.reading(project.id))}

    def read_again(self, request: gr.Request) -> Values:
        project = self.service.need(requested_project(request))
        self.service.read_again(project)
        return self._changed(project)


build = SamplesPage.build
