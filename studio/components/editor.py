"""In-place editing of translations: the server side of `static/edit.js`.

The script opens a field in a box with `data-edit`; it reads the answers to its requests from `reply`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import gradio as gr

from engine.errors import InputError, TailorError
from engine.store import ProjectRow
from studio.components.html import html_block
from studio.components.layout import MODEL, QUIET, handle_errors, requested_project
from studio.components.templating import render, script
from studio.i18n.translate import translate_message
from studio.services.edited_pairs import edited_pairs, learn
from studio.services.samples import EDITED
from studio.services.service import Service
from studio.services.translation import alternatives_of, plugin_of

EDIT = script("edit.js")


class Editor:
    """The editor of a page: alternatives, saving edited pairs to the samples, and their count."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def layout(self) -> None:
        self.count = html_block(classes="tm-edited-count")
        self.reply = html_block(classes="tm-reply")

    def events(self, *views: Any) -> None:
        """Wire the events that the script triggers in each of these views."""
        for view in views:
            view.alternatives(handle_errors(self.alternatives), None, self.reply, trigger_mode="multiple", **MODEL)
            view.learn(handle_errors(self.learn), None, [self.reply, self.count], trigger_mode="multiple", **QUIET)

    def counted(self, project: ProjectRow | None) -> str:
        """The number of the project's edited pairs, linked to them."""
        count = len(edited_pairs(self.service, project.id)) if project else 0
        address = urlencode({"project": project.id if project else "", "view": "kept", "file": EDITED})
        return render("edited_count.html", count=count, address=f"/samples?{address}")

    def alternatives(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Alternative translations of a sentence that start with the text before the cursor; on an error, such as a plugin of
        another project, the reason instead.
        """
        project, words = self.service.need(requested_project(request)), {"key": str(event.key), "word": str(event.word)}
        try:
            row = plugin_of(self.service, int(event.plugin or 0))
            if row is not None and row.project_id != project.id:
                raise InputError("This plugin belongs to another project. Reload the page.")
            base, source = self.service.base_model(project), str(event.source)
            result = alternatives_of(self.service, base, row, float(event.strength), source, str(event.prefix))
        except TailorError as error:
            return {self.reply: render("alternatives.html", **words, alternatives=None, why=translate_message(error.message))}
        return {self.reply: render("alternatives.html", **words, alternatives=result, why="", language=project.target)}

    def learn(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Add an edited translation to the project's samples."""
        project = self.service.need(requested_project(request))
        learn(self.service, project, str(event.source), str(event.translation), replaces=str(event.replaces))
        return {self.reply: self.done(event), self.count: self.counted(project)}

    def done(self, event: gr.EventData) -> str:
        """The answer after which the field closes."""
        return render("edit_done.html", key=str(event.key))
