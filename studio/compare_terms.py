"""The terms that a project's translations should use: written down below a comparison's figures, counted when it is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.html import gated, view

__all__ = ["Terms", "terms_box"]


@dataclass(frozen=True)
class Terms:
    """The parts of the box: what shows it, the text, the button, and what is said after it."""

    gate: Any
    text: gr.Textbox
    save: gr.Button
    said: Any


def terms_box() -> Terms:
    """A box that is folded until somebody has terms."""
    with (
        gated(gr.Column, elem_classes="tm-compare-terms") as gate,
        gr.Accordion("Terms to be used", open=False, elem_classes="tm-advanced"),
    ):
        view(
            '<p class="tm-quiet">One a line: a term of the language translated into, or source term = target term. Counted '
            "is how many of those called for are there.</p>"
        )
        text = gr.Textbox(
            label="Terms", show_label=False, container=False, lines=5, max_lines=12, max_length=200_000,
            placeholder="contract = Vertrag",
        )  # fmt: skip
        with gr.Row(elem_classes="tm-pager"):
            save = gr.Button("Save and measure", size="sm", scale=0, min_width=160)
            said = view(classes="tm-quiet")
    return Terms(gate, text, save, said)
