"""Where the reading of samples stands, in words: the job at work, the sentence under the heading, the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.progress import duration
from engine.store import JobRow, ProjectRow
from studio.catalog import language_name
from studio.frame import address
from studio.html import bar, card, esc, note, number

__all__ = ["job_line", "next_link", "summary"]

READING = {"prepare": "Reading samples", "leakage": "Comparing with the test files"}


def next_link(project: ProjectRow) -> str:
    """The next step, as the page's one filled button."""
    return f'<a class="tm-link-button tm-filled" href="{esc(address("train", project.id))}">Train a plugin</a>'


def summary(report: Mapping[str, Any], project: ProjectRow) -> str:
    """The sentence under the heading."""
    files = len(report.get("files", []))
    return (
        f"{number(report.get('kept', 0))} sentences kept from {files} {'file' if files == 1 else 'files'}, "
        f"{number(sum(report.get('skipped', {}).values()))} skipped. "
        f"{language_name(project.source)} to {language_name(project.target)}."
    )


def job_line(job: JobRow | None, something: bool = False) -> str:
    """Where the reading stands, with what can be done about it; nothing once it is done.

    `something`: an earlier reading is there to be shown, so a cancelled one needs no word.
    """
    if job is None or job.state == "succeeded":
        return ""
    title = READING.get(job.kind, job.kind)

    def button(act: str, words: str) -> str:
        return f'<button type="button" class="tm-text-button" data-act="{act}" data-job="{job.id}">{words}</button>'

    if job.state == "queued":
        words = "Waiting for a worker to read the samples." if job.kind == "prepare" else f"{title}: waiting."
        return card(f'<span class="tm-quiet">{esc(words)}</span> {button("cancel", "Cancel")}')
    if job.state == "running":
        left = f", {duration(job.eta)} left in this step" if job.eta is not None else ""
        where = f" · {job.note}" if job.note else ""
        line = f"{job.step or 'Starting'} (step {job.step_index + 1} of {job.steps}){left}{where}"
        stop = "Cancelling" if job.cancel_requested else button("cancel", "Cancel")
        return card(
            f'<div class="tm-line"><span><b>{esc(title)}</b> <span class="tm-quiet">{esc(line)}</span></span>'
            f"<span>{stop}</span></div>{bar(job.fraction)}"
        )
    if job.state == "cancelled" and something:
        return ""
    said = job.error or f"{title} was {job.state}."
    return f'<div class="tm-failed">{note(said, bad=True)}{button("again", "Read again")}</div>'
