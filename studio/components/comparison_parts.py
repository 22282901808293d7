"""Render the parts of the page Compare for a stored comparison."""

from __future__ import annotations

from pathlib import Path

from engine.errors import TailorError
from engine.store import ProjectRow
from engine.store.comparisons import ComparisonRecord
from studio.components.compare_url import CompareUrl
from studio.components.comparison_table import PAGE, Languages, compare_table, earlier_menu, export_menu, invitation, share_menu
from studio.components.metric_cards import figure_cards
from studio.services.catalog import language_name
from studio.services.comparisons import Comparisons
from studio.services.terminology import termbase


def table_of(
    comparisons: Comparisons, project: ProjectRow, url: CompareUrl, sheet: ComparisonRecord | None, requested: str = ""
) -> str:
    """The table of a comparison; without one, an invitation. `requested` is the number of a comparison that was not found."""
    store = comparisons.store
    if sheet is None:
        return invitation(project, store.plugins.count(project.id) > 0, requested)
    base = Path(project.base).name
    offset = url.offset if url.offset < sheet.lines else 0
    job = comparisons.job(sheet)
    busy = job is not None and job.active and job.step_index < 2
    return compare_table(
        sheet,
        store.sheets.page(sheet.comparison_id, url.order, offset, PAGE),
        Languages(project.source, project.target, language_name(project.source), base, termbase(comparisons.service, project)),
        counts=None if busy else store.sheets.count(sheet.comparison_id),
        order=url.order,
        offset=offset,
        word=url.word,
        missing_systems=comparisons.missing_systems(project, sheet),
    )


def figures_of(comparisons: Comparisons, sheet: ComparisonRecord | None) -> str:
    """The figures below the table; empty for the base alone."""
    if sheet is None or len(sheet.systems) < 2:
        return ""
    job = comparisons.job(sheet)
    metrics = []
    for system in sheet.systems[1:]:
        try:
            metrics.append(comparisons.store.plugins.get(int(system["plugin_id"] or 0)).metrics)
        except TailorError:
            metrics.append({})
    moved = any(float(system["strength"]) != 1 for system in sheet.systems[1:])
    return figure_cards(sheet, busy=job is not None and str(job.state) != "succeeded", plugins=metrics, moved=moved)


def menus_of(comparisons: Comparisons, project: ProjectRow, sheet: ComparisonRecord | None) -> str:
    """The menu of earlier comparisons, and those for sharing and exporting the current one."""
    titles = comparisons.store.sheets.titles(project.id)
    menu = earlier_menu(titles, project.id, sheet) if titles else ""
    return menu + (share_menu(sheet) + export_menu(sheet) if sheet else "")
