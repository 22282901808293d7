"""The documents of a project: uploading, translating with a job, editing and deleting. Each has a separate folder."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.corpora.formats.documents.characters import FirstReading, first_reading
from engine.corpora.formats.documents.formats import ENDINGS
from engine.corpora.formats.documents.model import Context, DocumentError, DocumentOptions
from engine.corpora.language import plainly_other
from engine.corpora.terminology import parse_terms
from engine.errors import InputError, NotFoundError, storage_errors
from engine.messages import Message
from engine.plugins import Plugin
from engine.plugins.plugin import check_strength
from engine.store.queue import ASKED, LONG
from engine.workflows.document_segments import SEGMENTS, write_segments
from engine.workflows.read_apart import edit_apart

if TYPE_CHECKING:
    from engine.jobs.registry import JobContext
    from engine.store import JobRow, PluginRow, ProjectRow, Store

KIND = "translate"
SHORT = 20_000  # characters up to which a document is translated at once; training pauses for it
EARLY_BYTES = 4 << 20  # up to this size, documents are read first, to report errors before queueing
PARTIAL = "sentences.jsonl"
_EDITING = threading.Lock()  # an edit changes a document's segments and the document


@dataclass(frozen=True)
class TranslatedDocument:
    """A document as shown to users: its job, its name, and how it is translated."""

    job: JobRow
    name: str
    plugin_id: int | None
    plugin: str  # the plugin's name at the time of the request; empty for the base only
    strength: float
    language: str = ""  # the code of the detected language if it is clearly not the project's source language

    @property
    def output(self) -> Path | None:
        """The translation; None if there is none yet."""
        path = self.job.result.get("output")
        return Path(path) if path and Path(path).is_file() else None

    @property
    def segments(self) -> Path | None:
        """The segments file written by `write_segments`; None if there is none."""
        path = self.output and self.output.with_name(SEGMENTS)
        return path if path and path.is_file() else None

    @property
    def report(self) -> Json:
        """The report, as returned by `DocumentReport.to_mapping`; empty if there is none yet."""
        return self.job.result


class Documents:
    """Operations on the documents of projects."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings

    def list(self, project_id: int) -> list[TranslatedDocument]:
        """The documents of a project, newest first."""
        return [_document(job) for job in self.store.jobs.list(project_id, kinds=(KIND,))]

    def get(self, number: int) -> TranslatedDocument:
        """The document of the job with this id. Raises InputError if there is none."""
        job = self.store.jobs.get(number)
        if job.kind != KIND:
            raise NotFoundError("There is no document {number}: it may have been deleted.", number=number)
        return _document(job)

    def read(self, project: ProjectRow, file: Path, options: Mapping[str, Any] | None = None, name: str = "") -> FirstReading:
        """Read a document and report how much to translate. Raises DocumentError, OptionError, TransientError on failure."""
        document_options = DocumentOptions.from_mapping(options or {})
        context = Context(_plain(name or file.name), project.source, project.target, document_options)
        return first_reading(file, context, self.settings.max_upload_mib << 20)

    def add(
        self,
        project: ProjectRow,
        file: Path,
        *,
        name: str = "",
        plugin: PluginRow | None = None,
        strength: float = 1.0,
        options: Mapping[str, Any] | None = None,
        terms: str = "",
        read: FirstReading | None = None,
    ) -> TranslatedDocument:
        """Copy a document and queue its translation.

        `terms`: a glossary to enforce; `read`: the result of `read` if already called. Raises InputError if the document cannot
        be queued, and the errors of `read`.
        """
        from engine.jobs import enqueue

        name = _plain(name or file.name)
        document_options = DocumentOptions.from_mapping(options or {})
        check_strength(strength)
        if plugin is not None and plugin.project_id != project.id:
            raise InputError("{plugin} belongs to another project. Choose a plugin of this one.", plugin=plugin.name)
        supported = Path(name).suffix.lower() in ENDINGS
        if read is None and (not supported or not file.is_file() or file.stat().st_size <= EARLY_BYTES):
            read = self.read(project, file, options, name)
        language = plainly_other(read.excerpt, project.source, project.target) if read else ""
        folder = self._folder(project.id) / secrets.token_hex(8)
        with storage_errors("the document", folder):
            folder.mkdir(parents=True)
            path = folder / f"source{Path(name).suffix.lower()}"
            shutil.copyfile(file, path)
        arguments = {
            "document": str(path),
            "name": name,
            "plugin_id": plugin.id if plugin else None,
            "plugin": plugin.name if plugin else "",
            "strength": strength,
            "options": document_options.to_mapping(),
            **({"terms": terms} if terms.strip() else {}),
            **({"language": language} if language else {}),
        }
        priority = ASKED if read is not None and read.characters <= SHORT else LONG
        try:
            return _document(enqueue(self.store, KIND, arguments, project_id=project.id, priority=priority))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def cancel(self, number: int) -> TranslatedDocument:
        """Stop the translation of a document; finished parts are kept."""
        return _document(self.store.jobs.cancel(self.get(number).job.id))

    def resume(self, number: int) -> TranslatedDocument:
        """Resume a translation that was stopped or failed. Raises InputError if it was neither."""
        return _document(self.store.jobs.resume(self.get(number).job.id))

    def edit(self, number: int, index: int, text: str) -> None:
        """Replace the translation of a segment (from 0) and rebuild the document. Raises InputError, DocumentError."""
        document = self.get(number)
        if document.segments is None or document.output is None or document.job.project_id is None:
            raise InputError("{paper} has no segments to edit. Translate it again.", paper=document.name)
        project, arguments = self.store.projects.get(document.job.project_id), document.job.arguments
        options = DocumentOptions.from_mapping(arguments.get("options") or {})
        context = Context(document.name, project.source, project.target, options)
        with _EDITING:
            edit_apart(document.segments, Path(str(arguments["document"])), document.output, context, index, text)

    def delete(self, number: int) -> None:
        """Remove a document, its translation and its row. Raises InputError while it is being translated."""
        document = self.get(number)
        if document.job.state == "running":
            raise InputError("{paper} is being translated. Cancel that first, then delete it.", paper=document.name)
        self.store.jobs.delete(number)
        path = Path(str(document.job.arguments["document"])).parent
        if document.job.project_id is not None and path.parent == self._folder(document.job.project_id):
            shutil.rmtree(path, ignore_errors=True)

    def _folder(self, project_id: int) -> Path:
        return self.settings.home_dir / "projects" / str(project_id) / "documents"


def _document(job: JobRow) -> TranslatedDocument:
    text = job.arguments
    number = text.get("plugin_id")
    return TranslatedDocument(
        job=job,
        name=str(text.get("name") or Path(str(text["document"])).name),
        plugin_id=None if number is None else int(number),
        plugin=str(text.get("plugin", "")),
        strength=float(text.get("strength", 1.0)),
        language=str(text.get("language", "")),
    )


def _plain(name: str) -> str:
    """A file name without folders and without characters that are unsafe in file systems or headers."""
    cleaned = re.sub(r"[\x00-\x1f\x7f/\\:*?\"<>|]+", "_", Path(name).name).strip(" .")
    stem, ending = Path(cleaned).stem[:120], Path(cleaned).suffix[:20]
    return f"{stem or 'document'}{ending}"


def check(arguments: Mapping[str, Any]) -> Json:
    """The arguments of a job `translate`, checked. Raises DocumentError or OptionError."""
    if not arguments.get("document"):
        raise DocumentError("A job that translates needs document, the path of the document.")
    selected = {key: value for key, value in arguments.items() if value is not None or key == "plugin_id"}
    selected["document"] = str(Path(str(arguments["document"])).expanduser().resolve())
    selected["options"] = DocumentOptions.from_mapping(arguments.get("options") or {}).to_mapping()
    selected["strength"] = float(arguments.get("strength", 1.0))
    check_strength(selected["strength"])
    return selected


def run(context: JobContext) -> Json:
    """Translate a document of a project, resuming after the last finished sentences; returns the output's path and the report.

    Raises InputError for a job without a project, or a plugin whose bundle is missing.
    """
    from engine.serving.units.translate import BaseTranslator
    from engine.workflows.documents import translate_document

    job = context.job
    if job.project_id is None:
        raise InputError("A job that translates belongs to a project, whose base it uses.")
    project, document = context.store.projects.get(job.project_id), _document(job)
    file = Path(str(job.arguments["document"]))
    context.progress.begin("Loading the base")
    base = BaseModel.load(project.base, project.source, project.target, settings=context.settings)
    plugin, bundle = None, ""
    if document.plugin_id is not None:
        row = context.store.plugins.get(document.plugin_id)
        if not row.exists:
            raise InputError("The bundle of {row} no longer exists. Train it again or import it.", row=row.name)
        bundle = "" if context.settings.artefacts else row.path  # else not shared between machines
        plugin = Plugin.load(row.path, base, cache=context.settings.home_dir / "unpacked")
    glossary = str(job.arguments.get("terms", "")).splitlines()
    terms = parse_terms(glossary, Message("The terms"), project.target, project.source)
    decoding = base.decoding(plugin.card.get("decoding") if plugin and document.strength else None)
    output = file.with_name(f"{Path(document.name).stem}.{project.target}{Path(document.name).suffix}")
    report = translate_document(
        file,
        output,
        BaseTranslator(base, plugin, document.strength, decoding, bundle, terms),
        options=DocumentOptions.from_mapping(job.arguments.get("options") or {}),
        progress=context.progress,
        partial=file.with_name(PARTIAL),
        name=document.name,
        most_bytes=context.settings.max_upload_mib << 20,
    )
    write_segments(file.with_name(SEGMENTS), report.segments)
    return {"output": str(output), **report.to_mapping()}
