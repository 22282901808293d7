"""What the page Translate asks for: a project's plugins, and a short text line by line, as a document of these lines would be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.base import BaseModel
from engine.corpora import split_sentences
from engine.corpora.formats.documents.model import Unit
from engine.corpora.formats.tagged_text import text_of
from engine.decoding.alternatives import Alternatives, alternatives
from engine.errors import InputError
from engine.store import PluginRow, ProjectRow
from studio.i18n.translate import tr

if TYPE_CHECKING:
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


def wanted_plugin(service: Service, project: ProjectRow, number: str) -> PluginRow | None:
    """The plugin that the address names; where it names none, the one to begin with."""
    if number == "0":
        return None
    rows = service.store.plugins.list(project.id)
    named = next((row for row in rows if str(row.id) == number and row.exists), None)
    return named or first_plugin(service, project)


def first_plugin(service: Service, project: ProjectRow) -> PluginRow | None:
    """The plugin that a page begins with: the project's default; where nobody chose the base alone, the only plugin there is,
    unless it does harm.

    An imported one is never the default by itself, but a page says what it translates with before it does.
    """
    usual = service.store.defaults.get(project.id)
    if usual is not None or service.store.defaults.chosen(project.id):
        return usual
    there = [row for row in service.store.plugins.list(project.id) if row.exists]
    return there[0] if len(there) == 1 and not there[0].harm else None


def plugin_of(service: Service, chosen: int | None) -> PluginRow | None:
    """The plugin that a menu names; None for the base alone."""
    return service.store.plugins.get(int(chosen)) if chosen else None


def strength_of(text: object) -> float:
    """The strength that an address names, between 0 and 1; 1 where it names none."""
    try:
        return min(1.0, max(0.0, float(str(text))))
    except ValueError:
        return 1.0


def lines_of(text: str) -> list[str]:
    """The lines of a text; none of an empty one. Raises InputError where it is too long."""
    if not text.strip():
        return []
    if len(text) > MOST:
        raise InputError(
            "This text has {count:,} characters. Save it as a file and drop it as a document.", count=len(text)
        )
    return text.strip("\n").split("\n")


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence of a text with its translation; `doubt` says why to look at it, empty where nothing is odd."""

    source: str
    translation: str
    doubt: str = ""


def translate_lines(
    service: Service,
    project: ProjectRow,
    lines: Sequence[str],
    plugin: PluginRow | None,
    strength: float,
    terms: str = "",
) -> Iterator[list[TranslatedSentence]]:
    """The sentences of each line with their translations, as they are made; none of an empty line."""
    for line in lines:
        sources = split_sentences(line, project.source) if line.strip() else []
        results = service.translate(project, [Unit([one]) for one in sources], plugin, strength, terms)
        yield [
            TranslatedSentence(one, text_of(made.parts), made.doubt) for one, made in zip(sources, results, strict=True)
        ]


def alternatives_of(
    service: Service,
    base: BaseModel,
    row: PluginRow | None,
    strength: float,
    text: str,
    prefix: str = "",
    count: int = 5,
) -> Alternatives:
    """Other translations of a sentence by a loaded base, with the plugin of a row where there is one.

    Raises InputError where the text is several sentences, and as `engine.decoding.alternatives` does.
    """
    if len(split_sentences(text, base.source)) > 1:
        raise InputError("Alternatives are for one sentence, and this text has several.")
    plugin = service.plugin(row, base) if row is not None else None
    decoding = base.decoding(plugin.card.get("decoding") if plugin and strength else None)
    return service.in_turn(
        lambda: alternatives(base, text, plugin, strength=strength, decoding=decoding, prefix=prefix, count=count), text
    )
