"""What the page Translate shows: documents at work with how far they are, those that are done, a short text's translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import TailorError
from studio.catalog import language_name
from studio.home import ago
from studio.html import Cell, bar, empty, esc, lang_attribute, note, number, table, tag, way
from studio.i18n import mark, span, tr, trn
from studio.told import told

if TYPE_CHECKING:
    from fastapi import FastAPI, Response

    from engine.documents.library import Paper
    from engine.store import JobRow, ProjectRow
    from studio.service import Service

__all__ = ["add_document_routes", "at_work", "done_table", "no_project", "result_box"]

STATES = {
    "succeeded": (mark("done"), "done"),
    "failed": (mark("failed"), "bad"),
    "cancelled": (mark("cancelled"), ""),
    "interrupted": (mark("stopped"), ""),
}
DOUBTS = 30  # shown below a document


def add_document_routes(app: FastAPI, service: Service) -> None:
    """`/download/documents/7`: the translation of the document with that number, always as a download."""
    from fastapi.responses import FileResponse, PlainTextResponse

    @app.get("/download/documents/{number}", include_in_schema=False)
    def document_download(number: int) -> Response:
        from engine.documents.library import Documents

        try:
            paper = Documents(service.store, service.settings).get(number)
        except TailorError as error:
            return PlainTextResponse(str(error), status_code=404)
        if paper.output is None:
            return PlainTextResponse(f"There is no translation of {paper.name}.", status_code=404)
        # Nothing is opened in the browser: a page of somebody else's would run as one of ours.
        return FileResponse(paper.output, filename=paper.output.name, media_type="application/octet-stream")


def _how(paper: Paper) -> str:
    """With what it was translated: `Lu Xun 1 at 0.8`."""
    if not paper.plugin:
        return tr("base alone")
    return (
        paper.plugin
        if paper.strength == 1
        else tr("{plugin} at {strength}", plugin=paper.plugin, strength=f"{paper.strength:g}")
    )


def _button(act: str, word: str, paper: Paper) -> str:
    return (
        f'<button type="button" class="tm-text-button" data-act="{act}" data-job="{paper.job.id}" '
        f'aria-label="{esc(word)} {esc(paper.name)}">{esc(word)}</button>'
    )


def at_work(papers: Sequence[Paper], running: JobRow | None) -> str:
    """The documents that wait or are being translated; `running` is the job at work, whatever it is."""
    rows = "".join(_moving(paper, running) for paper in papers if paper.job.active)
    return (
        f'<div class="tm-card tm-papers" role="status" aria-label="{esc(tr("Documents at work"))}">{rows}</div>'
        if rows
        else ""
    )


def _moving(paper: Paper, running: JobRow | None) -> str:
    job = paper.job
    if job.cancel_requested:
        line = tr("Stopping")
    elif job.state == "queued":
        other = running is not None and running.id != job.id
        line = tr("Waiting for the work before it") if other else tr("It starts when a worker is free")
    else:
        parts = [tr(job.step or "Starting"), told(job.note)] if job.note else [tr(job.step or "Starting")]
        parts += [tr("{time} left", time=span(job.eta))] if job.eta is not None else []
        line = " · ".join(parts)
    share = f"{job.fraction:.0%}" if job.state == "running" else ""
    stop = "" if job.cancel_requested else _button("cancel", tr("Cancel"), paper)
    return (
        f'<div class="tm-paper"><div class="tm-card-head"><h3 aria-level=2>{esc(paper.name)} '
        f"<small>{esc(_how(paper))}</small></h3>"
        f'<span class="tm-quiet">{esc(share)} {stop}</span></div>{bar(job.fraction)}<p class="tm-quiet">{esc(line)}</p></div>'
    )


def done_table(papers: Sequence[Paper], project: ProjectRow) -> str:
    """The documents that are no longer at work, newest first, each with what can be done and what to look at."""
    ended = [paper for paper in papers if not paper.job.active]
    if not ended:
        return ""
    rows, under = [], []
    for paper in ended:
        job, report = paper.job, paper.report
        word, kind = STATES.get(job.state.value, (job.state.value, ""))
        doubtful = int(report.get("doubtful", 0))
        if paper.output is None and job.state == "succeeded":
            word, kind = mark("file is gone"), "bad"
        told = tr("{count} texts", count=number(report["units"])) if "units" in report else "–"
        rows.append(
            [
                Cell(html=f"<b>{esc(paper.name)}</b>"),
                Cell(_how(paper)),
                Cell(told, kind="num"),
                Cell(html=tag(tr(word), kind)),
                Cell(ago(job.finished or job.created), kind="quiet"),
                Cell(html=_links(paper)),
            ]
        )
        under.append(_below(paper, doubtful, project))
    heads = [tr("document"), tr("with"), tr("translated"), tr("state"), tr("when"), ""]
    return f'<div class="tm-card tm-scroll">{table(heads, rows, numeric=[2], kind="tm-papers-done", under=under)}</div>'


def _links(paper: Paper) -> str:
    links = []
    if paper.output is not None:
        links.append(
            f'<a href="/download/documents/{paper.job.id}" download="{esc(paper.output.name)}" '
            f'aria-label="{esc(tr("Download"))} {esc(paper.output.name)}">{esc(tr("Download"))}</a>'
        )
    elif paper.job.resumable:
        links.append(_button("resume", tr("Go on"), paper))
    return " · ".join([*links, _button("delete", tr("Delete"), paper)])


def _below(paper: Paper, doubtful: int, project: ProjectRow) -> str:
    """What is said of a document below it: why it failed, what was left as it was, what to look at."""
    parts = ""
    if paper.job.state in ("failed", "interrupted"):
        failed = paper.job.state == "failed"
        parts += note(
            paper.job.error if failed else tr("The work was stopped. Go on: what is done is kept."), bad=failed
        )
    kept = {str(reason): int(count) for reason, count in dict(paper.report.get("kept", {})).items()}
    if kept:
        told = ", ".join(f"{number(count)} {tr(reason)}" for reason, count in sorted(kept.items()))
        parts += f'<p class="tm-quiet">{esc(tr("Left as they were: {what}.", what=told))}</p>'
    if doubtful:
        doubts: list[dict[str, Any]] = list(paper.report.get("doubts", []))
        rows = [
            [
                Cell(one.get("place"), kind="quiet"),
                Cell(one.get("source"), lang=project.source),
                Cell(one.get("translation"), lang=project.target),
                Cell(tr(str(one.get("why", ""))), kind="quiet"),
            ]
            for one in doubts[:DOUBTS]
        ]
        rest = tr("And {count} more.", count=number(doubtful - len(rows)))
        more = f'<p class="tm-quiet">{esc(rest)}</p>' if doubtful > len(rows) else ""
        words = trn("{count} text to look at", "{count} texts to look at", doubtful)
        shown = table([tr("where"), tr("source"), tr("translation"), tr("why")], rows, kind="tm-small")
        parts += f'<details class="tm-more"><summary>{esc(words)}</summary>{shown}{more}</details>'
    return parts


def result_box(texts: Sequence[str], doubts: Sequence[str], project: ProjectRow, *, wait: str = "") -> str:
    """The translation of a short text, line by line, as far as it is."""
    lines = "".join(f"<p>{esc(text) or '&nbsp;'}</p>" for text in texts)
    waiting = f'<p class="tm-quiet">{esc(wait)}</p>' if wait else ""
    warned = "".join(note(tr(one)) for one in dict.fromkeys(doubts))
    here = tr("The {language} text stands here.", language=language_name(project.target))
    body = lines + waiting or f'<p class="tm-quiet">{esc(here)}</p>'
    return f'<div class="tm-result" role="status"{lang_attribute(project.target) if lines else ""}>{body}</div>{warned}'


def no_project() -> str:
    """What the page shows without a project."""
    start = way("/samples?project=new", tr("Go to Samples"))
    return empty(tr("Nothing to translate with yet"), tr("A project names the languages and the base."), start)
