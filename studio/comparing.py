"""What the page Compare does: comparisons opened, made, filled, turned, measured; words looked into. Nothing here knows Gradio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.comparison.systems import Translator, systems_of
from engine.errors import InputError, TailorError
from engine.files import replacing
from engine.store.sheets import SheetRow
from studio.i18n import tr
from studio.service import Service

if TYPE_CHECKING:
    from engine.comparison.reading import Reading
    from engine.store import JobRow, PluginRow, ProjectRow

__all__ = ["LIVE", "MOST", "Comparing"]

MOST = 500  # typed sentences
LIVE = 60  # sentences without references that are translated at once, and not in a job
PART = 4  # lines between two looks at the page


def read_text(path: Path) -> str:
    """A file that may not be there."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


class Comparing:
    """One for the page; its state is in the store."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.store = service.store

    def sheet(self, project: ProjectRow, wanted: str) -> SheetRow | None:
        """The comparison of that number where it is the project's, the newest without one; None for "new" or none."""
        if wanted == "new":
            return None
        titles = self.store.sheets.titles(project.id, limit=1)
        try:
            number = int(wanted) if wanted else titles[0][0]
            found = self.store.sheets.get(number)
        except (ValueError, IndexError, TailorError):
            return None
        return found if found.project_id == project.id else None

    def job(self, sheet: SheetRow | None) -> JobRow | None:
        """The job that fills or measures it, the last one."""
        if sheet is None or sheet.job_id is None:
            return None
        try:
            return self.store.jobs.get(sheet.job_id)
        except TailorError:
            return None

    def plugins(self, project: ProjectRow, numbers: Sequence[Any]) -> list[PluginRow]:
        """The chosen plugins of a project, in the order chosen. Raises InputError when one is gone."""
        known = {row.id: row for row in self.store.plugins.list(project.id)}
        missing = [one for one in numbers if int(one) not in known]
        if missing:
            raise InputError("A chosen plugin is no longer there. Reload the page.")
        return [known[int(one)] for one in numbers]

    def gone(self, project: ProjectRow, sheet: SheetRow) -> frozenset[int]:
        """Places of systems whose plugin was deleted, or whose bundle is no longer where it was."""
        there = {row.id for row in self.store.plugins.list(project.id) if row.exists}
        return frozenset(place for place, one in enumerate(sheet.systems) if place and one["plugin_id"] not in there)

    def delete(self, sheet: SheetRow) -> None:
        """The comparison and its translations; a job at work on it is cancelled."""
        job = self.job(sheet)
        if job is not None and job.active:
            self.store.jobs.cancel(job.id)
        self.store.comparisons.delete(sheet.comparison_id)

    # -- making

    def typed(self, project: ProjectRow, text: str, numbers: Sequence[Any], like: SheetRow | None) -> SheetRow:
        """The comparison of typed sentences by the chosen plugins: `like` itself where nothing else is asked, else a new one
        that takes over what `like` has translated already. Raises InputError without sentences.
        """
        from engine.comparison.sentences import split_lines

        texts = split_lines(text, MOST)
        if not texts:
            raise InputError("Type or open at least one sentence to translate.")
        if like is not None and like.file:
            like = None
        return self._made(project, [(one, None) for one in texts], numbers, like, texts[0][:60], "")

    def opened(self, project: ProjectRow, files: Sequence[str | Path]) -> tuple[SheetRow | None, str]:
        """Files as a new comparison; or (None, sentences a line) where there are so few that they are as good as typed.

        Raises InputError or CorpusError on files that cannot be used.
        """
        from engine.comparison.sentences import read_sentences

        try:
            read = read_sentences(files, project.source, project.target)
        except TailorError as error:  # people know their file by its name, not by where the upload lies
            sentence = str(error)
            for file in files:
                sentence = sentence.replace(str(file), Path(file).name)
            raise type(error)(sentence) from error
        if not read.references and len(read.lines) <= LIVE:
            return None, "\n".join(source for source, _ in read.lines)
        name = Path(files[0]).name
        return self.store.sheets.create(project.id, name, read.lines, systems_of([]), file=name), ""

    def of_file(self, project: ProjectRow, sheet: SheetRow, numbers: Sequence[Any]) -> SheetRow:
        """A file's comparison by the chosen plugins: itself where it is by them, else another one."""
        if [one["plugin_id"] for one in sheet.systems[1:]] == [int(one) for one in numbers]:
            return sheet
        lines = [(line.source, line.reference) for line in self.store.sheets.lines(sheet.comparison_id)]
        made = self._made(project, lines, numbers, sheet, sheet.title, sheet.file)
        untouched = len(sheet.systems) == 1 and not sheet.kept and self.store.sheets.count(sheet.comparison_id)[0] == 0
        if untouched and made.comparison_id != sheet.comparison_id:
            self.store.comparisons.delete(sheet.comparison_id)  # it was only opened
        return made

    def _made(
        self, project: ProjectRow, lines: Sequence[tuple[str, str | None]], numbers: Sequence[Any], like: SheetRow | None,
        title: str, file: str,
    ) -> SheetRow:  # fmt: skip
        rows = self.plugins(project, numbers)
        before = {one["plugin_id"]: (place, one) for place, one in enumerate(like.systems if like else [])}
        strengths = [float(before[row.id][1]["strength"]) if row.id in before else 1.0 for row in rows]
        systems = systems_of(rows, strengths)
        if like is None or like.lines != len(lines):
            return self.store.sheets.create(project.id, title, lines, systems, file=file)
        old = list(self.store.sheets.lines(like.comparison_id))
        if [(line.source, line.reference) for line in old] != [(source, other or None) for source, other in lines]:
            return self.store.sheets.create(project.id, title, lines, systems, file=file)
        if [one["plugin_id"] for one in systems] == [one["plugin_id"] for one in like.systems]:
            return like
        texts = {
            place: [line.texts[before[one["plugin_id"]][0]] for line in old]
            for place, one in enumerate(systems)
            if one["plugin_id"] in before
        }
        made = self.store.sheets.create(project.id, title, lines, systems, file=file, texts=texts)
        self._judge(made, project)
        return made

    def _judge(self, sheet: SheetRow, project: ProjectRow) -> None:
        """Differences and scores of lines that came with all their translations."""
        from engine.comparison.fill import judged

        part = []
        for line in self.store.sheets.lines(sheet.comparison_id):
            if None not in line.texts:
                part.append(judged(line, project.target))
            if len(part) >= 1000:
                self.store.sheets.fill(sheet.comparison_id, sheet.revision, part)
                part = []
        self.store.sheets.fill(sheet.comparison_id, sheet.revision, part)

    # -- filling and measuring

    def translator(self, project: ProjectRow) -> Translator:
        from engine.comparison.job import translator_of

        return translator_of(self.store, project, self.service.models)

    def fill(self, project: ProjectRow, sheet: SheetRow) -> Iterator[None]:
        """Translate what is missing, here and now, a few lines at a time, until it is there or a dial is turned."""
        from engine.comparison.fill import fill

        if not self.store.sheets.pending(sheet.comparison_id, 1):
            return
        translate = self.translator(project)
        for _ in fill(self.store, sheet.comparison_id, translate, project.target, PART, sheet.revision):
            yield

    def long(self, sheet: SheetRow) -> bool:
        """Whether it is work for a job."""
        return bool(sheet.file) and (sheet.lines > LIVE or sheet.references > 0)

    def enqueue(self, sheet: SheetRow) -> JobRow:
        """Queue the job that fills and measures it, unless one is waiting or at work."""
        from engine.jobs import enqueue

        job = self.job(sheet)
        if job is not None and job.active:
            return job
        text = read_text(self._terms(sheet.project_id))
        arguments = {"comparison_id": sheet.comparison_id, **({"terms": text} if text.strip() else {})}
        made = enqueue(self.store, "compare", arguments, project_id=sheet.project_id)
        self.store.sheets.update(sheet.comparison_id, job_id=made.id)
        return made

    def terms(self, project: ProjectRow) -> str:
        """The terms that a project's translations should use, as they were written down."""
        return read_text(self._terms(project.id))

    def set_terms(self, project: ProjectRow, text: str) -> int:
        """Keep other terms; returns how many there are. Raises InputError, with the line, on what is none."""
        from engine.evaluation.terms import parse_terms

        count = len(parse_terms(text.splitlines(), tr("The terms"), project.target, project.source))
        self.service.workspace(project.id, change=True)
        with replacing(self._terms(project.id), "the terms") as temporary:
            temporary.write_text(text, encoding="utf-8")
        return count

    def _terms(self, project_id: int) -> Path:
        return self.service.workspace(project_id) / "terms.tsv"

    def measure_at_once(self, project: ProjectRow, sheet: SheetRow) -> SheetRow:
        """Measure where everything it takes is there already, so that it takes no time; else as it is."""
        from engine.comparison.job import ground_of
        from engine.comparison.measure import measure, ready, scored_by_style
        from engine.evaluation.style import load_style
        from engine.progress import Progress

        if len(sheet.systems) < 2 or sheet.figures or self.store.sheets.pending(sheet.comparison_id, 1):
            return sheet
        translate = self.translator(project)
        ground = ground_of(self.service.settings, self.service.workspace(project.id), project, translate.base)
        if self.service.settings.comet or not ready(sheet.systems, translate, ground):
            return sheet
        lines = list(self.store.sheets.lines(sheet.comparison_id))
        figures = measure(lines, sheet.systems, translate, ground, Progress())
        scorers = load_style(ground.texts, translate.base, ground.folder)
        if scorers is not None:
            self.store.sheets.rescored(sheet.comparison_id, list(scored_by_style(lines, scorers)))
        return self.store.sheets.update(sheet.comparison_id, figures=figures)

    def turn(self, project: ProjectRow, sheet: SheetRow, system: int, strength: float) -> SheetRow:
        """Another strength for a plugin; of a kept comparison in a copy."""
        if not 0 < system < len(sheet.systems):
            raise InputError("That plugin is no longer in the comparison. Reload the page.")
        if system in self.gone(project, sheet):
            name = sheet.systems[system]["name"]
            raise InputError(f"{name} was deleted, so it cannot translate again. What it has translated stays.")
        job = self.job(sheet)
        if job is not None and job.active:
            raise InputError("This comparison is at work. Wait for it, or cancel it first.")
        strength = round(min(1.0, max(0.0, strength)), 2)
        if sheet.kept:
            lines = list(self.store.sheets.lines(sheet.comparison_id))
            texts = {place: [line.texts[place] for line in lines] for place in range(len(sheet.systems))}
            sheet = self.store.sheets.create(
                project.id, sheet.title, [(line.source, line.reference) for line in lines], sheet.systems,
                file=sheet.file, texts=texts,
            )  # fmt: skip
        return self.store.sheets.turn(sheet.comparison_id, system, strength)

    # -- words

    def read(self, project: ProjectRow, sheet: SheetRow, place: int, system: int, start: int, end: int) -> Reading:
        """What the system read for the characters `start` to `end` of its translation of a line."""
        from engine.comparison.reading import read_word

        line = self.store.sheets.line(sheet.comparison_id, place)
        if not 0 <= system < len(line.texts) or line.texts[system] is None:
            raise InputError("That translation is not there yet.")
        translate = self.translator(project)
        plugin = translate.plugin(sheet.systems[system])
        found = read_word(plugin, translate.base, line.source, str(line.texts[system]), start, end)
        if plugin is None and system:
            return type(found)(found.word, found.start, found.end, [], "At strength 0 this is the base alone.")
        return found
