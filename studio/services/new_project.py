"""Starting a project: licences to accept first, files, languages; nothing is left behind if it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core.model_card import ModelCard
from engine.corpora.bundled import SampleCorpus
from engine.corpora.formats.records import Request
from engine.corpora.language import base_language, identify
from engine.errors import InputError, MissingError, TransientError
from engine.store import ProjectRow
from engine.store.project_files import delete_project
from engine.workflows.read_apart import records_apart
from studio.i18n.translate import listed
from studio.services.service import Service

LOOKED_AT, SENTENCES = 3, 100  # files, and sentences of each, used for language identification
SURE = 0.7  # share of the sentences that have to be in one language


def open_terms(service: Service, path: str, corpora: Sequence[SampleCorpus] = ()) -> list[tuple[ModelCard, str]]:
    """(card, path) of the base and corpora whose licence restrictions have not been accepted yet."""
    cards = [(service.catalog.base_card(path), path)] if path else []
    cards += [(corpus.card, str(corpus.files[0].parent)) for corpus in corpora]
    return [(card, position) for card, position in cards if not service.catalog.accepted(card, position)]


def agree(service: Service, agreed: bool, path: str, corpora: Sequence[SampleCorpus] = ()) -> None:
    """Record acceptance of all open terms. Raises InputError if acceptance is required and `agreed` is false."""
    for card, position in open_terms(service, path, corpora):
        service.catalog.agree(card, position, card.title, agreed)


def language_of(files: Sequence[Path], languages: Sequence[str]) -> str | None:
    """Which of `languages` the sentences without translations are in; None if it is uncertain."""
    texts: list[str] = []
    for file in files[:LOOKED_AT]:
        try:
            records = records_apart(file, Request(language=languages[0]), SENTENCES)
            texts += [record.text for record in records if record.source is None]
        except (InputError, MissingError, TransientError):  # reported when the files are read
            continue
    shares = identify(texts, *languages) if texts else None
    return next((code for code in languages if (shares or {}).get(base_language(code), 0.0) >= SURE), None)


def labels_of(corpora: Sequence[SampleCorpus]) -> dict[str, str]:
    """{file name: domain} of bundled corpora: each corpus is one domain, regardless of its file names."""
    return {file.name: corpus.title[:40] for corpus in corpora for file in corpus.files}


def start_project(
    service: Service,
    files: Sequence[Path],
    title: str,
    source: str,
    target: str,
    base: str,
    *,
    labels: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> ProjectRow:
    """Create a project and queue the import of its samples. On failure, such as InputError, the project is deleted."""
    if not base:
        raise InputError("There is no base model. Add one with `tailormt base add`, or put its folder into assets/models.")
    project = service.create_project(title or files[0].stem, source, target, base)
    try:
        if options:
            service.set_import_options(project.id, options)
        service.add_samples(project, files, labels)
    except Exception:
        delete_project(service.settings, service.store, project.id)
        raise
    return project


def samples_setup(service: Service, corpora: Sequence[SampleCorpus], source: str, target: str, base: str) -> tuple[str, str, str]:
    """Source, target and base of a project of bundled corpora: the chosen ones as far as they fit the corpora's languages.

    Raises InputError if no base supports the languages.
    """
    first = corpora[0]
    if first.source:
        source, target = first.source, first.target
    elif first.target != target:
        source, target = (target if source == first.target else source), first.target
    return source, target, service.catalog.base_for(base, source, target) if base else base


def start_from_samples(
    service: Service, corpora: Sequence[SampleCorpus], source: str, target: str, base: str, agreed: bool
) -> ProjectRow:
    """Create a project from bundled corpora, adapting the chosen languages to theirs. Raises InputError as above."""
    source, target, base = samples_setup(service, corpora, source, target, base)
    agree(service, agreed, base, corpora)
    files = [file for corpus in corpora for file in corpus.files]
    title = listed([corpus.title for corpus in corpora])
    labels = labels_of(corpora) if len(files) > 1 else None
    return start_project(service, files, title, source, target, base, labels=labels)
