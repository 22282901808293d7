"""The preview card: a few sentences translated by the base and with the samples' help, before any training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from engine.core.flagged import FLAGS
from engine.decoding.guard import noticed
from engine.store import JobRow, ProjectRow
from engine.workflows.preview import understood
from studio.components.diff import marked
from studio.components.html import lang_attribute, number
from studio.components.layout import step_text
from studio.components.templating import render, script
from studio.i18n.translate import span, tr

SHOWN = 5
LOST = 0.6  # a sentence is flagged if its back-translation agreement falls below this fraction of the base's
FALL = 5.0  # drop of the mean agreement, in points, that triggers a warning
SOURCED = 0.5  # below this share of samples with sources, the card explains the value of translations
LOOK = script("preview-card.js")


def look_rows(preview: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows to show, out of those that the base can translate: changed ones first, plain sentences before held-out ones."""
    rows = [row for row in preview.get("rows", []) if isinstance(row, Mapping) and understood(row)]
    order = sorted(
        range(len(rows)), key=lambda i: (rows[i].get("vanilla") == rows[i].get("customized"), rows[i].get("kind") != "plain", i)
    )
    # Include at least one held-out sentence, which is shown with the user's reference.
    chosen = order[:SHOWN]
    held_out = [i for i in order if rows[i].get("reference") and rows[i].get("vanilla") != rows[i].get("customized")]
    if held_out and not any(rows[i].get("reference") for i in chosen):
        chosen[-1] = held_out[0]
    return [rows[i] for i in chosen]


def look_card(project: ProjectRow, job: JobRow | None, preview: Mapping[str, Any], *, folded: bool = False) -> str:
    """The preview card in its current state: in progress, failed, available, or to be requested.

    `folded` is for projects with runs: the card is then collapsed, and open only while the first preview is made.
    """
    state = job.state if job is not None and (job.active or job.state == "failed") else ""
    return render(
        "preview.html",
        job=job,
        state=state,
        step=step_text(job) if job is not None and state == "running" else "",
        folded=folded,
        opened=state in ("queued", "running") and not preview,
        rows=[_row(row, project.target) for row in look_rows(preview)],
        source_lang=Markup(lang_attribute(project.source)),
        target_lang=Markup(lang_attribute(project.target)),
        facts=_facts(preview),
        there=bool(preview.get("rows")),
        lost=_loss(preview),
        # If few samples have sources, the card states the value of translations.
        few_sources=float(preview.get("sourced", 0.0)) < SOURCED,
    )


def _row(row: Mapping[str, Any], language: str) -> dict[str, object]:
    vanilla, customized = marked(str(row.get("vanilla", "")), str(row.get("customized", "")), language)
    texts = {name: row.get(name, "") for name in ("source", "reference")}
    for name in ("vanilla", "customized"):
        flag = noticed(str(row.get("source", "")), row.get(name))
        texts[f"{name}_flag"] = tr(FLAGS[flag]) if flag else ""
    agreement = row.get("agreement") or {}
    texts["lost"] = bool(agreement) and agreement["customized"] < LOST * agreement["vanilla"]
    return {"vanilla": Markup(vanilla), "customized": Markup(customized), **texts}


def _loss(preview: Mapping[str, Any]) -> str:
    """A warning if meaning is lost; empty if it is not, or was not measured."""
    before, after = preview.get("agreement_base"), preview.get("agreement")
    if not isinstance(before, int | float) or not isinstance(after, int | float) or after >= before - FALL:
        return ""
    return tr(
        "Meaning is lost: after back-translation the sentences match their sources with chrF {after} instead "
        "of {before}. The style of the samples does not make up for that.",
        before=f"{before:.0f}", after=f"{after:.0f}",
    )  # fmt: skip


def _facts(preview: Mapping[str, Any]) -> list[str]:
    """The number of changed sentences, the number looked up, the scores, and the time taken."""
    rows = preview.get("rows", [])
    seconds = sum(float(value) for value in (preview.get("seconds") or {}).values())
    facts = [
        tr("{some} of {all} sentences change", some=preview.get("differ", 0), all=len(rows)),
        tr("{count} sentences looked up", count=number(preview.get("sentences", 0))),
    ]
    before, after = preview.get("bleu_base"), preview.get("bleu")
    loss_before, loss = preview.get("loss_base"), preview.get("loss")
    if isinstance(before, int | float) and isinstance(after, int | float):
        scores = {"before": f"{before:.1f}", "after": f"{after:.1f}"}
        facts.append(tr("BLEU of {count} held-out sentences {before} → {after}", count=len(rows), **scores))
    elif isinstance(loss_before, int | float) and isinstance(loss, int | float):
        scores = {"before": f"{loss_before:.2f}", "after": f"{loss:.2f}"}
        facts.append(tr("held-out loss {before} → {after}, lower is better", **scores))
    before, after = preview.get("agreement_base"), preview.get("agreement")
    if isinstance(before, int | float) and isinstance(after, int | float):
        scores = {"before": f"{before:.0f}", "after": f"{after:.0f}"}
        facts.append(tr("meaning, by back-translation (chrF) {before} → {after}", **scores))
    return [*facts, tr("built in {time}", time=span(seconds))]
