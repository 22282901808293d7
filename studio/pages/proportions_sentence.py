"""The sentence at the top of the page Proportions, word by word: a typed one, or an example from the samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import gradio as gr

from engine.core.numerals import whole_number
from engine.errors import TailorError
from engine.methods.domain_mixing.shapes import Shown
from engine.store import PluginRow, ProjectRow
from studio.components import domain_figures as draw
from studio.components.html import html_block, note
from studio.components.layout import MODEL, handle_errors, in_turn
from studio.components.plotly import figure_view
from studio.i18n.translate import translate_message
from studio.pages import Values
from studio.services.proportions import LONGEST, SIDES

if TYPE_CHECKING:
    from studio.pages.proportions import ProportionsPage

Opened: TypeAlias = "tuple[ProjectRow, Shown, PluginRow | None]"


class SentenceCard:
    """The field, the examples and the figures."""

    def __init__(self, page: ProportionsPage) -> None:
        self.page = page
        with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
            with gr.Row(elem_classes="tm-sentence-row"):
                self.text = gr.Textbox(
                    label="Sentence", max_length=LONGEST, max_lines=1, container=False, show_label=False, scale=5
                )
                self.plugin = gr.Dropdown([], label="Proportions of", container=False, show_label=False, scale=2, min_width=180)
                self.show = gr.Button("Show", size="md", scale=0, min_width=80)
            self.examples = html_block(script=draw.WORD_SCRIPT)
            self.shares = figure_view(draw.WORD_SCRIPT)

    def events(self) -> None:
        outputs = [self.shares, self.page.mark]
        for event in (self.show.click, self.text.submit):
            event(handle_errors(self.look), [self.text, self.plugin], outputs, **MODEL)
        self.examples.example(handle_errors(self.example), self.plugin, [self.text, *outputs], **in_turn("proportions"))

    def look(self, request: gr.Request, text: str, number: Any) -> Iterator[Values]:
        """Show the proportions of a typed sentence; without one, an example."""
        project, proportions, plugin = self.page.opened(request, number)
        text = " ".join(text.split())[:LONGEST]
        yield {self.page.mark: draw.page_address(sentence=text, example="")}
        yield from self.values_or_example(request, (project, proportions, plugin), text)

    def example(self, request: gr.Request, number: Any, event: gr.EventData) -> Values:
        project, proportions, _ = self.page.opened(request, number)
        return {
            self.text: "",
            self.shares: draw.example_view(proportions, project, layers_in(request), int(event.number), self.order(project)),
            self.page.mark: draw.page_address(sentence="", example=str(event.number)),
        }

    def values_or_example(self, request: gr.Request, opened: Opened, text: str) -> Iterator[Values]:
        project, proportions, plugin = opened
        if text:
            yield from self.values(request, project, plugin, text)
        else:
            yield {self.shares: draw.example_view(proportions, project, layers_in(request), order=self.order(project))}

    def values(self, request: gr.Request, project: ProjectRow, plugin: PluginRow | None, text: str) -> Iterator[Values]:
        """The proportions of a sentence, after a placeholder if they are not cached (on first use, the base is loaded)."""
        if not self.page.proportions.is_cached(project, plugin, text):
            yield {self.shares: draw.waiting_line()}
        try:
            shares = self.page.proportions.sentence(project, plugin, text)
        except TailorError as error:
            yield {self.shares: note(translate_message(error.message), bad=True)}
            return
        yield {self.shares: draw.sentence_view(shares, project, layers_in(request), self.order(project))}

    def order(self, project: ProjectRow) -> list[str]:
        """The project's domains in the order in which colours are assigned."""
        return self.page.service.domains(project.id)


def layer_in(request: gr.Request, name: str) -> int:
    """The slider position given in the address; 0: all layers together."""
    return whole_number(request.query_params.get(name, "")) or 0


def layers_in(request: gr.Request) -> dict[str, int]:
    return {side: layer_in(request, side) for side in SIDES}
