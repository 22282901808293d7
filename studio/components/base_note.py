"""The note on the quality of a bundled base, with a link to better ones: on Train, Compare, Translate, the new-project form."""

from __future__ import annotations

import gradio as gr

from engine.base.quality import direction_scores
from engine.base.registry import BaseRegistry
from engine.store import ProjectRow
from studio.components.html import html_block
from studio.components.layout import Page, handle_errors, requested_project
from studio.components.templating import render
from studio.i18n.translate import tr
from studio.services.base_models import base_of
from studio.services.service import Service


def base_note(service: Service, project: ProjectRow | None) -> str:
    """The note as HTML for a project's base: it is called a demonstration model and rated by its card's BLEU scores, the lowest
    first. Empty for bases that the user added.
    """
    return quality_note(service, project.base, project.source, project.target, project.id) if project else ""


def quality_note(service: Service, base: str, source: str, target: str, project: int = 0) -> str:
    """The note for any base and direction, such as those of a project about to be created."""
    entry = base_of(BaseRegistry(service.settings), base)
    if entry is None or not entry.shipped:
        return ""
    scores = sorted(direction_scores(entry.scores, source, target), key=lambda score: score.bleu)
    parts = [
        tr(
            "{test}: {words} (BLEU {bleu})",
            test=tr(score.text) if score.text else score.test,
            words=tr(score.words),
            bleu=f"{score.bleu:.1f}",
        )
        for score in scores[:3]
    ]
    return render("base_note.html", name=entry.name, quality=tr("; ").join(parts), project=project)


def add_base_note(frame: Page, service: Service) -> None:
    """Add the note to a page."""

    def fill(request: gr.Request) -> str:
        return base_note(service, service.project(requested_project(request)))

    frame.fills[html_block()] = handle_errors(fill, polled=True)
