"""The sentences of the page Samples: addressable views, and decisions on individual sentences."""

from __future__ import annotations

from urllib.parse import parse_qsl

import gradio as gr

from engine.store import ProjectRow
from studio.components.html import hidden_text, html_block
from studio.components.layout import address, handle_errors, in_turn, requested_project
from studio.components.sentence_list import BROWSE, change_bar, sentence_card
from studio.components.templating import script
from studio.pages import Values
from studio.services.segments import View, chosen, listing, view_counts
from studio.services.service import Service

# SHOW updates the address without a reload; JUMP, for links in the list of files, also scrolls to the sentences.
SHOW = script("samples-show.js")
JUMP = script("samples-jump.js")


class SentenceBrowser:
    """The decision bar, and a page of the sentences of a view."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def layout(self) -> None:
        self.decisions = html_block(script=BROWSE)
        self.listing = html_block(script=BROWSE)
        self.address = hidden_text()
        self.query = hidden_text()  # the view, as in the address

    @property
    def shown(self) -> list[gr.HTML]:
        """The components that change with the sentences."""
        return [self.decisions, self.listing]

    def events(self, *linking: gr.HTML) -> None:
        """Wire the events; `linking` are other components with links to a view."""
        browsed = [*self.shown, self.query, self.address]
        for component, move in ((self.listing, SHOW), *((table, JUMP) for table in linking)):
            component.go(handle_errors(self.browse), None, browsed, **in_turn("samples")).then(None, self.address, None, js=move)
        self.listing.decide(handle_errors(self.decide), None, self.shown, **in_turn("samples"))
        self.decisions.undo(handle_errors(self.undo), self.query, self.shown, **in_turn("samples"))

    def listed(self, project: ProjectRow, query: str) -> Values:
        """A page of the sentences, and the decisions above them."""
        service = self.service
        report, decisions = service.report(project.id), service.decisions(project.id)
        sentences = listing(service.workspace(project.id), report, decisions, View.of(dict(parse_qsl(query))))
        counts = view_counts(report, service.leaks(project.id), decisions)
        several = len(report.get("files", [])) > 1
        return {
            self.decisions: change_bar(decisions, service.undecided(project.id)),
            self.listing: sentence_card(sentences, counts, project.id, project.target, project.source, several=several),
        }

    def browse(self, request: gr.Request, event: gr.EventData) -> Values:
        """Show another view or page of the sentences."""
        project = self.service.need(requested_project(request))
        view = View.of(dict(parse_qsl(str(event.to))))
        query = view.query(at=view.at)
        link = f"{address('samples', project.id)}&{query}"
        return {**self.listed(project, query), self.query: query, self.address: link}

    def decide(self, request: gr.Request, event: gr.EventData) -> Values:
        """Exclude, approve or reset one sentence or all sentences of a view."""
        project, service = self.service.need(requested_project(request)), self.service
        of = View.of(dict(parse_qsl(str(event.of))))
        report, decisions = service.report(project.id), service.decisions(project.id)
        keys = chosen(service.workspace(project.id), report, decisions, of, str(event.key))
        service.decide(project.id, str(event.action), keys)
        return self.listed(project, str(event.query))

    def undo(self, request: gr.Request, query: str) -> Values:
        """Undo the last decision."""
        project = self.service.need(requested_project(request))
        self.service.undo(project.id)
        return self.listed(project, query)
