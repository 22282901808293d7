"""Jobs as a page watches them."""

from __future__ import annotations

import datetime

from engine.store import JobRow, ProjectRow
from studio.services.service import Service

RECENT = 6.0  # seconds: some polls


def newest_job(service: Service, project: ProjectRow, kind: str) -> JobRow | None:
    """The project's last job of a kind."""
    return next((job for job in service.store.jobs.list(project.id) if job.kind == kind), None)


def just_done(job: JobRow) -> bool:
    """Whether it ended within the last polls, so that its end is still to be shown."""
    if job.finished is None:
        return False
    return (datetime.datetime.now(datetime.UTC) - job.finished).total_seconds() < RECENT
