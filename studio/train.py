"""The page Train: choose a method and a budget, see what it takes, start, and see whether it is learning."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

import gradio as gr

from engine.errors import InputError, TailorError
from engine.store import JobRow, ProjectRow
from studio.fields import FOLD
from studio.files import cores
from studio.frame import address, guard, heading, page, wanted
from studio.html import esc, gated, note, shown_if, view, visible_if
from studio.i18n import tr, trn
from studio.live import (
    ACT,
    compare_card,
    device_card,
    figure_card,
    log_card,
    no_runs,
    progress_card,
    runs_table,
    training,
)  # fmt: skip
from studio.look import LOOK, look_card
from studio.methods import PICK, can_look_up, estimate_line, lacking, method_card, method_cards
from studio.planning import BUDGETS, PlanForm, plan_in_address
from studio.plots import MEASURES, bleu_curve, loss_curve, overlaid
from studio.runs import Plan, Runs
from studio.service import Service

__all__ = ["build"]

TEXT = "The base stays as it is; a plugin learns beside it. You can close this page: work goes on."
LOG = 6_000  # characters of the log's end
# What the form holds goes into the address, so that a reload or a shared link shows it again.
MARK = """(text) => {
  if (!text) return;
  const address = new URL(window.location.href);
  for (const [key, value] of Object.entries(JSON.parse(text))) {
    if (value) address.searchParams.set(key, value); else address.searchParams.delete(key);
  }
  window.history.replaceState(null, '', address);
}"""
# A start takes what stands in the fields now, be it settled or not.
NOW = "(...held) => [...held.slice(0, -1), window.tmSettings() || held.at(-1)]"


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/train`."""
    runs_of, form = Runs(service), PlanForm()
    bare: dict[str, Any] = {"show_label": False, "container": False}
    with page(demo, service, "train", "Train", TEXT) as frame:
        with frame.actions:
            # What is chosen before the page is filled would be lost when it is, so the controls wait for that.
            start = gr.Button("Start training", variant="primary", interactive=False)
        told = view()
        cards = view(script=PICK)
        method, where, seen, picked, settings = (gr.Textbox("", visible="hidden") for _ in range(5))
        with gr.Column(elem_classes="tm-card tm-pad tm-stack tm-plan"):
            with gr.Row(elem_classes="tm-budget"):
                view("Budget", classes="tm-label")
                budget = gr.Radio(
                    BUDGETS, value="balanced", interactive=False, elem_classes="tm-segments", **bare
                )  # fmt: skip
                knn = gr.Checkbox(
                    False, label="Look words up too (kNN)", interactive=False, container=False, elem_classes="tm-knn"
                )
                base = gr.Dropdown([], label="Base", visible="hidden", elem_classes="tm-base", **bare)
                before = view(classes="tm-quiet tm-right")
            fields = view(classes="tm-settings", script=FOLD)
        with gated(gr.Row, elem_classes="tm-live") as live:
            with gr.Column(scale=3, min_width=360, elem_classes="tm-card tm-pad tm-stack"):
                status = view()
                measure = gr.Radio(
                    [("Loss", "loss"), ("BLEU", "bleu")],
                    value="loss",
                    visible="hidden",
                    elem_classes="tm-segments",
                    **bare,
                )
                plot = gr.Plot(visible="hidden", elem_classes="tm-plot", **bare)
                device = view()
                with gr.Accordion("Log", open=False, elem_classes="tm-advanced"):
                    log = view()
            figures = view(script=ACT, scale=2, min_width=260)
        runs = view(script=ACT)
        with gated(gr.Column, elem_classes="tm-card tm-pad tm-stack") as comparing:
            with gr.Row(elem_classes="tm-budget"):
                view("<h2>Compared</h2>", classes="tm-card-title")
                kinds = [(name, key) for key, (name, _) in MEASURES.items()]
                against = gr.Radio(kinds, value="valid_loss", elem_classes="tm-segments", **bare)
            overlay = gr.Plot(elem_classes="tm-plot tm-overlay", **bare)
            compared = view(classes="tm-compared")
        look = view(script=LOOK)
    controls = [method, budget, knn, base, settings]

    # -- the form

    def fill(request: gr.Request) -> dict[Any, Any]:
        project = service.project(wanted(request))
        plan, says = plan_in_address(runs_of, form, project, request.query_params)
        chosen = form.methods[plan.method]
        if not says and project and (lack := lacking(service, project, chosen))[0]:
            says = tr(
                "{method} {lack} here. {remedy}", method=tr(chosen.capabilities.title), lack=lack[0], remedy=lack[1]
            )
        bases = runs_of.bases(project) if project else []
        return {
            frame.title: heading("Train", TEXT),
            told: note(says) if says else "",
            cards: all_cards(project, plan),
            before: line(project, plan),
            method: plan.method,
            budget: gr.update(value=plan.budget, interactive=True),
            start: gr.update(interactive=project is not None),
            base: gr.update(choices=bases, value=plan.base or None, visible=visible_if(len(bases) > 1)),
            picked: ",".join(_numbers(str(request.query_params.get("runs", "")))),
            knn: on_top(plan),
            **laid_out(plan.method, plan.knn, form.values(plan)),
        }

    def all_cards(project: ProjectRow | None, plan: Plan) -> str:
        known = runs_of.estimates(project, plan.base, plan.budget) if project else {}
        found = [method_card(service, project, one, known.get(name)) for name, one in form.methods.items()]
        return method_cards(found, plan.method)

    def on_top(plan: Plan) -> Any:
        able = can_look_up(form.methods[plan.method])
        return gr.update(interactive=able, value=plan.knn and able)

    def line(project: ProjectRow | None, plan: Plan) -> str:
        """The estimate, or what stands in its way."""
        if project is None:
            return ""
        made = runs_of.estimate(project, plan)
        if made is None:
            link = f'<a href="{esc(address("samples", project.id))}">{esc(tr("Go to Samples"))}</a>'
            return f"{esc(tr('No samples read yet.'))} {link}"
        return estimate_line(made, _machine(service))

    def refresh(request: gr.Request, *given: Any) -> dict[Any, Any]:
        """The estimate of what the form holds, and the address that shows the same."""
        project = service.project(wanted(request))
        if project is None:
            return {before: "", where: ""}
        try:
            plan = form.plan(project, given)
            return {before: line(project, plan), where: json.dumps(form.address(plan, project))}
        except TailorError as error:
            return {before: f'<p class="tm-warn">{esc(error)}</p>', where: ""}

    def pick(event: gr.EventData, effort: str, wished: bool, held: str) -> dict[Any, Any]:
        if event.name not in form.methods:
            raise InputError("This method is no longer there. Reload the page.")
        return {
            method: event.name,
            knn: on_top(Plan(event.name, effort, "", wished)),
            **anew(event.name, effort, wished, held),
        }

    def anew(chosen: str, effort: str, wished: bool, held: str) -> dict[Any, Any]:
        """The settings of a budget and a method: what was changed by hand gives way, but for what kNN is to do."""
        values = form.values(Plan(chosen, effort, ""))
        return laid_out(chosen, wished, values | {"knn": values["knn"] | form.held(held).get("knn", {})})

    def laid_out(chosen: str, wished: bool, values: Mapping[str, Mapping[str, Any]]) -> dict[Any, Any]:
        return {fields: form.fields(chosen, wished, values), settings: form.text(chosen, values)}

    def look_up(chosen: str, effort: str, wished: bool, held: str) -> dict[Any, Any]:
        """The settings of kNN come and go; the others stay as they are."""
        return laid_out(chosen, wished, form.values(Plan(chosen, effort, "")) | form.held(held, chosen))

    def settle(request: gr.Request, event: gr.EventData, *given: Any) -> dict[Any, Any]:
        """A setting was changed by hand, and its field left."""
        held = str(event.held)
        return {settings: held, **refresh(request, *given[:-1], held)}

    def spend(request: gr.Request, effort: str, chosen: str, of: str, wished: bool, held: str) -> dict[Any, Any]:
        project = service.project(wanted(request))
        plan = Plan(chosen, effort, of or (project.base if project else ""))
        return {cards: all_cards(project, plan), **anew(chosen, effort, wished, held)}

    def rebase(request: gr.Request, effort: str, chosen: str, of: str) -> str:
        return all_cards(service.project(wanted(request)), Plan(chosen, effort, of))

    def begin(request: gr.Request, *given: Any) -> str:
        project = service.need(wanted(request))
        plan = form.plan(project, given)
        chosen = form.methods[plan.method]
        if lack := lacking(service, project, chosen)[0]:
            said = tr("Choose another method.")
            raise InputError(
                tr("{method} {lack} here. {remedy}", method=tr(chosen.capabilities.title), lack=lack, remedy=said)
            )
        waiting = sum(job.active for job in runs_of.of(project.id))
        runs_of.start(project, plan)
        says = tr("It starts when a worker is free.")
        if waiting:
            says = trn("One run of this project comes first.", "{count} runs of this project come first.", waiting)
        gr.Info(says, duration=5, title=tr("The run is queued"))
        return json.dumps({"run": "", "clone": ""})

    # -- the runs

    def poll(request: gr.Request, known: str, compare: str, which: str, other: str) -> dict[Any, Any]:
        project = service.project(wanted(request))
        fresh = _Fresh(known)
        jobs = runs_of.of(project.id) if project else []
        job = runs_of.shown(jobs, str(request.query_params.get("run", "")))
        if project is None or job is None:
            fresh.put(look, "look", look_card(project, *runs_of.look(project)) if project else "")
            fresh.put(runs, "runs", no_runs(project))
            return {**fresh.found, live: shown_if(False), comparing: shown_if(False), seen: fresh.stamps}
        rows, waiting = runs_of.curve(job), runs_of.places()
        fresh.put(look, "look", _folded(look_card(project, *runs_of.look(project)), runs_of.look(project)))
        fresh.put(status, "status", progress_card(job, len(jobs) - jobs.index(job), rows, waiting.get(job.id, 0)))
        fresh.put(device, "device", device_card(job, service.store.usage.get(job.id), cores()))
        fresh.put(log, "log", log_card(_tail(job)))
        fresh.put(figures, "figures", figure_card(job, rows, project))
        # A chart is sent again only when there is more to see, so that zooming into it is not undone every two seconds.
        if fresh.changed("plot", f"{job.id}.{job.attempt}.{len(rows)}.{which}"):
            total = int(job.total) if job.total and training(job) else None
            draw = bleu_curve if which == "bleu" else loss_curve
            fresh.found[plot] = (
                gr.update(value=draw(rows, total), visible=True) if rows else gr.update(visible="hidden")
            )
        watched = any(row.get("style_bleu") is not None for row in rows)
        if fresh.changed("measure", str(watched)):
            fresh.found[measure] = gr.update(visible=visible_if(watched))
        made, chosen = runs_of.plugins(project.id), [int(part) for part in _numbers(compare)]
        fresh.put(runs, "runs", runs_table(jobs, made, project, waiting, chosen, job.id))
        together = [(len(jobs) - at, one) for at, one in enumerate(jobs) if one.id in chosen][::-1]
        if len(together) > 1:
            curves = [(tr("run {number}", number=number), runs_of.curve(one)) for number, one in together]
            if fresh.changed("overlay", f"{compare}.{other}.{[len(one) for _, one in curves]}"):
                fresh.found[overlay] = overlaid(curves, other)
            fresh.put(compared, "compared", compare_card(together, made))
        word = tr("Add to the queue") if any(one.active for one in jobs) else tr("Start training")
        return {
            **fresh.found,
            live: shown_if(True),
            comparing: shown_if(len(together) > 1),
            start: gr.update(value=word),
            seen: fresh.stamps,
        }

    def act(request: gr.Request, event: gr.EventData) -> None:
        from engine.jobs import resume

        number = int(event.job)
        if number not in [job.id for job in runs_of.of(service.need(wanted(request)).id)]:
            raise InputError("That run is no longer there. Reload the page.")
        if event.act == "cancel":
            service.store.jobs.cancel(number)
        elif event.act == "resume":
            resume(service.store, number)

    def choose_runs(event: gr.EventData) -> tuple[str, str]:
        wished = ",".join(_numbers(str(event.runs)))
        return wished, json.dumps({"runs": wished})

    def look_now(request: gr.Request) -> None:
        runs_of.look_again(service.need(wanted(request)))

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    asked = [seen, picked, measure, against]
    polled = [look, live, status, measure, plot, device, log, figures, runs, comparing, compared, overlay, start, seen]

    def then_poll(event: Any) -> None:
        event.then(guard(poll), asked, polled, **quiet)

    def then_mark(event: Any) -> None:
        event.then(guard(refresh), controls, [before, where], **quiet).then(None, where, None, js=MARK)

    written = [fields, settings]
    filled = [frame.title, told, cards, before, method, budget, start, base, picked, knn, *written]
    then_poll(demo.load(guard(fill), None, filled, **quiet))
    frame.timer.tick(guard(poll, polled=True), asked, polled, **quiet)
    then_mark(cards.choose(guard(pick), [budget, knn, settings], [method, knn, *written], **quiet))
    then_mark(budget.input(guard(spend), [budget, method, base, knn, settings], [cards, *written], **quiet))
    then_mark(base.input(guard(rebase), [budget, method, base], cards, **quiet))
    then_mark(knn.input(guard(look_up), [method, budget, knn, settings], written, **quiet))
    fields.settle(guard(settle), controls, [settings, before, where], trigger_mode="multiple", **quiet).then(
        None, where, None, js=MARK
    )
    then_poll(start.click(guard(begin), controls, where, js=NOW, **quiet).then(None, where, None, js=MARK))
    for one in (runs, figures):
        then_poll(one.act(guard(act), None, None, **quiet))
    then_poll(runs.pick(guard(choose_runs), None, [picked, where], **quiet).then(None, where, None, js=MARK))
    then_poll(look.look(guard(look_now), None, None, **quiet))
    for control in (measure, against):
        control.input(guard(poll), asked, polled, **quiet)


class _Fresh:
    """What the page shows already is not sent again: so focus, selection and open parts stay where they are."""

    def __init__(self, known: str) -> None:
        self.found: dict[Any, Any] = {}
        try:
            self._known = dict(json.loads(known or "{}"))
        except (ValueError, TypeError):
            self._known = {}

    def changed(self, name: str, what: str) -> bool:
        from engine.stamps import digest

        stamp = digest(what)[:12]
        before, self._known[name] = self._known.get(name), stamp
        return before != stamp

    def put(self, component: Any, name: str, shown: str) -> None:
        if self.changed(name, shown):
            self.found[component] = shown

    @property
    def stamps(self) -> str:
        return json.dumps(self._known)


def _numbers(text: str) -> list[str]:
    return [part for part in text.split(",") if part.isdigit()]


def _folded(body: str, look: tuple[JobRow | None, dict[str, Any]]) -> str:
    """The first look where there are runs already: below a line, open only while it is made for the first time."""
    job, found = look
    opened = " open" if job is not None and job.active and not found else ""
    return f'<details class="tm-more"{opened}><summary>{esc(tr("First look"))}</summary>{body}</details>'


def _machine(service: Service) -> dict[str, int]:
    """Memory of the machine, and what of memory and disk is free, in bytes."""
    import psutil

    memory = psutil.virtual_memory()
    free = shutil.disk_usage(service.settings.home_dir).free
    return {"memory": int(memory.total), "free_memory": int(memory.available), "free_disk": int(free)}


def _tail(job: JobRow) -> str:
    from engine.jobs import log_tail

    return log_tail(job, LOG)
