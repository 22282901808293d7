"""The first look as a card: a few sentences as they are, and as the samples change them, before anything was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.store import JobRow, ProjectRow
from studio.difference import marked
from studio.frame import address, step_said
from studio.html import bar, card, esc, lang_attribute, note, number
from studio.i18n import span, tr

__all__ = ["LOOK", "look_card", "look_rows"]

SHOWN = 5
LOOK = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-look]');
  if (button) { button.disabled = true; trigger('look', {}); }
});
"""
BUTTON = '<button type="button" class="tm-link-button" data-look="1">{word}</button>'


def look_rows(found: Mapping[str, Any], most: int = SHOWN) -> list[Mapping[str, Any]]:
    """The sentences to show: those that changed first, plain ones before held-out ones."""
    rows = [row for row in found.get("rows", []) if isinstance(row, Mapping)]
    order = sorted(
        range(len(rows)),
        key=lambda i: (rows[i].get("vanilla") == rows[i].get("customized"), rows[i].get("kind") != "plain", i),
    )
    # One held-out sentence at least, since beside it stands what the user wrote.
    chosen = order[:most]
    held_out = [i for i in order if rows[i].get("reference") and rows[i].get("vanilla") != rows[i].get("customized")]
    if held_out and not any(rows[i].get("reference") for i in chosen):
        chosen[-1] = held_out[0]
    return [rows[i] for i in chosen]


def look_card(project: ProjectRow, job: JobRow | None, found: Mapping[str, Any]) -> str:
    """The card in the state it is in: on its way, failed, there, or to be asked for."""
    title = tr("A first look: nothing trained, words looked up in your samples (kNN)")
    if job is not None and job.active:
        if job.state == "queued":
            waits = tr("It comes when a worker is free, after what is under way.")
            return card(f'<p class="tm-quiet">{esc(waits)}</p>', title)
        line = step_said(job)
        return card(f'<p class="tm-quiet">{esc(line)}</p>{bar(job.fraction)}', title)
    if job is not None and job.state == "failed":
        return card(note(job.error, bad=True) + BUTTON.format(word=tr("Try again")), title)
    rows = look_rows(found)
    if not rows:
        text = tr("A few sentences by the base, and by the base with your samples at hand, within a minute.")
        return card(f'<p class="tm-quiet">{text}</p>{BUTTON.format(word=tr("Show a first look"))}', title)
    return card(_table(rows, project) + _foot(found, project), title)


def _table(rows: Sequence[Mapping[str, Any]], project: ProjectRow) -> str:
    body = ""
    for row in rows:
        old, new = marked(str(row.get("vanilla", "")), str(row.get("customized", "")), project.target)
        own = ""
        if row.get("reference"):
            own = f"<span{lang_attribute(project.target)}>{esc(row['reference'])}</span>"
            own = f'<p class="tm-small">{esc(tr("yours:"))} {own}</p>'
        body += (
            f'<tr><td class="source"{lang_attribute(project.source)}>{esc(row.get("source", ""))}</td>'
            f"<td{lang_attribute(project.target)}>{old}</td><td{lang_attribute(project.target)}>{new}{own}</td></tr>"
        )
    return (
        f'<div class="tm-scroll"><table class="tm tm-look"><thead><tr><th>{esc(tr("source"))}</th><th>{esc(tr("base alone"))}</th>'
        f"<th>{esc(tr('with your samples'))}</th></tr></thead><tbody>{body}</tbody></table></div>"
    )


def _foot(found: Mapping[str, Any], project: ProjectRow) -> str:
    rows = found.get("rows", [])
    seconds = sum(float(value) for value in (found.get("seconds") or {}).values())
    parts = [
        tr("{some} of {all} sentences change", some=found.get("differ", 0), all=len(rows)),
        tr("{count} sentences looked up", count=number(found.get("sentences", 0))),
    ]
    if isinstance(found.get("loss"), int | float) and isinstance(found.get("loss_base"), int | float):
        before, after = f"{found['loss_base']:.2f}", f"{found['loss']:.2f}"
        parts.append(tr("held-out loss {before} → {after}, lower is better", before=before, after=after))
    text = " · ".join([*parts, tr("made in {time}", time=span(seconds))])
    link = f"{address('train', project.id)}&method=knn&budget=quick"
    return (
        f'<p class="tm-look-foot"><span class="tm-quiet">{esc(text)}</span>'
        f'<a href="{esc(link)}">{esc(tr("Make a plugin of it"))}</a></p>'
    )
