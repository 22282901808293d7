"""/ratings: blind rating rounds over a comparison, their raters and answers, the summary table, and the export."""

from __future__ import annotations

import datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field, StringConstraints

from engine.store.ratings import RaterRow, RoundRow
from engine.store.tables import now
from engine.workflows import human_rating as rounds
from studio.api import serializers as rows
from studio.api.deps import LARGEST_ID, Deps, DepsDep, Id, Limit, Offset, ProjectDep
from studio.api.errors import Problem
from studio.api.permissions import may
from studio.api.schemas import models
from studio.services.ratings import EXAMPLES, rater_address
from studio.services.ratings import start_round as begin

router = APIRouter(tags=["ratings"])
RaterId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The rater's number.")]
RaterName = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"\S")]


class RoundRequest(models.Given):
    comparison: models.Number = Field(description="The comparison whose sentences are rated.")
    one: models.Reference = Field(description="A system of it, by name, as `vanilla` or a plugin's.")
    two: models.Reference = Field(description="The system that it is rated against.")
    title: Annotated[str, StringConstraints(max_length=120)] = ""
    raters: Annotated[list[RaterName], Field(max_length=50)] = Field([], description="Their names.")
    sentences: Annotated[int, Field(ge=1, le=2000)] = Field(40, description="At most; drawn at random.")
    examples: bool = Field(True, description=f"Raters can unfold {EXAMPLES} sentences of the samples.")


class RoundChange(models.Given):
    title: models.Name | None = None
    closed: bool | None = Field(None, description="A closed round takes no more answers.")


class RaterRequest(models.Given):
    name: RaterName


class Rater(BaseModel):
    """A rater. Anyone with the address can answer in the rater's name."""

    id: int
    name: str
    address: str = Field(description="The rater's own page, a path on this server.")
    done: int = Field(description="Sentences decided or skipped.")


class Round(BaseModel):
    """A blind rating of sentences translated by two systems."""

    id: int
    project: int
    comparison: int | None
    title: str
    one: str
    two: str
    sentences: int
    about: models.JsonObject = Field(description="What was noted of the systems, and how many sentences were the same.")
    raters: list[Rater]
    created: datetime.datetime
    closed: datetime.datetime | None


class Task(BaseModel):
    """The next item of a rater, without the systems' names; `item` is null if all are done or the round is closed."""

    done: int
    total: int
    skipped: int
    closed: bool
    item: int | None
    source: str
    a: str
    b: str
    answers: dict[str, str] = Field(description="What of this item is answered already: a, same or b by question.")


class AnswerRequest(models.Given):
    item: Annotated[int, Field(ge=0, le=10_000)]
    question: Literal["content", "fluency", "style"]
    side: Literal["a", "same", "b"] = Field(description="The better text.")


class ItemRequest(models.Given):
    item: Annotated[int, Field(ge=0, le=10_000)]


def to_response(deps: Deps, row: RoundRow) -> Round:
    ratings = deps.store.ratings
    done = ratings.done(row.id)
    raters = [
        rows.from_row(Rater, rater, address=rater_address(rater.token), done=done.get(rater.id, 0))
        for rater in ratings.raters(row.id)
    ]
    return rows.from_row(
        Round, row, project=row.project_id, comparison=row.comparison_id, sentences=row.size, about=rows.finite(row.about),
        raters=raters,
    )  # fmt: skip


def rater_of(deps: DepsDep, number: Id, rater: RaterId) -> RaterRow:
    raters = deps.store.ratings.raters(deps.store.ratings.get(number).id)
    result = next((candidate for candidate in raters if candidate.id == rater), None)
    if result is None:
        raise Problem(404, f"There is no rater {rater} in round {number}.")
    return result


RaterDep = Annotated[RaterRow, Depends(rater_of)]  # the rater in the address; 404 if missing


@router.get("/projects/{number}/ratings", dependencies=[may("read")])
def list_rounds(deps: DepsDep, project: ProjectDep, offset: Offset = 0, limit: Limit = 100) -> models.Page[Round]:
    """A project's rating rounds, newest first."""
    return rows.page(models.Page[Round], deps.store.ratings.list(project.id), offset, limit, partial(to_response, deps))


@router.post("/projects/{number}/ratings", status_code=201, dependencies=[may("write")])
def start_round(deps: DepsDep, project: ProjectDep, body: RoundRequest) -> Round:
    """Start a blind round over the sentences that two systems of a comparison translated differently."""
    if deps.store.comparisons.get(body.comparison).project_id != project.id:
        raise Problem(404, f"Comparison {body.comparison} belongs to another project. Name one of this project.")
    plan = rounds.RoundPlan(body.one, body.two, body.title, body.raters, body.sentences, comparison_id=body.comparison)
    return to_response(deps, begin(deps.service, project.id, plan, examples=body.examples))


@router.get("/ratings/{number}", dependencies=[may("read")])
def get_round(deps: DepsDep, number: Id) -> Round:
    """A round with its raters, their progress and their addresses."""
    return to_response(deps, deps.store.ratings.get(number))


@router.patch("/ratings/{number}", dependencies=[may("write")])
def change_round(deps: DepsDep, number: Id, change: RoundChange) -> Round:
    """Change the title of a round, or close or reopen it."""
    row = deps.store.ratings.get(number)
    changes: dict[str, object] = {}
    if change.title is not None:
        changes["title"] = change.title.strip()
    if change.closed is not None and change.closed != (row.closed is not None):
        changes["closed"] = now() if change.closed else None
    return to_response(deps, deps.store.ratings.update(number, **changes) if changes else row)


@router.delete("/ratings/{number}", status_code=204, dependencies=[may("write")])
def delete_round(deps: DepsDep, number: Id) -> Response:
    """Delete a round with all answers."""
    deps.store.ratings.delete(number)
    return Response(status_code=204)


@router.post("/ratings/{number}/raters", status_code=201, dependencies=[may("write")])
def add_rater(deps: DepsDep, number: Id, body: RaterRequest) -> Round:
    """Add a rater with a separate address."""
    deps.store.ratings.add_rater(number, body.name)
    return to_response(deps, deps.store.ratings.get(number))


@router.delete("/ratings/{number}/raters/{rater}", status_code=204, dependencies=[may("write")])
def remove_rater(deps: DepsDep, row: RaterDep) -> Response:
    """Remove a rater with all answers."""
    deps.store.ratings.remove_rater(row.id)
    return Response(status_code=204)


# -- rating


def task_of(deps: Deps, rater: RaterRow) -> Task:
    return Task.model_validate(rounds.task(deps.store, rater).to_mapping())


@router.get("/ratings/{number}/raters/{rater}/task", dependencies=[may("read")])
def get_task(deps: DepsDep, row: RaterDep) -> Task:
    """The next item for the rater to decide."""
    return task_of(deps, row)


@router.post("/ratings/{number}/raters/{rater}/answers", dependencies=[may("write")])
def answer(deps: DepsDep, row: RaterDep, body: AnswerRequest) -> Task:
    """Record an answer in the rater's name; an earlier answer to the same question of the item is replaced."""
    rounds.choose(deps.store, row, body.item, body.question, body.side)
    return task_of(deps, row)


@router.post("/ratings/{number}/raters/{rater}/skip", dependencies=[may("write")])
def skip_item(deps: DepsDep, row: RaterDep, body: ItemRequest) -> Task:
    """Skip an item; it is not counted."""
    rounds.skip(deps.store, row, body.item)
    return task_of(deps, row)


@router.post("/ratings/{number}/raters/{rater}/undo", dependencies=[may("write")])
def undo_answer(deps: DepsDep, row: RaterDep) -> Task:
    """Undo the rater's last decision."""
    rounds.undo(deps.store, row)
    return task_of(deps, row)


@router.post("/ratings/{number}/raters/{rater}/again", dependencies=[may("write")])
def ask_again(deps: DepsDep, row: RaterDep) -> Task:
    """Ask the skipped items again."""
    rounds.ask_again(deps.store, row)
    return task_of(deps, row)


# -- results


class Summary(BaseModel):
    """The shares of wins, ties and losses of system one by question, and the agreement of the raters."""

    summary: models.JsonObject
    text: str = Field(description="The same as a table of text.")


@router.get("/ratings/{number}/summary", dependencies=[may("read")])
def get_summary(deps: DepsDep, number: Id) -> Summary:
    """The results of a round: system one against system two, with Fleiss' kappa if several raters rated the same items."""
    result = rounds.summary(deps.store, deps.store.ratings.get(number))
    return Summary(summary=rows.finite(result.to_mapping()), text=result.table())


@router.get(
    "/ratings/{number}/export",
    dependencies=[may("read")],
    response_class=Response,
    responses={
        200: {
            "content": {"text/csv": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "object"}}},
            "description": "The round.",
        }
    },
)
def export_round(deps: DepsDep, number: Id, format: Annotated[Literal["csv", "json"], Query()] = "csv") -> Response:
    """Export a round without the raters' addresses: one line per answer as CSV, or everything with the summary as JSON."""
    row, store = deps.store.ratings.get(number), deps.store
    named = {"Content-Disposition": f'attachment; filename="rating-{number}.{format}"'}
    if format == "csv":
        return PlainTextResponse(rounds.as_csv(store, row), 200, named, media_type="text/csv")
    return JSONResponse(rows.finite(rounds.as_mapping(store, row)), 200, named)
