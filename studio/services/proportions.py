"""The operations of the page Proportions: fitted proportions, those of a sentence, the fitting job. Independent of Gradio."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.corpora.formats.documents.model import Unit
from engine.corpora.formats.tagged_text import text_of
from engine.errors import InputError, TailorError
from engine.jobs import enqueue
from engine.methods import get_method
from engine.methods.domain_mixing.model import ProportionModel
from engine.methods.domain_mixing.shapes import SentenceShares, Shown
from engine.store import JobRow, PluginRow, ProjectRow
from engine.store.records import ACTIVE
from engine.workflows.explore.domain_proportions import SHOWN, folder_of, model_of, read_shown, sentence_shares
from engine.workflows.preview import STEPS

if TYPE_CHECKING:
    from studio.services.service import Service

KIND = "proportions"
FITTING = STEPS.index("Fitting domain proportions")  # step of the job that follows the import of samples
SIDES = ("encoder", "decoder")
LONGEST = 400  # characters of a sentence
CACHED = 100  # recently viewed sentences


@lru_cache(maxsize=8)
def _shown(folder: Path, version: int) -> Shown:
    return read_shown(folder)


def offers_proportions(method: str) -> bool:
    try:
        return get_method(method).capabilities.offers_proportions
    except TailorError:
        return False


class Proportions:
    """The proportions shown on the page: those of a project's samples, or of a plugin that mixes domains."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._sentences: OrderedDict[tuple[Any, ...], SentenceShares] = OrderedDict()

    def plugins(self, project: ProjectRow) -> list[PluginRow]:
        """The project's plugins that offer domain proportions."""
        rows = self.service.store.plugins.list(project.id)
        return [row for row in rows if row.exists and offers_proportions(row.method)]

    def plugin(self, project: ProjectRow, number: Any) -> PluginRow | None:
        """The plugin with that number; None for the samples."""
        return next((row for row in self.plugins(project) if str(row.id) == str(number or "")), None)

    def folder(self, project: ProjectRow, plugin: PluginRow | None) -> Path:
        return folder_of(self.service.workspace(project.id), plugin.id if plugin else None)

    def chart_data(self, project: ProjectRow, plugin: PluginRow | None) -> Shown:
        """The fitted proportions, cached; empty if nothing was fitted, without `corpus` if fitting failed."""
        folder = self.folder(project, plugin)
        file = folder / SHOWN
        return _shown(folder, file.stat().st_mtime_ns) if file.exists() else {}

    def need(self, project: ProjectRow, plugin: PluginRow | None) -> Shown:
        """The fitted proportions. Raises InputError if there are none."""
        proportions = self.chart_data(project, plugin)
        if "corpus" not in proportions:
            raise InputError("These proportions are not ready yet. Wait a moment, or fit them again.")
        return proportions

    def version(self, project: ProjectRow) -> str:
        """A string that changes whenever anything shown on the page changes."""
        files = sorted(self.folder(project, None).glob(f"**/{SHOWN}"))
        job = self.job(project)
        return "-".join([*(str(file.stat().st_mtime_ns) for file in files), f"{job.id}/{job.fraction:.2f}" if job else ""])

    # -- a sentence

    def _key(self, project: ProjectRow, plugin: PluginRow | None, text: str) -> tuple[Any, ...]:
        version = (self.folder(project, plugin) / SHOWN).stat().st_mtime_ns
        return project.id, plugin.id if plugin else 0, version, text

    def is_cached(self, project: ProjectRow, plugin: PluginRow | None, text: str) -> bool:
        """Whether the result of `sentence` is cached."""
        return self._key(project, plugin, text) in self._sentences

    def sentence(self, project: ProjectRow, plugin: PluginRow | None, text: str) -> SentenceShares:
        """Translate a sentence and return the proportions of both sides; recent results are cached. Raises TailorError."""
        key = self._key(project, plugin, text)
        if key not in self._sentences:
            self._sentences[key] = self._shares(project, plugin, text)
            while len(self._sentences) > CACHED:
                self._sentences.popitem(last=False)
        return self._sentences[key]

    def _shares(self, project: ProjectRow, row: PluginRow | None, text: str) -> SentenceShares:
        base = self.service.base_model(project)
        (result,) = self.service.translate(project, [Unit([text], whole=True)], row)
        translation = text_of(result.parts)
        plugin = None if row is None else self.service.plugin(row, base)
        model = (
            ProportionModel.load(self.folder(project, None), base) if plugin is None or row is None else model_of(plugin, row.name)
        )
        return self.service.in_turn(lambda: sentence_shares(base, model, text, translation, plugin), text)

    # -- fitting

    def job(self, project: ProjectRow) -> JobRow | None:
        """The active job that fits the project's proportions: a dedicated job, or the one that follows the import of samples."""
        jobs = self.service.store.jobs.list(project.id, states=ACTIVE, kinds=(KIND, "prepare", "preview"))
        return next((job for job in jobs if job.kind == KIND), None) or next(
            (job for job in jobs if job.kind == "prepare" or job.step_index <= FITTING), None
        )

    def fit(self, project: ProjectRow, plugin: PluginRow | None, *, again: bool = False) -> None:
        """Queue the fitting, or prioritise the active job; `again` first discards the proportions fitted on the samples."""
        if (job := self.job(project)) is not None:
            self.service.store.jobs.hasten(job.id)
            return
        if again and plugin is None:
            (folder_of(self.service.workspace(project.id, change=True)) / SHOWN).unlink(missing_ok=True)
        enqueue(self.service.store, KIND, {"plugin_id": plugin.id} if plugin else {}, project_id=project.id)
