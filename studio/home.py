"""The first page: every project as a card, or the invitation to start one."""

from __future__ import annotations

import datetime

import gradio as gr

from engine.store import ProjectRow
from studio.catalog import language_name
from studio.frame import address, guard, heading, page
from studio.html import empty, esc, number, tag, view
from studio.service import Service

__all__ = ["build"]


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/`."""
    with page(
        demo, service, "", "Projects", "One project a style: its samples, its plugins, its comparisons."
    ) as frame:
        with frame.actions:
            view('<a class="tm-link-button tm-filled" href="/samples?project=new">New project</a>')
        cards = view()

    def fill() -> tuple[str, str]:
        rows = sorted(service.store.projects.list(), key=lambda row: row.updated, reverse=True)
        if not rows:
            start = '<p style="margin-top:16px"><a href="/samples?project=new">Choose files or a sample</a></p>'
            return heading("Projects", ""), empty("Drop your sentences here, or start with a sample", "", start)
        count = f"{len(rows)} {'project' if len(rows) == 1 else 'projects'}, the latest first."
        return heading(
            "Projects", count
        ), f'<div class="tm-grid">{"".join(project_card(service, row) for row in rows)}</div>'

    demo.load(guard(fill), None, [frame.title, cards], show_progress="hidden", api_visibility="private")


def project_card(service: Service, row: ProjectRow) -> str:
    """Name, languages, what there is, when it changed."""
    seen = service.overview(row.id)
    page = "compare" if seen.plugins else ("train" if seen.phrases else "samples")
    active = seen.active is not None and seen.active.project_id == row.id
    state = (
        tag("at work", "accent") if active else (tag("plugin ready", "done") if seen.plugins else tag("no plugin yet"))
    )
    counts = f"{number(seen.sentences)} sentences · {number(seen.phrases)} phrases"
    counts = counts if seen.sentences is not None else "No sentences read yet"
    counts += f" · {seen.plugins} {'plugin' if seen.plugins == 1 else 'plugins'}" if seen.plugins else ""
    return (
        f'<a class="tm-card tm-pad tm-project" href="{esc(address(page, row.id))}"><h3>{esc(row.name)} {state}</h3>'
        f'<p class="tm-quiet">{esc(language_name(row.source))} to {esc(language_name(row.target))}</p>'
        f'<p class="tm-quiet">{esc(counts)}<br>changed {esc(ago(row.updated))}</p></a>'
    )


def ago(moment: datetime.datetime) -> str:
    """A moment in the past as a person says it: `just now`, `5 min ago`, `3 days ago`, `12 March 2026`."""
    seconds = (datetime.datetime.now(datetime.UTC) - moment).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds < 5400:
        return f"{round(seconds / 60)} min ago"
    if seconds < 129600:
        return f"{round(seconds / 3600)} h ago"
    if seconds < 30 * 86400:
        return f"{round(seconds / 86400)} days ago"
    return f"{moment.day} {moment:%B %Y}"
