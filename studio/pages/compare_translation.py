"""Translation on the page Compare: new sentences, and a column again when its strength changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.store import ProjectRow
from engine.store.comparisons import ComparisonRecord
from studio.components.compare_url import CompareUrl
from studio.components.comparison_parts import menus_of
from studio.components.comparison_table import progress_card
from studio.components.layout import EACH, QUIET, handle_errors, requested_project
from studio.i18n.translate import tr
from studio.pages import Values

if TYPE_CHECKING:
    from studio.pages.compare import ComparePage


class CompareTranslation:
    """The events that request translations; `CompareJobs` fills the table as they arrive."""

    def __init__(self, page: ComparePage) -> None:
        self.page, self.comparisons = page, page.comparisons

    def events(self, ready: Any) -> None:
        """Wire the events; `ready` is the event that has filled the page."""
        page = self.page
        result = [page.table, page.figures, page.state, page.menus, page.here, page.panel]
        ready.then(handle_errors(self.go_on), page.here, page.state, **QUIET)
        page.run.click(
            handle_errors(self.translate), [page.text, page.plugins, page.enforce, page.here], [*result, page.run], **QUIET
        ).then(handle_errors(self.release), None, page.run, **QUIET)
        # Not "always_last", which resends the data of the first event instead of the last one's.
        page.table.dial(handle_errors(self.set_strength), page.here, result, concurrency_limit=1, **EACH)

    def translate(self, request: gr.Request, lines: str, plugins: list[int], enforce: bool, url_json: str) -> Iterator[Values]:
        project, url = self.page.service.need(requested_project(request)), CompareUrl.read(url_json)
        yield {
            self.page.run: gr.update(interactive=False, value=tr("Translating"))
        }  # a second click would create a second comparison
        sheet, like = self.comparisons.requested(project, url.comparison, lines, plugins or [], enforce=enforce)
        yield self.changed(project, sheet, CompareUrl(sheet.comparison_id, url.order if like else "place"))

    def release(self) -> Values:
        return {self.page.run: gr.update(interactive=True, value=tr("Translate"))}

    def set_strength(self, request: gr.Request, url_json: str, event: gr.EventData) -> Values:
        """Set the strength of a plugin."""
        project, url = self.page.service.need(requested_project(request)), CompareUrl.read(url_json)
        sheet = self.comparisons.set_strength(project, self.page.need(project, url), int(event.system), float(event.strength))
        return self.changed(project, sheet, replace(url, comparison=sheet.comparison_id, word=""))

    def go_on(self, request: gr.Request, url_json: str) -> Values:
        """Queue pending translations of the opened comparison unless a job is working on them."""
        project, url = self.page.service.project(requested_project(request)), CompareUrl.read(url_json)
        sheet = self.comparisons.sheet(project, str(url.comparison)) if project and url.comparison else None
        if project is None or sheet is None:
            return {self.page.state: gr.skip()}
        return {self.page.state: progress_card(self.comparisons.go_on(project, sheet))}

    def changed(self, project: ProjectRow, sheet: ComparisonRecord, url: CompareUrl) -> Values:
        """The page for a requested comparison, after queuing a job if translations or figures are missing."""
        job = self.comparisons.job(sheet)
        if self.page.service.store.sheets.pending(sheet.comparison_id, 1) or not sheet.figures:
            job = self.comparisons.enqueue(sheet, measure=bool(sheet.file))
            sheet = self.page.service.store.sheets.get(sheet.comparison_id)
        return {
            **self.page.result(project, sheet, url),
            self.page.state: progress_card(job),
            self.page.menus: menus_of(self.comparisons, project, sheet),
            self.page.here: url.text(),
            self.page.panel: "",
        }
