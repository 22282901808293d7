"""The page Phrases: the phrases of the samples, how typical they are, and which decoder layer will read them.

The tree, the histograms, the table and the map show the same phrase; the current view is in the address.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from studio.components import phrase_table as draw
from studio.components.html import card, hidden_text, html_block, toggle_of_next, toggle_value, toggled
from studio.components.import_status import next_link
from studio.components.layout import LAST, QUIET, StudioPage, handle_errors, heading, in_turn, page, requested_project
from studio.components.phrase_list import PhraseList, filtered_view, undo_label
from studio.components.phrase_map import PhraseMap
from studio.components.phrase_tree import PhraseTree
from studio.pages import Values
from studio.pages.phrase_decisions import PhraseDecisions
from studio.services.phrases import PAGE, Phrases, PhraseView
from studio.services.project_phrases import ProjectPhrases

TEXT = "Phrases in your samples, from single words to whole clauses."


class PhrasesPage(StudioPage):
    """/phrases: the extracted phrases by sentence, length and layer, in a table and on a map."""

    def layout(self) -> None:
        with page(self.demo, self.service, "phrases", "Phrases", TEXT) as self.frame:
            with self.frame.actions:
                self.undoable = toggle_of_next()
                self.undo = gr.Button("Undo", size="md", elem_classes="tm-many")
                self.export = html_block()
                self.onward = html_block()
            self.nothing = html_block()
            with toggled(gr.Column, elem_classes="tm-phrase-page") as self.body:
                with gr.Row(elem_classes="tm-phrase-row"):
                    self.tree = PhraseTree()
                    self.bars = html_block(classes="tm-aside", script=draw.HISTOGRAM_SCRIPT)
                with gr.Row(elem_classes="tm-phrase-row"):
                    self.list = PhraseList()
                    with gr.Column(elem_classes="tm-aside"):
                        self.detail = html_block(script=draw.KEEP)
                        self.map = PhraseMap()
                        self.origin = html_block()
            self.mark = html_block(script=draw.MARK, visible="hidden")
            self.state = hidden_text()
            self.version = hidden_text()

    def events(self) -> None:
        state, outputs, tree, filters = self.state, self.shown, self.tree.card, self.list.filters
        everything = [self.frame.title, self.onward, self.nothing, self.body, self.origin, *outputs, *filters, *self.map.all, tree]
        self.demo.load(handle_errors(self.fill), None, everything, **QUIET)
        self.frame.timer.tick(handle_errors(self.poll, polled=True), [state, self.version, self.map.state], everything, **QUIET)
        for source in (tree, self.list.rows, self.map.points):
            source.pick(handle_errors(self.choose), state, [*outputs, tree], **in_turn("phrases"))
        tree.step(handle_errors(self.step), state, [*outputs, tree], **in_turn("phrases"))
        self.bars.bar(handle_errors(self.press), state, [*outputs, *filters, tree], **in_turn("phrases"))
        # `change`, since a text field's `input` fires only on key presses, not on IME composition, pasting or deleting.
        self.list.words.change(handle_errors(self.search), [state, *filters], outputs, **LAST)
        for field in filters[1:]:
            field.input(handle_errors(self.filter), [state, *filters], outputs, **LAST)
        self.list.back.click(handle_errors(self.page_back), state, outputs, **QUIET)
        self.list.forth.click(handle_errors(self.page_forth), state, outputs, **QUIET)
        self.map.draw.click(handle_errors(self.draw_map), None, self.map.all, **QUIET)
        PhraseDecisions(self).events()

    @property
    def shown(self) -> list[Any]:
        """The components that `view_values` sets."""
        return [*self.list.all, self.bars, self.detail, self.undoable, self.undo, self.export, self.mark, self.state, self.version]

    def view_values(self, source: ProjectPhrases, phrases: Phrases, view: PhraseView) -> Values:
        """The values of all components for a view, except the tree and the filters."""
        view = phrases.on_a_page(view)
        chosen = phrases.find(view.phrase) if view.phrase else None
        row = phrases.row(chosen) if chosen is not None else None
        return {
            **self.list.values(source, phrases, view),
            self.bars: card(draw.histograms(phrases, view, row)),
            self.detail: draw.detail_card(row, source.sentences, source.language, source.domains),
            self.undoable: toggle_value(bool(phrases.exclusions.steps)),
            self.undo: undo_label(phrases.exclusions),
            self.export: draw.export_link(source.project, view),
            self.mark: draw.page_address(source.project, view),
            self.state: view.query(),
            self.version: source.version(),
        }

    def redrawn_with_tree(self, source: ProjectPhrases, phrases: Phrases, view: PhraseView) -> Iterator[Values]:
        yield self.view_values(source, phrases, view)
        yield from self.tree.values(source, phrases, view)

    def opened(self, request: gr.Request) -> tuple[ProjectPhrases, Phrases]:
        """The project in the address with its phrases. Raises InputError if there are none."""
        source = ProjectPhrases(self.service, self.service.need(requested_project(request)))
        return source, source.need_table()

    def fill(self, request: gr.Request, query: str = "") -> Iterator[Values]:
        project = self.service.project(requested_project(request))
        source = ProjectPhrases(self.service, project) if project else None
        phrases = source.table() if source else None
        if project is None or source is None or not phrases:
            yield {
                self.frame.title: heading("Phrases", TEXT), self.onward: "", self.export: "", self.body: toggle_value(False),
                self.nothing: draw.no_phrases(project, source.finding() if source else None),
                self.undoable: toggle_value(False), self.version: source.version() if source else "",
            }  # fmt: skip
            return
        view = source.with_sentence(phrases.usable(PhraseView.of(query or dict(request.query_params))))
        yield {
            self.frame.title: heading("Phrases", draw.summary_line(phrases, len(source.sentences))),
            self.onward: next_link(project),
            self.nothing: "",
            self.body: toggle_value(True),
            self.origin: draw.origin_card(self.service.parser(project.id), project, bool(phrases.table.general_words)),
            **self.view_values(source, phrases, view),
            **self.list.filter_values(phrases, view),
            **self.map.values(source),
        }
        yield from self.tree.values(source, phrases, view)

    def choose(self, request: gr.Request, query: str, event: gr.EventData) -> Iterator[Values]:
        """Select a phrase in all components and show the tree of a sentence that contains it."""
        source, phrases = self.opened(request)
        row = phrases.find(str(event.phrase))
        if row is None:
            return
        sentence = int(getattr(event, "sentence", None) or -1)
        view = source.with_phrase(phrases, PhraseView.of(query), row, sentence)
        yield from self.redrawn_with_tree(source, phrases, view)

    def step(self, request: gr.Request, query: str, event: gr.EventData) -> Iterator[Values]:
        """Show another sentence."""
        source, phrases = self.opened(request)
        view = PhraseView.of(query).but(sentence=int(event.sentence))
        yield from self.redrawn_with_tree(source, phrases, view)

    def press(self, request: gr.Request, query: str, event: gr.EventData) -> Iterator[Values]:
        """Filter the table by a histogram column and select its first phrase; a second click removes the filter."""
        source, phrases = self.opened(request)
        view = PhraseView.of(query).but(low=int(event.low), high=int(event.high), layer=int(event.layer), start=0)
        view = source.with_sentence(phrases.first_chosen(view) if view.filtered else view)
        yield self.list.filter_values(phrases, view)
        yield from self.redrawn_with_tree(source, phrases, view)

    def filter(self, request: gr.Request, query: str, *values: Any) -> Values:
        source, phrases = self.opened(request)
        return self.view_values(source, phrases, filtered_view(phrases, PhraseView.of(query), *values))

    def search(self, request: gr.Request, query: str, *values: Any) -> Values:
        """Search for the words typed; ignored if the page itself set them."""
        same = str(values[0] or "").strip() == PhraseView.of(query).words
        return {self.state: gr.skip()} if same else self.filter(request, query, *values)

    def page_back(self, request: gr.Request, query: str) -> Values:
        return self.redrawn(self.opened(request)[0], query, -PAGE)

    def page_forth(self, request: gr.Request, query: str) -> Values:
        return self.redrawn(self.opened(request)[0], query, PAGE)

    def redrawn(self, source: ProjectPhrases, query: str, rows: int = 0) -> Values:
        """The component values of a view moved on by some rows."""
        view = PhraseView.of(query)
        return self.view_values(source, source.need_table(), view.but(start=view.start + rows))

    def draw_map(self, request: gr.Request) -> Values:
        source, _ = self.opened(request)
        source.draw_map()
        return self.map.values(source)

    def poll(self, request: gr.Request, query: str, version: str, map_state: str) -> Iterator[Values]:
        """Show phrases and map as they become available; refill the page if another window or a job has changed something."""
        project = self.service.project(requested_project(request))
        source = ProjectPhrases(self.service, project) if project else None
        if source is None:
            yield {self.version: gr.skip()}
        elif source.version() == version and source.table() is None:
            yield {self.nothing: draw.no_phrases(project, source.finding())}
        elif source.version() == version:
            yield self.map.changes(source, map_state)
        else:
            yield from self.fill(request, query)


build = PhrasesPage.build
