"""The state of the import in words: the running job, the sentence under the heading, the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.store import JobRow, ProjectRow
from studio.components.html import link_button, note, number
from studio.components.layout import address, step_text
from studio.components.templating import render
from studio.i18n.translate import mark, together, tr, translate_message, trn
from studio.services.catalog import language_pair_text

FEW = mark(
    "The missing sources are back-translated by the base and are of poor quality. If you provide translations (a "
    "translation memory in TMX, XLIFF or PO, or a two-column table), the gain is several times larger, and a "
    "plugin takes seconds."
)
READING = {"prepare": mark("Reading samples"), "leakage": mark("Comparing with the test files")}


def next_link(project: ProjectRow) -> str:
    """The link to the next step, as the page's primary button."""
    return link_button(address("train", project.id), tr("Train a plugin"))


def summary(report: Mapping[str, Any], project: ProjectRow) -> str:
    """The sentence under the heading."""
    return trn(
        "{kept} sentences kept from {count} file, {skipped} skipped. {languages}.",
        "{kept} sentences kept from {count} files, {skipped} skipped. {languages}.",
        sum(1 for file in report.get("files", []) if file.get("kept") or not file.get("error")),
        kept=number(report.get("kept", 0)),
        skipped=number(sum(report.get("skipped", {}).values())),
        languages=language_pair_text(project.source, project.target),
    )


def translations_card(sentences: int, sourced: int) -> str:
    """A note on the value of translations, existing or missing; empty without sentences."""
    if not sentences:
        return ""
    if sourced == sentences:
        says = tr(
            "All sentences come with your own translations, which are used unchanged for retrieval, training "
            "and evaluation. A kNN plugin takes seconds and gains the most."
        )
    elif sourced:
        counts = {"some": number(sourced), "all": number(sentences)}
        says = together(tr("{some} of {all} sentences come with your own translations.", **counts), tr(FEW))
    else:
        says = together(tr("No sentence has a translation."), tr(FEW))
    return note(says)


def is_reading(job: JobRow | None) -> bool:
    """Whether samples are being read or about to be."""
    return job is not None and job.active and job.kind == "prepare"


def job_line(job: JobRow | None, something: bool = False) -> str:
    """The state of the import with the available actions; empty once it is done.

    `something`: the result of an earlier import is shown, so a cancelled one is not mentioned.
    """
    if job is None or job.state == "succeeded":
        return ""
    if job.state == "cancelled" and something:
        return ""
    step = ""
    if job.state == "running":
        step = step_text(job) + (f" · {translate_message(job.note)}" if job.note else "")
    return render("import_job.html", job=job, title=tr(READING.get(job.kind, job.kind)), step=step)
