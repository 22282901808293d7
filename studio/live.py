"""What is shown of runs: the one at work with its figures, sample, device and log; all of them as a table; some compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.store import JobRow, PluginRow, ProjectRow
from studio.difference import marked
from studio.figures import scores
from studio.frame import address
from studio.html import Cell, bar, card, empty, esc, lang_attribute, note, number, size, table, tag, way
from studio.i18n import mark, span, tr
from studio.plugin_cards import setting_said
from studio.runs import own_settings
from studio.told import told

__all__ = [
    "ACT", "compare_card", "device_card", "figure_card", "log_card", "no_runs", "progress_card", "runs_table", "words",
]  # fmt: skip

STATES = {"queued": "", "running": "accent", "succeeded": "done", "failed": "bad", "cancelled": "", "interrupted": ""}
WAITS = (mark("next"), mark("2nd"), mark("3rd"))
ROWS = 7  # validations shown
LINES = 40  # of the log
ACT = """
element.addEventListener('click', (event) => {
  const link = event.target.closest('[data-act]');
  if (link) trigger('act', {act: link.dataset.act, job: link.dataset.job});
});
element.addEventListener('change', (event) => {
  if (!event.target.closest('[data-run]')) return;
  const picked = [...element.querySelectorAll('[data-run]:checked')].map((one) => one.dataset.run);
  trigger('pick', {runs: picked.join(',')});
});
"""


def words(name: Any) -> str:
    """`memory_adapter` -> `memory adapter`."""
    return tr(str(name).replace("_", " "))


def title_of(job: JobRow) -> str:
    """Method and budget of a run, and whether words are looked up as well."""
    method = words(job.arguments.get("method", "memory_adapter")) + (" + kNN" if job.arguments.get("knn") else "")
    return f"{method} · {tr(str(job.arguments.get('budget', 'balanced')))}"


def training(job: JobRow) -> bool:
    """Whether what is at work is the training itself."""
    return bool(job.total) and job.step.lower().startswith("train")


# -- the run that is shown


def progress_card(job: JobRow, run: int, rows: Sequence[Mapping[str, Any]], before: int = 0) -> str:
    """Run, method, budget and state at the left; how far and how long at the right; the reason where it failed."""
    state = tag(tr((job.step or "starting") if job.state == "running" else job.state), STATES.get(job.state, ""))
    parts = []
    if job.state == "running":
        if job.total and training(job):
            parts.append(tr("{used} of {all}", used=number(job.done), all=number(job.total)))
        elif job.steps > 1:
            parts.append(tr("step {place} of {all}", place=job.step_index + 1, all=job.steps))
        if job.eta is not None:
            parts.append(tr("{time} left in this step", time=span(job.eta)))
        speed = next((row["tokens_per_second"] for row in reversed(rows) if row.get("tokens_per_second")), None)
        if speed and training(job):
            parts.append(tr("{count} tokens/s", count=number(speed)))
    elif job.state == "queued":
        parts.append(tr("starts when a worker is free") if not before else tr("{count} before it", count=before))
    elif job.seconds is not None:
        parts.append(tr("took {time}", time=span(job.seconds)))
    line = (
        f'<div class="tm-card-head"><h2>{esc(tr("Run {number}", number=run))} · {esc(title_of(job))} {state}</h2>'
        f"<h2>{esc(' · '.join(parts))}</h2></div>"
    )
    if job.state == "running":
        line += bar(job.fraction) + (f'<p class="tm-quiet">{esc(told(job.note))}</p>' if job.note and not rows else "")
    if job.state == "failed":
        line += note(job.error, bad=True)
    if job.state == "interrupted":
        line += note(job.error or tr("The run was interrupted. It can be resumed from its last checkpoint."))
    return line


def figure_card(job: JobRow, rows: Sequence[Mapping[str, Any]], project: ProjectRow) -> str:
    """The validations so far: loss, and BLEU on style and general text where they were measured; a sentence as it is now
    translated; and what can be done.
    """
    checks = [row for row in rows if row.get("valid_loss") is not None]
    columns = [
        (key, name)
        for key, name in (
            ("valid_loss", tr("loss")),
            ("style_bleu", tr("style BLEU")),
            ("general_bleu", tr("general BLEU")),
        )
        if any(row.get(key) is not None for row in checks)
    ]
    if checks:
        best = {
            key: (min if key == "valid_loss" else max)(row[key] for row in checks if row.get(key) is not None)
            for key, _ in columns
        }
        shown = checks if len(checks) <= ROWS else [checks[0], *checks[1 - ROWS :]]
        body = [
            [Cell(number(row.get("step", 0)))] + [_figure(row.get(key), key, best[key]) for key, _ in columns]
            for row in shown
        ]
        inner = table([tr("step"), *(name for _, name in columns)], body, numeric=range(1, len(columns) + 1))
        if len(columns) > 1:
            few = tr("A few sentences, translated greedily: a direction, not a score.")
            inner += f'<p class="tm-small">{esc(few)}</p>'
    elif job.state == "queued":
        inner = _quiet(tr("It waits its turn. You can change the form above and queue more."))
    elif job.active:
        inner = _quiet(tr("The first validation comes before the first update."))
    else:
        inner = _quiet(tr("This run was not validated."))
    inner += _sample(rows, project)
    buttons = _buttons(job)
    return card(inner + buttons, tr("While it trains") if job.active else tr("Validation"))


def _quiet(text: str) -> str:
    return f'<p class="tm-quiet">{esc(text)}</p>'


def _figure(value: Any, key: str, best: float) -> Cell:
    text = number(value, 3 if key == "valid_loss" else 1)
    return Cell(html=f"<b>{esc(text)}</b>", kind="num") if value == best else Cell(text, kind="num")


def _sample(rows: Sequence[Mapping[str, Any]], project: ProjectRow) -> str:
    """One sentence as it was at the start and as it is now; how it came there lies folded."""
    seen = [row for row in rows if row.get("sample_translation")]
    if not seen:
        return ""
    first, last = seen[0], seen[-1]
    language = lang_attribute(project.target)
    if first is last:
        new = esc(last["sample_translation"])
    else:
        _, new = marked(str(first["sample_translation"]), str(last["sample_translation"]), project.target)
    steps: list[Mapping[str, Any]] = []
    for row in seen:
        if not steps or row["sample_translation"] != steps[-1]["sample_translation"]:
            steps.append(row)
    history = ""
    if len(steps) > 1:
        lines = "".join(
            f"<tr><td class=num>{number(row.get('step', 0))}</td><td{language}>{esc(row['sample_translation'])}</td></tr>"
            for row in steps
        )
        own = last.get("sample_reference")
        lines += f"<tr><td>{esc(tr('yours'))}</td><td{language}>{esc(own)}</td></tr>" if own else ""
        history = (
            f'<details class="tm-more"><summary>{esc(tr("{count} versions so far", count=len(steps)))}</summary>'
            f'<table class="tm tm-small">{lines}</table></details>'
        )
    return (
        f'<div class="tm-sample"><p class="tm-quiet"{lang_attribute(project.source)}>{esc(last.get("sample_source", ""))}</p>'
        f"<p{language}>{new}</p>{history}</div>"
    )


def _buttons(job: JobRow) -> str:
    def button(act: str, word: str, hint: str = "") -> str:
        return (
            f'<button type="button" class="tm-link-button" data-act="{act}" data-job="{job.id}" title="{esc(hint)}">{word}'
            "</button>"
        )

    found = ""
    if job.active:
        hint = tr("What is finished stays, and the run can be resumed.")
        found += button("cancel", tr("Cancelling" if job.cancel_requested else "Cancel"), hint)
    if job.resumable:
        found += button("resume", tr("Resume"), tr("It goes on from its last finished step or checkpoint."))
    if not job.active:
        found += f'<a class="tm-link-button" href="{esc(_clone(job))}">{esc(tr("Clone"))}</a>'
    return f'<div class="tm-buttons">{found}</div>' if found else ""


def _clone(job: JobRow) -> str:
    return f"{address('train', job.project_id)}&clone={job.id}"


def device_card(job: JobRow, usage: Any, cores: int) -> str:
    """What the run takes of the machine now: processor, memory, GPU; nothing before it has said so."""
    if usage is None:
        return ""
    now = job.state == "running"
    peak = tr("at most {size}", size=f"{usage.peak / 2**30:.1f} GiB")
    parts = [tr("memory {size}", size=peak)]
    if now:
        used = tr("processor {used} % of {all} %", used=f"{usage.cpu:.0f}", all=100 * cores)
        parts = [used, tr("memory {size}", size=f"{usage.memory / 2**30:.1f} GiB"), peak]
    if usage.gpu_total:
        gpu = tr("{used} of {all}", used=f"{usage.gpu / 2**30:.1f}", all=f"{usage.gpu_total / 2**30:.0f} GiB")
        parts.append(f"GPU {gpu}")
    return f'<p class="tm-quiet tm-device">{esc(" · ".join(parts))}</p>'


def log_card(text: str) -> str:
    """The end of the log."""
    lines = text.rstrip().splitlines()[-LINES:]
    if not lines:
        return _quiet(tr("The log is empty so far."))
    # Of a line that the work wrote itself the time and the words are enough.
    plain = [re.sub(r"^\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d),\d+ INFO [\w.]+: ", r"\1  ", line) for line in lines]
    shown = esc("\n".join(plain))
    return (
        f'<div class="tm-log" tabindex="0" role="log" aria-label="{esc(tr("End of the log"))}"><pre>{shown}</pre></div>'
    )


# -- all runs


def runs_table(
    jobs: Sequence[JobRow],
    plugins: Mapping[int, PluginRow],
    project: ProjectRow,
    places: Mapping[int, int] | None = None,
    picked: Sequence[int] = (),
    shown: int | None = None,
) -> str:
    """All runs, newest first, with what can be done with each. `places`: how many jobs come before each waiting one;
    `picked`: those that are compared.
    """
    rows = []
    many = len(jobs) > 1
    for place, job in enumerate(jobs):
        plugin, number_ = plugins.get(job.id), len(jobs) - place
        state = _state(job, (places or {}).get(job.id))
        box = (
            f'<input type="checkbox" data-run="{job.id}" aria-label="{esc(tr("Compare run {number}", number=number_))}"'
            f"{' checked' if job.id in picked else ''}>"
        )
        here = ' aria-current="true"' if job.id == shown else ""
        link = f'<a href="{esc(address("train", project.id))}&amp;run={job.id}"{here}>{number_}</a>'
        rows.append(
            [
                *([Cell(html=box)] if many else []),
                Cell(html=link),
                Cell(title_of(job).replace(" · ", tr(", "))),
                Cell(html=tag(state, STATES.get(job.state, ""))),
                Cell(number(_bleu(plugin, "style"), 1), kind="num"),
                Cell(number(_bleu(plugin, "general"), 1), kind="num"),
                Cell("" if job.state == "running" else _took(job), kind="num"),
                Cell(html=_links(job, plugin, project)),
            ]
        )
    heads = [tr("run"), tr("method"), tr("state"), tr("style BLEU"), tr("general BLEU"), tr("time"), ""]
    if many:
        heads = ["", *heads]
    first = 3 + many
    shown_table = table(heads, rows, numeric=range(first, first + 3))
    return f'<div class="tm-card tm-scroll tm-runs">{shown_table}</div>'


def _state(job: JobRow, before: int | None) -> str:
    if job.state == "running":
        return tr(job.step).lower() or tr("starting")
    if job.state == "queued" and before is not None:
        place = tr(WAITS[before]) if before < len(WAITS) else tr("{number}th", number=before + 1)
        return tr("waiting, {place}", place=place)
    if job.state == "succeeded":
        return tr("done")
    state = tr(str(job.state))
    if job.state in ("interrupted", "cancelled") and job.step:
        return tr("{state} in {step}", state=state, step=tr(job.step).lower())
    return state


def _took(job: JobRow) -> str:
    return span(job.seconds) if job.seconds is not None else "–"


def _links(job: JobRow, plugin: PluginRow | None, project: ProjectRow) -> str:
    def button(act: str, word: str) -> str:
        return f'<button type="button" class="tm-text-button" data-act="{act}" data-job="{job.id}">{word}</button>'

    found = []
    if job.active:
        found.append(button("cancel", tr("Cancelling" if job.cancel_requested else "Cancel")))
    if job.resumable:
        found.append(button("resume", tr("Resume")))
    if plugin is not None:
        compare = address("compare", project.id)
        found.append(f'<a href="{esc(compare)}&amp;plugin={plugin.id}">{esc(tr("Compare"))}</a>')
        found.append(f'<a href="/download/plugins/{plugin.id}">{esc(tr("Download"))}</a>')
    found.append(f'<a href="{esc(_clone(job))}">{esc(tr("Clone"))}</a>')
    return " · ".join(found)


def _bleu(plugin: PluginRow | None, kind: str) -> float | None:
    kinds = (kind, "held-out samples") if kind == "style" else (kind,)
    found = scores(plugin.metrics) if plugin else []
    return next((one.after for one in found if one.metric == "bleu" and one.kind in kinds), None)


def no_runs(project: ProjectRow | None) -> str:
    """What stands where the runs will be."""
    if project is None:
        link = way("/samples?project=new", tr("Go to Samples"))
        return empty(tr("No project yet"), tr("A plugin learns from samples."), link)
    return ""


# -- some compared


def compare_card(jobs: Sequence[tuple[int, JobRow]], plugins: Mapping[int, PluginRow]) -> str:
    """Two runs or more side by side: what they were given, where that differs, and what came out. `jobs`: number and row."""
    rows: list[tuple[str, list[str]]] = [(tr("method"), [words(job.arguments.get("method", "")) for _, job in jobs])]
    given = [_given(job) for _, job in jobs]
    for key in dict.fromkeys(key for one in given for key in one):
        values = [one.get(key, tr("as the budget")) for one in given]
        if len(set(values)) > 1:
            rows.append((setting_said(key), values))
    for name, reader in OUTCOMES:
        values = [reader(job, plugins.get(job.id)) for _, job in jobs]
        if any(value != "–" for value in values):
            rows.append((tr(name), values))
    body = [[Cell(name, kind="quiet"), *(Cell(value, kind="num") for value in values)] for name, values in rows]
    heads = ["", *(tr("run {number}", number=number_) for number_, _ in jobs)]
    return table(heads, body, numeric=range(1, len(heads)), kind="tm-small")


def _given(job: JobRow) -> dict[str, str]:
    base = str(job.arguments.get("base", "")).rstrip("/").rsplit("/", 1)[-1]
    found = {"budget": tr(str(job.arguments.get("budget", "balanced"))), "base": base}
    found["kNN on top"] = tr("yes") if job.arguments.get("knn") else tr("no")
    for settings in own_settings(job).values():
        found |= {key: str(value) for key, value in settings.items() if key != "watch"}
    return found


def _score(kind: str, metric: str) -> Any:
    def read(job: JobRow, plugin: PluginRow | None) -> str:
        for one in scores(plugin.metrics) if plugin else []:
            if one.metric == metric and (one.kind == kind or (kind == "style" and one.kind == "held-out samples")):
                sure = f" (p {one.p:.3f})" if one.p is not None else ""
                return f"{one.before:.1f} → {one.after:.1f}{sure}"
        return "–"

    return read


def _metric(key: str, digits: int) -> Any:
    def read(job: JobRow, plugin: PluginRow | None) -> str:
        value = (plugin.metrics if plugin else {}).get(key)
        return number(value, digits) if isinstance(value, int | float) else "–"

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
    (mark("validation loss before"), _metric("validation_loss_before", 3)),
    (mark("validation loss"), _metric("validation_loss", 3)),
    (mark("updates"), _result("updates")),
    (mark("weights"), _result("parameters")),
    (mark("plugin"), _result("bytes")),
    (mark("time"), lambda job, plugin: _took(job)),
)
