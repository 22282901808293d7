"""The parts of the page Compare: the table with strengths and highlights, the progress, the menus."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from engine.core.flagged import FLAGS
from engine.corpora.terminology import Term
from engine.decoding.guard import noticed
from engine.evaluation.highlight import marks
from engine.store import JobRow, PluginRow, ProjectRow
from engine.store.comparisons import ComparisonLineRow, ComparisonRecord
from engine.workflows.compare.export import FORMATS
from engine.workflows.compare.systems import has_dial
from studio.components.diff import runs_html
from studio.components.html import empty, link_line, number
from studio.components.layout import address
from studio.components.method_names import method_name
from studio.components.templating import render
from studio.i18n.translate import mark, moment, span, tr, translate_message
from studio.services.catalog import language_pair_text
from studio.services.terminology import required_terms

PAGE = 25  # lines on a page
ORDERS = {
    "place": mark("original order"),
    "difference": mark("most different first"),
    "better": mark("largest gain first"),
    "worse": mark("largest loss first"),
}


@dataclass(frozen=True)
class Languages:
    """The codes of both languages, the source language's name, the base's short name, and the project's termbase."""

    source: str
    target: str
    source_name: str
    base: str
    terms: Sequence[Term] = ()


@dataclass(frozen=True)
class Column:
    """The column head of a system; `dial` is whether its method has an adjustable strength."""

    name: str
    method: str = ""
    strength: str = ""
    dial: bool = False
    missing: bool = False  # its plugin was deleted
    plugin: int = 0


@dataclass(frozen=True)
class Cell:
    """A translation; `runs` is its text with differences marked, None if it is not available yet."""

    runs: Markup | None = None
    flag: str = ""
    score: str = ""
    terms: Sequence[tuple[str, bool]] = ()  # required terms, and whether the translation contains them


@dataclass(frozen=True)
class Line:
    """A row; `number` counts from 1."""

    number: int
    source: str
    reference: str
    cells: Sequence[Cell]


def compare_table(
    sheet: ComparisonRecord, lines: Sequence[ComparisonLineRow], languages: Languages, *,
    counts: tuple[int, int] | None, order: str = "place", offset: int = 0, word: str = "", missing_systems: Collection[int] = (),
) -> str:  # fmt: skip
    """A page of the comparison: source, the base alone, one column per plugin. `counts` are from `ComparisonTables.count`, None
    while a job reports progress; `word` is the open word as line.system.start-end; `missing_systems` lost their plugin.
    """
    several = len(sheet.systems) > 1
    scored = sheet.references or sheet.figures.get("style")
    orders = {name: title for name, title in ORDERS.items() if scored or name in ("place", "difference")}
    done, different = counts or (0, 0)
    return render(
        "comparison_table.html",
        comparison=sheet.comparison_id,
        columns=[_column(index, system, index in missing_systems) for index, system in enumerate(sheet.systems)],
        rows=[_line(line, languages) for line in lines],
        lines=sheet.lines,
        languages=languages,
        word=word,
        state=_state(sheet, done, different) if counts else "",
        orders=orders if sheet.lines > 1 and several else {},
        order=order,
        legend=bool(several and different),
        enforced=bool(sheet.systems[0].get("enforced")),
        offset=offset,
        page=PAGE,
        last=min(sheet.lines, offset + PAGE),
    )


def _column(index: int, system: Mapping[str, Any], missing: bool) -> Column:
    if not index:
        return Column(tr("Vanilla"), missing=missing)
    method = str(system["method"])
    return Column(
        str(system["name"]),
        method_name(method),
        f"{float(system['strength']):g}",
        has_dial(method),
        missing,
        system["plugin_id"] or 0,
    )


def _line(line: ComparisonLineRow, languages: Languages) -> Line:
    required = required_terms(languages.terms, line.source, line.reference or "")
    cells = [
        Cell()
        if line.texts[index] is None
        else Cell(
            Markup(runs_html(runs, "new" if index else "old")),
            _flag(line, index),
            _score(line, index),
            [(term.target, bool(term.in_target.search(str(line.texts[index])))) for term in required],
        )
        for index, runs in enumerate(marks(line.texts, languages.target))
    ]
    return Line(line.place + 1, line.source, line.reference or "", cells)


def _flag(line: ComparisonLineRow, index: int) -> str:
    """Why a translation should be checked; empty if there is no reason."""
    flag = noticed(line.source, line.texts[index])
    return tr(FLAGS[flag]) if flag else ""


def _score(line: ComparisonLineRow, index: int) -> str:
    """A translation's sentence-level score: chrF if there is a reference, else the classifier's probability of the style."""
    score = line.scores[index] if index < len(line.scores) else None
    if score is None:
        return ""
    return f"chrF {score:.0f}" if line.reference else tr("style {value} %", value=f"{score:.0f}")


def _state(sheet: ComparisonRecord, done: int, different: int) -> str:
    """The text in the foot of the table."""
    if done != sheet.lines:
        return tr("{some} of {all} done", some=number(done), all=number(sheet.lines))
    if len(sheet.systems) < 2:
        return tr("The base alone. Choose a plugin to see what it changes.")
    return tr("{some} of {all} sentences differ", some=number(different), all=number(sheet.lines))


def file_card(sheet: ComparisonRecord, project_id: int) -> str:
    """The card shown instead of typed sentences: the file, its contents, and the link back to typing."""
    return render("comparison_file.html", sheet=sheet, project=project_id)


def reading_card(names: str) -> str:
    """The placeholder while an opened file is read."""
    return render("comparison_reading.html", names=names)


def progress_card(job: JobRow | None) -> str:
    """The comparison's job while it is active, or why it stopped; empty otherwise."""
    if job is None or str(job.state) == "succeeded":
        return ""
    if job.active:
        return render("comparison_progress.html", job=job, line=_progress_line(job))
    reasons = {"failed": translate_message(job.error) or tr("This failed."), "cancelled": tr("Cancelled. Completed work is kept.")}
    reason = reasons.get(str(job.state), tr("Interrupted. Completed work is kept."))
    return render("comparison_progress.html", job=job, line=reason)


def _progress_line(job: JobRow) -> str:
    """A job's step, the number of finished lines, and the time left."""
    waiting = str(job.state) == "queued"
    position = tr(" ({place} of {all})", place=job.step_index + 1, all=job.steps) if job.step else ""
    step = tr(job.step or "Starting") + position
    counted = job.total and job.total > 1 and job.step_index == 1
    parts = (
        tr("Waiting for a worker") if waiting else step,
        tr("{used} of {all}", used=number(job.done), all=number(job.total)) if counted else "",
        tr("{time} left in this step", time=span(job.eta)) if job.eta is not None and not waiting else "",
    )
    return " · ".join(filter(None, parts))


def earlier_menu(titles: Sequence[tuple[int, str, datetime.datetime]], project_id: int, sheet: ComparisonRecord | None) -> str:
    """Links to the project's comparisons, newest first, and to a new one."""
    return render(
        "comparison_earlier.html",
        titles=[(comparison, title, moment(created)) for comparison, title, created in titles],
        project=project_id,
        current=sheet.comparison_id if sheet else 0,
    )


def share_menu(sheet: ComparisonRecord) -> str:
    """The menu that names and keeps the comparison, and its address, which then always opens exactly this state."""
    return render("comparison_share.html", sheet=sheet)


def export_menu(sheet: ComparisonRecord) -> str:
    """One download link per format."""
    return render("comparison_export.html", comparison=sheet.comparison_id, formats=FORMATS)


def plugin_choices(rows: Sequence[PluginRow]) -> list[tuple[str, int]]:
    """(label, id) of plugins; versions with the same name are distinguished by their date."""
    names = Counter(row.name for row in rows)
    return [(f"{row.name} ({moment(row.created)})" if names[row.name] > 1 else row.name, row.id) for row in rows]


def invitation(project: ProjectRow, has_plugins: bool, requested: str = "") -> str:
    """The placeholder shown instead of the table; `requested` is the number of a comparison that was not found."""
    more = "" if has_plugins else link_line(address("train", project.id), tr("Train a plugin"))
    if requested not in ("", "new"):
        words = tr("It may have been deleted, or it belongs to another project. Type sentences or open a file to start a new one.")
        return empty(tr("Comparison not found"), words, more)
    words = (
        tr("Type sentences or open a file, then translate.")
        if has_plugins
        else tr("There is no plugin yet, so only the base translates.")
    )
    languages = language_pair_text(project.source, project.target)
    return empty(tr("Compare {languages}", languages=languages), words, more)
