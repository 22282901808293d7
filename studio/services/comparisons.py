"""The operations of the page Compare: creating, filling and measuring comparisons; word attribution. Independent of Gradio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core.numerals import whole_number
from engine.errors import InputError, TailorError
from engine.jobs import enqueue
from engine.jobs.handlers.compare import translator_of
from engine.serving.turns import Ticket
from engine.store import JobRow, PluginRow, ProjectRow
from engine.store.comparisons import ComparisonRecord
from engine.store.records import System
from engine.workflows.compare.attribution import WordAttribution, read_word
from engine.workflows.compare.input import read_sentences, split_lines
from engine.workflows.compare.systems import SystemTranslator, systems_of
from engine.workflows.compare.translate_missing import judged
from studio.i18n.translate import mark
from studio.services.service import Service
from studio.services.terminology import enforced_terms, project_terms
from studio.services.translation import first_plugin

MOST = 500  # typed sentences
SHORT = 60  # most sentences of a file without references that is treated as typed text


def _system_key(system: System) -> tuple[int | None, str]:
    """The plugin of a system and its enforced terms, which determine its translations apart from the strength."""
    return system["plugin_id"], system.get("enforced", "")


class Comparisons:
    """The comparisons of the page; all state is in the store."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.store = service.store

    def sheet(self, project: ProjectRow, requested: str) -> ComparisonRecord | None:
        """The project's comparison with that number, or its newest if `requested` is empty; None for "new" or if there is none."""
        if requested == "new":
            return None
        titles = self.store.sheets.titles(project.id, limit=1)
        try:
            number = whole_number(requested) or 0 if requested else titles[0][0]
            result = self.store.sheets.get(number)
        except (ValueError, IndexError, TailorError):
            return None
        return result if result.project_id == project.id else None

    def job(self, sheet: ComparisonRecord | None) -> JobRow | None:
        """The last job that fills or measures the comparison."""
        if sheet is None or sheet.job_id is None:
            return None
        try:
            return self.store.jobs.get(sheet.job_id)
        except TailorError:
            return None

    def plugins(self, project: ProjectRow, numbers: Sequence[Any]) -> list[PluginRow]:
        """The chosen plugins of a project, in the order chosen. Raises InputError if one no longer exists."""
        plugin_ids = [whole_number(number) for number in numbers]
        rows_by_id = self.store.plugins.by_numbers(project.id, [plugin_id for plugin_id in plugin_ids if plugin_id is not None])
        rows = [rows_by_id[plugin_id] for plugin_id in plugin_ids if plugin_id in rows_by_id]
        if len(rows) < len(plugin_ids):
            raise InputError("A selected plugin no longer exists. Reload the page.")
        return rows

    def missing_systems(self, project: ProjectRow, sheet: ComparisonRecord) -> frozenset[int]:
        """Indices of systems whose plugin was deleted or whose bundle is missing."""
        plugin_ids = [system["plugin_id"] for system in sheet.systems]
        rows_by_id = self.store.plugins.by_numbers(project.id, [plugin_id for plugin_id in plugin_ids if plugin_id is not None])
        existing = {row.id for row in rows_by_id.values() if row.exists}
        return frozenset(index for index, plugin_id in enumerate(plugin_ids) if index and plugin_id not in existing)

    def cancel(self, sheet: ComparisonRecord) -> None:
        """Cancel the comparison's waiting or running job, if any."""
        job = self.job(sheet)
        if job is not None and job.active:
            self.store.jobs.cancel(job.id)

    def delete(self, sheet: ComparisonRecord) -> None:
        """Delete the comparison and its translations; its active job is cancelled."""
        self.cancel(sheet)
        self.store.comparisons.delete(sheet.comparison_id)

    def chosen_plugins(self, project: ProjectRow, sheet: ComparisonRecord | None, requested: int | None) -> list[int]:
        """The plugins initially selected: the requested one, those of the comparison, or the project's initial plugin."""
        if requested is not None:
            chosen = [requested]
        elif sheet is None or (len(sheet.systems) == 1 and sheet.file):
            usual = first_plugin(self.service, project)
            chosen = [usual.id] if usual else []
        else:
            chosen = [system["plugin_id"] for system in sheet.systems[1:] if system["plugin_id"] is not None]
        rows_by_id = self.store.plugins.by_numbers(project.id, chosen)
        return [plugin_id for plugin_id in chosen if plugin_id in rows_by_id]

    # -- making

    def requested(
        self, project: ProjectRow, number: int, text: str, plugins: Sequence[Any], *, enforce: bool = False
    ) -> tuple[ComparisonRecord, ComparisonRecord | None]:
        """The comparison of the page's sentences by the chosen plugins, optionally with the project's terms enforced, and the
        comparison with that number that the page shows, if any.
        """
        like = self.sheet(project, str(number)) if number else None
        enforced = enforced_terms(self.service, project, enforce=enforce)
        if like is not None and like.file:
            return self.of_file(project, like, plugins, enforced), like
        return self.typed(project, text, plugins, like, enforced), like

    def typed(
        self, project: ProjectRow, text: str, numbers: Sequence[Any], like: ComparisonRecord | None, enforced: str = ""
    ) -> ComparisonRecord:
        """The comparison of typed sentences by the chosen plugins with the `enforced` terms: `like` itself if nothing has changed,
        else a new one that reuses the translations of `like`. Raises InputError without sentences.
        """
        texts = split_lines(text, MOST)
        if not texts:
            raise InputError("Type or open at least one sentence to translate.")
        if like is not None and like.file:
            like = None
        return self._create_or_reuse(project, [(sentence, None) for sentence in texts], numbers, like, texts[0][:60], "", enforced)

    def opened(self, project: ProjectRow, files: Sequence[str | Path]) -> tuple[ComparisonRecord | None, str]:
        """A new comparison of the files' sentences; or (None, text with one sentence per line) if they count as typed (`SHORT`).

        Raises InputError or CorpusError on unusable files.
        """
        read = read_sentences(files, project.source, project.target, apart=True)
        if not read.references and len(read.lines) <= SHORT:
            return None, "\n".join(source for source, _ in read.lines)
        name = Path(files[0]).name
        return self.store.sheets.create(project.id, name, read.lines, systems_of([]), file=name), ""

    def of_file(self, project: ProjectRow, sheet: ComparisonRecord, numbers: Sequence[Any], enforced: str = "") -> ComparisonRecord:
        """A file's comparison by the chosen plugins with the `enforced` terms: `sheet` itself if it matches, else a new one."""
        if list(map(_system_key, sheet.systems)) == [(number, enforced) for number in (None, *map(int, numbers))]:
            return sheet
        lines = [(line.source, line.reference) for line in self.store.sheets.lines(sheet.comparison_id)]
        comparison = self._create_or_reuse(project, lines, numbers, sheet, sheet.title, sheet.file, enforced)
        untouched = len(sheet.systems) == 1 and not sheet.kept and self.store.sheets.count(sheet.comparison_id)[0] == 0
        if untouched and comparison.comparison_id != sheet.comparison_id:
            self.store.comparisons.delete(sheet.comparison_id)  # it was opened but never used
        return comparison

    def _create_or_reuse(
        self, project: ProjectRow, lines: Sequence[tuple[str, str | None]], numbers: Sequence[Any], like: ComparisonRecord | None,
        title: str, file: str, enforced: str,
    ) -> ComparisonRecord:  # fmt: skip
        rows = self.plugins(project, numbers)
        before = {system["plugin_id"]: (index, system) for index, system in enumerate(like.systems if like else [])}
        strengths = [float(before[row.id][1]["strength"]) if row.id in before else 1.0 for row in rows]
        systems = systems_of(rows, strengths, enforced)
        if like is None or like.lines != len(lines):
            return self.store.sheets.create(project.id, title, lines, systems, file=file)
        old = list(self.store.sheets.lines(like.comparison_id))
        if [(line.source, line.reference) for line in old] != [(source, other or None) for source, other in lines]:
            return self.store.sheets.create(project.id, title, lines, systems, file=file)
        origins = list(map(_system_key, like.systems))
        if list(map(_system_key, systems)) == origins:
            return like
        texts = {
            index: [line.texts[origins.index(_system_key(system))] for line in old]
            for index, system in enumerate(systems)
            if _system_key(system) in origins
        }
        comparison = self.store.sheets.create(project.id, title, lines, systems, file=file, texts=texts)
        self._judge(comparison, project)
        return comparison

    def _judge(self, sheet: ComparisonRecord, project: ProjectRow) -> None:
        """Store differences and scores for lines that already have all translations."""
        part = []
        for line in self.store.sheets.lines(sheet.comparison_id):
            if None not in line.texts:
                part.append(judged(line, project.target))
            if len(part) >= 1000:
                self.store.sheets.fill(sheet.comparison_id, sheet.revision, part)
                part = []
        self.store.sheets.fill(sheet.comparison_id, sheet.revision, part)

    # -- filling and measuring

    def translator(self, project: ProjectRow) -> SystemTranslator:
        return translator_of(self.store, project, self.service.models)

    def enqueue(self, sheet: ComparisonRecord, *, measure: bool = True) -> JobRow:
        """Queue a job that fills and measures the comparison, unless one is active; returns the job. Without `measure`, it measures
        only if all inputs of the figures are cached.
        """
        job = self.job(sheet)
        if job is not None and job.active:
            return job
        terms = project_terms(self.service, self.store.projects.get(sheet.project_id))
        arguments = {"comparison_id": sheet.comparison_id, "terms": terms, "measure": measure}
        new_job = enqueue(self.store, "compare", arguments, project_id=sheet.project_id)
        self.store.sheets.update(sheet.comparison_id, job_id=new_job.id)
        return new_job

    def go_on(self, project: ProjectRow, sheet: ComparisonRecord) -> JobRow | None:
        """The comparison's job, or a new one if sentences are pending without a job, as when a strength is set as a job ends."""
        job = self.job(sheet)
        over = not sheet.file if job is None else str(job.state) == "succeeded"
        waits = over and self.store.sheets.pending(sheet.comparison_id, 1) and not self.missing_systems(project, sheet)
        if not waits or self.service.role(project.id) == "viewer":
            return job
        return self.enqueue(sheet, measure=bool(sheet.file))

    def set_strength(self, project: ProjectRow, sheet: ComparisonRecord, system: int, strength: float) -> ComparisonRecord:
        """Set the strength of a system's plugin; a kept comparison is copied first. Raises InputError if the system was removed
        or its plugin deleted.
        """
        if not 0 < system < len(sheet.systems):
            raise InputError("That plugin is no longer in the comparison. Reload the page.")
        if system in self.missing_systems(project, sheet):
            name = sheet.systems[system]["name"]
            raise InputError("{name} was deleted, so it cannot translate again. Its existing translations are kept.", name=name)
        strength = round(min(1.0, max(0.0, strength)), 2)
        if sheet.kept:
            lines = list(self.store.sheets.lines(sheet.comparison_id))
            texts = {position: [line.texts[position] for line in lines] for position in range(len(sheet.systems))}
            sheet = self.store.sheets.create(
                project.id, sheet.title, [(line.source, line.reference) for line in lines], sheet.systems,
                file=sheet.file, texts=texts,
            )  # fmt: skip
        return self.store.sheets.set_strength(sheet.comparison_id, system, strength)

    # -- words

    def read(
        self, project: ProjectRow, sheet: ComparisonRecord, index: int, system: int, start: int, end: int,
        ticket: Ticket | None = None,
    ) -> WordAttribution:  # fmt: skip
        """The attribution of the characters `start` to `end` of a system's translation of a line, computed in the queue of
        translations. Raises InputError if the translation is not finished.
        """
        line = self.store.sheets.line(sheet.comparison_id, index)
        if not 0 <= system < len(line.texts) or line.texts[system] is None:
            raise InputError("That translation is not finished yet.")
        translate = self.translator(project)
        plugin = translate.plugin(sheet.systems[system])
        source, text = line.source, str(line.texts[system])
        result = self.service.in_turn(lambda: read_word(plugin, translate.base, source, text, start, end), source + text, ticket)
        if plugin is None and system:
            return replace(result, why=mark("At strength 0 this is the base alone."))
        return result
