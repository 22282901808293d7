"""The page Bases: installed bases, well-known ones by language pair, adding a base from the hub or a folder, removing a base."""

from __future__ import annotations

from collections.abc import Iterator

import gradio as gr
from markupsafe import Markup

from engine.errors import TailorError
from engine.store import ProjectRow
from studio.components.bases_boxes import installed_box, jobs_box, recommended_box
from studio.components.html import esc, hidden_text, html_block, size
from studio.components.layout import EACH, HEAVY, QUIET, StudioPage, handle_errors, in_turn, page, requested_project
from studio.components.model_cards import license_line
from studio.components.templating import render, script
from studio.i18n.translate import tr, translate_message
from studio.pages import Values
from studio.services.base_models import BaseModels
from studio.services.service import Service

TEXT = "The frozen models that plugins build on. The bundled ones are small and meant for trying things out."
PAIR = ("en", "zh")
# Keeps the pair in the address, so that reloads and links restore it.
MARK = script("bases-mark.js")


class BasesPage(StudioPage):
    """/bases: bases being added, installed bases, and well-known ones for a language pair."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        super().__init__(demo, service)
        self.models = BaseModels(service)

    def layout(self) -> None:
        events = script("bases.js")
        with page(self.demo, self.service, "bases", "Bases", TEXT) as self.frame:
            self.offer = html_block(script=events)
            self.adding = html_block(script=events)
            self.shelf = html_block(script=events, classes="tm-dialogs")
            self.known = html_block(script=events)
            self.source, self.target, self.version = (hidden_text() for _ in range(3))

    def events(self) -> None:
        pair, poll_outputs = [self.source, self.target], [self.adding, self.shelf, self.known, self.version]
        outputs = [*poll_outputs, *pair]
        self.demo.load(handle_errors(self.fill), None, outputs, **QUIET)
        self.frame.timer.tick(handle_errors(self.poll, polled=True), [self.version, *pair], poll_outputs, **QUIET)
        chosen = self.known.pair(handle_errors(self.choose_pair), None, [self.known, *pair], **in_turn("bases"))
        chosen.then(None, pair, None, js=MARK)
        self.known.look(handle_errors(self.look_up, heavy=True), None, self.offer, **HEAVY)
        for component in (self.offer, self.adding, self.shelf):
            acted = component.act(handle_errors(self.act), None, self.offer, **EACH)
            acted.then(handle_errors(self.fill), None, outputs, **QUIET)

    # -- what the page shows

    def fill(self, request: gr.Request) -> Values:
        project = self.service.project(requested_project(request))
        source, target = _pair(request, project)
        return {**self._drawn(project, source, target), self.source: source, self.target: target}

    def poll(self, request: gr.Request, version: str, source: str, target: str) -> Values:
        """Refresh the jobs, and redraw the page when a base has been added or removed."""
        if _version(self.models) == version:
            return {self.adding: jobs_box(self.models)}
        project = self.service.project(requested_project(request))
        if not source or not target:  # the first poll may come before the page is filled
            source, target = _pair(request, project)
        return self._drawn(project, source, target)

    def _drawn(self, project: ProjectRow | None, source: str, target: str) -> Values:
        return {
            self.adding: jobs_box(self.models),
            self.shelf: installed_box(self.models, project),
            self.known: recommended_box(self.models, source, target),
            self.version: _version(self.models),
        }

    # -- what the user does

    def choose_pair(self, event: gr.EventData) -> Values:
        source, target = str(event.source), str(event.target)
        return {self.known: recommended_box(self.models, source, target), self.source: source, self.target: target}

    def look_up(self, event: gr.EventData) -> Iterator[Values]:
        """Look up a model's licence and size on the hub or in a folder, then offer to add it."""
        yield {self.offer: render("base_offer.html", waiting=str(event.value), error="")}
        try:
            token, offer = self.models.look_up(str(event.value))
        except TailorError as error:
            yield {self.offer: render("base_offer.html", waiting="", error=translate_message(error.message))}
            return
        licence, free = Markup(license_line(offer.card)), self.models.free_bytes()
        values = {"offer": offer, "token": token, "free": free, "licence": licence}
        yield {self.offer: render("base_offer.html", waiting="", error="", **values)}

    def act(self, request: gr.Request, event: gr.EventData) -> Values:
        """Add the base looked up, use or remove a base, or act on a job that adds one."""
        value = str(event.value)
        if event.act == "add":
            self.models.add(value, bool(event.agreed))
        elif event.act == "use":
            self.models.use(self.service.need(requested_project(request)), value, bool(event.agreed))
        elif event.act == "remove":
            freed = self.models.remove(value)
            gr.Info(esc(tr("{name}, {size} freed", name=value, size=size(freed))), duration=5, title=tr("Removed"))
        elif event.act in ("cancel", "resume", "forget"):
            self.models.act(str(event.act), int(value))
        return {self.offer: ""}


def _pair(request: gr.Request, project: ProjectRow | None) -> tuple[str, str]:
    """The language pair in the address, else the project's, else a default."""
    source, target = (str(request.query_params.get(name, "")) for name in ("source", "target"))
    if source and target:
        return source, target
    return (project.source, project.target) if project else PAIR


def _version(models: BaseModels) -> str:
    """A string that changes when a base is added or removed."""
    return " ".join(entry.name for entry in models.shelf.entries())


build = BasesPage.build
