"""Checks of the store: integrity, files that its rows refer to, and jobs that are marked as running."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from engine.base.registry import BaseRegistry
from engine.core.progress import duration
from engine.core.settings import Settings
from engine.errors import BundleError, MissingError
from engine.plugins import verify_bundle
from engine.store import Store
from engine.store.sharing import open_blobs
from engine.store.status import bring_up, status
from engine.workflows.customize.project_samples import are_held, sample_files
from engine.workflows.maintenance.finding import Finding

SILENT = 60.0  # seconds without a heartbeat after which nothing is running
LOST = "Nobody was at work on it any more. Resume it: finished steps and the last checkpoint are kept."


def store_whole(settings: Settings) -> Iterator[Finding]:
    from engine.store.database import file_of, parse

    file = file_of(parse(settings.store_url))
    if file is not None and file.exists():
        try:
            with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                words = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
                strays = connection.execute("PRAGMA foreign_key_check").fetchall()
        except sqlite3.DatabaseError as error:
            words, strays = [str(error)], []
        if words != ["ok"]:
            yield Finding("store", f"{file} is damaged ({'; '.join(words)}). Restore a backup with `tailormt restore`.", str(file))
            return
        if strays:
            count, names = len(strays), sorted({row[0] for row in strays})

            def remove() -> str:
                with closing(sqlite3.connect(file)) as connection, connection:
                    for table, number, *_ in strays:
                        connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (number,))
                return f"{count} rows were removed."

            yield Finding(
                "rows", f"{count} rows of {', '.join(names)} refer to deleted rows and can be removed.", str(file), remove
            )
    result = status(settings.store_url)
    if result["pending"] and result["schema"]:

        def upgrade() -> str:
            before, after, selected = bring_up(settings.store_url)
            return f"The schema was brought from {before} to {after}" + (f"; what it was is at {selected}." if selected else ".")

        yield Finding(
            "schema", f"The store has schema {result['schema']}, this program {result['newest']}. Run `tailormt store upgrade`.",
            result["store"], upgrade,
        )  # fmt: skip


def opened(settings: Settings) -> Store | None:
    """The store, if it exists; it is not created."""
    return Store(settings.store_url) if status(settings.store_url)["schema"] else None


def stale_jobs(settings: Settings, store: Store) -> Iterator[Finding]:
    moment = datetime.datetime.now(datetime.UTC)

    def silent(beat: datetime.datetime | None) -> bool:
        return beat is None or (moment - beat).total_seconds() > SILENT

    workers = {row.name for row in store.workers.list(within=None) if not silent(row.heartbeat)}
    for job in store.jobs.list(states=["running"]):
        if not silent(job.heartbeat) or job.worker in workers:
            continue

        def interrupt(job=job) -> str:  # type: ignore[no-untyped-def]
            store.jobs.interrupt(job.id, job.attempt, LOST)
            return f"Job {job.id} is interrupted and can be resumed."

        silence = duration((moment - job.heartbeat).total_seconds()) if job.heartbeat else "a long time"
        yield Finding(
            "jobs", f"Job {job.id} ({job.kind}) is marked as running, but has been inactive for {silence}. "
            "Start a worker, or run the repair.", f"job {job.id}", interrupt,
        )  # fmt: skip
    busy = {job.project_id for job in store.jobs.list(states=["running", "queued"])}
    for corpus in store.corpora.list():
        if corpus.state == "reading" and corpus.project_id not in busy:

            def reset(corpus=corpus) -> str:  # type: ignore[no-untyped-def]
                store.corpora.update(corpus.id, state="failed")
                return "It can be read again."

            yield Finding(
                "jobs", f"The samples of project {corpus.project_id} are marked as being read, but no job is reading them.",
                f"corpus {corpus.id}", reset,
            )  # fmt: skip
    if store.jobs.list(states=["queued"], limit=1) and not workers:
        yield Finding("jobs", "Jobs are queued, but no worker serves this store. Start the studio, or run `tailormt worker`.")


def projects(settings: Settings, store: Store) -> Iterator[Finding]:
    """Bases of projects that are not installed."""
    registry = BaseRegistry(settings)
    for row in store.projects.list():
        if not row.base:
            continue
        try:
            result = (registry.find(row.base) / "config.json").exists()
        except MissingError:
            result = False
        if not result:
            yield Finding(
                "projects", f"The base {row.base} of project {row.id} ({row.name}) is missing. Add it with `tailormt base add`, "
                "or choose another base in the studio.", row.base,
            )  # fmt: skip


def missing_files(settings: Settings, store: Store) -> Iterator[Finding]:
    """Rows whose files are missing; restored if the store of artefacts has them."""
    shared = {}  # {path: SHA-256}

    blobs = open_blobs(settings)
    for artefact in store.artefacts.list() if blobs is not None else ():
        for path, (sha, _) in artefact.files.items():
            shared[str(settings.home_dir / artefact.workspace / path)] = sha

    def finding(file: str, sentence: str) -> Finding:
        if file not in shared or blobs is None:
            return Finding("missing", sentence, file)

        def fetch() -> str:
            blobs.fetch(shared[file], Path(file))
            return f"{file} was fetched from {blobs.url}."

        return Finding("missing", sentence, file, fetch)

    for plugin in store.plugins.list():
        if not Path(plugin.path).is_file():
            yield finding(
                plugin.path, f"The bundle of the plugin {plugin.name} (project {plugin.project_id}) is no longer at {plugin.path}. "
                "Restore it there, import it, or train it again.",
            )  # fmt: skip
    for corpus in store.corpora.list():
        corpus_file = Path(corpus.folder) / "corpus.jsonl"
        if corpus.state == "ready" and not corpus_file.is_file():
            yield finding(
                str(corpus_file),
                f"The corpus of project {corpus.project_id} is no longer at {corpus_file}. Read the samples again.",
            )
    for phrases in store.phrase_sets.list():
        if phrases.count and not Path(phrases.path).is_file():
            yield finding(phrases.path, f"{phrases.path} is missing. Read the samples again to extract the phrases.")
    for job in store.jobs.list(states=["queued", "interrupted"]):
        for sample in job.arguments.get("samples") or ():
            file = Path(str(sample))
            # A job uses the files that its project has when it starts.
            changed = are_held([str(sample)], job.project_id) and sample_files(file.parents[1])
            if not file.is_file() and not changed:
                yield finding(str(sample), f"Job {job.id} needs {sample}, which is missing. Restore it, or cancel the job.")


def bundles(settings: Settings, store: Store) -> Iterator[Finding]:
    """Verify every plugin bundle against its manifest."""
    for plugin in store.plugins.list():
        if not Path(plugin.path).is_file():
            continue
        try:
            verify_bundle(plugin.path)
        except BundleError as error:
            yield Finding("bundles", f"The plugin {plugin.name} cannot be used: {error}", plugin.path)
