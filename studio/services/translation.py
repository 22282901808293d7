"""What the page Translate asks for: a project's plugins, and a short text line by line, as a document of these lines would be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine.errors import InputError
from studio.i18n.translate import tr

if TYPE_CHECKING:
    from engine.store import PluginRow, ProjectRow
    from studio.services.service import Service

MOST = 4000  # characters of a short text; more is a document


def plugin_choices(service: Service, project: ProjectRow) -> list[tuple[str, int]]:
    """The project's plugins whose bundles are there, older versions by their numbers."""
    return [
        (
            one.name if row is one.newest else tr("{name}, version {number}", name=one.name, number=one.number(row)),
            row.id,
        )
        for one in service.library.versions(project.id)
        for row in one.rows
        if row.exists
    ]


def wanted_plugin(service: Service, project: ProjectRow, asked: str) -> PluginRow | None:
    """The plugin that the address names; the project's default where it names none."""
    if asked == "0":
        return None
    rows = service.store.plugins.list(project.id)
    named = next((row for row in rows if str(row.id) == asked and row.exists), None)
    return named or service.store.defaults.get(project.id)


def plugin_of(service: Service, chosen: int | None) -> PluginRow | None:
    """The plugin that a menu names; None for the base alone."""
    return service.store.plugins.get(int(chosen)) if chosen else None


def lines_of(text: str) -> list[str]:
    """The lines of a text; none of an empty one. Raises InputError where it is too long."""
    if not text.strip():
        return []
    if len(text) > MOST:
        raise InputError(
            tr("This text has {count} characters. Save it as a file and drop it as a document.", count=f"{len(text):,}")
        )
    return text.strip("\n").split("\n")


def translate_lines(
    service: Service,
    project: ProjectRow,
    lines: Sequence[str],
    plugin: PluginRow | None,
    strength: float,
    terms: str = "",
) -> Iterator[tuple[str, str]]:
    """(translation, doubt) of each line, as they are made."""
    from engine.corpora.formats.documents.model import Unit
    from engine.corpora.formats.tagged_text import text_of

    for line in lines:
        if not line.strip():
            yield "", ""
            continue
        (result,) = service.translate(project, [Unit([line])], plugin, strength, terms)
        yield text_of(result.parts), result.doubt
