"""The parts of the page Translate: active documents with their progress, finished ones, the translation of a short text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.languages import unspaced
from engine.jobs.handlers.documents import TranslatedDocument
from engine.store import JobRow, ProjectRow
from studio.components.html import empty, link_line, number
from studio.components.layout import paused_text
from studio.components.templating import render
from studio.i18n.translate import ago, listed, mark, span, tr, translate_message
from studio.services.catalog import language_name
from studio.services.document_segments import segments_of
from studio.services.translation import TranslatedSentence

STATES = {
    "succeeded": (mark("done"), "done"),
    "failed": (mark("failed"), "bad"),
    "cancelled": (mark("cancelled"), ""),
    "interrupted": (mark("stopped"), ""),
}
OTHER_DOCUMENT = mark("This document seems to be in {language}; this project translates from {source} to {target}.")
OTHER_TEXT = mark("This text seems to be in {language}; this project translates from {source} to {target}.")
DOUBTS = 30  # doubtful segments listed below a document
SEGMENTS = 50  # segments per page of the preview


def _how(document: TranslatedDocument) -> str:
    """The plugin and strength of the translation: `Lu Xun 1 at 0.8`."""
    if not document.plugin:
        return tr("base alone")
    if document.strength == 1:
        return document.plugin
    return tr("{plugin} at {strength}", plugin=document.plugin, strength=f"{document.strength:g}")


def _warning(words: str, other: str, project: ProjectRow) -> str:
    """The warning that a text is in the language `other` instead of the project's source language; empty if `other` is."""
    codes = {"language": other, "source": project.source, "target": project.target}
    return tr(words, **{key: language_name(code) for key, code in codes.items()}) if other else ""


def at_work(documents: Sequence[TranslatedDocument], running: JobRow | None, project: ProjectRow) -> str:
    """The documents waiting or being translated; `running` is the running job of any kind."""
    active = [
        (document, _progress_line(document.job, running), _warning(OTHER_DOCUMENT, document.language, project))
        for document in documents
        if document.job.active
    ]
    return render("documents_at_work.html", documents=active, how=_how) if active else ""


def _progress_line(job: JobRow, running: JobRow | None) -> str:
    """The progress of a job: stopping, waiting, or the current step with the time left."""
    if job.cancel_requested:
        return tr("Stopping")
    if job.paused:
        return paused_text()
    if job.state == "queued":
        other = running is not None and running.id != job.id
        return tr("Waiting for earlier jobs") if other else tr("Starts when a worker is free")
    parts = [tr(job.step or "Starting")]
    parts += [translate_message(job.note)] if job.note else []
    parts += [tr("{time} left", time=span(job.eta))] if job.eta is not None else []
    return " · ".join(parts)


def done_table(documents: Sequence[TranslatedDocument], project: ProjectRow) -> str:
    """The documents whose jobs have ended, newest first, each with its actions and the segments to review."""
    rows = [_done_row(document, project) for document in documents if not document.job.active]
    return render("documents_done.html", rows=rows, project=project, how=_how, ago=ago) if rows else ""


@dataclass(frozen=True)
class DoneRow:
    """A document in the table; `error` is why it failed, `left_alone` lists untranslated content."""

    document: TranslatedDocument
    state: str
    kind: str
    error: str
    warning: str
    left_alone: str
    doubtful: int
    doubts: Sequence[Mapping[str, object]]


def _done_row(document: TranslatedDocument, project: ProjectRow) -> DoneRow:
    job, report = document.job, document.report
    state, kind = STATES.get(job.state.value, (job.state.value, ""))
    if document.output is None and job.state == "succeeded":
        state, kind = mark("file missing"), "bad"
    stopped = tr("Translation was stopped. You can continue: completed work is kept.") if job.state == "interrupted" else ""
    reasons = sorted((str(reason), int(count)) for reason, count in dict(report.get("kept", {})).items())
    return DoneRow(
        document, state, kind,
        error=translate_message(job.error) if job.state == "failed" else stopped,
        warning=_warning(OTHER_DOCUMENT, document.language, project),
        left_alone=listed([f"{number(count)} {translate_message(reason)}" for reason, count in reasons]),
        doubtful=int(report.get("doubtful", 0)),
        doubts=list(report.get("doubts", []))[:DOUBTS],
    )  # fmt: skip


def result_box(
    lines: Sequence[Sequence[TranslatedSentence]], project: ProjectRow, *, wait: str = "", other: str = "", plugin: int = 0,
    strength: float = 1.0,
) -> str:  # fmt: skip
    """The translation of a short text, line by line, as far as it is finished. `plugin` is the plugin's id, `other` the language
    of the text if it is not the project's source language.
    """
    doubts = [sentence.doubt for line in lines for sentence in line if sentence.doubt]
    return render(
        "short_text.html", lines=lines, doubts=list(dict.fromkeys(doubts)), wait=wait,
        warning=_warning(OTHER_TEXT, other, project), language=project.target,
        name=language_name(project.target), plugin=plugin, strength=f"{strength:g}",
        space="" if unspaced(project.target) else " ",
    )  # fmt: skip


def segments_card(document: TranslatedDocument, project: ProjectRow, offset: int = 0) -> str:
    """A page of a document's segments, source next to translation, for editing; a message if there are none."""
    offset = max(0, offset)
    segments, count = segments_of(document, offset, SEGMENTS)
    return render(
        "document_segments.html", document=document, segments=segments, count=count, offset=offset, page=SEGMENTS,
        last=offset + len(segments), project=project, strength=f"{document.strength:g}",
        source_name=language_name(project.source), target_name=language_name(project.target),
    )  # fmt: skip


def no_project() -> str:
    """The placeholder shown without a project."""
    start = link_line("/samples?project=new", tr("Go to Samples"))
    return empty(tr("Not ready to translate yet"), tr("Create a project first; it sets the languages and the base."), start)
