"""Estimates of trainings, the curve of a single training, and the first look after an upload."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from studio.api import serializers as rows
from studio.api.deps import DepsDep, Id, ProjectDep
from studio.api.errors import Problem
from studio.api.jobs import base_of
from studio.api.permissions import may
from studio.api.schemas import models
from studio.services.runs import Runs

router = APIRouter(tags=["runs"])


class Estimate(BaseModel):
    """The estimated cost of a training. The time is usually between `low` and `high` seconds."""

    seconds: float
    low: float
    high: float
    parts: dict[str, float] = Field(description="Seconds by step.")
    memory: int = Field(description="Bytes at the peak.")
    bundle: int = Field(description="Bytes of the plugin.")
    disk: int = Field(description="Bytes while it works, beside the plugin.")
    weights: int
    sure: str = Field(description="measured, scaled or guessed.")
    how_sure: str
    device: str
    notes: list[str]


class Look(BaseModel):
    """The first look: a few sentences translated by the base and with the samples; empty if not made yet."""

    rows: list[models.JsonObject] = Field(
        description="`kind`, `source`, `vanilla`, `customized`, and `reference` of held-out ones."
    )
    differ: int
    seconds: dict[str, float]
    job: models.Job | None = Field(description="The job that makes it, or made it.")


@router.post("/projects/{number}/runs/estimate", dependencies=[may("read")])
def estimate_run(deps: DepsDep, project: ProjectDep, body: models.RunRequest) -> Estimate:
    """Estimate the time and space of a training on the project's samples on this machine, without queuing it."""
    request = body.request().replace(base=base_of(deps, project, body))
    estimate = Runs(deps.service).estimate(project, request)
    if estimate is None:
        raise Problem(409, "This project has no samples that were read yet. Add some first.")
    return Estimate.model_validate(estimate.to_mapping())


@router.get("/projects/{number}/runs/{run}/curve", dependencies=[may("read")])
def get_run_curve(deps: DepsDep, project: ProjectDep, run: Id) -> models.Curve:
    """The metrics of a training by update."""
    job = next((candidate for candidate in deps.service.runs(project.id) if candidate.id == run), None)
    if job is None:
        raise Problem(404, f"There is no run {run} in this project.")
    return models.Curve(rows=rows.finite(deps.service.curve(project.id, job)))


@router.get("/projects/{number}/look", dependencies=[may("read")])
def get_look(deps: DepsDep, project: ProjectDep) -> Look:
    """The first look, which is made automatically after samples are read."""
    job, result = Runs(deps.service).look(project)
    return Look(
        rows=[dict(row) for row in result.get("rows", [])],
        differ=int(result.get("differ", 0)),
        seconds=result.get("seconds", {}),
        job=rows.job(job) if job else None,
    )


@router.post("/projects/{number}/look", status_code=202, dependencies=[may("write")])
def make_look(deps: DepsDep, project: ProjectDep) -> models.Job:
    """Queue a first look at the current samples, unless one is already queued or running."""
    if not deps.service.sample_files(project.id):
        raise Problem(409, "This project has no samples yet. Add some first.")
    return rows.job(Runs(deps.service).look_again(project))
