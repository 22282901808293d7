"""The page Rate: blind rating rounds on a saved comparison, their raters and links, and the results."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from engine.store.ratings import RoundRow
from engine.store.tables import now
from engine.workflows.human_rating import RoundPlan
from studio.components.html import hidden_text, html_block, toggle_value, toggled, visible_if
from studio.components.layout import EACH, FOLLOW, LAST, QUIET, StudioPage, address, handle_errors, page, requested_project
from studio.components.rating_results import manage_box, nothing_to_rate, rater_table, result_cards, round_menu, round_preview
from studio.components.templating import script
from studio.i18n.translate import moment
from studio.pages import Values
from studio.services.origin import origin_of
from studio.services.ratings import comparison_texts, rater_names, sentence_limit, start_round

TEXT = "Blind comparison: raters judge which of two unlabelled translations is better. Each rater gets a page of their own."
USUAL = 40  # default number of sentences of a new round
LOCAL = ("127.0.0.1", "localhost", "::1")
ACT = script("copy.js") + script("rate-act.js")
GO = script("rate-go.js")
# Puts the round into the address without a reload.
MARK = script("rate-mark.js")


class RatePage(StudioPage):
    """/rate: a form for a new round, or a round with its results and raters."""

    def layout(self) -> None:
        """Create the components."""
        with page(self.demo, self.service, "rate", "Rate", TEXT) as self.frame:
            with self.frame.actions:
                self.menu = html_block(script=GO)
                self.start = gr.Button("Start the round", variant="primary", visible="hidden")
            self.nothing = html_block()
            with toggled(gr.Column, elem_classes="tm-card tm-pad tm-stack tm-fields tm-new-round") as self.form:
                self.comparison = gr.Dropdown([], label="Comparison", interactive=True)
                with gr.Row():
                    self.one = gr.Dropdown([], label="System", interactive=True, min_width=160)
                    self.two = gr.Dropdown([], label="Against", interactive=True, min_width=160)
                    self.max_sentences = gr.Number(USUAL, label="Maximum sentences", precision=0, minimum=1, min_width=120)
                self.preview = html_block(classes="tm-quiet")
                self.names = gr.Textbox(label="Raters", placeholder="One name per line", lines=3, max_lines=8)
                self.with_examples = gr.Checkbox(True, label="Raters can open five sample sentences to get to know the style")
            with toggled(gr.Column, elem_classes="tm-stack") as self.round:
                self.results = html_block()
                self.raters = html_block(script=ACT)
                with gr.Row(elem_classes="tm-one-line"):
                    self.new_name = gr.Textbox(
                        label="Name of another rater", show_label=False, placeholder="Name of another rater",
                        container=False, max_length=80, scale=0, min_width=260,
                    )  # fmt: skip
                    self.add = gr.Button("Add a rater", scale=0, min_width=120)
                self.manage = html_block(script=ACT)
            self.current = hidden_text()
            self.project = hidden_text()
            self.leave = hidden_text()

    def events(self) -> None:
        """Wire the events."""
        choice = [self.comparison, self.one, self.two, self.max_sentences]
        live = [self.results, self.raters, self.manage]
        outputs = [self.menu, self.start, self.form, self.round, self.current]
        everything = [*outputs, self.nothing, self.comparison, self.one, self.two, self.preview, self.project]
        poll = handle_errors(self.poll)
        self.demo.load(handle_errors(self.fill), None, everything, **QUIET).then(poll, self.current, live, **QUIET)
        self.frame.timer.tick(handle_errors(self.poll, polled=True), self.current, live, **QUIET)
        systems = [self.one, self.two, self.preview]
        self.comparison.input(handle_errors(self.choose_comparison), [self.comparison, self.max_sentences], systems, **LAST)
        for field in (self.one, self.two, self.max_sentences):
            field.input(handle_errors(self.count), choice, self.preview, **LAST)
        self.start.click(handle_errors(self.begin), [*choice, self.names, self.with_examples], outputs, **QUIET).then(
            poll, self.current, live, **QUIET
        ).then(None, [self.current, self.project], None, js=MARK)
        for event in (self.add.click, self.new_name.submit):
            event(handle_errors(self.add_rater), [self.current, self.new_name], self.new_name, **QUIET).then(
                poll, self.current, live, **QUIET
            )
        self.manage.act(handle_errors(self.act), self.current, self.leave, **EACH).then(poll, self.current, live, **QUIET).then(
            None, self.leave, None, js=FOLLOW
        )

    def fill(self, request: gr.Request) -> Values:
        """Fill the page for the project and round in its address."""
        service = self.service
        project = service.project(requested_project(request))
        saved = service.store.sheets.titles(project.id) if project else []
        rounds = service.store.ratings.list(project.id) if project else []
        row = _wanted_round(request, rounds)
        values = {
            self.menu: round_menu(rounds, row, project.id) if project and rounds else "",
            self.start: gr.update(visible=visible_if(row is None and bool(saved))),
            self.nothing: "" if row or saved else nothing_to_rate(project),
            self.form: toggle_value(row is None and bool(saved)),
            self.round: toggle_value(row is not None),
            self.current: str(row.id) if row else "",
            self.project: str(project.id) if project and (saved or rounds) else "",
        }
        if row is not None or not saved:
            return values
        requested = str(request.query_params.get("comparison", ""))
        first = next((number for number, *_ in saved if str(number) == requested), saved[0][0])
        choices = [(f"{moment(created)} · {title}", number) for number, title, created in saved]
        comparison = gr.update(choices=choices, value=first)
        return values | {self.comparison: comparison} | self.choose_comparison(first, USUAL)

    def choose_comparison(self, comparison: int | None, max_sentences: float | None) -> Values:
        """Fill the menus with the systems of a comparison."""
        systems = list(comparison_texts(self.service.store, comparison).systems)
        first, second = systems[min(1, len(systems) - 1)], systems[0]
        return {
            self.one: gr.update(choices=systems, value=first),
            self.two: gr.update(choices=systems, value=second),
            **self.count(comparison, first, second, max_sentences),
        }

    def count(self, comparison: int | None, first: str | None, second: str | None, max_sentences: float | None) -> Values:
        """Show how many sentences the round would contain."""
        texts = comparison_texts(self.service.store, comparison)
        return {self.preview: round_preview(texts, first or "", second or "", max_sentences)}

    def begin(
        self, request: gr.Request, comparison: int | None, first: str, second: str, max_sentences: float | None, names: str,
        with_examples: bool,
    ) -> Values:  # fmt: skip
        """Start a round."""
        project = self.service.need(requested_project(request))
        raters, sentences = rater_names(names), sentence_limit(max_sentences)
        plan = RoundPlan(first, second, raters=raters, sentences=sentences, comparison_id=comparison)
        row = start_round(self.service, project.id, plan, examples=with_examples)
        return {
            self.menu: round_menu(self.service.store.ratings.list(project.id), row, project.id),
            self.start: gr.update(visible=visible_if(False)),
            self.form: toggle_value(False),
            self.round: toggle_value(True),
            self.current: str(row.id),
        }

    def poll(self, request: gr.Request, current: str) -> Values:
        """Refresh the results and raters of the round shown."""
        if not current:
            return {self.results: "", self.raters: "", self.manage: ""}
        ratings = self.service.store.ratings
        row = ratings.get(int(current))
        raters = ratings.raters(row.id)
        local = self.service.settings.host in LOCAL
        return {
            self.results: result_cards(self.service.store, row),
            self.raters: rater_table(raters, ratings.done(row.id), row, origin_of(request.headers), local),
            self.manage: manage_box(row, raters),
        }

    def add_rater(self, current: str, name: str) -> Values:
        """Add a rater and clear the field."""
        self.service.store.ratings.add_rater(int(current), name)
        return {self.new_name: ""}

    def act(self, current: str, event: gr.EventData) -> Values:
        """Close, reopen or delete the round, or remove a rater."""
        ratings, row = self.service.store.ratings, self.service.store.ratings.get(int(current))
        if event.act == "remove":
            ratings.remove_rater(int(event.number))
        elif event.act in ("close", "open"):
            ratings.update(row.id, closed=now() if event.act == "close" else None)
        elif event.act == "delete":
            ratings.delete(row.id)
        return {self.leave: address("rate", row.project_id) if event.act == "delete" else ""}


def _wanted_round(request: gr.Request, rounds: Sequence[RoundRow]) -> RoundRow | None:
    """The round named in the address, else the newest; None if a new one is requested."""
    number = str(request.query_params.get("round", ""))
    if number == "new" or request.query_params.get("comparison"):
        return None
    return next((row for row in rounds if str(row.id) == number), rounds[0] if rounds else None)


build = RatePage.build
