"""Edited translations: pairs of a source and the translation that a person made of it, a sample file of their own in a project."""

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

_WRITING = threading.Lock()  # a pair is added to what the file holds


@dataclass(frozen=True)
class Learned:
    """`count` pairs are in the file now, `added` is whether this one is new; `job` reads the samples, None where none is to."""

    count: int
    added: bool
    job: JobRow | None


def _file(service: Service, project_id: int, *, change: bool = False) -> Path:
    return service.workspace(project_id, change=change) / "samples" / EDITED


def edited_pairs(service: Service, project_id: int) -> list[tuple[str, str]]:
    """The (source, translation) pairs of a project's file, in the order in which they came."""
    rows = read_rows(_file(service, project_id))
    return [(str(row.get("source", "")), str(row.get("target", ""))) for row in rows]


def check_direction(project: ProjectRow, source: str, target: str) -> None:
    """Raises InputError where a project does not translate between these languages; an empty one is the project's."""
    wanted = source or project.source, target or project.target
    if not (same_language(wanted[0], project.source) and same_language(wanted[1], project.target)):
        raise InputError(
            "The project {name} translates from {source} to {target}, and this pair is from {other_source} to {other_target}. "
            "Add it to a project of that direction.",
            name=project.name, source=language_message(project.source), target=language_message(project.target),
            other_source=language_message(wanted[0]), other_target=language_message(wanted[1]),
        )  # fmt: skip


def learn(service: Service, project: ProjectRow, source: str, translation: str, *, replaces: str = "") -> Learned:
    """Add a pair to the project's edited translations and queue the reading of the samples, unless one that will see it waits, or
    these few pairs are all that there is.

    The same pair twice is one; `replaces` is an earlier translation of this source, which goes. Raises InputError where a side is
    empty or longer than the samples' longest sentence, or the file would be larger than an upload may be.
    """
    source, translation, replaces = clean(source), clean(translation), clean(replaces)
    most = CorpusOptions.from_mapping(service.import_options(project.id)).max_chars
    if not source or not translation:
        raise InputError("A pair needs a source and its translation; one of them is empty.")
    if max(len(source), len(translation)) > most:
        raise InputError("A sentence of the samples may have at most {most} characters. Shorten it.", most=f"{most:,}")
    path = _file(service, project.id, change=True)
    with _WRITING:
        before = edited_pairs(service, project.id)
        pairs = [pair for pair in before if pair != (source, replaces) or replaces == translation]
        if (source, translation) not in pairs:
            pairs.append((source, translation))
        if pairs == before:
            return Learned(len(pairs), False, None)
        lines = [json.dumps({"source": one, "target": other}, ensure_ascii=False) for one, other in pairs]
        content = "".join(f"{line}\n" for line in lines).encode()
        if len(content) > service.settings.max_upload_mib << 20:
            raise InputError(
                "The edited translations are as large as a sample file may be. Add more in a file of your own."
            )
        with atomic_write(path, "the edited translations") as temporary:
            temporary.write_bytes(content)
        # Bringing a removed one back would replace this one.
        (service.workspace(project.id) / REMOVED / EDITED).unlink(missing_ok=True)
    if len(pairs) < FEWEST and service.sample_files(project.id) == [path]:
        return Learned(len(pairs), (source, translation) not in before, None)
    waiting = service.store.jobs.list(project.id, states=["queued"], kinds=["prepare"])
    job = waiting[0] if waiting else service.read_again(project)
    return Learned(len(pairs), (source, translation) not in before, job)
