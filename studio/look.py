"""The first look as a card: a few sentences as they are, and as the samples change them, before anything was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.progress import duration
from engine.store import JobRow, ProjectRow
from studio.difference import marked
from studio.frame import address
from studio.html import bar, card, esc, lang_attribute, note, number

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
    title = "A first look: nothing trained, words looked up in your samples (kNN)"
    if job is not None and job.active:
        if job.state == "queued":
            return card('<p class="tm-quiet">It comes when a worker is free, after what is under way.</p>', title)
        left = f", {duration(job.eta)} left in this step" if job.eta is not None else ""
        line = f"{job.step or 'Starting'} (step {job.step_index + 1} of {job.steps}){left}"
        return card(f'<p class="tm-quiet">{esc(line)}</p>{bar(job.fraction)}', title)
    if job is not None and job.state == "failed":
        return card(note(job.error, bad=True) + BUTTON.format(word="Try again"), title)
    rows = look_rows(found)
    if not rows:
        text = "A few sentences by the base, and by the base with your samples at hand, within a minute."
        return card(f'<p class="tm-quiet">{text}</p>{BUTTON.format(word="Show a first look")}', title)
    return card(_table(rows, project) + _foot(found, project), title)


def _table(rows: Sequence[Mapping[str, Any]], project: ProjectRow) -> str:
    body = ""
    for row in rows:
        old, new = marked(str(row.get("vanilla", "")), str(row.get("customized", "")), project.target)
        own = ""
        if row.get("reference"):
            own = f'<p class="tm-small">yours: <span{lang_attribute(project.target)}>{esc(row["reference"])}</span></p>'
        body += (
            f'<tr><td class="source"{lang_attribute(project.source)}>{esc(row.get("source", ""))}</td>'
            f"<td{lang_attribute(project.target)}>{old}</td><td{lang_attribute(project.target)}>{new}{own}</td></tr>"
        )
    return (
        '<div class="tm-scroll"><table class="tm tm-look"><thead><tr><th>source</th><th>base alone</th>'
        f"<th>with your samples</th></tr></thead><tbody>{body}</tbody></table></div>"
    )


def _foot(found: Mapping[str, Any], project: ProjectRow) -> str:
    rows = found.get("rows", [])
    seconds = sum(float(value) for value in (found.get("seconds") or {}).values())
    gain = ""
    if isinstance(found.get("loss"), int | float) and isinstance(found.get("loss_base"), int | float):
        gain = f" · held-out loss {found['loss_base']:.2f} → {found['loss']:.2f}, lower is better"
    text = (
        f"{found.get('differ', 0)} of {len(rows)} sentences change · {number(found.get('sentences', 0))} sentences looked up"
        f"{gain} · made in {duration(seconds)}"
    )
    link = f"{address('train', project.id)}&method=knn&budget=quick"
    return (
        f'<p class="tm-look-foot"><span class="tm-quiet">{esc(text)}</span>'
        f'<a href="{esc(link)}">Make a plugin of it</a></p>'
    )
