"""/jobs: the queue, a job's progress as it happens, its log; and /projects/{number}/runs, which puts trainings into it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field

from engine.errors import InputError
from studio.api import models, rows
from studio.api.auth import may
from studio.api.desk import Desk, DeskDep, Id, Limit, Offset
from studio.api.errors import Problem

if TYPE_CHECKING:
    from engine.store import ProjectRow

__all__ = ["base_of", "checked", "router"]

router = APIRouter(tags=["jobs"])
POLL = 1.0  # seconds between two looks at a job's row
QUIET = 15.0  # seconds after which a stream says that it is alive


@router.get("/jobs", dependencies=[may("read")])
def list_jobs(
    desk: DeskDep,
    offset: Offset = 0,
    limit: Limit = 100,
    project: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    state: Annotated[models.STATES | None, Query()] = None,
    kind: Annotated[str, Query(max_length=64)] = "",
    parent: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only the steps of this job.")] = None,
) -> models.Page[models.Job]:
    """Jobs, newest first. Those that are steps of another are counted with it: ask for them by `parent`."""
    states = None if state is None else [state]
    found = desk.service.store.jobs.list(project, states=states, parent=parent, whole=parent is None)
    part = rows.page([row for row in found if not kind or row.kind == kind], offset, limit)
    part["items"] = [rows.job(row) for row in part["items"]]
    return models.Page[models.Job](**part)


@router.get("/jobs/{number}", dependencies=[may("read")])
def get_job(desk: DeskDep, number: Id) -> models.Job:
    """Where a job stands; ask again every second or two, or follow its events."""
    return rows.job(desk.job(number))


@router.get("/jobs/{number}/steps", dependencies=[may("read")])
def list_steps(desk: DeskDep, number: Id) -> list[models.Step]:
    """What a job went through, or, where its steps are jobs of their own, where each of them stands."""
    from engine.jobs.steps import steps_of

    return [models.Step(**vars(one)) for one in steps_of(desk.service.store, desk.job(number))]


@router.get(
    "/jobs/{number}/events",
    dependencies=[may("read")],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events."}},
)
def follow_job(
    desk: DeskDep,
    number: Id,
    seconds: Annotated[int, Query(ge=1, le=86_400, description="How long the stream lasts at most.")] = 3600,
) -> StreamingResponse:
    """Server-sent events: `job` whenever it changed, `end` when it has ended or the time is up."""
    desk.job(number)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(desk, number, seconds), media_type="text/event-stream", headers=headers)


async def events(desk: Desk, number: int, seconds: float) -> AsyncIterator[str]:
    last, end, said = "", time.monotonic() + seconds, time.monotonic()
    while True:
        try:
            row = await run_in_threadpool(desk.job, number)
        except Problem:
            yield 'event: end\ndata: {"state": "deleted"}\n\n'
            return
        text = rows.job(row).model_dump_json()
        if text != last:
            last, said = text, time.monotonic()
            yield f"event: job\nid: {row.attempt}\ndata: {text}\n\n"
        elif time.monotonic() - said > QUIET:
            said = time.monotonic()
            yield ": waiting\n\n"
        if not row.active or time.monotonic() >= end:
            yield f"event: end\ndata: {json.dumps({'state': row.state.value})}\n\n"
            return
        await asyncio.sleep(min(POLL, max(0.0, end - time.monotonic())))


@router.post("/jobs/{number}/cancel", dependencies=[may("write")])
def cancel_job(desk: DeskDep, number: Id) -> models.Job:
    """Ask a job to stop: a waiting one at once, one at work within moments. What is finished is kept."""
    if not desk.job(number).active:
        raise Problem(409, f"Job {number} has ended; there is nothing to cancel.")
    return rows.job(desk.service.store.jobs.cancel(number))


@router.post("/jobs/{number}/resume", status_code=202, dependencies=[may("write")])
def resume_job(desk: DeskDep, number: Id) -> models.Job:
    """Queue an interrupted, failed or cancelled job again; it goes on from its last finished step or checkpoint."""
    from engine.jobs import resume

    desk.job(number)
    try:
        return rows.job(resume(desk.service.store, number))
    except InputError as error:
        raise Problem(409, str(error)) from None


@router.delete("/jobs/{number}", status_code=204, dependencies=[may("write")])
def delete_job(desk: DeskDep, number: Id) -> Response:
    """Remove a job that is not at work from the list; files stay."""
    desk.job(number)
    try:
        desk.service.store.jobs.delete(number)
    except InputError as error:
        raise Problem(409, str(error)) from None
    return Response(status_code=204)


@router.get("/jobs/{number}/log", dependencies=[may("read")], response_class=PlainTextResponse)
def get_log(
    desk: DeskDep,
    number: Id,
    characters: Annotated[int, Query(ge=1, le=2_000_000, description="How much of its end.")] = 20_000,
) -> PlainTextResponse:
    """The end of a job's log, as text; empty before it began."""
    from engine.jobs import log_tail

    return PlainTextResponse(log_tail(desk.job(number), characters))


class Usage(BaseModel):
    """What a job's process takes of the machine, as it last said; null before it said anything."""

    cpu: float | None = Field(None, description="Processor, in percent of one core.")
    memory: int | None = Field(None, description="Bytes.")
    peak: int | None = Field(None, description="Bytes of memory at the most.")
    gpu: int | None = Field(None, description="Bytes of the GPU's memory.")
    gpu_total: int | None = Field(None, description="Bytes that the GPU has; 0 without one.")


@router.get("/jobs/{number}/usage", dependencies=[may("read")])
def get_usage(desk: DeskDep, number: Id) -> Usage:
    """Processor and memory of a job at work, or at its end."""
    found = desk.service.store.usage.get(desk.job(number).id)
    return (
        Usage(**{name: getattr(found, name) for name in Usage.model_fields})
        if found
        else Usage(**dict.fromkeys(Usage.model_fields))
    )


# -- trainings


@router.get("/projects/{number}/runs", dependencies=[may("read")], tags=["runs"])
def list_runs(desk: DeskDep, number: Id, offset: Offset = 0, limit: Limit = 100) -> models.Page[models.Job]:
    """The project's trainings, newest first."""
    desk.project(number)
    part = rows.page(desk.service.runs(number), offset, limit)
    part["items"] = [rows.job(row) for row in part["items"]]
    return models.Page[models.Job](**part)


@router.post("/projects/{number}/runs", status_code=202, dependencies=[may("write")], tags=["runs"])
def start_run(desk: DeskDep, number: Id, wish: models.RunWish) -> models.Job:
    """Queue a training on the project's samples. The plugin appears in /plugins when its job has succeeded."""
    project = desk.project(number)
    checked(wish)
    if not desk.service.sample_files(number):
        raise Problem(409, "This project has no samples yet. Add some first.")
    return rows.job(
        desk.service.start_run(
            project,
            wish.method,
            wish.budget,
            method_options=wish.method_options,
            training_options=wish.training_options,
            base=base_of(desk, project, wish),
            knn=wish.knn,
            knn_options=wish.knn_options,
            in_steps=wish.in_steps,
        )
    )


def base_of(desk: Desk, project: ProjectRow, wish: models.RunWish) -> str:
    """The base that a run asks for; the project's where it names none. Raises Problem 404, InputError."""
    from engine.base.card import knows

    if not wish.base:
        return project.base
    found = next((card for card in desk.service.catalog.bases() if card["name"] == wish.base), None)
    if found is None:
        raise Problem(404, f"There is no base {wish.base}. Add one with `tailormt base add`.")
    if not knows(str(found["path"]), project.source, project.target):
        raise InputError(
            f"{wish.base} does not translate from {project.source} to {project.target}. Choose another base."
        )
    return str(found["path"])


def checked(wish: models.RunWish) -> None:
    """Raises OptionError on a method, a setting or a value that there is not, before anything is queued."""
    from engine.pipeline import CustomizeRequest, method_config, training_config
    from engine.request import knn_config

    request = CustomizeRequest(
        method=wish.method,
        budget=wish.budget,
        method_options=json.dumps(wish.method_options),
        training_options=json.dumps(wish.training_options),
        knn_options=json.dumps(wish.knn_options),
    )
    method_config(request)
    training_config(request)
    knn_config(request)


@router.get("/projects/{number}/runs/curve", dependencies=[may("read")], tags=["runs"])
def get_curve(desk: DeskDep, number: Id) -> models.Curve:
    """The figures of the run at work, or of the last one, update by update."""
    desk.project(number)
    return models.Curve(rows=rows.finite(desk.service.curve(number)))


Kind = Literal["training", "decoding", "phrases", "corpus", "documents"]


@router.get("/options/{kind}", dependencies=[may("read")], tags=["methods"])
def list_options(kind: Kind) -> list[models.Option]:
    """Settings of training, decoding, phrase extraction, reading samples, or of documents."""
    return [rows.option(item) for item in described(kind)]


def described(kind: Kind) -> list[Any]:
    from engine.corpora import CorpusOptions
    from engine.decoding.options import Decoding
    from engine.documents import DocumentOptions
    from engine.options import describe
    from engine.phrases import PhraseOptions
    from engine.training import TrainingOptions

    classes: dict[str, Any] = {
        "training": TrainingOptions, "decoding": Decoding, "phrases": PhraseOptions, "corpus": CorpusOptions,
        "documents": DocumentOptions,
    }  # fmt: skip
    return describe(classes[kind])
