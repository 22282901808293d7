"""What the pages ask for: rows from the store, files of a workspace, jobs to queue, translations by a loaded base.

Nothing here knows Gradio. Long work goes to a job; only translating a few sentences happens in this process.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cards import Card, parse_card
from engine.decoding.options import Decoding
from engine.errors import InputError, TailorError, storage_errors
from engine.files import write_json
from engine.languages import canonical
from engine.serving import Models
from engine.settings import Settings
from studio.catalog import Catalog, language_name, sample_types
from studio.files import device_line, free_name, read_object, read_rows, slug

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins import Plugin
    from engine.store import ComparisonRow, CorpusRow, JobRow, PluginRow, ProjectRow, Store

__all__ = ["Overview", "Service"]

LABELS = "domains.json"  # in a project's workspace: domain labels by file name


@dataclass(frozen=True)
class Overview:
    """What the frame shows on every page."""

    projects: list[ProjectRow] = field(default_factory=list)
    project: ProjectRow | None = None
    sentences: int | None = None
    phrases: int | None = None
    plugins: int = 0
    runs: int = 0
    active: JobRow | None = None
    waiting: int = 0
    device: str = ""


class Service:
    """One for the whole studio; safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog = Catalog(settings)
        self.models = Models(settings)

    @cached_property
    def store(self) -> Store:
        from engine.store import Store

        return Store(self.settings.store_url)

    # -- projects and their folders

    def project(self, wanted: str | int | None) -> ProjectRow | None:
        """The project with that number; without one, the project that changed last. None where there is none."""
        if wanted == "new":
            return None
        if wanted not in (None, ""):
            try:
                return self.store.projects.get(int(str(wanted)))
            except (ValueError, TailorError):
                return None
        return max(self.store.projects.list(), key=lambda row: row.updated, default=None)

    def need(self, wanted: str | int | None) -> ProjectRow:
        """The same, raising InputError where there is no project."""
        found = self.project(wanted)
        if found is None:
            raise InputError("There is no project yet. Add samples on the page Samples first.")
        return found

    def workspace(self, project_id: int) -> Path:
        """The folder of a project, made when missing."""
        folder = self.settings.home_dir / "projects" / str(project_id)
        with storage_errors("the project's folder", folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def overview(self, wanted: str | int | None) -> Overview:
        """Counts and states for the frame."""
        projects = self.store.projects.list()
        project = self.project(wanted)
        jobs = self.store.jobs.list(states=("queued", "running"))
        running = [job for job in jobs if job.state == "running"]
        own = [job for job in running if project and job.project_id == project.id]
        active = next(iter(own or running or [*reversed(jobs)]), None)
        common: dict[str, Any] = {"projects": projects, "active": active, "device": device_line()}
        common["waiting"] = len(jobs) - (active is not None)
        if project is None:
            return Overview(**common)
        corpus = self.corpus(project.id)
        return Overview(
            project=project,
            sentences=corpus.kept if corpus and corpus.state == "ready" else None,
            phrases=self.phrase_count(project.id),
            plugins=len(self.store.plugins.list(project.id)),
            runs=len(self.runs(project.id)),
            **common,
        )

    # -- samples

    def create_project(self, name: str, source: str, target: str, base: str) -> ProjectRow:
        """A new project. Raises InputError when the languages are the same or the base cannot translate between them."""
        from engine.base.card import read_card

        source, target = canonical(source), canonical(target)
        if source == target:
            raise InputError("Source and target are the same language. Choose two different ones.")
        known = read_card(base)["languages"]
        for code in (source, target):
            if known and code not in known:
                raise InputError(
                    f"The base {Path(base).name} does not know {language_name(code)}; it knows "
                    f"{', '.join(language_name(one) for one in known)}. Choose another base or language."
                )
        return self.store.projects.create(name, source, target, base)

    def add_samples(
        self, project: ProjectRow, files: Sequence[str | Path], labels: Mapping[str, str] | None = None
    ) -> JobRow:
        """Copy files into the project and queue the job that reads them all; `labels` are domains by file name.

        Raises InputError on a bad file.
        """
        if not files:
            raise InputError("Choose at least one file with your sentences.")
        folder = self.workspace(project.id) / "samples"
        for file in map(Path, files):
            self._check_upload(file)
        with storage_errors("the samples", folder):
            folder.mkdir(exist_ok=True)
            for file in map(Path, files):
                partial = folder / f".{file.name}.part"
                shutil.copyfile(file, partial)
                partial.replace(folder / file.name)
        if labels:
            self._write_labels(project.id, {**self.labels(project.id), **labels})
        return self._queue("prepare", project)

    def _check_upload(self, file: Path) -> None:
        known = sample_types()
        if file.suffix.lower() not in known:
            raise InputError(f"{file.name} cannot be read as samples. Files may end in {', '.join(known)}.")
        limit = self.settings.max_upload_mib * 2**20
        if file.stat().st_size > limit:
            raise InputError(f"{file.name} is larger than {self.settings.max_upload_mib} MiB. Split it into parts.")

    def sample_files(self, project_id: int) -> list[Path]:
        """The uploaded files of a project, by name."""
        folder = self.workspace(project_id) / "samples"
        return sorted(path for path in folder.glob("*") if path.is_file() and not path.name.startswith("."))

    def remove_sample(self, project: ProjectRow, name: str) -> JobRow:
        """Take one file out of a project and read the others again. Raises InputError when it is not there."""
        path = next((path for path in self.sample_files(project.id) if path.name == name), None)
        if path is None:
            raise InputError(f"{name} is no file of this project any more. Reload the page.")
        with storage_errors("the samples", path):
            path.unlink()
        self._write_labels(project.id, {key: value for key, value in self.labels(project.id).items() if key != name})
        return self._queue("prepare", project)

    def labels(self, project_id: int) -> dict[str, str]:
        """Domain labels that were given to files of a project, by file name; others have their file's name."""
        found = read_object(self.workspace(project_id) / LABELS)
        return {str(name): str(label) for name, label in found.items()}

    def label_sample(self, project: ProjectRow, name: str, label: str) -> JobRow:
        """Give the sentences of a file another domain label and read the samples again. Raises InputError."""
        label = " ".join(label.split())[:40]
        if name not in [path.name for path in self.sample_files(project.id)]:
            raise InputError(f"{name} is no file of this project any more. Reload the page.")
        self._write_labels(project.id, {**self.labels(project.id), name: label or Path(name).stem})
        return self._queue("prepare", project)

    def _write_labels(self, project_id: int, labels: Mapping[str, str]) -> None:
        write_json(self.workspace(project_id) / LABELS, labels, "the labels")

    def request(self, project: ProjectRow, **more: Any) -> dict[str, Any]:
        """The arguments of a job on this project, as `engine.pipeline.CustomizeRequest` wants them."""
        files, labels = self.sample_files(project.id), self.labels(project.id)
        given: dict[str, Any] = {"base": project.base, "source": project.source, "target": project.target}
        given["samples"] = [str(path) for path in files]
        if labels:
            given["domains"] = [labels.get(path.name, "") for path in files]
        return given | more

    def _queue(self, kind: str, project: ProjectRow, arguments: dict[str, Any] | None = None) -> JobRow:
        from engine.jobs import enqueue

        return enqueue(self.store, kind, arguments or self.request(project), project_id=project.id)

    def corpus(self, project_id: int) -> CorpusRow | None:
        """The latest corpus of a project."""
        rows = self.store.corpora.list(project_id)
        return rows[0] if rows else None

    def report(self, project_id: int) -> dict[str, Any]:
        """The import report of a project's samples, empty when there is none yet: that of the workspace, which is there as
        soon as the samples are read, else the one that the last job noted."""
        corpus = self.corpus(project_id)
        found = read_object(self.workspace(project_id) / "import_report.json")
        return found or (corpus.report if corpus and corpus.report else {})

    def sentences(self, project_id: int) -> list[dict[str, Any]]:
        """The kept sentences with file and line."""
        return read_rows(self.workspace(project_id) / "corpus.jsonl")

    # -- phrases

    def phrases(self, project_id: int) -> list[dict[str, Any]]:
        """The phrases of a project, as in phrases.jsonl."""
        return [
            row for row in read_rows(self.workspace(project_id) / "phrases.jsonl") if "text" in row and "length" in row
        ]

    def phrase_count(self, project_id: int) -> int | None:
        corpus = self.corpus(project_id)
        sets = self.store.phrase_sets.list(corpus.id) if corpus else []
        return sets[0].count if sets else None

    def parser(self, project_id: int) -> str:
        """A sentence saying which parser made the phrases; empty when nobody knows."""
        noted = read_object(self.workspace(project_id) / "phrases.info.json").get("parser")
        if noted:
            return str(noted)
        corpus = self.corpus(project_id)
        sets = self.store.phrase_sets.list(corpus.id) if corpus else []
        return sets[0].parser if sets else ""

    def decoder_layers(self, project: ProjectRow) -> int:
        """Decoder layers of the project's base; 6 when its folder is gone."""
        from engine.base.card import read_card

        try:
            return int(read_card(project.base)["decoder_layers"]) or 6
        except TailorError:
            return 6

    # -- training

    def runs(self, project_id: int) -> list[JobRow]:
        """Training runs of a project, newest first."""
        return [job for job in self.store.jobs.list(project_id) if job.kind == "customize"]

    def start_run(
        self,
        project: ProjectRow,
        method: str,
        budget: str,
        *,
        method_options: dict[str, Any],
        training_options: dict[str, Any],
    ) -> JobRow:
        """Queue a training run. Raises InputError without samples, or while a run of the project is at work."""
        if not self.sample_files(project.id):
            raise InputError("This project has no samples yet. Add some on the page Samples.")
        runs = self.runs(project.id)
        if any(job.active for job in runs):
            raise InputError("A run of this project is waiting or at work. Wait for it, or cancel it first.")
        number = len(runs) + 1
        output = self.workspace(project.id) / "plugins" / f"{slug(project.name)}-{number}.zip"
        arguments = self.request(
            project,
            method=method,
            budget=budget,
            name=f"{project.name} {number}",
            output=str(output),
            method_options=json.dumps(method_options) if method_options else "",
            training_options=json.dumps(training_options) if training_options else "",
        )
        return self._queue("customize", project, arguments)

    def curve(self, project_id: int) -> list[dict[str, Any]]:
        """Rows of training/metrics.jsonl of the run at work or the last one."""
        return read_rows(self.workspace(project_id) / "training" / "metrics.jsonl")

    # -- plugins and translation

    def base_model(self, project: ProjectRow) -> BaseModel:
        """The project's base, loaded; shared by all pages and the REST interface."""
        return self.models.base(project.base, project.source, project.target)

    def plugin(self, row: PluginRow, base: BaseModel) -> Plugin:
        """The plugin of a row, loaded for that base; the last few are kept."""
        if not row.exists:
            raise InputError(f"The bundle of {row.name} is no longer at {row.path}. Train it again or import it.")
        return self.models.plugin(row.path, base)

    def translate(
        self,
        project: ProjectRow,
        texts: Sequence[str],
        plugin: PluginRow | None = None,
        strength: float = 1.0,
        *,
        part: int = 8,
    ) -> Iterator[list[str]]:
        """Translate in parts of a few sentences, so that a page can show the first ones while the others are made."""
        base = self.base_model(project)
        loaded = self.plugin(plugin, base) if plugin else None
        decoding = Decoding.from_mapping(loaded.card.get("decoding", {})) if loaded and strength else None
        for start in range(0, len(texts), part):
            yield base.translate(list(texts[start : start + part]), loaded, strength=strength, decoding=decoding)

    @property
    def _unpacked(self) -> Path:
        return self.settings.home_dir / "unpacked"

    def import_bundle(self, project: ProjectRow, file: str | Path) -> PluginRow:
        """Check a bundle and take it into the project. Raises BundleError when it is damaged, unsafe or not for the base."""
        from engine.plugins import Plugin, read_bundle_card, verify_bundle

        try:
            verify_bundle(file)
            card = read_bundle_card(file)
            Plugin.load(file, self.base_model(project), cache=self._unpacked)  # it must fit before it is kept
        except TailorError as error:  # people know their file by its name, not by where the upload lies
            raise type(error)(str(error).replace(str(file), Path(file).name)) from error
        folder = self.workspace(project.id) / "plugins"
        with storage_errors("the bundle", folder):
            folder.mkdir(exist_ok=True)
            place = free_name(folder / f"{slug(Path(file).stem)}.zip")
            partial = place.with_suffix(".part")
            shutil.copyfile(file, partial)
            partial.replace(place)
        return self.store.plugins.create(
            project.id,
            str(card.get("name") or Path(file).stem),
            method=str(card.get("method", "")),
            path=str(place),
            base_fingerprint=str(card.get("base_fingerprint", "")),
            metrics=card.get("metrics") or {},
        )

    def plugin_card(self, row: PluginRow) -> Card:
        """The card in a plugin's bundle; an empty one where the bundle is gone or damaged."""
        from engine.plugins import read_bundle_text

        try:
            return parse_card(read_bundle_text(row.path), row.name)
        except TailorError:
            return Card(row.name)

    def comparisons(self, project_id: int) -> list[ComparisonRow]:
        return self.store.comparisons.list(project_id)
