"""The samples as a whole and single words on the page Proportions, for the encoder or the decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.methods.domain_mixing.shapes import Shown
from engine.store import ProjectRow
from studio.components import domain_figures as draw
from studio.components.html import card_title, html_block
from studio.components.layout import LAST, handle_errors, in_turn
from studio.components.plotly import figure_view
from studio.pages import Values
from studio.pages.proportions_sentence import layer_in
from studio.services.proportions import SIDES

if TYPE_CHECKING:
    from studio.pages.proportions import ProportionsPage


class SamplesCards:
    """The corpus figures, the choice of encoder or decoder, and the words."""

    def __init__(self, page: ProportionsPage) -> None:
        self.page = page
        with gr.Row(elem_classes="tm-proportion-row"):
            with gr.Column(elem_classes="tm-card tm-pad tm-stack tm-grow"):
                with gr.Row(elem_classes="tm-map-head"):
                    card_title("The samples as a whole")
                    self.side = gr.Radio(
                        [("Encoder", "encoder"), ("Decoder", "decoder")], value="decoder", label="Side",
                        show_label=False, container=False, elem_classes="tm-segments",
                    )  # fmt: skip
                self.corpus = figure_view(draw.WORD_SCRIPT)
            with gr.Column(elem_classes="tm-card tm-pad tm-stack tm-aside"):
                card_title("Words")
                self.word = gr.Textbox(label="Look up a word", placeholder="Look up a word", show_label=False, container=False)
                self.words = html_block(script=draw.WORD_SCRIPT)

    def events(self) -> None:
        sentence, mark = self.page.sentence, self.page.mark
        fields, outputs = [self.side, self.word, sentence.plugin], [self.corpus, self.words, mark]
        self.side.input(handle_errors(self.turn), fields, outputs, **LAST)
        # Not `input`, which fires only on key presses, not on IME composition.
        self.word.change(handle_errors(self.seek), fields, [self.words, mark], **LAST)
        for source in (sentence.shares, self.corpus, self.words):
            source.word(
                handle_errors(self.press), [self.side, sentence.plugin], [self.word, self.side, *outputs], **in_turn("proportions")
            )

    def values(self, request: gr.Request, project: ProjectRow, proportions: Shown, side: str, word: str) -> Values:
        """The samples as a whole and the words, for the encoder or the decoder (`side`)."""
        order = self.page.service.domains(project.id)
        return {
            self.corpus: draw.corpus_card(proportions, side, layer_in(request, "corpus"), order),
            self.words: draw.word_card(proportions, side, word, draw.side_language(project, side), order),
        }

    def turn(self, request: gr.Request, side: str, word: str, number: Any) -> Values:
        """Switch between encoder and decoder."""
        project, proportions, _ = self.page.opened(request, number)
        address = draw.page_address(side="" if side == "decoder" else side)
        return {**self.values(request, project, proportions, side, word), self.page.mark: address}

    def seek(self, request: gr.Request, side: str, word: str, number: Any) -> Values:
        """Look up a word."""
        project, proportions, _ = self.page.opened(request, number)
        order = self.page.service.domains(project.id)
        words = draw.word_card(proportions, side, word, draw.side_language(project, side), order)
        return {self.words: words, self.page.mark: draw.page_address(word=word[:60])}

    def press(self, request: gr.Request, side: str, number: Any, event: gr.EventData) -> Values:
        """Look up a clicked word on the side (encoder or decoder) of its figure."""
        word, other = str(event.word), str(event.language)
        if other not in SIDES or other == side:
            other = side
            values = self.seek(request, side, word, number)
        else:
            values = self.turn(request, other, word, number)
        address = draw.page_address(word=word[:60], side="" if other == "decoder" else other)
        return {**values, self.word: word, self.side: other, self.page.mark: address}
