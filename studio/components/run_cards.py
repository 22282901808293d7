"""Runs as cards: the current run with its figures, sample, device and log; all runs as a table; selected runs compared."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from engine.core.flagged import FLAGS
from engine.core.options import Options
from engine.decoding.guard import noticed
from engine.errors import TailorError
from engine.methods import get_method
from engine.methods.knn.options import KnnOptions
from engine.store import JobRow, PluginRow, ProjectRow
from engine.training import TrainingOptions
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.customize.run import Trial
from engine.workflows.customize.selection import BASE
from studio.components.diff import marked
from studio.components.html import empty, lang_attribute, link_line, mid_sentence, number, size
from studio.components.layout import address, paused_text
from studio.components.method_names import method_name
from studio.components.plugin_cards import setting_label
from studio.components.templating import render, script
from studio.i18n.translate import mark, span, tr, translate_message, trn
from studio.services.runs import own_settings, request_that_made, stopped_by_time
from studio.services.scores import Score, harm, scores

STATES = {
    mark("queued"): "",
    mark("running"): "accent",
    mark("succeeded"): "done",
    mark("failed"): "bad",
    mark("cancelled"): "",
    mark("interrupted"): "",
}
UNREAD = 0.005  # nats per token; below this difference in loss, another memory serves equally well
ROWS = 7  # validations shown
LINES = 40  # log lines shown
ACT = script("run-cards.js")


def title_of(job: JobRow) -> str:
    """The method and budget of a run, with `+ kNN` if it adds kNN decoding."""
    method = method_name(job.arguments.get("method", "memory_adapter")) + (" + kNN" if job.arguments.get("knn") else "")
    return f"{method} · {tr(str(job.arguments.get('budget', 'balanced')))}"


def training(job: JobRow) -> bool:
    """Whether the job's current step is the training itself."""
    return bool(job.total) and job.step.lower().startswith("train")


def queued_text(ahead: int) -> str:
    """What a queued run waits for; `ahead`: the number of the project's runs before it."""
    if not ahead:
        return tr("Starts when a worker is free.")
    return trn("One run of this project is ahead in the queue.", "{count} runs of this project are ahead in the queue.", ahead)


# -- the run that is shown


def progress_card(
    job: JobRow, run: int, rows: Sequence[Mapping[str, Any]], before: int = 0, plugin: PluginRow | None = None
) -> str:
    """The status of a run: method, budget and state on the left, progress and time on the right, the reason if it failed, and a
    warning if its `plugin` does more harm than good. `before`: number of jobs ahead of it.
    """
    return render(
        "run_progress.html",
        job=job,
        number_of_run=run,
        title=title_of(job),
        colour=STATES.get(job.state, ""),
        state=tr(_state_word(job)),
        facts=_progress(job, rows, before),
        short=stopped_by_time(job),
        harm=harm(plugin) if plugin else "",
        best=method_name(request_that_made(job).method) if job.result.get("tried") else "",
        note=translate_message(job.note) if job.note and (not rows or job.state == "queued") else "",
    )


def _state_word(job: JobRow) -> str:
    if job.state == "running":
        return job.step or "starting"
    return mark("paused") if job.paused else "done" if job.state == "succeeded" else job.state


def _progress(job: JobRow, rows: Sequence[Mapping[str, Any]], before: int) -> list[str]:
    """The progress and remaining time of a run; `before`: number of jobs ahead of it."""
    if job.paused:
        return [paused_text()]
    if job.state == "queued":
        return [tr("{count} ahead in the queue", count=before) if before else tr("starts when a worker is free")]
    if job.state != "running":
        return [tr("took {time}", time=span(job.seconds))] if job.seconds is not None else []
    facts = []
    if training(job):
        facts.append(tr("{used} of {all}", used=number(job.done), all=number(job.total)))
    elif job.steps > 1:
        facts.append(tr("step {place} of {all}", place=job.step_index + 1, all=job.steps))
    if job.eta is not None:
        facts.append(tr("{time} left in this step", time=span(job.eta)))
    speed = next((row["tokens_per_second"] for row in reversed(rows) if row.get("tokens_per_second")), None)
    if speed and training(job):
        facts.append(tr("{count} tokens/s", count=number(speed)))
    return facts


def figure_card(job: JobRow, rows: Sequence[Mapping[str, Any]], project: ProjectRow, chosen: int | None = None) -> str:
    """The validations so far: loss, and BLEU on style and general text if measured; the current translation of the `chosen`
    monitored sentence; the methods tried; and the available actions.
    """
    checks = [row for row in rows if row.get("valid_loss") is not None]
    names = {
        "valid_loss": tr("loss"),
        "other_memory_loss": tr("loss, other memory"),
        "style_bleu": tr("style BLEU"),
        "general_bleu": tr("general BLEU"),
    }
    columns: list[dict[str, object]] = []
    for key, name in names.items():
        values = [row[key] for row in checks if row.get(key) is not None]
        if values:
            loss = key.endswith("loss")
            best = min(values) if loss else max(values)
            columns.append({"key": key, "name": name, "best": best, "digits": 3 if loss else 1})
    visible = checks if len(checks) <= ROWS else [checks[0], *checks[1 - ROWS :]]
    return render(
        "run_validation.html",
        job=job,
        columns=columns,
        unread=memory_unread(checks),
        checks=[{key: row.get(key) for key in ("step", *names)} for row in visible],
        sample=_sample(rows, project, chosen),
        tried=[
            (trial, _tried(trial)) for trial in (Trial(**row) for row in job.result.get("tried") or [])
        ],  # fields missing from older runs get their defaults
        clone="" if job.active else _clone(job),
        source_lang=Markup(lang_attribute(project.source)),
        target_lang=Markup(lang_attribute(project.target)),
    )


def _tried(trial: Trial) -> str:
    """The display name of a method that `auto` tried: `Memory adapter (shrink 0.4) + kNN`."""
    if trial.method == BASE:
        return tr("base alone")
    shrink = f" (shrink {trial.shrink:g})" if trial.shrink else ""
    more = " + kNN" * trial.knn + (" + " + tr("domain filter") if trial.domain_filter else "")
    return method_name(trial.method) + shrink + more


def memory_unread(checks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether, according to the last validation, the content of the memory makes no difference."""
    last = checks[-1] if checks else {}
    return bool(last.get("step")) and last.get("other_memory_loss", math.inf) - last["valid_loss"] < UNREAD


def _sample(rows: Sequence[Mapping[str, Any]], project: ProjectRow, chosen: int | None) -> dict[str, object]:
    """A monitored sentence: its current translation with changes since the start marked, and earlier versions; empty if none."""
    watched: Sequence[Sequence[str]] = next((row["samples"] for row in reversed(rows) if row.get("samples")), [])
    sources = [str(source) for source, *_ in watched]
    if chosen is None or not 0 <= chosen < len(sources):
        usual = next((row.get("sample_source") for row in reversed(rows) if row.get("samples")), None)
        chosen = sources.index(str(usual)) if usual in sources else 0
    else:
        names = ("sample_source", "sample_translation", "sample_reference")
        rows = [
            {**row, **dict(zip(names, row["samples"][chosen], strict=True))}
            for row in rows
            if len(row.get("samples") or ()) > chosen
        ]
    translated = [row for row in rows if row.get("sample_translation")]
    if not translated:
        return {}
    first, last = str(translated[0]["sample_translation"]), str(translated[-1]["sample_translation"])
    versions = [row for row, before in zip(translated, [{}, *translated], strict=False)
                if row["sample_translation"] != before.get("sample_translation")]  # fmt: skip
    return {
        "source": translated[-1].get("sample_source", ""),
        "sources": sources,
        "chosen": chosen,
        "now": Markup(marked(first, last, project.target)[1]) if len(translated) > 1 else last,
        "versions": [{"step": None, **row} for row in versions],
        "reference": translated[-1].get("sample_reference"),
        "flag": tr(FLAGS[flag]) if (flag := noticed(str(translated[-1].get("sample_source", "")), last)) else "",
    }


def _clone(job: JobRow) -> str:
    return f"{address('train', job.project_id)}&clone={job.id}"


def device_card(job: JobRow, usage: Any, cores: int) -> str:
    """The resources used by the run: CPU, memory, GPU; empty before its first report."""
    if usage is None:
        return ""
    peak = f"{usage.peak / 2**30:.1f} GiB"
    parts = [tr("peak memory {size}", size=peak)]
    if job.state == "running":
        used = trn("CPU {used} of {count} core", "CPU {used} of {count} cores", cores, used=f"{usage.cpu / 100:.1f}")
        parts = [used, tr("memory {size}", size=f"{usage.memory / 2**30:.1f} GiB"), tr("peak {size}", size=peak)]
    if usage.gpu_total:
        gpu = tr("{used} of {all}", used=f"{usage.gpu / 2**30:.1f}", all=f"{usage.gpu_total / 2**30:.0f} GiB")
        parts.append(f"GPU {gpu}")
    return render("run_device.html", parts=parts)


def log_card(text: str) -> str:
    """The end of the log; INFO lines are shortened to time and message."""
    stamp = re.compile(r"^\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d),\d+ INFO [\w.]+: ")
    lines = text.rstrip().splitlines()[-LINES:]
    return render("run_log.html", lines=[stamp.sub(r"\1  ", line) for line in lines])


# -- all runs


def runs_table(
    jobs: Sequence[JobRow],
    plugins: Mapping[int, PluginRow],
    project: ProjectRow,
    queue_positions: Mapping[int, int] | None = None,
    picked: Sequence[int] = (),
    current: int | None = None,
) -> str:
    """All runs, newest first, with their actions. `queue_positions`: number of jobs ahead of each waiting one; `picked`: the ids
    of compared runs; `current`: the id of the run shown on the page.
    """
    runs = [
        {
            "job": job,
            "number": len(jobs) - index,
            "plugin": plugins.get(job.id),
            "title": title_of(job).replace(" · ", tr(", ")),
            "state": _state(job, (queue_positions or {}).get(job.id)),
            "colour": STATES.get(job.state, ""),
            "style": _bleu(plugins.get(job.id), "style"),
            "general": _bleu(plugins.get(job.id), "general"),
            "time": "" if job.state == "running" else _took(job),
            "clone": _clone(job),
        }
        for index, job in enumerate(jobs)
    ]
    return render("runs_table.html", runs=runs, project=project, picked=picked, shown=current, address=address)


def _state(job: JobRow, before: int | None) -> str:
    if job.state == "running":
        return mid_sentence(tr(job.step)) or tr("starting")
    if job.paused:
        return tr("paused")
    if job.state == "queued" and before is not None:
        position = tr("no. {number}", number=before + 1) if before else tr("next")
        return tr("waiting, {place}", place=position)
    if job.state == "succeeded":
        return tr("done")
    state = tr(str(job.state))
    if job.state in ("interrupted", "cancelled") and job.step:
        return tr("{state} in {step}", state=state, step=mid_sentence(tr(job.step)))
    return state


def _took(job: JobRow) -> str:
    return span(job.seconds) if job.seconds is not None else "–"


def _measured(plugin: PluginRow | None, kind: str, metric: str) -> Score | None:
    """A metric of a plugin on a kind of text; held-out samples count as style."""
    kinds = (kind, "held-out samples") if kind == "style" else (kind,)
    measured = scores(plugin.metrics) if plugin else []
    return next((score for score in measured if score.metric == metric and score.kind in kinds), None)


def no_runs(project: ProjectRow | None) -> str:
    """The placeholder shown without a project."""
    if project is None:
        link = link_line("/samples?project=new", tr("Go to Samples"))
        return empty(tr("No project yet"), tr("A plugin learns from samples."), link)
    return ""


# -- selected runs compared


def compare_card(jobs: Sequence[tuple[int, JobRow]], plugins: Mapping[int, PluginRow]) -> str:
    """Two or more runs side by side: settings that differ, and results. `jobs`: number and row."""
    methods = [method_name(job.arguments.get("method", "")) for _, job in jobs]
    rows: list[tuple[str, list[str]]] = [(tr("method"), methods)]
    settings_by_run = [_given(job) for _, job in jobs]
    for name in dict.fromkeys(name for settings in settings_by_run for name in settings):
        values = [settings.get(name, tr("set by the budget")) for settings in settings_by_run]
        if len(set(values)) > 1:
            rows.append((name, values))
    for name, reader in OUTCOMES:
        values = [reader(job, plugins.get(job.id)) for _, job in jobs]
        if any(value != "–" for value in values):
            rows.append((tr(name), values))
    return render("runs_compared.html", numbers=[number_ for number_, _ in jobs], rows=rows)


def _given(job: JobRow) -> dict[str, str]:
    """{label of a setting in the form: value} of a run's request."""
    base, request = Path(str(job.arguments.get("base", ""))).name, CustomizeRequest.of_job(job.arguments)
    labelled = {"budget": tr(str(job.arguments.get("budget", "balanced"))), "base": base}
    labelled = {setting_label(key): value for key, value in labelled.items()}
    labelled[tr("kNN retrieval")] = tr("yes") if job.arguments.get("knn") else tr("no")
    for kind, settings in own_settings(request).items():
        cls = settings_class(kind, request.method)
        labelled |= {setting_label(key, cls): str(value) for key, value in settings.items() if key != "watch"}
    return labelled


def settings_class(kind: str, method: str) -> type[Options] | None:
    """The class of a request's settings of that kind; None for the options of an unknown method."""
    if kind != "method_options":
        return {"training_options": TrainingOptions, "knn_options": KnnOptions}[kind]
    try:
        return get_method(method).config_class
    except TailorError:
        return None


def _bleu(plugin: PluginRow | None, kind: str) -> float | None:
    measured = _measured(plugin, kind, "bleu")
    return measured.after if measured else None


def _score(kind: str, metric: str) -> Any:
    def read(job: JobRow, plugin: PluginRow | None) -> str:
        score = _measured(plugin, kind, metric)
        if score is None:
            return "–"
        sure = f" (p {score.p:.3f})" if score.p is not None else ""
        return f"{score.before:.1f} → {score.after:.1f}{sure}"

    return read


def _loss(key: str) -> Any:
    def read(job: JobRow, plugin: PluginRow | None) -> str:
        value = (plugin.metrics if plugin else {}).get(key)
        return number(value, 3) if isinstance(value, int | float) else "–"

    return read


def _result(key: str) -> Any:
    def read(job: JobRow, plugin: PluginRow | None) -> str:
        value = job.result.get(key)
        if not isinstance(value, int | float):
            return "–"
        return size(int(value)) if key == "bytes" else number(value)

    return read


OUTCOMES: tuple[tuple[str, Any], ...] = (
    (mark("style BLEU"), _score("style", "bleu")),
    (mark("style chrF"), _score("style", "chrf")),
    (mark("general BLEU"), _score("general", "bleu")),
    (mark("validation loss before"), _loss("validation_loss_before")),
    (mark("validation loss"), _loss("validation_loss")),
    (mark("updates"), _result("updates")),
    (mark("weights"), _result("parameters")),
    (mark("plugin"), _result("bytes")),
    (mark("time"), lambda job, plugin: _took(job)),
)
