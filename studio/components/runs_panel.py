"""The runs of the page Train: the current run with its curve, the table of all runs, compared runs, and the preview."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import gradio as gr

from engine.core.cores import usable_cores
from engine.core.numerals import whole_number
from engine.core.step_cache import content_hash
from engine.errors import InputError
from engine.jobs import log_tail
from engine.store import JobRow, PluginRow, ProjectRow
from engine.workflows.customize.request import CustomizeRequest
from studio.components.html import card_title, hidden_text, html_block, link_button, toggle_value, toggled, visible_if
from studio.components.layout import EACH, LAST, QUIET, address, handle_errors, requested_project
from studio.components.plots import MEASURES, bleu_curve, loss_curve, overlaid
from studio.components.preview_card import LOOK, look_card
from studio.components.run_cards import (
    ACT,
    compare_card,
    device_card,
    figure_card,
    log_card,
    no_runs,
    progress_card,
    runs_table,
    training,
)
from studio.i18n.translate import tr
from studio.services.runs import Runs

LOG = 6_000  # characters read from the end of the log
CURVES = [("Loss", "loss"), ("BLEU", "bleu")]
BARE: dict[str, object] = {"show_label": False, "container": False}


class RunsPanel:
    """The panel of runs; it polls every two seconds and sends only changed parts to the page."""

    def __init__(self, runs: Runs) -> None:
        self.runs, self.store = runs, runs.service.store

    def layout(self) -> None:
        """Lay out the current run, the table of all runs, the comparison and the preview."""
        self.versions, self.compared_runs, self.sample = (hidden_text() for _ in range(3))
        with toggled(gr.Row, elem_classes="tm-live") as self.live:
            with gr.Column(scale=3, min_width=360, elem_classes="tm-card tm-pad tm-stack"):
                self.status = html_block(script=ACT)
                self.curve = gr.Radio(CURVES, value="loss", visible="hidden", elem_classes="tm-segments", **BARE)
                self.plot = gr.Plot(visible="hidden", elem_classes="tm-plot", **BARE)
                self.device = html_block()
                with gr.Accordion("Log", open=False, elem_classes="tm-advanced"):
                    self.log = html_block()
            self.figures = html_block(script=ACT, scale=2, min_width=260)
        self.table = html_block(script=ACT)
        with toggled(gr.Column, elem_classes="tm-card tm-pad tm-stack") as self.comparing:
            with gr.Row(elem_classes="tm-budget"):
                card_title("Compared")
                measures = [(name, key) for key, (name, _) in MEASURES.items()]
                self.measure = gr.Radio(measures, value="valid_loss", elem_classes="tm-segments", **BARE)
            self.overlay = gr.Plot(elem_classes="tm-plot tm-overlay", **BARE)
            self.differences = html_block(classes="tm-compared")
        self.look = html_block(script=LOOK)

    def events(self, timer: Any, start: Any, next_step: Any) -> None:
        """Wire the panel; the button that starts a run and the link to the next step depend on the runs."""
        self.start, self.next_step = start, next_step
        self._asked = [self.versions, self.compared_runs, self.curve, self.measure, self.sample]
        self._polled = [
            self.look, self.live, self.status, self.curve, self.plot, self.device, self.log, self.figures, self.table,
            self.comparing, self.differences, self.overlay, start, next_step, self.versions,
        ]  # fmt: skip
        timer.tick(handle_errors(self.poll, polled=True), self._asked, self._polled, **QUIET)
        for component in (self.table, self.figures, self.status):
            self.poll_after(component.act(handle_errors(self.act), None, None, **EACH))
        self.poll_after(self.table.pick(None, None, self.compared_runs, js="() => tmParameter('runs')", **EACH))
        self.poll_after(self.figures.pick(None, None, self.sample, js="() => tmParameter('sample')", **EACH))
        self.poll_after(self.look.look(handle_errors(self.look_again), None, None, **QUIET))
        self.poll_after(self.look.make(handle_errors(self.start_knn), None, None, **QUIET))
        for control in (self.curve, self.measure):
            control.input(handle_errors(self.poll), self._asked, self._polled, **LAST)

    def poll_after(self, event: Any) -> None:
        """Poll right after an event to show its changes."""
        event.then(handle_errors(self.poll), self._asked, self._polled, **QUIET)

    # -- what the panel shows

    def poll(self, request: gr.Request, versions: str, compared: str, curve: str, measure: str, sample: str) -> dict[Any, Any]:
        project = self.runs.service.project(requested_project(request))
        jobs = self.runs.of(project.id) if project else []
        job = self.runs.displayed_run(jobs, str(request.query_params.get("run", "")))
        sent = Unchanged(versions)
        if project is None or job is None:
            sent.put(self.look, "look", look_card(project, *self.runs.look_shown(project)) if project else "")
            sent.put(self.table, "runs", no_runs(project))
            gates = {self.live: toggle_value(False), self.comparing: toggle_value(False)}
            return {**sent.updates, **gates, self.versions: sent.versions}
        watched = whole_number(sample or str(request.query_params.get("sample", "")))
        plugins = self.runs.plugins(project.id)
        self._show_run(sent, project, jobs, job, curve, watched, plugins.get(job.id))
        chosen = [int(number) for number in run_numbers(compared)]
        table = runs_table(jobs, plugins, project, self.runs.queue_positions(), chosen, job.id)
        sent.put(self.table, "runs", table)
        together = [(len(jobs) - index, row) for index, row in enumerate(jobs) if row.id in chosen][::-1]
        self._show_comparison(sent, together, plugins, measure)
        active = any(row.active for row in jobs)
        done = job.state == "succeeded" and not active
        words = tr("Add to the queue") if active else tr("Start training")
        compare = address("compare", project.id)
        if (plugin := plugins.get(job.id)) is not None:  # it need not be the default plugin
            compare += f"&plugin={plugin.id}"
        sent.put(self.next_step, "next", link_button(compare, tr("Compare translations")) if done else "")
        return {
            **sent.updates,
            self.live: toggle_value(True),
            self.comparing: toggle_value(len(together) > 1),
            self.start: gr.update(value=words, variant="secondary" if done else "primary"),
            self.versions: sent.versions,
        }

    def _show_run(self, sent: Unchanged, project: ProjectRow, jobs: Sequence[JobRow], job: JobRow, curve: str,
                  sample: int | None, plugin: PluginRow | None) -> None:  # fmt: skip
        rows, number, before = self.runs.curve(job), len(jobs) - jobs.index(job), self.runs.queue_positions()
        sent.put(self.look, "look", look_card(project, *self.runs.look_shown(project), folded=True))
        sent.put(self.status, "status", progress_card(job, number, rows, before.get(job.id, 0), plugin))
        sent.put(self.device, "device", device_card(job, self.store.usage.get(job.id), usable_cores()))
        sent.put(self.log, "log", log_card(log_tail(job, LOG)))
        sent.put(self.figures, "figures", figure_card(job, rows, project, sample))
        # A chart is resent only if it has new data, so that polling does not undo the user's zoom.
        if sent.changed("plot", f"{job.id}.{job.attempt}.{len(rows)}.{curve}"):
            total = int(job.total) if job.total and training(job) else None
            draw = bleu_curve if curve == "bleu" else loss_curve
            chart = gr.update(value=draw(rows, total), visible=True) if rows else gr.update(visible="hidden")
            sent.updates[self.plot] = chart
        watched = any(row.get("style_bleu") is not None for row in rows)
        if sent.changed("measure", str(watched)):
            sent.updates[self.curve] = gr.update(visible=visible_if(watched))

    def _show_comparison(
        self, sent: Unchanged, jobs: Sequence[tuple[int, JobRow]], plugins: dict[int, PluginRow], measure: str
    ) -> None:
        """Show curves and differences of two or more runs; `jobs`: number and row."""
        if len(jobs) < 2:
            return
        curves = [(tr("run {number}", number=number), self.runs.curve(job)) for number, job in jobs]
        if sent.changed("overlay", f"{[job.id for _, job in jobs]}.{measure}.{[len(rows) for _, rows in curves]}"):
            sent.updates[self.overlay] = overlaid(curves, measure)
        sent.put(self.differences, "compared", compare_card(jobs, plugins))

    # -- what the user does

    def act(self, request: gr.Request, event: gr.EventData) -> None:
        """Cancel or resume a run, or continue one that reached its time limit. Raises InputError for a deleted run."""
        project, number = self.runs.service.need(requested_project(request)), whole_number(event.job) or 0
        job = next((row for row in self.runs.of(project.id) if row.id == number), None)
        if job is None:
            raise InputError("That run no longer exists. Reload the page.")
        if event.act == "cancel":
            self.store.jobs.cancel(number)
        elif event.act == "resume":
            self.store.jobs.resume(number)
        elif event.act == "go_on":
            self.runs.continued(project, job)

    def look_again(self, request: gr.Request) -> None:
        """Queue a preview."""
        self.runs.look_again(self.runs.service.need(requested_project(request)))

    def start_knn(self, request: gr.Request) -> None:
        """Turn the preview into a plugin: queue a quick kNN run."""
        project = self.runs.service.need(requested_project(request))
        self.runs.service.start_run(project, CustomizeRequest(method="knn", budget="quick"))
        gr.Info(tr("Starts when a worker is free."), duration=5, title=tr("The run is queued"))


def run_numbers(text: str) -> list[str]:
    """The numbers in a list such as `3,5`, as strings."""
    return [part for part in text.split(",") if whole_number(part) is not None]


class Unchanged:
    """The component updates of one poll. `versions`, kept by the page between polls, is JSON: {name: hash of shown content}."""

    def __init__(self, versions: str) -> None:
        self.updates: dict[Any, Any] = {}
        try:
            self._versions = dict(json.loads(versions or "{}"))
        except (ValueError, TypeError, RecursionError):
            self._versions = {}

    def changed(self, name: str, content: str) -> bool:
        """Whether the content differs from that shown under this name; it is then recorded as shown."""
        version = content_hash(content)[:12]
        before, self._versions[name] = self._versions.get(name), version
        return before != version

    def put(self, component: Any, name: str, html: str) -> None:
        """Update a component if its HTML has changed."""
        if self.changed(name, html):
            self.updates[component] = html

    @property
    def versions(self) -> str:
        return json.dumps(self._versions)
