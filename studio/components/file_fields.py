"""Fields for files of sentences: dropped from the user's machine, or named by a path on the server's."""

from __future__ import annotations

from typing import Any

import gradio as gr

from engine.core.settings import Settings
from engine.messages import Message
from studio.components.html import html_block
from studio.components.templating import script
from studio.services.uploads import paths_offered, too_large


def drop_field(label: str, height: int, scale: int | None = None) -> Any:
    """Where files are dropped, or chosen after a click; `height` in pixels.

    Files of any ending: Gradio would leave out others without a word, and the studio says why it does not take them.
    """
    return gr.File(
        label=label, show_label=False, file_count="multiple", height=height, scale=scale, elem_classes="tm-drop",
    )  # fmt: skip


def large_files() -> Any:
    """Removes files that are too large from those chosen or dropped on the page, and reports them by its event `refuse`."""
    return html_block(script=script("large-files.js"))


def reasons_of(event: gr.EventData, settings: Settings) -> dict[str, Message]:
    """Why those files are not taken, by name."""
    names = [str(name)[:255] for name in event.names][: settings.max_upload_files]
    return {name: too_large(name, settings) for name in names}


def path_field(settings: Settings) -> Any:
    """A path on the server's machine; not to be seen where the settings do not offer it."""
    return gr.Textbox(
        show_label=False, container=False, max_lines=1, elem_classes="tm-path-field",
        placeholder="or a path on this machine: /data/manuals.tmx, or a folder",
        visible=paths_offered(settings), label="Path on this machine", max_length=1000,
    )  # fmt: skip
