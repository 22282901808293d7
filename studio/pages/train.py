"""The page Train: choose a method and a budget, see the estimate, start a run, and follow its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import gradio as gr

from engine.errors import InputError, TailorError
from engine.store import ProjectRow
from engine.workflows.customize.request import CustomizeRequest
from studio.components.base_note import add_base_note
from studio.components.html import hidden_text, html_block, note, visible_if
from studio.components.layout import StudioPage, handle_errors, heading, page, requested_project
from studio.components.method_cards import CHOSEN, PICK, estimate_line, obstacle, project_cards
from studio.components.run_cards import queued_text
from studio.components.runs_panel import BARE, QUIET, RunsPanel, run_numbers
from studio.components.settings_fields import COLLECTED, FOLD, collected
from studio.components.templating import render, script
from studio.components.train_form import BUDGETS, PlanForm, plan_in_address
from studio.i18n.translate import mark, tr
from studio.pages import Values
from studio.services.files import machine
from studio.services.runs import Runs
from studio.services.service import Service

START = f"(...held) => ({COLLECTED})(...({CHOSEN})(...held))"  # passes the selected method and the current fields
MARK = script("train.js")  # keeps the plan in the address, so that reloads and links restore it
TEXT = "Only the plugin is trained; the base stays unchanged. You can close this page: training continues."


class TrainPage(StudioPage):
    """/train: the form for a run, and the runs below it."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        super().__init__(demo, service)
        self.runs, self.form = Runs(service), PlanForm()
        self.panel = RunsPanel(self.runs)

    def layout(self) -> None:
        with page(self.demo, self.service, "train", "Train", TEXT) as self.frame:
            with self.frame.actions:
                # The controls are disabled until the page is filled, which would overwrite earlier choices.
                self.start = gr.Button("Start training", variant="primary", interactive=False)
                self.next_step = html_block()
            add_base_note(self.frame, self.service)
            self.note = html_block()
            self.cards = html_block(script=PICK)
            self.method, self.address, self.settings = (hidden_text() for _ in range(3))
            with gr.Column(elem_classes="tm-card tm-pad tm-stack tm-plan"):
                with gr.Row(elem_classes="tm-budget"):
                    html_block("Budget", classes="tm-label")
                    self.budget = gr.Radio(BUDGETS, value="balanced", interactive=False, elem_classes="tm-segments", **BARE)
                    self.knn = gr.Checkbox(
                        False, label="Add kNN retrieval", interactive=False, container=False, elem_classes="tm-knn"
                    )
                    self.base = gr.Dropdown([], label="Base", visible="hidden", elem_classes="tm-base", **BARE)
                    self.estimate = html_block(classes="tm-quiet tm-right")
                self.fields = html_block(classes="tm-settings", script=FOLD)
            self.panel.layout()

    def events(self) -> None:
        written = [self.fields, self.settings]
        outputs = [
            self.frame.title, self.note, self.cards, self.estimate, self.method, self.budget, self.start, self.base,
            self.knn, self.panel.compared_runs, *written,
        ]  # fmt: skip
        plan = [self.method, self.budget, self.knn, self.base, self.settings]
        self.panel.events(self.frame.timer, self.start, self.next_step)
        self.panel.poll_after(self.demo.load(handle_errors(self.fill), None, outputs, **QUIET))
        for event in (
            self.cards.choose(handle_errors(self.choose_method), plan, [self.method, self.knn, *written], js=CHOSEN, **QUIET),
            self.budget.input(handle_errors(self.choose_budget), plan, [self.cards, *written], js=CHOSEN, **QUIET),
            self.base.input(handle_errors(self.choose_base), plan, self.cards, js=CHOSEN, **QUIET),
            self.knn.input(handle_errors(self.choose_knn), plan, written, js=CHOSEN, **QUIET),
        ):
            event.then(handle_errors(self.refresh), plan, [self.estimate, self.address, *written], js=CHOSEN, **QUIET).then(
                None, self.address, None, js=MARK
            )
        self.fields.settle(
            handle_errors(self.settle), plan, [self.settings, self.estimate, self.address],
            trigger_mode="multiple", js=CHOSEN, **QUIET,
        ).then(None, self.address, None, js=MARK)  # fmt: skip
        started = self.start.click(handle_errors(self.begin), plan, self.address, js=START, **QUIET)
        self.panel.poll_after(started.then(None, self.address, None, js=MARK))

    def fill(self, request: gr.Request) -> Values:
        project = self.service.project(requested_project(request))
        plan, says = plan_in_address(self.runs, self.form, project, request.query_params)
        bases = self.runs.bases(project) if project else []
        return {
            self.frame.title: heading("Train", TEXT),
            self.note: note(says) if says else "",
            self.cards: self._cards(project, plan),
            self.estimate: self._estimate(project, plan) if project else "",
            self.method: plan.method,
            self.budget: gr.update(value=plan.budget, interactive=True),
            self.start: gr.update(interactive=project is not None),
            self.base: gr.update(choices=bases, value=plan.base or None, visible=visible_if(len(bases) > 1)),
            self.panel.compared_runs: ",".join(run_numbers(str(request.query_params.get("runs", "")))),
            self.knn: self._knn(plan.method, plan.knn),
            **self._fields(plan.method, plan.budget, plan.knn, self.form.values(plan)),
        }

    def _cards(self, project: ProjectRow | None, plan: CustomizeRequest) -> str:
        estimates = self.runs.estimates(project, plan.base, plan.budget) if project else {}
        return project_cards(self.service, project, estimates, plan.method)

    def _knn(self, method: str, knn: bool) -> Any:
        return gr.update(interactive=(able := self.form.can_look_up(method)), value=knn and able)

    def _estimate(self, project: ProjectRow, plan: CustomizeRequest) -> str:
        """The estimate as a line of HTML. Raises OptionError on an invalid setting."""
        return estimate_line(self.runs.estimate(project, plan), machine(self.service.settings.home_dir), project.id)

    def _fields(self, method: str, budget: str, knn: bool, values: Mapping[str, Mapping[str, Any]]) -> Values:
        return {self.fields: self.form.fields(method, budget, knn, values), self.settings: self.form.text(method, budget, values)}

    def _reset_fields(self, method: str, budget: str, knn: bool, settings: str) -> Values:
        """Reset the fields to the settings of a budget and a method, keeping only the user's changes to the kNN settings."""
        values = self.form.values(CustomizeRequest(method=method, budget=budget))
        return self._fields(method, budget, knn, values | {"knn": values["knn"] | collected(settings).get("knn", {})})

    # -- what the user does; each handler receives the plan as the values of the controls

    def refresh(self, request: gr.Request, *plan: Any) -> Values:
        """The estimate and the address of the plan. The fields are reset as well if they belong to another method or budget,
        because two quick choices may be answered in either order.
        """
        method, budget, knn, _, settings = plan
        stale = not self.form.entered(settings, method, budget)
        return self._estimated(request, *plan) | (self._reset_fields(method, budget, knn, settings) if stale else {})

    def _estimated(self, request: gr.Request, *plan: Any) -> Values:
        """The estimate for the plan in the form, and the address that restores it."""
        project = self.service.project(requested_project(request))
        if project is None:
            return {self.estimate: "", self.address: ""}
        try:
            training_request = self.form.plan(project, plan)
            return {
                self.estimate: self._estimate(project, training_request),
                self.address: json.dumps(self.form.address(training_request, project)),
            }
        except TailorError as error:
            return {self.estimate: render("estimate_failed.html", error=error), self.address: ""}

    def choose_method(self, event: gr.EventData, method: str, budget: str, knn: bool, *rest: Any) -> Values:
        method = event.name
        if method not in self.form.names:
            raise InputError("This method no longer exists. Reload the page.")
        fields = self._reset_fields(method, budget, knn, rest[-1])
        return {self.method: method, self.knn: self._knn(method, knn), **fields}

    def choose_budget(self, request: gr.Request, *plan: Any) -> Values:
        method, budget, knn, _, settings = plan
        return {**self.choose_base(request, *plan), **self._reset_fields(method, budget, knn, settings)}

    def choose_base(self, request: gr.Request, *plan: Any) -> Values:
        """Update the methods' estimated costs for that base and budget."""
        method, budget, _, base, _ = plan
        project = self.service.project(requested_project(request))
        base = base or (project.base if project else "")
        return {self.cards: self._cards(project, CustomizeRequest(method=method, budget=budget, base=base))}

    def choose_knn(self, method: str, budget: str, knn: bool, base: str, settings: str) -> Values:
        """Show or hide the kNN settings and leave the others unchanged."""
        values = self.form.values(CustomizeRequest(method=method, budget=budget))
        return self._fields(method, budget, knn, values | self.form.entered(settings, method, budget))

    def settle(self, request: gr.Request, event: gr.EventData, *plan: Any) -> Values:
        """Update the estimate and the address after a setting was edited."""
        settings = str(event.held)
        return {self.settings: settings, **self._estimated(request, *plan[:-1], settings)}

    def begin(self, request: gr.Request, *plan: Any) -> Values:
        project = self.service.need(requested_project(request))
        training_request = self.form.plan(project, plan)
        if lack := obstacle(self.service, project, training_request.method, mark("Choose another method.")):
            raise InputError(lack)
        ahead = sum(job.active for job in self.runs.of(project.id))
        self.service.start_run(project, training_request)
        gr.Info(queued_text(ahead), duration=5, title=tr("The run is queued"))
        return {self.address: json.dumps({"run": "", "clone": ""})}


build = TrainPage.build
