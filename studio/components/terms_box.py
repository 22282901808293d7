"""The box for a project's terminology below a comparison's figures; terms are counted when the comparison is measured."""

from __future__ import annotations

import gradio as gr

from studio.components.html import html_block, quiet_line, toggled
from studio.services.terminology import MOST_CHARACTERS


class TermsBox:
    """The folded terminology box; `gate` shows or hides it, `state` reports the result of the last action."""

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
