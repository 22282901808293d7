"""Paths of a job's files in the home folder."""

from __future__ import annotations

from pathlib import Path

from engine.core.settings import Settings
from engine.core.workspace import run_folder
from engine.store.records import JobRow


def workspace_folder(settings: Settings, project_id: int) -> Path:
    """The folder of a project's files, created if missing."""
    return _made(settings.home_dir / "projects" / str(project_id))


def job_workspace(settings: Settings, job: JobRow) -> Path:
    """The working folder of a job: its project's, or a separate one if it has no project."""
    if job.project_id is not None:
        return workspace_folder(settings, job.project_id)
    return _made(settings.home_dir / "jobs" / str(job.id))


def job_folder(workspace: Path, job: JobRow) -> Path:
    """The folder of a job's private files; for a job without a project, the whole workspace."""
    return run_folder(workspace, job.id) if job.project_id is not None else workspace


def log_file(settings: Settings, job_id: int) -> Path:
    """The log of a job with all its attempts; its folder is created if missing."""
    return _made(settings.home_dir / "jobs") / f"{job_id}.log"


def log_tail(job: JobRow, characters: int = 20_000) -> str:
    """The end of a job's log, starting at a line; empty if there is no log."""
    if not job.log_path:
        return ""
    try:
        with open(job.log_path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 4 * characters))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    if len(text) <= characters:
        return text
    cut = text[-characters:]
    return cut[cut.find("\n") + 1 :]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
