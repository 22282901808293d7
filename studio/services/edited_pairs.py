"""Edited translations: pairs of a source and a human translation, kept in a separate sample file of the project."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.atomic_files import atomic_write
from engine.core.languages import language_message, same_language
from engine.corpora import CorpusOptions
from engine.corpora.clean import clean
from engine.errors import InputError
from engine.store import JobRow, ProjectRow
from engine.workflows.customize.steps import FEWEST
from studio.services.files import read_rows
from studio.services.samples import EDITED, REMOVED

if TYPE_CHECKING:
    from studio.services.service import Service

_WRITING = threading.Lock()  # adding a pair reads and rewrites the file


@dataclass(frozen=True)
class Learned:
    """The number of pairs in the file, whether this one is new, and the job that will read it, None if there is none."""

    count: int
    added: bool
    job: JobRow | None


def _file(service: Service, project_id: int, *, change: bool = False) -> Path:
    return service.workspace(project_id, change=change) / "samples" / EDITED


def edited_pairs(service: Service, project_id: int) -> list[tuple[str, str]]:
    """The (source, translation) pairs of a project's file, in order of addition."""
    rows = read_rows(_file(service, project_id))
    return [(str(row.get("source", "")), str(row.get("target", ""))) for row in rows]


def check_direction(project: ProjectRow, source: str, target: str) -> None:
    """Raises InputError if a project does not translate between these languages; an empty code means the project's."""
    languages = source or project.source, target or project.target
    if not (same_language(languages[0], project.source) and same_language(languages[1], project.target)):
        raise InputError(
            "The project {name} translates from {source} to {target}, and this pair is from {other_source} to {other_target}. "
            "Add it to a project of that direction.",
            name=project.name, source=language_message(project.source), target=language_message(project.target),
            other_source=language_message(languages[0]), other_target=language_message(languages[1]),
        )  # fmt: skip


def learn(service: Service, project: ProjectRow, source: str, translation: str, *, replaces: str = "") -> Learned:
    """Add a pair to the project's edited translations and make sure that an import will read it, unless the project has no
    other samples and still fewer than `FEWEST` pairs.

    Duplicates are ignored; `replaces` is an earlier translation of this source, which is removed. Raises InputError if a side is
    empty or longer than the import allows, or if the file would exceed the upload limit.
    """
    source, translation, replaces = clean(source), clean(translation), clean(replaces)
    max_chars = CorpusOptions.from_mapping(service.import_options(project.id)).max_chars
    if not source or not translation:
        raise InputError("A pair needs a source and its translation; one of them is empty.")
    if max(len(source), len(translation)) > max_chars:
        raise InputError("A sentence of the samples may have at most {most} characters. Shorten it.", most=f"{max_chars:,}")
    path = _file(service, project.id, change=True)
    with _WRITING:
        before = edited_pairs(service, project.id)
        pairs = [pair for pair in before if pair != (source, replaces) or replaces == translation]
        if (source, translation) not in pairs:
            pairs.append((source, translation))
        if pairs == before:
            return Learned(len(pairs), False, None)
        lines = [
            json.dumps({"source": source_text, "target": target_text}, ensure_ascii=False) for source_text, target_text in pairs
        ]
        content = "".join(f"{line}\n" for line in lines).encode()
        if len(content) > service.settings.max_upload_mib << 20:
            raise InputError("The edited translations are as large as a sample file may be. Add more in a file of your own.")
        with atomic_write(path, "the edited translations") as temporary:
            temporary.write_bytes(content)
        # Restoring a removed file would overwrite this one.
        (service.workspace(project.id) / REMOVED / EDITED).unlink(missing_ok=True)
    if len(pairs) < FEWEST and service.sample_files(project.id) == [path]:
        return Learned(len(pairs), (source, translation) not in before, None)
    waiting = service.store.jobs.list(project.id, states=["queued"], kinds=["prepare"])
    job = waiting[0] if waiting else service.read_again(project)
    return Learned(len(pairs), (source, translation) not in before, job)
