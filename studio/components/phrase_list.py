"""The table of the page Phrases: filters, paging, and bulk actions on the listed phrases."""

from __future__ import annotations

from typing import Any

import gradio as gr

from engine.phrases.exclusions import Exclusions
from studio.components.html import html_block, number, visible_if
from studio.components.phrase_table import TABLE_SCRIPT, page_line, phrase_table
from studio.i18n.translate import tr, translate_message
from studio.services.phrases import ORDERS, SHOWS, Phrases, PhraseView
from studio.services.project_phrases import ProjectPhrases


class PhraseList:
    """The table's components: `filters` are the filter fields in order, `all` the other components that events fill."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="tm-card tm-stack tm-grow"):
            with gr.Row(elem_classes="tm-phrase-filters"):
                self.words = gr.Textbox(label="Search", placeholder="Search", show_label=False, container=False, min_width=100)
                self.low = _choice("From length", [])
                self.high = _choice("To length", [])
                self.layer = _choice("Layer", [])
                self.order = _choice("Order", list(ORDERS.items()))
                self.show = _choice("Show", list(SHOWS.items()))
            self.rows = html_block(classes="tm-scroll", script=TABLE_SCRIPT)
            with gr.Row(elem_classes="tm-pager"):
                self.line = html_block(classes="tm-quiet")
                self.back = gr.Button("Back", size="sm", min_width=60, scale=0)
                self.forth = gr.Button("Next", size="sm", min_width=60, scale=0)
            with gr.Row(elem_classes="tm-pager tm-phrase-acts"):
                self.sentences = gr.Checkbox(False, label="Also exclude sentences containing them", container=False, min_width=200)
                self.bulk = gr.Button("Exclude all of these", size="sm", visible="hidden", scale=0)
                self.translate = gr.Button("Back-translate these", size="sm", visible="hidden", scale=0)
        self.filters = [self.words, self.low, self.high, self.layer, self.order, self.show]
        self.all = [self.rows, self.line, self.back, self.forth, self.bulk, self.translate]

    def values(self, source: ProjectPhrases, phrases: Phrases, view: PhraseView) -> dict[Any, Any]:
        """Component values for the table page that a view starts at."""
        count, rows, project = len(phrases.select(view)), phrases.page(view), source.project
        can_leave_out = view.filtered and view.show == "used" and count > 0
        return {
            self.rows: phrase_table(rows, project.target, project.source, view.phrase),
            self.line: page_line(view.start, len(rows), count, phrases, source.excluded_sentences()),
            self.back: gr.update(interactive=view.start > 0),
            self.forth: gr.update(interactive=view.start + len(rows) < count),
            self.bulk: {**self.bulk_button(count), "visible": visible_if(can_leave_out)},
            self.translate: gr.update(visible=visible_if(any(not row.source for row in rows))),
        }

    @staticmethod
    def bulk_button(count: int) -> dict[str, object]:
        """The enabled button that excludes all listed phrases."""
        return gr.update(value=tr("Exclude all {count}", count=number(count)), interactive=True)

    def filter_values(self, phrases: Phrases, view: PhraseView) -> dict[Any, Any]:
        """The filters set to the values of a view."""
        lengths = sorted(set(phrases.table.lengths.tolist()))
        layers = [(tr("layer {number}", number=layer + 1), layer) for layer in range(phrases.layer_count)]
        orders = [(tr(name), order) for name, order in ORDERS.items() if order != "typical" or phrases.table.general_words]
        return {
            self.words: view.words,
            self.low: gr.update(
                choices=[(tr("from {number}", number=length), length) for length in lengths], value=view.low or lengths[0]
            ),
            self.high: gr.update(
                choices=[(tr("to {number}", number=length), length) for length in lengths], value=view.high or lengths[-1]
            ),
            self.layer: gr.update(choices=[(tr("any layer"), -1), *layers], value=view.layer),
            self.order: gr.update(choices=orders, value=phrases.usable(view).order),
            self.show: view.show,
        }


def filtered_view(phrases: Phrases, view: PhraseView, *values: Any) -> PhraseView:
    """The view with the values of the filters; the shortest and the longest length mean no limit."""
    words, low, high, layer, order, show = values
    lengths = phrases.table.lengths
    return view.but(
        words=str(words or "").strip(),
        low=0 if low in (None, lengths.min()) else int(low),
        high=0 if high in (None, lengths.max()) else int(high),
        layer=-1 if layer is None else int(layer),
        order=order,
        show=show,
        start=0,
    )


def undo_label(exclusions: Exclusions) -> str:
    """The label of the undo button."""
    return tr("Undo: {what}", what=translate_message(exclusions.last)) if exclusions.steps else tr("Undo")


def _choice(label: str, choices: list[Any]) -> Any:
    value = choices[0][1] if choices else None
    return gr.Dropdown(choices, value=value, label=label, show_label=False, container=False, min_width=80)
