"""The jobs of the page Compare: measuring, continuing, cancelling, polling for results; the terminology."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.store import JobRow
from studio.components.compare_url import CompareUrl
from studio.components.comparison_parts import figures_of, table_of
from studio.components.comparison_table import progress_card
from studio.components.html import toggle_value, visible_if
from studio.components.layout import HEAVY, QUIET, handle_errors, requested_project
from studio.i18n.translate import trn
from studio.pages import Values
from studio.services.terminology import project_terms, read_file, set_terms

if TYPE_CHECKING:
    from studio.pages.compare import ComparePage


class CompareJobs:
    """The events that start or watch a job."""

    def __init__(self, page: ComparePage) -> None:
        self.page, self.comparisons, self.service, self.terms = page, page.comparisons, page.service, page.terms

    def events(self, ready: Any) -> None:
        """Wire the events; `ready` is the event that has filled the page."""
        page, terms = self.page, self.terms
        ready.then(handle_errors(self.fill_terms), None, [terms.gate, terms.text], **QUIET)
        for source in (page.state, page.figures):
            source.act(handle_errors(self.act), page.here, [page.state, page.figures], **QUIET)
        terms.upload.upload(handle_errors(self.import_terms, heavy=True), terms.upload, [terms.text, terms.state], **HEAVY)
        terms.save.click(
            handle_errors(self.save_terms), [terms.text, page.here], [terms.state, page.enforce, page.state, page.table], **QUIET
        )
        page.frame.timer.tick(
            handle_errors(self.poll, polled=True),
            [page.here, page.version],
            [page.state, page.table, page.figures, page.version],
            **QUIET,
        )

    def act(self, request: gr.Request, url_json: str, event: gr.EventData) -> Values:
        """Measure the comparison, repeat its last job, or cancel it."""
        sheet = self.page.need(self.service.need(requested_project(request)), CompareUrl.read(url_json))
        if event.act == "cancel":
            self.comparisons.cancel(sheet)
        else:
            before = self.comparisons.job(sheet) if event.act == "again" else None
            self.comparisons.enqueue(sheet, measure=before is None or bool(before.arguments.get("measure", True)))
            sheet = self.service.store.sheets.get(sheet.comparison_id)
        return {self.page.state: progress_card(self.comparisons.job(sheet)), self.page.figures: figures_of(self.comparisons, sheet)}

    def fill_terms(self, request: gr.Request) -> Values:
        project = self.service.project(requested_project(request))
        return {
            self.terms.gate: toggle_value(project is not None),
            self.terms.text: project_terms(self.service, project) if project else "",
        }

    def import_terms(self, request: gr.Request, file: str) -> Values:
        """Put a file's terms into the box, for the user to save."""
        text = read_file(self.service.need(requested_project(request)), Path(file))
        line = trn("{count} term was read. Save to use it.", "{count} terms were read. Save to use them.", len(text.splitlines()))
        return {self.terms.text: text, self.terms.state: line}

    def save_terms(self, request: gr.Request, words: str, url_json: str) -> Values:
        """Store the project's terms and measure the comparison on the page with them."""
        project, url = self.service.need(requested_project(request)), CompareUrl.read(url_json)
        line = trn("{count} term is kept.", "{count} terms are kept.", set_terms(self.service, project, words))
        sheet = self.comparisons.sheet(project, str(url.comparison)) if url.comparison else None
        measured = sheet is not None and len(sheet.systems) > 1
        job = self.comparisons.enqueue(sheet) if sheet is not None and measured else self.comparisons.job(sheet)
        table = table_of(self.comparisons, project, url, sheet) if sheet is not None else gr.skip()
        able = gr.update(visible=visible_if(bool(words.strip())))
        updates = {self.page.state: progress_card(job), self.page.table: table}
        return {self.terms.state: line, self.page.enforce: able, **updates}

    def poll(self, request: gr.Request, url_json: str, before: str) -> Values:
        """Update the progress while a job is active and the table whenever it has changed, including when an earlier poll has
        overwritten the order or page that the reader has meanwhile chosen.
        """
        project, url = self.service.project(requested_project(request)), CompareUrl.read(url_json)
        sheet = self.comparisons.sheet(project, str(url.comparison)) if project and url.comparison else None
        job = self.comparisons.go_on(project, sheet) if project and sheet else None
        if project is None or sheet is None or job is None or table_version(url, job) == before.partition("/")[0]:
            return {self.page.version: gr.skip()}
        table = table_of(self.comparisons, project, url, sheet)
        version = table_version(url, job, table)
        values: Values = {self.page.state: progress_card(job), self.page.version: version}
        if not job.active or version.partition("/")[2] != before.partition("/")[2]:  # an unchanged table is not redrawn
            values[self.page.table] = table
        if not job.active:
            values[self.page.figures] = figures_of(self.comparisons, sheet)
        return values


def table_version(url: CompareUrl, job: JobRow | None, table: str | None = None) -> str:
    """The state that the table was drawn from and, after a slash, a checksum of the table if given."""
    made_from = f"{job.id} {job.state} {job.step} {job.done} {job.cancel_requested} {url.order} {url.offset}" if job else ""
    return made_from if table is None else f"{made_from}/{zlib.crc32(table.partition('</tbody>')[0].encode())}"
