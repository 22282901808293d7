"""The attribution panel of the page Compare: the memory read for a clicked word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.store import ProjectRow
from studio.components.attribution_panel import reading_panel, waiting_panel
from studio.components.compare_url import CompareUrl
from studio.components.layout import EACH, QUIET, handle_errors, requested_project
from studio.i18n.translate import tr
from studio.pages import Values

if TYPE_CHECKING:
    from studio.pages.compare import ComparePage


class WordPanel:
    """The events that open and close the panel."""

    def __init__(self, page: ComparePage) -> None:
        self.page, self.panel, self.here = page, page.panel, page.here

    def events(self, ready: Any) -> None:
        """Wire the events; `ready` is the event that has filled the page."""
        outputs = [self.panel, self.here]
        ready.then(handle_errors(self.reopen), self.here, self.panel, **QUIET)
        self.page.table.word(handle_errors(self.open), self.here, outputs, concurrency_limit=1, **EACH)
        self.panel.close(handle_errors(self.close), self.here, outputs, **EACH)

    def open(self, request: gr.Request, url_json: str, event: gr.EventData) -> Iterator[Values]:
        url = replace(CompareUrl.read(url_json), word=f"{event.line}.{event.system}.{event.start}-{event.end}")
        yield {self.panel: waiting_panel(str(event.word)[:80])}
        yield {self.panel: self.attribution(self.page.service.need(requested_project(request)), url), self.here: url.text()}

    def reopen(self, request: gr.Request, url_json: str) -> Iterator[Values]:
        """Show the attribution of the word given in the address."""
        url, project = CompareUrl.read(url_json), self.page.service.project(requested_project(request))
        yield {self.panel: waiting_panel("…") if url.at() and project else ""}
        if url.at() and project:
            yield {self.panel: self.attribution(project, url)}

    def close(self, url_json: str) -> Values:
        return {self.panel: "", self.here: replace(CompareUrl.read(url_json), word="").text()}

    def attribution(self, project: ProjectRow, url: CompareUrl) -> str:
        """The attribution panel for the open word; empty if there is none."""
        comparisons = self.page.comparisons
        sheet, word = comparisons.sheet(project, str(url.comparison)), url.at()
        if sheet is None or word is None:
            return ""
        attribution = comparisons.read(project, sheet, *word)
        system = sheet.systems[word[1]]
        return reading_panel(
            attribution, system=str(system["name"]) if word[1] else tr("Vanilla"), strength=float(system["strength"]),
            source=project.source, target=project.target,
        )  # fmt: skip
