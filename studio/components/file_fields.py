"""Fields for files of sentences: uploaded from the user's machine, or given as a path on the server."""

from __future__ import annotations

from typing import Any

import gradio as gr

from engine.core.settings import Settings
from engine.messages import Message
from studio.components.html import html_block
from studio.components.templating import script
from studio.services.uploads import paths_offered, too_large


def drop_field(label: str, height: int, scale: int | None = None) -> Any:
    """A field in which to drop or choose files; `height` in pixels.

    It accepts any file extension: Gradio would drop others silently, while the studio reports why it refuses them.
    """
    return gr.File(label=label, show_label=False, file_count="multiple", height=height, scale=scale, elem_classes="tm-drop")


def large_files() -> Any:
    """A component that removes files that are too large from those chosen on the page and reports them in its event `refuse`."""
    return html_block(script=script("large-files.js"))


def reasons_of(event: gr.EventData, settings: Settings) -> dict[str, Message]:
    """Why the files of a `refuse` event are too large, by name."""
    names = [str(name)[:255] for name in event.names][: settings.max_upload_files]
    return {name: too_large(name, settings) for name in names}


def path_field(settings: Settings) -> Any:
    """The field for a path on the server; hidden if the settings do not allow such paths."""
    return gr.Textbox(
        show_label=False, container=False, max_lines=1, elem_classes="tm-path-field",
        placeholder="or a path on this machine: /data/manuals.tmx, or a folder",
        visible=paths_offered(settings), label="Path on this machine", max_length=1000,
    )  # fmt: skip
