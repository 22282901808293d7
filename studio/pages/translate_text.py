"""The short text of the page Translate: translated at once, line by line, and editable in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from engine.corpora.language import plainly_other
from engine.store import ProjectRow
from studio.components.documents_table import result_box
from studio.components.editor import EDIT, Editor
from studio.components.html import html_block, quiet_line
from studio.components.layout import requested_project
from studio.i18n.translate import tr
from studio.pages import Values
from studio.services.service import Service
from studio.services.terminology import project_terms
from studio.services.translation import TranslatedSentence, lines_of, plugin_of, translate_lines


def terms_of(service: Service, project: ProjectRow, enforce: bool) -> str:
    """The project's terms if they are to be enforced, else empty."""
    return project_terms(service, project) if enforce else ""


class ShortText:
    """A box for the text with its translation next to it and the button below."""

    def __init__(self, service: Service, editor: Editor) -> None:
        self.service, self.editor = service, editor

    def layout(self) -> None:
        with gr.Row(elem_classes="tm-pairs", equal_height=True):
            self.text = gr.Textbox(
                label="Text", show_label=False, placeholder="Or type a short text here", lines=7, max_lines=12,
                container=False, elem_classes="tm-text",
            )  # fmt: skip
            self.result = html_block(classes="tm-answer", script=EDIT)
        with gr.Row(elem_classes="tm-below"):
            self.translate = gr.Button("Translate text", size="sm", min_width=120, scale=0)
            quiet_line("Shift + Enter")
            self.editor.layout()

    def answer(self, request: gr.Request, text: str, plugin: int | None, strength: float, enforce: bool) -> Iterator[Values]:
        """Translate a short text, yielding the result line by line."""
        project = self.service.need(requested_project(request))
        lines, waiting = lines_of(text), tr("Translating")
        yield {self.result: result_box([], project, wait=waiting if lines else "")}
        row, terms = plugin_of(self.service, plugin), terms_of(self.service, project, enforce)
        by: dict[str, Any] = {"plugin": row.id if row else 0, "strength": float(strength)}
        done: list[list[TranslatedSentence]] = []
        for sentences in translate_lines(self.service, project, lines, row, float(strength), terms):
            done.append(sentences)
            more = len(done) < len(lines)
            if sentences or not more:
                yield {self.result: result_box(done, project, wait=waiting if more else "", **by)}
        if other := plainly_other(" ".join(lines), project.source, project.target):
            yield {self.result: result_box(done, project, other=other, **by)}
