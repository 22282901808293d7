"""What a training would take, the curve of a single one, and the first look after an upload."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from studio.api import models, rows
from studio.api.auth import may
from studio.api.desk import DeskDep, Id
from studio.api.errors import Problem
from studio.api.jobs import base_of, checked
from studio.runs import Plan, Runs

router = APIRouter(tags=["runs"])


class Estimate(BaseModel):
    """What a training would take. The time lies between `low` and `high`, mostly."""

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
    """The first look: a few sentences by the base alone and with the samples at hand; empty while there is none."""

    rows: list[dict[str, Any]] = Field(
        description="`kind`, `source`, `vanilla`, `customized`, and `reference` of held-out ones."
    )
    differ: int
    seconds: dict[str, float]
    job: models.Job | None = Field(description="The job that makes it, or made it.")


@router.post("/projects/{number}/runs/estimate", dependencies=[may("read")])
def estimate_run(desk: DeskDep, number: Id, wish: models.RunWish) -> Estimate:
    """What a training on the project's samples would take, on this machine; nothing is queued."""
    project = desk.project(number)
    checked(wish)
    plan = Plan(
        wish.method,
        wish.budget,
        base_of(desk, project, wish),
        wish.knn,
        wish.method_options,
        wish.training_options,
        wish.knn_options,
    )
    made = Runs(desk.service).estimate(project, plan)
    if made is None:
        raise Problem(409, "This project has no samples that were read yet. Add some first.")
    return Estimate(**made.to_mapping())


@router.get("/projects/{number}/runs/{run}/curve", dependencies=[may("read")])
def get_run_curve(desk: DeskDep, number: Id, run: Id) -> models.Curve:
    """The figures of one training, update by update."""
    desk.project(number)
    job = next((one for one in desk.service.runs(number) if one.id == run), None)
    if job is None:
        raise Problem(404, f"There is no run {run} in this project.")
    return models.Curve(rows=rows.finite(desk.service.curve(number, job)))


@router.get("/projects/{number}/look", dependencies=[may("read")])
def get_look(desk: DeskDep, number: Id) -> Look:
    """The first look, which comes by itself after samples were read."""
    job, found = Runs(desk.service).look(desk.project(number))
    return Look(
        rows=[dict(row) for row in found.get("rows", [])],
        differ=int(found.get("differ", 0)),
        seconds=found.get("seconds", {}),
        job=rows.job(job) if job else None,
    )


@router.post("/projects/{number}/look", status_code=202, dependencies=[may("write")])
def make_look(desk: DeskDep, number: Id) -> models.Job:
    """Queue a first look at the samples as they are; one that is under way is not queued again."""
    project = desk.project(number)
    if not desk.service.sample_files(number):
        raise Problem(409, "This project has no samples yet. Add some first.")
    return rows.job(Runs(desk.service).look_again(project))
