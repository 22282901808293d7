"""The map of phrases: the button that draws it, the progress, and the figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr
from markupsafe import Markup

from engine.store import JobRow, ProjectRow
from studio.components.html import card_title, hidden_text, html_block
from studio.components.plotly import domain_colours, figure, figure_view
from studio.components.templating import render
from studio.components.theme import layer_colours
from studio.i18n.translate import tr, translate_message
from studio.services.project_phrases import ProjectPhrases


class PhraseMap:
    """The map's card; `all` are the components that events fill."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
            with gr.Row(elem_classes="tm-map-head"):
                card_title("Map of phrases")
                self.draw = gr.Button("Draw the map", size="sm", scale=0)
            self.progress = html_block()
            self.points = figure_view()
            self.state = hidden_text()  # of the map and its job as the page shows them
        self.all = [self.draw, self.progress, self.points, self.state]

    def values(self, source: ProjectPhrases) -> dict[Any, Any]:
        """The map, or a description of what it would show, and the progress of drawing it."""
        version, job = source.map_version(), source.map_job()
        busy = job is not None and job.active
        figure = map_figure(source.project, version, source.decoder_layers, source.domains) if version else ""
        return {
            self.draw: gr.update(value=tr("Draw again") if version else tr("Draw the map"), interactive=not busy),
            self.progress: map_state(job) if busy or not version else "",
            self.points: render("phrase_map.html", figure=figure),
            self.state: map_key(version, job),
        }

    def changes(self, source: ProjectPhrases, state: str) -> dict[Any, Any]:
        """The values if the map is being drawn or differs from the `state` on the page, else an unchanged `state`."""
        job = source.map_job()
        if map_key(source.map_version(), job) == state and not (job and job.active):
            return {self.state: gr.skip()}
        return self.values(source)


def map_key(version: int, job: JobRow | None) -> str:
    """A string that differs for every version of the map and every state of its newest job."""
    return f"{version} {job.id} {job.state}" if job else str(version)


def map_state(job: JobRow | None) -> str:
    """The progress while the map is drawn, or why drawing failed; empty otherwise."""
    if job is None or job.state in ("succeeded", "cancelled"):
        return ""
    return render("job_state.html", job=job, error=translate_message(job.error) or tr("The map was not finished. Draw it again."))


def map_figure(project: ProjectRow, version: int, layers: int, domains: Sequence[str]) -> Markup:
    """The map drawn at `version`, its points coloured by the decoder's `layers` or by the project's `domains`."""
    by_name = dict(zip(domains, domain_colours(domains), strict=True))
    colours = {"layer_colours": layer_colours(layers), "domain_colours": by_name}
    source = f"/tm/projects/{project.id}/phrase-map?v={version}"
    return Markup(figure("map", colours, source=source, label=tr("Map of phrases")))
