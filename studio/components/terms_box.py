"""The terms that a project's translations should use: written down below a comparison's figures, counted when it is measured."""

from __future__ import annotations

import gradio as gr

from studio.components.html import html_block, quiet_line, toggled
from studio.services.terminology import MOST_CHARACTERS


class TermsBox:
    """A box that is folded until somebody has terms; `gate` shows it, `state` says what was done with them."""

    def __init__(self) -> None:
        with (
            toggled(gr.Column, elem_classes="tm-compare-terms") as self.gate,
            gr.Accordion("Terminology", open=False, elem_classes="tm-advanced"),
        ):
            quiet_line(
                "One per line: a target-language term, or source term = target term. The score is the share of required terms "
                "that appear in the translation. A TBX or CSV file replaces the terms in the box."
            )
            self.text = gr.Textbox(
                label="Terms", show_label=False, container=False, lines=5, max_lines=12, max_length=MOST_CHARACTERS,
                placeholder="source term = target term",
            )  # fmt: skip
            with gr.Row(elem_classes="tm-pager"):
                self.upload = gr.UploadButton("Import a file…", file_count="single", size="sm", scale=0, min_width=140)
                self.save = gr.Button("Save and measure", size="sm", scale=0, min_width=160)
                self.state = html_block(classes="tm-quiet")
