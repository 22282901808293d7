"""The page Proportions: the domain proportions of each word of a sentence and of the samples, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from engine.methods.domain_mixing.shapes import Shown
from engine.store import PluginRow, ProjectRow
from studio.components import domain_figures as draw
from studio.components.html import hidden_text, html_block, note, toggle_value, toggled, visible_if
from studio.components.import_status import next_link
from studio.components.layout import MODEL, QUIET, StudioPage, handle_errors, heading, page, requested_project
from studio.i18n.translate import tr
from studio.pages import Values
from studio.pages.proportions_samples import SamplesCards
from studio.pages.proportions_sentence import Opened, SentenceCard, layer_in, layers_in
from studio.services.catalog import language_name
from studio.services.proportions import LONGEST, SIDES, Proportions
from studio.services.service import Service

TEXT = "How strongly each word belongs to each domain, layer by layer."


class ProportionsPage(StudioPage):
    """/proportions: a sentence word by word, the samples as a whole, and words across domains."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        super().__init__(demo, service)
        self.proportions = Proportions(service)

    def layout(self) -> None:
        with page(self.demo, self.service, "proportions", "Proportions", TEXT) as self.frame:
            with self.frame.actions:
                self.fit = gr.Button("Fit again", size="md", visible="hidden")
                self.onward = html_block()
            self.nothing = html_block()
            with toggled(gr.Column, elem_classes="tm-proportions") as self.body:
                self.sentence = SentenceCard(self)
                self.samples = SamplesCards(self)
            self.mark = html_block(script=draw.MARK, visible="hidden")
            self.version = hidden_text()

    def events(self) -> None:
        sentence, samples = self.sentence, self.samples
        fields = [sentence.plugin, sentence.text, samples.side, samples.word]
        everything = [
            self.frame.title, self.nothing, self.onward, self.fit, self.body, *fields, sentence.examples, sentence.shares,
            samples.corpus, samples.words, self.mark, self.version,
        ]  # fmt: skip
        self.demo.load(handle_errors(self.fill), None, everything, **QUIET)
        self.frame.timer.tick(handle_errors(self.poll, polled=True), [self.version, *fields], everything, **QUIET)
        self.sentence.events()
        self.samples.events()
        sentence.plugin.input(handle_errors(self.choose), fields, everything, **MODEL)
        self.fit.click(handle_errors(self.fit_again), fields, everything, **QUIET)

    def opened(self, request: gr.Request, number: Any) -> Opened:
        """The project, its fitted proportions (of the samples or a plugin), and the plugin. Raises InputError."""
        project = self.service.need(requested_project(request))
        plugin = self.proportions.plugin(project, number)
        return project, self.proportions.need(project, plugin), plugin

    def fill(self, request: gr.Request, parameters: Mapping[str, Any] | None = None) -> Iterator[Values]:
        """Fill the page by its address, or by `parameters`, because events do not receive an address that changed later."""
        project, parameters = self.service.project(requested_project(request)), parameters or dict(request.query_params)
        if project is None:
            yield {self.nothing: draw.no_proportions(None, "", False), self.onward: "",
                   self.fit: gr.update(visible="hidden"), self.body: toggle_value(False)}  # fmt: skip
            return
        plugin = self.proportions.plugin(project, parameters.get("plugin"))
        proportions = self.proportions.chart_data(project, plugin)
        state = self.state_values(project, proportions)
        if "corpus" not in proportions:
            yield {self.frame.title: heading("Proportions", TEXT), self.body: toggle_value(False), **state}
            return
        side = str(parameters.get("side", "")) if parameters.get("side") in SIDES else "decoder"
        word, text = str(parameters.get("word", ""))[:60], str(parameters.get("sentence", ""))[:LONGEST]
        rows = self.proportions.plugins(project)
        layers, number = layers_in(request), layer_in(request, "example")
        hint = tr("A sentence in {language}", language=language_name(project.source))
        yield {
            **state,
            **self.title_values(project, proportions, plugin),
            self.body: toggle_value(True),
            self.sentence.plugin: gr.update(
                choices=[(tr("samples, before training"), ""), *((row.name, str(row.id)) for row in rows)],
                value=str(plugin.id) if plugin else "", visible=visible_if(bool(rows)),
            ),
            self.sentence.text: gr.update(value=text, placeholder=hint),
            self.sentence.shares: "" if text else draw.example_view(
                proportions, project, layers, number, self.service.domains(project.id)
            ),
            self.samples.side: side,
            self.samples.word: word,
            **self.samples.values(request, project, proportions, side, word),
        }  # fmt: skip
        if text:
            yield from self.sentence.values(request, project, plugin, text)

    def state_values(self, project: ProjectRow, proportions: Shown) -> Values:
        """The progress of fitting, what is missing, and the buttons for the next step."""
        job, samples, fitted = (self.proportions.job(project), bool(self.service.sentences(project.id)), "corpus" in proportions)
        state = draw.job_card(job) if job else ""
        if not fitted:
            state = state or draw.no_proportions(project, str(proportions.get("error", "")), samples)
        label = tr("Fit again") if fitted else tr("Fit proportions")
        return {
            self.nothing: state,
            self.onward: next_link(project) if samples else "",
            self.fit: gr.update(visible=visible_if(samples and job is None), value=label),
            self.version: self.proportions.version(project),
        }

    def title_values(self, project: ProjectRow, proportions: Shown, plugin: PluginRow | None) -> Values:
        return {
            self.frame.title: heading("Proportions", draw.title_line(proportions, plugin)),
            self.sentence.examples: draw.example_buttons(proportions, project.target),
        }

    def choose(self, request: gr.Request, number: Any, text: str, side: str, word: str) -> Iterator[Values]:
        """Show the proportions of another plugin or of the samples, fitting them first if necessary."""
        project = self.service.need(requested_project(request))
        plugin = self.proportions.plugin(project, number)
        proportions = self.proportions.chart_data(project, plugin)
        if "corpus" not in proportions:
            self.proportions.fit(project, plugin)
            line = tr("The proportions of this plugin are being read. They appear in a few seconds.")
            yield {self.nothing: note(line)}
            return
        yield {
            **self.title_values(project, proportions, plugin),
            **self.samples.values(request, project, proportions, side, word),
            self.nothing: "",
            self.mark: draw.page_address(plugin=str(plugin.id) if plugin else ""),
        }
        yield from self.sentence.values_or_example(request, (project, proportions, plugin), " ".join(text.split()))

    def fit_again(self, request: gr.Request, number: Any, text: str, side: str, word: str) -> Iterator[Values]:
        project = self.service.need(requested_project(request))
        self.proportions.fit(project, self.proportions.plugin(project, number), again=True)
        yield from self.fill(request, as_asked(number, text, side, word))

    def poll(self, request: gr.Request, before: str, number: Any, text: str, side: str, word: str) -> Iterator[Values]:
        """Show the progress of fitting; refill the page when the result has changed."""
        project = self.service.project(requested_project(request))
        version = self.proportions.version(project) if project else before
        if project is None or version == before:
            yield {self.version: gr.skip()}
            return
        job = self.proportions.job(project)
        if job and "corpus" in self.proportions.chart_data(project, self.proportions.plugin(project, number)):
            yield {self.nothing: draw.job_card(job), self.version: version}
        else:
            yield from self.fill(request, as_asked(number, text, side, word) if before else None)


def as_asked(number: Any, text: str, side: str, word: str) -> dict[str, object]:
    """The state of the page as address parameters."""
    return {"plugin": number or "", "sentence": text or "", "side": side or "", "word": word or ""}


build = ProportionsPage.build
