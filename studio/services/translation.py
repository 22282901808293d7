"""The operations of the page Translate: a project's plugins, and short texts, translated line by line like documents."""

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

MOST = 4000  # characters of a short text; longer texts are translated as documents


def plugin_choices(service: Service, project: ProjectRow) -> list[tuple[str, int]]:
    """(label, id) of the project's plugins with an existing bundle; older versions are labelled with their number."""
    return [
        (
            plugin.name if row is plugin.newest else tr("{name}, version {number}", name=plugin.name, number=plugin.number(row)),
            row.id,
        )
        for plugin in service.library.versions(project.id)
        for row in plugin.rows
        if row.exists
    ]


def wanted_plugin(service: Service, project: ProjectRow, number: str) -> PluginRow | None:
    """The plugin named in the address; if it names none, the initial one. None for "0", the base alone."""
    if number == "0":
        return None
    rows = service.store.plugins.list(project.id)
    named = next((row for row in rows if str(row.id) == number and row.exists), None)
    return named or first_plugin(service, project)


def first_plugin(service: Service, project: ProjectRow) -> PluginRow | None:
    """The plugin initially selected on a page: the project's default or, unless the user chose the base, its only plugin if
    that is not marked as harmful.

    An imported plugin never becomes the default automatically, but pages show the selected plugin before they translate.
    """
    usual = service.store.defaults.get(project.id)
    if usual is not None or service.store.defaults.chosen(project.id):
        return usual
    existing = [row for row in service.store.plugins.list(project.id) if row.exists]
    return existing[0] if len(existing) == 1 and not existing[0].harm else None


def plugin_of(service: Service, chosen: int | None) -> PluginRow | None:
    """The plugin selected in a menu; None for the base alone."""
    return service.store.plugins.get(int(chosen)) if chosen else None


def strength_of(text: object) -> float:
    """The strength given in an address, clipped to 0–1; 1 if it gives none."""
    try:
        return min(1.0, max(0.0, float(str(text))))
    except ValueError:
        return 1.0


def lines_of(text: str) -> list[str]:
    """The lines of a text; an empty list for a blank one. Raises InputError if the text is too long."""
    if not text.strip():
        return []
    if len(text) > MOST:
        raise InputError("This text has {count:,} characters. Save it as a file and drop it as a document.", count=len(text))
    return text.strip("\n").split("\n")


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence with its translation; `doubt` is the reason to review it, empty if there is none."""

    source: str
    translation: str
    doubt: str = ""


def translate_lines(
    service: Service, project: ProjectRow, lines: Sequence[str], plugin: PluginRow | None, strength: float, terms: str = ""
) -> Iterator[list[TranslatedSentence]]:
    """Yield the translated sentences of each line as they are finished; an empty list for a blank line."""
    for line in lines:
        sources = split_sentences(line, project.source) if line.strip() else []
        results = service.translate(project, [Unit([sentence]) for sentence in sources], plugin, strength, terms)
        yield [
            TranslatedSentence(sentence, text_of(translation.parts), translation.doubt)
            for sentence, translation in zip(sources, results, strict=True)
        ]


def alternatives_of(
    service: Service, base: BaseModel, row: PluginRow | None, strength: float, text: str, prefix: str = "", count: int = 5
) -> Alternatives:
    """Alternative translations of a sentence by a loaded base, with the plugin of `row` if given.

    Raises InputError if the text has several sentences, and the errors of `engine.decoding.alternatives`.
    """
    if len(split_sentences(text, base.source)) > 1:
        raise InputError("Alternatives are for one sentence, and this text has several.")
    plugin = service.plugin(row, base) if row is not None else None
    decoding = base.decoding(plugin.card.get("decoding") if plugin and strength else None)
    return service.in_turn(
        lambda: alternatives(base, text, plugin, strength=strength, decoding=decoding, prefix=prefix, count=count), text
    )
