"""Decisions on the page Phrases: excluding phrases, including them again, back-translating them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import gradio as gr

from studio.components.layout import MODEL, QUIET, handle_errors, in_turn
from studio.components.phrase_table import detail_card
from studio.i18n.translate import tr
from studio.pages import Values
from studio.services.phrases import PhraseView

if TYPE_CHECKING:
    from studio.pages.phrases import PhrasesPage


class PhraseDecisions:
    """The events that change the phrases; each of them redraws the page."""

    def __init__(self, page: PhrasesPage) -> None:
        self.page, self.list = page, page.list

    def events(self) -> None:
        state, outputs, sentences = self.page.state, self.page.shown, self.list.sentences
        for source in (self.list.rows, self.page.detail):
            source.keep(handle_errors(self.keep), [state, sentences], outputs, **in_turn("phrases"))
        self.list.bulk.click(handle_errors(self.leave_out_all), [state, sentences], outputs, **QUIET)
        self.page.undo.click(handle_errors(self.take_back), state, outputs, **QUIET)
        self.list.translate.click(handle_errors(self.back_translate), state, outputs, **MODEL)
        self.page.detail.back(handle_errors(self.back_translate_one), None, self.page.detail, **MODEL).then(
            handle_errors(self.again), state, outputs, **QUIET
        )

    def keep(self, request: gr.Request, query: str, sentences: bool, event: gr.EventData) -> Values:
        """Exclude a phrase or include it again."""
        source, _ = self.page.opened(request)
        if event.keep:
            source.take_back_in([str(event.phrase)])
        else:
            source.leave_out([str(event.phrase)], sentences=sentences)
        return self.page.redrawn(source, query)

    def leave_out_all(self, request: gr.Request, query: str, sentences: bool) -> Iterator[Values]:
        """Exclude all phrases that match the view."""
        source, phrases = self.page.opened(request)
        texts = phrases.texts(PhraseView.of(query))
        yield {self.list.bulk: gr.update(value=tr("Excluding…"), interactive=False)}
        try:
            source.leave_out(texts, sentences=sentences)
            yield self.page.redrawn(source, query)
        except Exception:
            yield {self.list.bulk: self.list.bulk_button(len(texts))}
            raise

    def take_back(self, request: gr.Request, query: str) -> Values:
        """Undo the last step."""
        source, _ = self.page.opened(request)
        source.undo()
        return self.page.redrawn(source, query)

    def back_translate_one(self, request: gr.Request, event: gr.EventData) -> Iterator[Values]:
        """Back-translate one phrase with the base."""
        source, phrases = self.page.opened(request)
        index = phrases.find(str(event.phrase))
        if index is None:
            return
        row = phrases.row(index)
        yield {self.page.detail: detail_card(row, source.sentences, source.language, source.domains, translating=True)}
        source.back_translate([row.text])

    def again(self, request: gr.Request, query: str) -> Values:
        """Redraw the current view, which may show another phrase by now."""
        return self.page.redrawn(self.page.opened(request)[0], query)

    def back_translate(self, request: gr.Request, query: str) -> Iterator[Values]:
        """Back-translate the rows shown with the base."""
        source, phrases = self.page.opened(request)
        rows = phrases.page(PhraseView.of(query))
        yield {self.list.translate: gr.update(value=tr("Translating…"), interactive=False)}
        try:
            source.back_translate([row.text for row in rows if not row.source])
            yield self.page.redrawn(source, query)
        finally:
            yield {self.list.translate: gr.update(value=tr("Back-translate these"), interactive=True)}
