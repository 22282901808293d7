"""Operations of the page Phrases on a project's phrases: trees, exclusions, back-translation, the map. Independent of Gradio."""

from __future__ import annotations

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


class ProjectPhrases:
    """The phrases of one project, for the duration of one event."""

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
        """The domains of the samples, in the order in which colours are assigned."""
        return self.service.domains(self.project.id)

    def finding(self) -> JobRow | None:
        """The newest job that extracts the phrases once samples have been read."""
        return self.service.store.jobs.newest(self.project.id, "preview")

    def table(self) -> Phrases | None:
        """The phrases with the user's decisions; None while there are none."""
        return phrases_of(self.folder, self.project, self.service.settings, self.decoder_layers)

    def need_table(self) -> Phrases:
        """The phrases as `table` returns them. Raises InputError while there are none."""
        phrases = self.table()
        if phrases is None:
            raise InputError("The phrases are being extracted again. Wait a moment and reload the page.")
        return phrases

    def version(self) -> str:
        """A string that changes whenever anything shown on the page changes."""
        return version_of(self.folder)

    # -- sentences and trees

    def excluded_sentences(self) -> int:
        """The number of sentences excluded together with phrases."""
        return left_out(self.folder, self.language)

    def with_sentence(self, view: PhraseView) -> PhraseView:
        """The view with a sentence selected, preferably one with a stored tree."""
        return at_sentence(view, self.sentences, self.language, lambda text: tree_of(self.folder, text) is not None)

    def with_phrase(self, phrases: Phrases, view: PhraseView, row: int, sentence: int) -> PhraseView:
        """The view with a phrase selected, its page of the table, and a sentence containing it: the given one if possible."""
        text = phrases.table.texts[row]
        holds = 0 <= sentence < len(self.sentences) and spots(text, self.language).search(str(self.sentences[sentence]["text"]))
        view = view.but(phrase=text, sentence=sentence if holds else -1)
        return with_page_of(phrases, view if holds else self.with_sentence(view), row)

    def stored_tree(self, sentence: int) -> Tree | None:
        """The tree stored for a sentence when the phrases were extracted; None if there is none."""
        return tree_of(self.folder, str(self.sentences[sentence]["text"]))

    def parsed_tree(self, sentence: int) -> Tree:
        """The tree from the parser, which takes seconds to load on first use. Raises InputError, MissingError."""
        text = str(self.sentences[sentence]["text"])
        return parsed_tree(self.folder, text, self.language, self.service.settings)

    # -- decisions

    @property
    def _writable(self) -> Path:
        return self.service.workspace(self.project.id, change=True)

    def leave_out(self, texts: Sequence[str], *, sentences: bool) -> None:
        """Exclude phrases, optionally with the `sentences` containing them. Raises InputError if too few would remain."""
        folder = self._writable
        if sentences:
            check_share(texts, self.sentences, self.language)
        Exclusions.exclude(folder, texts, sentences=sentences)

    def take_back_in(self, texts: Sequence[str]) -> None:
        Exclusions.restore(self._writable, texts)

    def undo(self) -> None:
        Exclusions.undo(self._writable)

    def back_translate(self, texts: Sequence[str]) -> None:
        """Translate phrases into the source language with the base run in the reverse direction."""
        project = self.project
        base = self.service.models.base(project.base, project.target, project.source)
        translations = self.service.in_turn(lambda: back_translate(base, texts), " ".join(texts))
        own_sources(self.folder, dict(zip(texts, translations, strict=True)))

    # -- the map

    def map_version(self) -> int:
        """The modification time of the map in nanoseconds; 0 if there is no map."""
        file = self.folder / MAP_FILE
        return file.stat().st_mtime_ns if file.is_file() else 0

    def map_job(self) -> JobRow | None:
        """The newest job that drew, draws or will draw the map."""
        return self.service.store.jobs.newest(self.project.id, MAP_JOB)

    def draw_map(self) -> JobRow:
        """Queue a job that draws the map, unless one is active already."""
        store, project = self.service.store, self.project.id
        busy = next(iter(store.jobs.list(project, states=ACTIVE, kinds=(MAP_JOB,))), None)
        return busy or enqueue(store, MAP_JOB, {}, project_id=project)
