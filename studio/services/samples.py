"""The samples of a project as the pages use them: files, labels, import settings, decisions, test files, import results.

Part of `studio.services.service.Service`; independent of Gradio.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.atomic_files import read_json, write_json
from engine.core.settings import Settings
from engine.corpora import CorpusOptions, Decisions
from engine.corpora.leakage import LEAKS_FILE, TEST_FOLDER, test_files
from engine.errors import InputError, storage_errors
from engine.jobs import enqueue
from engine.messages import unpack
from engine.workflows.customize.project_samples import (
    LABELS,
    OPTIONS,
    SAMPLES,
    domain_labels,
    held_samples,
    reading_options,
    sample_files,
)
from engine.workflows.customize.steps import FEWEST
from studio.i18n.translate import mark, tr
from studio.services.files import JsonRow, read_rows
from studio.services.uploads import all_refused, check_files, take_files

if TYPE_CHECKING:
    from engine.store import CorpusRow, JobRow, ProjectRow, Store

REMOVED = "removed"  # in a project's workspace: the folder of sample files removed since the last import
REFUSED = "refused.json"  # also there: refused uploads with the reason, by kind: samples, tests, documents
EDITED = "Edited translations.jsonl"  # the sample file of translations edited on the pages
GONE = mark("{name} is no longer a file of this project. Reload the page.")


class SampleFiles:
    """The operations of `Service` for the page Samples."""

    if TYPE_CHECKING:
        settings: Settings

        @property
        def store(self) -> Store: ...
        def workspace(self, project_id: int, *, change: bool = False) -> Path: ...

    # -- files

    def add_samples(self, project: ProjectRow, files: Sequence[str | Path], labels: Mapping[str, str] | None = None) -> JobRow:
        """Copy files into the project and queue the job that reads all samples; `labels` maps file names to domains.

        Files that cannot be used are left out; see `refused`. Raises InputError if none can be used.
        """
        if not files:
            raise InputError("Choose at least one file with your sentences.")
        self._take(project.id, files, SAMPLES, self.sample_files(project.id))
        if labels:
            self._write_labels(project.id, {**self.labels(project.id), **labels})
        return self.read_again(project)

    def _take(self, project_id: int, files: Sequence[str | Path], kind: str, existing: Sequence[Path]) -> None:
        """Copy the usable files into the folder `kind` and record the refused ones. Raises InputError if none is usable."""
        paths = [Path(file) for file in files]
        reasons = check_files(paths, self.settings, [path.name for path in existing])
        accepted = [path for path in paths if path not in reasons]
        self.refuse(project_id, {path.name: why for path, why in reasons.items()}, kind, [path.name for path in accepted])
        if not accepted:
            raise all_refused(list(reasons.values()))
        take_files(accepted, self.workspace(project_id, change=True) / kind)

    def refused(self, project_id: int, kind: str = SAMPLES) -> dict[str, str]:
        """Refused files with the reason, until files of the same names are accepted or the user dismisses them."""
        return dict(read_json(self.workspace(project_id) / REFUSED).get(kind, {}))

    def refuse(self, project_id: int, reasons: Mapping[str, str], kind: str = SAMPLES, accepted: Sequence[str] = ()) -> None:
        """Record refused files with the reason, and drop earlier records of files that are now `accepted`."""
        earlier = {name: why for name, why in self.refused(project_id, kind).items() if name not in accepted}
        self._note_refused(project_id, kind, {**earlier, **reasons})

    def dismiss(self, project: ProjectRow, name: str, kind: str = SAMPLES) -> None:
        """Remove a file from the list of refused files."""
        remaining = {file_name: why for file_name, why in self.refused(project.id, kind).items() if file_name != name}
        self._note_refused(project.id, kind, remaining)

    def _note_refused(self, project_id: int, kind: str, reasons: Mapping[str, str]) -> None:
        path = self.workspace(project_id, change=True) / REFUSED
        before = read_json(path)
        if reasons or before.get(kind):
            write_json(path, {**before, kind: dict(reasons)}, "the list of refused files")

    def sample_files(self, project_id: int) -> list[Path]:
        """The uploaded files of a project, by name."""
        return sample_files(self.workspace(project_id))

    def remove_sample(self, project: ProjectRow, name: str) -> JobRow | None:
        """Remove a file from a project, effective from the next import or training run; restorable until the next import.

        Returns a job that reads the remaining files if an import that includes this one is waiting or running, else None.
        Raises InputError if the file does not exist.
        """
        path = next((path for path in self.sample_files(project.id) if path.name == name), None)
        if path is None:
            raise InputError(GONE, name=name)
        folder = self.workspace(project.id, change=True) / REMOVED
        with storage_errors("the samples", path):
            folder.mkdir(exist_ok=True)
            path.replace(folder / name)
        return self._read_if_reading(project)

    def removed_samples(self, project_id: int) -> list[str]:
        """Names of the files removed since the last import began, which can be restored, most recent first."""
        paths = (self.workspace(project_id) / REMOVED).glob("*")
        return [path.name for path in sorted(paths, key=lambda path: path.stat().st_ctime_ns, reverse=True)]

    def restore_sample(self, project: ProjectRow, name: str) -> JobRow | None:
        """Restore a removed file; returns a job as `remove_sample` does. Raises InputError if there is none of that name."""
        if name not in self.removed_samples(project.id):
            raise InputError("{name} can no longer be restored. Add it again.", name=name)
        folder = self.workspace(project.id, change=True)
        with storage_errors("the samples", folder):
            (folder / REMOVED / name).replace(folder / SAMPLES / name)
        return self._read_if_reading(project)

    def files_changed(self, project_id: int) -> bool:
        """Whether files have been added since the last import, or files that it read have been removed."""
        files = self.report(project_id).get("files", [])
        names = {path.name for path in self.sample_files(project_id)} - {EDITED}
        reported = {Path(str(file["name"])).name for file in files}
        imported = {Path(str(file["name"])).name for file in files if file.get("kept") or not file.get("error")}
        return bool(files) and bool(names - reported or imported - {EDITED} - names)

    def _read_if_reading(self, project: ProjectRow) -> JobRow | None:
        """Read the samples again if an import with the previous set of files is waiting or running."""
        return self._read(project) if self.reading_files(project.id) else None

    def reading_files(self, project_id: int) -> bool:
        """Whether files are being read or about to be; False once the job has read them and processes their sentences."""
        job = self.reading(project_id)
        if job is None or not job.active or job.kind != "prepare":
            return False
        report = self.workspace(project_id) / "import_report.json"
        return job.started is None or not report.exists() or report.stat().st_mtime < job.started.timestamp()

    def labels(self, project_id: int) -> dict[str, str]:
        """Domain labels of a project's files, by file name; files without a label use their name."""
        return domain_labels(self.workspace(project_id))

    def label_sample(self, project: ProjectRow, name: str, label: str) -> JobRow:
        """Change the domain label of a file and read the samples again. Raises InputError."""
        label = " ".join(label.split())[:40]
        if name not in [path.name for path in self.sample_files(project.id)]:
            raise InputError(GONE, name=name)
        self._write_labels(project.id, {**self.labels(project.id), name: label or Path(name).stem})
        return self.read_again(project)

    def _write_labels(self, project_id: int, labels: Mapping[str, str]) -> None:
        write_json(self.workspace(project_id, change=True) / LABELS, labels, "the labels")

    # -- reading them

    def import_options(self, project_id: int) -> dict[str, object]:
        """Import settings that differ from the defaults."""
        return reading_options(self.workspace(project_id))

    def set_import_options(self, project_id: int, options: Mapping[str, Any]) -> None:
        """Store a project's import settings. Raises OptionError on an invalid one."""
        CorpusOptions.from_mapping(options)
        write_json(self.workspace(project_id, change=True) / OPTIONS, options, "the settings of reading")

    def request(self, project: ProjectRow) -> dict[str, object]:
        """The arguments of a job on this project, in the form of `engine.workflows.customize.request.CustomizeRequest`."""
        arguments: dict[str, object] = {"base": project.base, "source": project.source, "target": project.target}
        return arguments | held_samples(self.workspace(project.id))

    def read_again(self, project: ProjectRow) -> JobRow:
        """Queue an import of all samples, replacing any that is still waiting. Removed files can then not be restored."""
        job = self._read(project)
        shutil.rmtree(self.workspace(project.id) / REMOVED, ignore_errors=True)
        return job

    def _read(self, project: ProjectRow) -> JobRow:
        if not self.sample_files(project.id):
            raise InputError("This project has no samples yet. Add a file first.")
        for job in self.store.jobs.list(project.id, states=["queued"], kinds=["prepare"]):
            self.store.jobs.cancel(job.id)
        return self._queue("prepare", project)

    def reading(self, project_id: int) -> JobRow | None:
        """The newest job that reads the samples or compares them with test files, except one cancelled while it waited."""
        return self.store.jobs.newest(project_id, "prepare", "leakage", begun=True)

    def _queue(self, kind: str, project: ProjectRow, arguments: Mapping[str, Any] | None = None) -> JobRow:
        job_arguments = self.request(project) if arguments is None else arguments
        return enqueue(self.store, kind, job_arguments, project_id=project.id)

    def corpus(self, project_id: int) -> CorpusRow | None:
        """The latest corpus of a project."""
        rows = self.store.corpora.list(project_id)
        return rows[0] if rows else None

    def report(self, project_id: int) -> JsonRow:
        """The import report of a project's samples: the workspace's, written as soon as the samples are read, else the one
        stored with the latest corpus. Empty if there is none yet."""
        data = read_json(self.workspace(project_id) / "import_report.json")
        if data:
            return data
        corpus = self.corpus(project_id)
        return unpack(corpus.report) if corpus and corpus.report else {}

    def domains(self, project_id: int) -> list[str]:
        """The domains of a project's samples in the order of its files, which fixes their colours; empty without labels."""
        return list(self.report(project_id).get("domains", {}))

    def sentences(self, project_id: int) -> list[JsonRow]:
        """The kept sentences with file and line."""
        return read_rows(self.workspace(project_id) / "corpus.jsonl")

    def counted(self, project_id: int) -> tuple[int, int, int, int]:
        """The numbers of sentences, characters, sentences with a source, and domains."""
        path = self.workspace(project_id) / "corpus.jsonl"
        return _count(path, path.stat().st_mtime_ns) if path.exists() else (0, 0, 0, 1)

    def unread_files(self, project_id: int, *, busy: bool = False) -> dict[str, str]:
        """Sample files that could not be read completely, with the reason, and, unless an import is running (`busy`), those that
        the last import did not reach.
        """
        errors = {Path(str(file["name"])).name: str(file.get("error", "")) for file in self.report(project_id).get("files", [])}
        names = [path.name for path in self.sample_files(project_id)]
        unread = {name: errors.get(name, "") for name in names if errors.get(name, "" if busy else "unread")}
        if unread == {EDITED: ""} and len(names) == 1:
            unread[EDITED] = tr("These will be read once there are at least {fewest} pairs, or other samples.", fewest=FEWEST)
        return unread

    def sentences_version(self, project_id: int) -> str:
        """A string that changes when sentences, test files or decisions change on disk."""
        folder = self.workspace(project_id)
        files = [folder / name for name in ("import_report.json", LEAKS_FILE, "decisions.jsonl", TEST_FOLDER, REFUSED)]
        return ".".join(str(file.stat().st_mtime_ns if file.exists() else 0) for file in files)

    # -- decisions about single sentences

    def decisions(self, project_id: int) -> Decisions:
        """The user's decisions about individual sentences."""
        return Decisions.load(self.workspace(project_id))

    def decide(self, project_id: int, action: str, keys: Mapping[str, str]) -> Decisions:
        """Exclude, approve or reset sentences ({key: text}), effective from the next import or training run."""
        return Decisions.decide_keys(self.workspace(project_id, change=True), action, keys)

    def undo(self, project_id: int) -> Decisions:
        """Undo the last decision. Raises InputError if there is none."""
        return Decisions.undo(self.workspace(project_id, change=True))

    def undecided(self, project_id: int) -> bool:
        """Whether decisions have changed since the last import."""
        return self.decisions(project_id).key() != str(self.report(project_id).get("decided", ""))

    # -- test files

    def test_files(self, project_id: int) -> list[Path]:
        """The project's test files, by name."""
        return test_files(self.workspace(project_id))

    def add_tests(self, project: ProjectRow, files: Sequence[str | Path]) -> JobRow:
        """Add test files and queue the comparison of the samples with them.

        Files that cannot be used are left out; see `refused`. Raises InputError if none can be used.
        """
        if not files:
            raise InputError("Choose at least one test file.")
        self._take(project.id, files, TEST_FOLDER, self.test_files(project.id))
        return self._queue("leakage", project, {})

    def remove_test(self, project: ProjectRow, name: str) -> JobRow:
        """Remove a test file and queue a new comparison. Raises InputError if it does not exist."""
        path = next((path for path in self.test_files(project.id) if path.name == name), None)
        if path is None:
            raise InputError(GONE, name=name)
        self.workspace(project.id, change=True)
        with storage_errors("the test files", path):
            path.unlink()
        return self._queue("leakage", project, {})

    def leaks(self, project_id: int) -> JsonRow:
        """The overlap of the samples with the test files; empty if there are no test files or none has been compared yet."""
        return read_json(self.workspace(project_id) / LEAKS_FILE)


@lru_cache(maxsize=8)
def _count(path: Path, modified: int) -> tuple[int, int, int, int]:
    rows = read_rows(path)
    texts = [str(row.get("text", "")) for row in rows]
    sourced = sum(bool(row.get("source")) for row in rows)
    return len(rows), sum(map(len, texts)), sourced, len({str(row.get("domain", "")) for row in rows}) or 1
