"""What the page Compare translates: sentences for the first time, a column anew when its strength is turned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.store import ProjectRow
from engine.store.comparisons import ComparisonRecord
from studio.components.compare_url import CompareUrl
from studio.components.comparison_parts import menus_of, table_of
from studio.components.comparison_table import progress_card
from studio.components.layout import QUIET, guard, wanted
from studio.i18n.translate import tr
from studio.pages import Values

if TYPE_CHECKING:
    from studio.pages.compare import ComparePage


class CompareTranslation:
    """The events that translate; the table fills while they do."""

    def __init__(self, page: ComparePage) -> None:
        self.page, self.desk = page, page.desk

    def events(self, ready: Any) -> None:
        """`ready` is the event that has filled the page."""
        page = self.page
        work = [page.table, page.figures, page.state]
        result = [*work, page.menus, page.here, page.panel]
        ready.then(guard(self.go_on), page.here, work, concurrency_limit=2, **QUIET)
        page.run.click(
            guard(self.translate),
            [page.text, page.plugins, page.here],
            [*result, page.run],
            concurrency_limit=2,
            **QUIET,
        ).then(guard(self.release), None, page.run, **QUIET)
        # Not "always_last", which sends the data of the first event again instead of the last one's.
        page.table.dial(guard(self.turn), page.here, result, concurrency_limit=4, trigger_mode="multiple", **QUIET)

    def translate(self, request: gr.Request, lines: str, plugins: list[int], here: str) -> Iterator[Values]:
        project, url = self.page.service.need(wanted(request)), CompareUrl.read(here)
        yield {self.page.run: gr.update(interactive=False, value=tr("Translating"))}
        sheet, like = self.desk.asked(project, url.comparison, lines, plugins or [])
        yield from self.changed(project, sheet, CompareUrl(sheet.comparison_id, url.order if like else "place"))

    def release(self) -> Values:
        return {self.page.run: gr.update(interactive=True, value=tr("Translate"))}

    def turn(self, request: gr.Request, here: str, event: gr.EventData) -> Iterator[Values]:
        """Another strength of a plugin."""
        project, url = self.page.service.need(wanted(request)), CompareUrl.read(here)
        sheet = self.desk.turn(project, self.page.need(project, url), int(event.system), float(event.strength))
        yield from self.changed(project, sheet, replace(url, comparison=sheet.comparison_id, word=""))

    def go_on(self, request: gr.Request, here: str) -> Iterator[Values]:
        """A page that was closed in the middle of its sentences goes on when it is opened again."""
        project, url = self.page.service.project(wanted(request)), CompareUrl.read(here)
        sheet = self.desk.sheet(project, str(url.comparison)) if project and url.comparison else None
        pending = sheet and not sheet.file and self.page.service.store.sheets.pending(sheet.comparison_id, 1)
        if project is None or sheet is None or not pending or self.desk.gone(project, sheet):
            yield {self.page.table: gr.skip()}
            return
        yield from self.work(project, sheet, url)

    def changed(self, project: ProjectRow, sheet: ComparisonRecord, url: CompareUrl) -> Iterator[Values]:
        """A comparison that was asked for, and then what is missing in it."""
        menus = menus_of(self.desk, project, sheet)
        yield {
            **self.page.result(project, sheet, url),
            self.page.menus: menus,
            self.page.here: url.text(),
            self.page.panel: "",
        }
        yield from self.work(project, sheet, url)

    def work(self, project: ProjectRow, sheet: ComparisonRecord, url: CompareUrl) -> Iterator[Values]:
        """Translate what is missing: at once, shown as it comes, or in a job."""
        if self.desk.long(sheet):
            job = self.desk.enqueue(sheet)
            yield {**self.page.result(project, sheet, url), self.page.state: progress_card(job)}
            return
        for _ in self.desk.fill(project, sheet):
            yield {self.page.table: table_of(self.desk, project, url, sheet), self.page.state: ""}
        now = self.page.service.store.sheets.get(sheet.comparison_id)
        if now.revision != sheet.revision:
            return  # a dial was turned meanwhile: that event goes on
        sheet = self.desk.measure_at_once(project, now)
        yield {**self.page.result(project, sheet, url), self.page.state: progress_card(self.desk.job(sheet))}
