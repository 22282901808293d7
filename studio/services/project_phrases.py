"""What the page Phrases does with the phrases of a project: trees, leaving out, translating back, the map.

Nothing here knows Gradio.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.decoding.greedy_search import back_translate
from engine.errors import InputError
from engine.jobs import enqueue
from engine.phrases.exclusions import Exclusions
from engine.phrases.types import Tree
from engine.store import JobRow, ProjectRow
from engine.store.records import ACTIVE
from engine.workflows.explore.phrase_map import MAP_FILE
from studio.services.phrase_sentences import at_sentence, check_share, left_out, parsed_tree, spots, tree_of
from studio.services.phrases import Phrases, PhraseView, own_sources, phrases_of, version_of, with_page_of

if TYPE_CHECKING:
    from studio.services.service import Service

MAP_JOB = "phrase_map"
RECENT = 6.0  # seconds: some polls


class ProjectPhrases:
    """The phrases of one project, for as long as one event takes."""

    def __init__(self, service: Service, project: ProjectRow) -> None:
        self.service, self.project = service, project
        self.folder: Path = service.workspace(project.id)
        self.language = project.target

    @cached_property
    def sentences(self) -> Sequence[Mapping[str, Any]]:
        return self.service.sentences(self.project.id)

    @cached_property
    def decoder_layers(self) -> int:
        return self.service.decoder_layers(self.project)

    @cached_property
    def domains(self) -> list[str]:
        """The domains of the samples, in the order that their colours follow."""
        return self.service.domains(self.project.id)

    def finding(self) -> JobRow | None:
        """The newest job that finds the phrases after samples were read."""
        return self.service.store.jobs.newest(self.project.id, "preview")

    def table(self) -> Phrases | None:
        """The phrases with what was decided on them; None while there are none."""
        return phrases_of(self.folder, self.project, self.service.settings, self.decoder_layers)

    def need_table(self) -> Phrases:
        """The same. Raises InputError while there are none."""
        phrases = self.table()
        if phrases is None:
            raise InputError("The phrases are being extracted again. Wait a moment and reload the page.")
        return phrases

    def version(self) -> str:
        """Changes when anything that the page shows has changed."""
        return version_of(self.folder)

    # -- sentences and trees

    def excluded_sentences(self) -> int:
        """How many sentences are left out with phrases."""
        return left_out(self.folder, self.language)

    def with_sentence(self, view: PhraseView) -> PhraseView:
        """The view with a sentence, one whose tree is there if it can be."""
        return at_sentence(view, self.sentences, self.language, lambda text: tree_of(self.folder, text) is not None)

    def with_phrase(self, phrases: Phrases, view: PhraseView, row: int, sentence: int) -> PhraseView:
        """The view with a phrase chosen, its page of the table, and a sentence that holds it: the given one if it does."""
        text = phrases.table.texts[row]
        holds = 0 <= sentence < len(self.sentences) and spots(text, self.language).search(
            str(self.sentences[sentence]["text"])
        )
        view = view.but(phrase=text, sentence=sentence if holds else -1)
        return with_page_of(phrases, view if holds else self.with_sentence(view), row)

    def stored_tree(self, sentence: int) -> Tree | None:
        """The tree of a sentence that was drawn when the phrases were found."""
        return tree_of(self.folder, str(self.sentences[sentence]["text"]))

    def parsed_tree(self, sentence: int) -> Tree:
        """The same by the parser, which takes seconds at first. Raises InputError, MissingError."""
        text = str(self.sentences[sentence]["text"])
        return parsed_tree(self.folder, text, self.language, self.service.settings)

    # -- decisions

    @property
    def _writable(self) -> Path:
        return self.service.workspace(self.project.id, change=True)

    def leave_out(self, texts: Sequence[str], *, sentences: bool) -> None:
        """Leave phrases out, with their `sentences` or alone. Raises InputError where too few sentences would stay."""
        folder = self._writable
        if sentences:
            check_share(texts, self.sentences, self.language)
        Exclusions.exclude(folder, texts, sentences=sentences)

    def take_back_in(self, texts: Sequence[str]) -> None:
        Exclusions.restore(self._writable, texts)

    def undo(self) -> None:
        Exclusions.undo(self._writable)

    def back_translate(self, texts: Sequence[str]) -> None:
        """Translate phrases into the source language, by the base turned round."""
        project = self.project
        base = self.service.models.base(project.base, project.target, project.source)
        made = self.service.in_turn(lambda: back_translate(base, texts), " ".join(texts))
        own_sources(self.folder, dict(zip(texts, made, strict=True)))

    # -- the map

    def map_version(self) -> int:
        """When the map was drawn; 0 where there is none."""
        file = self.folder / MAP_FILE
        return file.stat().st_mtime_ns if file.is_file() else 0

    def map_job(self) -> JobRow | None:
        """The job that drew the map last, or draws it."""
        return self.service.store.jobs.newest(self.project.id, MAP_JOB)

    def map_changes(self) -> bool:
        """Whether the map is being drawn, or was just now."""
        job = self.map_job()
        return job is not None and (job.active or just_done(job))

    def draw_map(self) -> JobRow:
        """Queue the drawing, unless it is queued."""
        store, project = self.service.store, self.project.id
        busy = next(iter(store.jobs.list(project, states=ACTIVE, kinds=(MAP_JOB,))), None)
        return busy or enqueue(store, MAP_JOB, {}, project_id=project)


def just_done(job: JobRow) -> bool:
    """Whether it ended within the last polls, so that its end is still to be shown."""
    if job.finished is None:
        return False
    return (datetime.datetime.now(datetime.UTC) - job.finished).total_seconds() < RECENT
