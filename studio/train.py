"""The page Train: choose a method and a budget, start, and see whether it is learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from engine.errors import InputError
from engine.progress import duration
from engine.store import JobRow, PluginRow, ProjectRow
from studio.figures import scores
from studio.forms import Form, build_form
from studio.frame import address, guard, heading, page, wanted
from studio.html import Cell, bar, card, empty, esc, note, number, table, tag, view
from studio.plots import loss_curve
from studio.service import Service

__all__ = ["MethodCard", "build", "method_cards", "progress_card", "runs_table"]

TEXT = "The base stays as it is; a plugin learns beside it. You can close this page: work goes on."
BUDGETS = [("Quick", "quick"), ("Balanced", "balanced"), ("Best", "best")]
STATES = {"queued": "", "running": "accent", "succeeded": "done", "failed": "bad", "cancelled": "", "interrupted": ""}
PICK = """
element.addEventListener('click', (event) => {
  const card = event.target.closest('[data-method]');
  if (card && !card.disabled) trigger('choose', {name: card.dataset.method});
});
"""
ACT = """
element.addEventListener('click', (event) => {
  const link = event.target.closest('[data-act]');
  if (link) trigger('act', {act: link.dataset.act, job: link.dataset.job});
});
"""


@dataclass(frozen=True)
class MethodCard:
    """What the registry says of a method, and what it lacks here (empty when it can run)."""

    name: str
    title: str
    summary: str
    facts: str
    lacks: str


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/train`."""
    from engine.methods import get_method, method_names
    from engine.training import TrainingOptions, budget_options

    names = method_names()
    methods = {name: get_method(name) for name in names}
    with page(demo, service, "train", "Train", TEXT) as frame:
        with frame.actions:
            start = gr.Button("Start training", variant="primary")
        cards = view(script=PICK)
        method = gr.Textbox(names[0], visible="hidden")
        with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
            with gr.Row(elem_classes="tm-budget"):
                view("Budget", classes="tm-label")
                budget = gr.Radio(
                    BUDGETS, value="balanced", show_label=False, container=False, elem_classes="tm-segments"
                )
                before = view(classes="tm-quiet tm-right")
            with gr.Accordion("Advanced settings", open=False, elem_classes="tm-advanced"):
                forms: dict[str, Form] = {}
                groups = []
                for name, one in methods.items():
                    with gr.Column(visible=name == names[0]) as group:
                        view(f"<h2>{esc(one.capabilities.title)}</h2>", classes="tm-card-title")
                        forms[name] = build_form(one.config_class, budget_options("balanced", name)["method"])
                    groups.append(group)
                view("<h2>Training</h2>", classes="tm-card-title")
                training = build_form(TrainingOptions, budget_options("balanced", names[0])["training"])
        with gr.Row(elem_classes="tm-split", visible=False) as live:
            with gr.Column(scale=3, min_width=360, elem_classes="tm-card tm-pad tm-stack"):
                status = view()
                plot = gr.Plot(show_label=False, container=False, elem_classes="tm-plot")
            figures = view(script=ACT, scale=2, min_width=260)
        runs = view(script=ACT)
        seen = gr.Textbox("", visible="hidden")

    def fill(request: gr.Request, chosen: str) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        return (heading("Train", TEXT), method_cards(_cards(service, project), chosen), estimate(service, project))

    def poll(request: gr.Request, known: str) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            return gr.update(visible=False), "", gr.skip(), "", no_runs(None), gr.update(interactive=False), ""
        jobs = service.runs(project.id)
        busy = any(job.active for job in jobs)
        button = gr.update(interactive=not busy, value="Training" if busy else "Start training")
        rows = service.curve(project.id)
        if not jobs:
            return gr.update(visible=False), "", gr.skip(), "", no_runs(project), button, ""
        # A chart is sent again only when there is more to see, so that zooming into it is not undone every two seconds.
        stamp = f"{jobs[0].id}.{jobs[0].attempt}.{len(rows)}"
        chart = gr.skip() if stamp == known else loss_curve(rows, _steps(jobs[0]))
        plugins = {row.job_id: row for row in service.store.plugins.list(project.id)}
        return (
            gr.update(visible=True),
            progress_card(jobs[0], len(jobs), rows),
            chart,
            figure_card(jobs[0], rows),
            runs_table(jobs, plugins, project),
            button,
            stamp,
        )

    def pick(request: gr.Request, event: gr.EventData) -> tuple[Any, ...]:
        if event.name not in methods:
            raise InputError("This method is no longer there. Reload the page.")
        shown = method_cards(_cards(service, service.project(wanted(request))), event.name)
        return (event.name, shown, *(gr.update(visible=name == event.name) for name in names))

    def begin(request: gr.Request, chosen: str, effort: str, *values: Any) -> None:
        project = service.need(wanted(request))
        place = 0
        options: dict[str, dict[str, Any]] = {}
        for name, form in (*forms.items(), ("", training)):
            part = values[place : place + len(form.widgets)]
            place += len(form.widgets)
            if name in ("", chosen):
                options[name] = form.changed(part, budget_options(effort, chosen)["method" if name else "training"])
        service.start_run(project, chosen, effort, method_options=options[chosen], training_options=options[""])
        gr.Info("It starts when a worker is free.", duration=5, title="The run is queued")

    def spend(effort: str, chosen: str) -> list[Any]:
        shown = [value for name, form in forms.items() for value in form.values(budget_options(effort, name)["method"])]
        return [*shown, *training.values(budget_options(effort, chosen)["training"])]

    def act(request: gr.Request, event: gr.EventData) -> None:
        from engine.jobs import resume

        number_of = int(event.job)
        if event.act == "cancel":
            service.store.jobs.cancel(number_of)
        elif event.act == "resume":
            resume(service.store, number_of)

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    live_outputs = [live, status, plot, figures, runs, start, seen]
    demo.load(guard(fill), method, [frame.title, cards, before], **quiet)
    demo.load(guard(poll), seen, live_outputs, **quiet)
    frame.timer.tick(guard(poll, polled=True), seen, live_outputs, **quiet)
    cards.choose(guard(pick), None, [method, cards, *groups], **quiet)
    widgets = [widget for form in (*forms.values(), training) for widget in form.widgets]
    budget.input(guard(spend), [budget, method], widgets, **quiet)
    start.click(guard(begin), [method, budget, *widgets], None, **quiet).then(guard(poll), seen, live_outputs, **quiet)
    for place in (runs, figures):
        place.act(guard(act), None, None, **quiet).then(guard(poll), seen, live_outputs, **quiet)


def _cards(service: Service, project: ProjectRow | None) -> list[MethodCard]:
    from engine.methods import get_method, method_names

    report = service.report(project.id) if project else {}
    found = []
    for name in method_names():
        about = get_method(name).capabilities
        lacks = ""
        if about.needs_bilingual and not report.get("source_language"):
            lacks = "needs sentences with translations"
        elif about.needs_domains > 1:
            lacks = f"needs {about.needs_domains} domains"
        facts = [
            "learns from phrases" if about.needs_phrases else "",
            "" if about.trains else "trains nothing",
            "has a strength dial" if about.offers_strength else "",
        ]
        found.append(MethodCard(name, about.title, about.summary, " · ".join(fact for fact in facts if fact), lacks))
    return found


def _steps(job: JobRow) -> int | None:
    return int(job.total) if job.total and job.step.lower().startswith("train") else None


def estimate(service: Service, project: ProjectRow | None) -> str:
    """What a start will use, as far as it is known."""
    if project is None:
        return ""
    if not service.sentences(project.id):
        return f'No samples read yet. <a href="{esc(address("samples", project.id))}">Go to Samples</a>'
    sentences = number(len(service.sentences(project.id)))
    phrases = number(len(service.phrases(project.id)))
    return f"Learns from <b>{sentences} sentences</b> and <b>{phrases} phrases</b>"


# -- what is shown


def method_cards(cards: Sequence[MethodCard], chosen: str) -> str:
    """The methods as cards, the chosen one framed; those that lack something say what."""
    body = "".join(
        f'<button type="button" role="radio" class="tm-method" data-method="{esc(one.name)}" '
        f'aria-checked="{"true" if one.name == chosen else "false"}"{" disabled" if one.lacks else ""}>'
        f"<h3>{esc(one.title)}</h3>{tag(one.lacks) if one.lacks else ''}<p>{esc(one.summary)}</p>"
        f"<p>{esc(one.facts)}</p></button>"
        for one in cards
    )
    return f'<div class="tm-methods" role="radiogroup" aria-label="Method">{body}</div>'


def progress_card(job: JobRow, run: int, rows: Sequence[Mapping[str, Any]]) -> str:
    """Run, method, budget and state at the left; how far and how long at the right; the reason where it failed."""
    words = f"Run {run} · {_words(job.arguments.get('method', ''))} · {job.arguments.get('budget', 'balanced')}"
    state = tag(job.step or "starting" if job.state == "running" else job.state, STATES.get(job.state, ""))
    parts = []
    if job.state == "running":
        if job.total:
            parts.append(f"{number(job.done)} of {number(job.total)}")
        if job.eta is not None:
            parts.append(f"{duration(job.eta)} left in this step")
        speed = next((row["tokens_per_second"] for row in reversed(rows) if row.get("tokens_per_second")), None)
        if speed and _steps(job):
            parts.append(f"{number(speed)} tokens/s")
    elif job.seconds is not None and not job.active:
        parts.append(f"took {duration(job.seconds)}")
    line = f'<div class="tm-card-head"><h2>{esc(words)} {state}</h2><h2>{esc(" · ".join(parts))}</h2></div>'
    if job.state == "running":
        line += bar(job.fraction) + (f'<p class="tm-quiet">{esc(job.note)}</p>' if job.note and not rows else "")
    if job.state == "failed":
        line += note(job.error, bad=True)
    if job.state == "interrupted":
        line += note(job.error or "The run was interrupted. It can be resumed from its last checkpoint.")
    return line


def figure_card(job: JobRow, rows: Sequence[Mapping[str, Any]]) -> str:
    """The validations so far: loss, and BLEU on style and general text where they were measured."""
    checks = [row for row in rows if row.get("valid_loss") is not None]
    columns = [
        (key, name)
        for key, name in (
            ("valid_loss", "validation loss"),
            ("style_bleu", "style BLEU"),
            ("general_bleu", "general BLEU"),
        )
        if any(row.get(key) is not None for row in checks)
    ]
    if checks:
        body = [
            [Cell(number(row.get("step", 0)))]
            + [Cell(number(row.get(key), 3 if key == "valid_loss" else 1), kind="num") for key, _ in columns]
            for row in checks[-7:]
        ]
        inner = table(["step", *(name for _, name in columns)], body, numeric=range(1, len(columns) + 1))
    else:
        inner = '<p class="tm-quiet">The first validation comes after the first part of training.</p>'
    sample = next((row for row in reversed(rows) if row.get("sample_translation")), None)
    if sample:
        inner += (
            f'<div class="tm-sample"><p class="tm-quiet">{esc(sample.get("sample_source", ""))}</p>'
            f"<p>{esc(sample['sample_translation'])}</p></div>"
        )
    buttons = ""
    if job.active:
        waits = "Cancelling" if job.cancel_requested else "Cancel"
        buttons = f'<button type="button" class="tm-link-button" data-act="cancel" data-job="{job.id}">{waits}</button>'
    return card(inner + buttons, "While it trains" if job.active else "Validation")


def runs_table(jobs: Sequence[JobRow], plugins: Mapping[int | None, PluginRow], project: ProjectRow) -> str:
    """All runs, newest first, with what can be done with each."""
    rows = []
    for place, job in enumerate(jobs):
        plugin = plugins.get(job.id)
        state = f"{job.step or 'running'} {job.fraction:.0%}" if job.state == "running" else job.state.value
        state = "done" if job.state == "succeeded" else state
        rows.append(
            [
                Cell(len(jobs) - place),
                Cell(_words(job.arguments.get("method", ""))),
                Cell(job.arguments.get("budget", "balanced")),
                Cell(html=tag(state, STATES.get(job.state, ""))),
                Cell(number(_bleu(plugin, "style"), 1), kind="num"),
                Cell(number(_bleu(plugin, "general"), 1), kind="num"),
                Cell(duration(job.seconds) if job.seconds is not None else "–", kind="num"),
                Cell(html=_links(job, plugin, project)),
            ]
        )
    heads = ["run", "method", "budget", "state", "style BLEU", "general BLEU", "time", ""]
    return f'<div class="tm-card">{table(heads, rows, numeric=[4, 5, 6])}</div>'


def _links(job: JobRow, plugin: PluginRow | None, project: ProjectRow) -> str:
    def button(act: str, word: str) -> str:
        return f'<button type="button" class="tm-text-button" data-act="{act}" data-job="{job.id}">{word}</button>'

    if job.active:
        return button("cancel", "Cancelling" if job.cancel_requested else "Cancel")
    if job.resumable:
        return button("resume", "Resume")
    if plugin is not None:
        compare = address("compare", project.id)
        return f'<a href="{esc(compare)}&amp;plugin={plugin.id}">Compare</a> · <a href="/download/plugins/{plugin.id}">Download</a>'
    return ""


def _bleu(plugin: PluginRow | None, kind: str) -> float | None:
    kinds = (kind, "held-out samples") if kind == "style" else (kind,)
    found = scores(plugin.metrics) if plugin else []
    return next((one.after for one in found if one.metric == "bleu" and one.kind in kinds), None)


def _words(name: Any) -> str:
    return str(name).replace("_", " ")


def no_runs(project: ProjectRow | None) -> str:
    """What stands where the runs will be."""
    if project is None:
        return empty(
            "No project yet", "A plugin learns from samples.", '<p><a href="/samples?project=new">Go to Samples</a></p>'
        )
    return f'<p class="tm-quiet">No runs yet. {esc("The first one takes a few minutes with the quick budget.")}</p>'
