"""/jobs: the queue, and the live progress and log of a job; /projects/{number}/runs, which queues trainings."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field

from engine.base.decoding_options import Decoding
from engine.base.metadata import knows
from engine.core.options import describe
from engine.corpora import CorpusOptions
from engine.corpora.formats.documents.model import DocumentOptions
from engine.errors import InputError
from engine.jobs import log_tail
from engine.jobs.progress import steps_of
from engine.phrases import PhraseOptions
from engine.store import ProjectRow
from engine.training import TrainingOptions
from studio.api import serializers as rows
from studio.api.catalog import base_card
from studio.api.deps import Deps, DepsDep, Id, Limit, Offset, ProjectDep
from studio.api.errors import Problem, conflicts
from studio.api.permissions import may
from studio.api.schemas import models
from studio.services.service import TRAINING

router = APIRouter(tags=["jobs"])
POLL = 1.0  # seconds between two reads of a job's row
QUIET = 15.0  # seconds after which a stream sends a keep-alive comment


@router.get("/jobs", dependencies=[may("read")])
def list_jobs(
    deps: DepsDep,
    offset: Offset = 0,
    limit: Limit = 100,
    project: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    state: Annotated[models.STATES | None, Query()] = None,
    kind: Annotated[str, Query(max_length=64)] = "",
) -> models.Page[models.Job]:
    """All jobs, newest first."""
    states = None if state is None else [state]
    kinds = (kind,) if kind else None
    return _page(deps, offset, limit, project, states=states, kinds=kinds)


def _page(deps: Deps, offset: int, limit: int, project: int | None, **filters: Any) -> models.Page[models.Job]:
    """A page of the matching jobs; only the jobs on the page are read."""
    jobs = deps.store.jobs
    items = [rows.job(row) for row in jobs.list(project, **filters, limit=limit, offset=offset)]
    return models.Page[models.Job](items=items, total=jobs.count(project, **filters), offset=offset)


@router.get("/jobs/{number}", dependencies=[may("read")])
def get_job(deps: DepsDep, number: Id) -> models.Job:
    """The state of a job. Poll it every second or two, or follow its events."""
    return rows.job(deps.store.jobs.get(number))


@router.get("/jobs/{number}/steps", dependencies=[may("read")])
def list_steps(deps: DepsDep, number: Id) -> list[models.Step]:
    """The steps of a job."""
    return [models.Step(**vars(step)) for step in steps_of(deps.store.jobs.get(number))]


@router.get(
    "/jobs/{number}/events",
    dependencies=[may("read")],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events."}},
)
def follow_job(
    deps: DepsDep,
    number: Id,
    seconds: Annotated[int, Query(ge=1, le=86_400, description="How long the stream lasts at most.")] = 3600,
) -> StreamingResponse:
    """Follow a job by server-sent events: `job` whenever it changes, `end` when it has ended or the time is up."""
    deps.store.jobs.get(number)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(deps, number, seconds), media_type="text/event-stream", headers=headers)


async def events(deps: Deps, number: int, seconds: float) -> AsyncIterator[str]:
    last, end, message = "", time.monotonic() + seconds, time.monotonic()
    while True:
        try:
            row = await run_in_threadpool(deps.store.jobs.get, number)
        except Problem:
            yield 'event: end\ndata: {"state": "deleted"}\n\n'
            return
        text = rows.job(row).model_dump_json()
        if text != last:
            last, message = text, time.monotonic()
            yield f"event: job\nid: {row.attempt}\ndata: {text}\n\n"
        elif time.monotonic() - message > QUIET:
            message = time.monotonic()
            yield ": waiting\n\n"
        if not row.active or time.monotonic() >= end:
            yield f"event: end\ndata: {json.dumps({'state': row.state.value})}\n\n"
            return
        await asyncio.sleep(min(POLL, max(0.0, end - time.monotonic())))


@router.post("/jobs/{number}/cancel", dependencies=[may("write")])
def cancel_job(deps: DepsDep, number: Id) -> models.Job:
    """Cancel a job: a queued one at once, a running one within moments. Finished steps are kept."""
    if not deps.store.jobs.get(number).active:
        raise Problem(409, f"Job {number} has ended; there is nothing to cancel.")
    return rows.job(deps.store.jobs.cancel(number))


@router.post("/jobs/{number}/resume", status_code=202, dependencies=[may("write")])
def resume_job(deps: DepsDep, number: Id) -> models.Job:
    """Queue an interrupted, failed or cancelled job again; it continues from its last finished step or checkpoint."""
    with conflicts():
        return rows.job(deps.store.jobs.resume(number))


@router.delete("/jobs/{number}", status_code=204, dependencies=[may("write")])
def delete_job(deps: DepsDep, number: Id) -> Response:
    """Delete a job that is not running from the list; its files are kept."""
    with conflicts():
        deps.store.jobs.delete(number)
    return Response(status_code=204)


@router.get("/jobs/{number}/log", dependencies=[may("read")], response_class=PlainTextResponse)
def get_log(
    deps: DepsDep, number: Id, characters: Annotated[int, Query(ge=1, le=2_000_000, description="How much of its end.")] = 20_000
) -> PlainTextResponse:
    """The end of a job's log as text; empty before the job starts."""
    return PlainTextResponse(log_tail(deps.store.jobs.get(number), characters))


class Usage(BaseModel):
    """The resources used by a job's process, as last reported; null before the first report."""

    cpu: float | None = Field(None, description="Processor, in percent of one core.")
    memory: int | None = Field(None, description="Bytes.")
    peak: int | None = Field(None, description="Bytes of memory at the most.")
    gpu: int | None = Field(None, description="Bytes of the GPU's memory.")
    gpu_total: int | None = Field(None, description="Bytes that the GPU has; 0 without one.")


@router.get("/jobs/{number}/usage", dependencies=[may("read")])
def get_usage(deps: DepsDep, number: Id) -> Usage:
    """The processor and memory use of a running job, or of an ended job as last reported."""
    result = deps.store.usage.get(deps.store.jobs.get(number).id)
    return rows.from_row(Usage, result) if result else Usage.model_validate({})


# -- trainings


@router.get("/projects/{number}/runs", dependencies=[may("read")], tags=["runs"])
def list_runs(deps: DepsDep, project: ProjectDep, offset: Offset = 0, limit: Limit = 100) -> models.Page[models.Job]:
    """The project's trainings, newest first."""
    return _page(deps, offset, limit, project.id, kinds=(TRAINING,))


@router.post("/projects/{number}/runs", status_code=202, dependencies=[may("write")], tags=["runs"])
def start_run(deps: DepsDep, project: ProjectDep, body: models.RunRequest) -> models.Job:
    """Queue a training on the project's samples. The plugin appears in /plugins when its job has succeeded."""
    request = body.request()
    if not deps.service.sample_files(project.id):
        raise Problem(409, "This project has no samples yet. Add some first.")
    return rows.job(deps.service.start_run(project, request.replace(base=base_of(deps, project, body))))


def base_of(deps: Deps, project: ProjectRow, body: models.RunRequest) -> str:
    """The base requested for a run, or the project's if none. Raises Problem 404, InputError."""
    if not body.base:
        return project.base
    path = str(base_card(deps, body.base)["path"])
    if not knows(path, project.source, project.target):
        raise InputError(f"{body.base} does not translate from {project.source} to {project.target}. Choose another base.")
    return path


@router.get("/projects/{number}/runs/curve", dependencies=[may("read")], tags=["runs"])
def get_curve(deps: DepsDep, project: ProjectDep) -> models.Curve:
    """The metrics of the current or last run by update."""
    return models.Curve(rows=rows.finite(deps.service.curve(project.id)))


Kind = Literal["training", "decoding", "phrases", "corpus", "documents"]


@router.get("/options/{kind}", dependencies=[may("read")], tags=["methods"])
def list_options(kind: Kind) -> list[models.Option]:
    """The settings of training, decoding, phrase extraction, reading samples, or documents."""
    return [rows.option(item) for item in described(kind)]


def described(kind: Kind) -> list[Any]:
    classes: Mapping[str, Any] = {
        "training": TrainingOptions, "decoding": Decoding, "phrases": PhraseOptions, "corpus": CorpusOptions,
        "documents": DocumentOptions,
    }  # fmt: skip
    return describe(classes[kind])
