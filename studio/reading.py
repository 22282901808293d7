"""Where the reading of samples stands, in words: the job at work, the sentence under the heading, the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.store import JobRow, ProjectRow
from studio.catalog import pair_said
from studio.frame import address, step_said
from studio.html import bar, card, esc, note, number
from studio.i18n import mark, tr, trn
from studio.told import told

__all__ = ["job_line", "next_link", "summary"]

READING = {"prepare": mark("Reading samples"), "leakage": mark("Comparing with the test files")}


def next_link(project: ProjectRow) -> str:
    """The next step, as the page's one filled button."""
    return f'<a class="tm-link-button tm-filled" href="{esc(address("train", project.id))}">{esc(tr("Train a plugin"))}</a>'


def summary(report: Mapping[str, Any], project: ProjectRow) -> str:
    """The sentence under the heading."""
    return trn(
        "{kept} sentences kept from {count} file, {skipped} skipped. {languages}.",
        "{kept} sentences kept from {count} files, {skipped} skipped. {languages}.",
        len(report.get("files", [])),
        kept=number(report.get("kept", 0)),
        skipped=number(sum(report.get("skipped", {}).values())),
        languages=pair_said(project.source, project.target),
    )


def job_line(job: JobRow | None, something: bool = False) -> str:
    """Where the reading stands, with what can be done about it; nothing once it is done.

    `something`: an earlier reading is there to be shown, so a cancelled one needs no word.
    """
    if job is None or job.state == "succeeded":
        return ""
    title = tr(READING.get(job.kind, job.kind))

    def button(act: str, words: str) -> str:
        return f'<button type="button" class="tm-text-button" data-act="{act}" data-job="{job.id}">{words}</button>'

    if job.state == "queued":
        waits = tr("Waiting for a worker to read the samples.")
        words = waits if job.kind == "prepare" else tr("{what}: waiting", what=title)
        return card(f'<span class="tm-quiet">{esc(words)}</span> {button("cancel", tr("Cancel"))}')
    if job.state == "running":
        where = f" · {told(job.note)}" if job.note else ""
        line = f"{step_said(job)}{where}"
        stop = esc(tr("Cancelling")) if job.cancel_requested else button("cancel", tr("Cancel"))
        return card(
            f'<div class="tm-line"><span><b>{esc(title)}</b> <span class="tm-quiet">{esc(line)}</span></span>'
            f"<span>{stop}</span></div>{bar(job.fraction)}"
        )
    if job.state == "cancelled" and something:
        return ""
    said = job.error or tr("{what}: {state}", what=title, state=tr(str(job.state)))
    return f'<div class="tm-failed">{note(said, bad=True)}{button("again", tr("Read again"))}</div>'
