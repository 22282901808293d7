"""The services behind the pages: store rows, workspace files, queued jobs, translations by a loaded base.

Independent of Gradio. Long work is queued as a job; only short translations run in this process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from engine.base import BaseModel
from engine.base.metadata import knows, read_card
from engine.core.actor import Forbidden
from engine.core.atomic_files import read_json
from engine.core.languages import canonical
from engine.core.model_card import ModelCard, parse_card
from engine.core.numerals import whole_number
from engine.core.settings import Settings
from engine.corpora.formats.documents.model import Result, Unit
from engine.errors import InputError, TailorError, storage_errors
from engine.jobs import job_folder
from engine.jobs.processes import HOST
from engine.plugins import Plugin, read_bundle_text
from engine.plugins.library import Library
from engine.serving.batcher import Batcher, TranslationSpec
from engine.serving.model_cache import ModelCache
from engine.serving.turns import Ticket
from engine.store import JobRow, PluginRow, ProjectRow, Store
from engine.store.row_access import role_in
from engine.store.sharing import share_of
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.customize.run import TRIED
from studio.auth.identity import access_of, client_of, guest
from studio.services.catalog import Catalog, language_message
from studio.services.files import JsonRow, device_line, read_rows
from studio.services.samples import SampleFiles

Got = TypeVar("Got")
TRAINING = "customize"  # kind of job


@dataclass(frozen=True)
class Overview:
    """The contents of the frame around every page, except for the project menu."""

    project: ProjectRow | None = None
    sentences: int | None = None
    phrases: int | None = None
    plugins: int = 0
    runs: int = 0
    rated: tuple[int, int] | None = None  # items rated and items in total, in the newest round
    active: JobRow | None = None
    waiting: int = 0
    device: str = ""


class Service(SampleFiles):
    """The single service of a studio; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog = Catalog(settings)
        self.models = ModelCache(settings, self.job_at_work_here)

    @cached_property
    def batcher(self) -> Batcher:
        """The translation queue shared by pages and the REST interface."""
        from engine.jobs.backends import open_batcher

        return open_batcher(self.models)

    @cached_property
    def store(self) -> Store:
        result = Store(self.settings.store_url)
        result.access = access_of(self.settings)
        share_of(self.settings, result)
        return result

    # -- projects and their folders

    def project(self, requested: str | int | None) -> ProjectRow | None:
        """The project with that number; without a number, the project that changed last. None if there is none."""
        if requested == "new":
            return None
        if requested not in (None, ""):
            try:
                return self.store.projects.get(whole_number(requested) or 0)
            except TailorError:
                return None
        return self.store.projects.last_changed()

    def need(self, requested: str | int | None) -> ProjectRow:
        """The project as `project` returns it. Raises InputError if there is none."""
        result = self.project(requested)
        if result is None:
            raise InputError("There is no project yet. Add samples on the page Samples first.")
        return result

    def role(self, project_id: int) -> str:
        """The caller's role in a project: owner, member, viewer, or empty."""
        access = self.store.access()
        if access.everything:
            return "owner"
        with self.store.read() as session:
            return role_in(session, access, project_id)

    def workspace(self, project_id: int, *, change: bool = False) -> Path:
        """The folder of a project, created if missing; `change` asks for write access.

        Raises InputError if the caller has no access to the project, Forbidden if write access is asked for by a viewer.
        """
        role = self.role(project_id)
        if not role:
            raise InputError("There is no project {project_id}: it may have been deleted.", project_id=project_id)
        if change and role == "viewer":
            raise Forbidden("You can view this project but not change it. Ask one of its owners for the role member.")
        folder = self.settings.home_dir / "projects" / str(project_id)
        if not folder.is_dir():
            with storage_errors("the project's folder", folder):
                folder.mkdir(parents=True, exist_ok=True)
            try:
                self.store.projects.get(project_id)
            except InputError:  # deleted since the caller looked it up: its folder must not come back
                with contextlib.suppress(OSError):
                    folder.rmdir()
                raise
        return folder

    def overview(self, requested: str | int | None) -> Overview:
        """Counts and states for the frame."""
        project, jobs = self.project(requested), self.store.jobs
        running = jobs.list(states=("running",))
        project_jobs = [job for job in running if project and job.project_id == project.id]
        active = next(iter(project_jobs or running), None) or jobs.oldest_waiting()
        waiting = len(running) + jobs.count(states=("queued",)) - (active is not None)
        overview = Overview(active=active, waiting=waiting, device=device_line())
        if project is None:
            return overview
        corpus = self.corpus(project.id)
        return replace(
            overview,
            project=project,
            sentences=corpus.kept if corpus and corpus.state == "ready" else None,
            phrases=self.phrase_count(project.id),
            plugins=self.store.plugins.count(project.id),
            runs=jobs.count(project.id, kinds=(TRAINING,)),
            rated=self.store.ratings.progress(project.id),
        )

    # -- samples

    def create_project(self, name: str, source: str, target: str, base: str) -> ProjectRow:
        """Create a project. Raises InputError if the languages are the same or the base cannot translate between them."""
        source, target = canonical(source), canonical(target)
        if source == target:
            raise InputError("Source and target are the same language. Choose two different ones.")
        languages = read_card(base)["languages"]
        for code in (source, target):
            if languages and code not in languages:
                raise InputError(
                    "The base {name} does not support {language}; it supports {languages}. Choose another base or language.",
                    name=Path(base).name,
                    language=language_message(code),
                    languages=language_message(*languages),
                )
        if not knows(base, source, target):
            raise InputError(
                "The base {name} does not translate from {source} to {target}. Choose another base or direction.",
                name=Path(base).name,
                source=language_message(source),
                target=language_message(target),
            )
        return self.store.projects.create(name, source, target, base)

    # -- phrases

    def phrase_count(self, project_id: int) -> int | None:
        corpus = self.corpus(project_id)
        sets = self.store.phrase_sets.list(corpus.id) if corpus else []
        return sets[0].count if sets else None

    def parser(self, project_id: int) -> str:
        """A sentence naming the parser that produced the phrases; empty if it is not known."""
        noted = read_json(self.workspace(project_id) / "phrases.info.json").get("parser")
        if noted:
            return noted if isinstance(noted, str) else str(noted)
        corpus = self.corpus(project_id)
        sets = self.store.phrase_sets.list(corpus.id) if corpus else []
        return sets[0].parser if sets else ""

    def decoder_layers(self, project: ProjectRow) -> int:
        """The number of decoder layers of the project's base; 6 if its folder is missing."""
        try:
            return int(read_card(project.base)["decoder_layers"]) or 6
        except TailorError:
            return 6

    # -- training

    def runs(self, project_id: int) -> list[JobRow]:
        """Training runs of a project, newest first."""
        return self.store.jobs.list(project_id, kinds=(TRAINING,))

    def start_run(self, project: ProjectRow, request: CustomizeRequest, **beside: int) -> JobRow:
        """Queue a training run on the project's samples. A different base in the request becomes the project's base.
        `beside` holds job arguments in addition to the request. Raises InputError without samples.
        """
        if not self.sample_files(project.id):
            raise InputError("This project has no samples yet. Add some on the page Samples.")
        if request.base and request.base != project.base:
            project = self.store.projects.update(project.id, base=request.base)
        name = f"{project.name} {self.store.jobs.count(project.id, kinds=(TRAINING,)) + 1}"
        arguments = request.replace(**self.request(project), name=name).to_mapping()
        return self._queue(TRAINING, project, {**arguments, **beside})

    def curve(self, project_id: int, job: JobRow | None = None) -> list[JsonRow]:
        """The figures of a run, update by update. Without a job, the running one is used, else the newest."""
        jobs = self.runs(project_id)
        job = job or next((row for row in jobs if row.state == "running"), None) or next(iter(jobs), None)
        workspace = self.workspace(project_id)
        folder = job_folder(workspace, job) if job else workspace
        tried = folder.glob(f"{TRIED}/*/training/metrics.jsonl")  # one folder per method if several are tried
        newest = max(tried, key=lambda file: file.stat().st_mtime, default=folder / "training" / "metrics.jsonl")
        return read_rows(newest)

    def job_at_work_here(self) -> bool:
        """Whether a worker on this machine is running a job."""
        return any(worker.job_id is not None and worker.host == HOST for worker in self.store.workers.list())

    # -- plugins and translation

    def base_model(self, project: ProjectRow) -> BaseModel:
        """The project's base, loaded; shared by all pages and the REST interface."""
        return self.models.base(project.base, project.source, project.target)

    def plugin(self, row: PluginRow, base: BaseModel) -> Plugin:
        """The plugin of a row, loaded for that base; the last few stay cached. Raises InputError if its bundle is missing."""
        if not row.exists:
            raise InputError("The bundle of {row} no longer exists. Train it again or import it.", row=row.name)
        return self.models.plugin(row.path, base)

    def translate(
        self, project: ProjectRow, units: Sequence[Unit], plugin: PluginRow | None = None, strength: float = 1.0, terms: str = ""
    ) -> list[Result]:
        """Translate units with the project's base, queued with the requests of other clients; `terms` is a glossary to enforce.
        Raises the same errors as `translate_through`.
        """
        from engine.serving.batched_translator import translate_through

        path = plugin.path if plugin else ""
        work = TranslationSpec.of(project.base, project.source, project.target, path, strength, terms=terms)
        ticket = Ticket(client_of(guest()), self.settings.translation_seconds)
        return translate_through(self.batcher, work, units, ticket)

    def in_turn(self, call: Callable[[], Got], text: str, ticket: Ticket | None = None) -> Got:
        """Run `call`, which works on `text`, in the queue of translations when it is the client's turn; returns its result.

        Raises OverloadedError, the ticket's error when it expires, and whatever `call` raises.
        """
        ticket = ticket or Ticket(client_of(guest()), self.settings.translation_seconds)
        return self.batcher.run(call, text, ticket).result()[0]

    @cached_property
    def library(self) -> Library:
        """Operations on plugins."""
        return Library(self.store, self.settings)

    def plugin_card(self, row: PluginRow) -> ModelCard:
        """The card in a plugin's bundle; an empty card if the bundle is missing or damaged."""
        try:
            return parse_card(read_bundle_text(row.path), row.name)
        except TailorError:
            return ModelCard(row.name)
