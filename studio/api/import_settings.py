"""How samples are read: settings, decisions about single sentences, files to test with, paths on the server."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, File, UploadFile
from pydantic import BaseModel, Field, StringConstraints

from engine.errors import InputError
from studio.api import serializers as rows
from studio.api.deps import DeskDep, Id
from studio.api.errors import Problem
from studio.api.permissions import may
from studio.api.samples import FileName
from studio.api.schemas import models
from studio.api.uploads import kept

router = APIRouter(tags=["samples"])


class ReadingWish(models.Given):
    options: models.JsonObject = Field(description="Settings of reading, as /options/corpus describes them.")


class Reading(BaseModel):
    options: models.JsonObject = Field(description="Settings that differ from the defaults.")


class PathWish(models.Given):
    path: Annotated[str, StringConstraints(min_length=1, max_length=4000)] = Field(
        description="A file or a folder on the studio's machine, from the root."
    )


class Sentence(models.Given):
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
    source: Annotated[str, StringConstraints(max_length=100_000)] | None = None


class DecisionWish(models.Given):
    action: Literal["exclude", "approve", "clear"]
    sentences: Annotated[list[Sentence], Field(min_length=1, max_length=1000)]


class Decided(BaseModel):
    """What holds now; it counts from the next reading or training."""

    excluded: list[str] = Field(description="Texts that are left out.")
    approved: list[str] = Field(description="Texts that are kept although a rule would skip them.")
    steps: int = Field(description="How many steps can be undone.")
    pending: bool = Field(description="Whether the last reading did not know of them yet.")


class Tests(BaseModel):
    files: list[str]
    found: models.JsonObject = Field(description="What of them is in the samples; empty before they were compared.")


@router.get("/projects/{number}/samples/options", dependencies=[may("read")])
def get_options(desk: DeskDep, number: Id) -> Reading:
    """Settings with which the project's samples are read."""
    desk.store.projects.get(number)
    return Reading(options=desk.service.import_options(number))


@router.put("/projects/{number}/samples/options", dependencies=[may("write")])
def set_options(desk: DeskDep, number: Id, wish: ReadingWish) -> Reading:
    """Other settings; they count from the next reading."""
    desk.store.projects.get(number)
    desk.service.set_import_options(number, wish.options)
    return Reading(options=desk.service.import_options(number))


@router.post("/projects/{number}/samples/read", status_code=202, dependencies=[may("write")])
def read_again(desk: DeskDep, number: Id) -> models.Job:
    """Read the samples again, with the current settings and decisions."""
    project = desk.store.projects.get(number)
    if not desk.service.sample_files(number):
        raise Problem(409, "This project has no samples yet. Add a file first.")
    return rows.job(desk.service.read_again(project))


@router.post("/projects/{number}/samples/paths", status_code=202, dependencies=[may("write")])
def add_path(desk: DeskDep, number: Id, wish: PathWish) -> models.Job:
    """Take files that lie on the studio's machine already, where its settings allow that."""
    from studio.services.uploads import server_files

    project = desk.store.projects.get(number)
    if not desk.service.settings.server_paths_allowed:
        raise Problem(403, "Paths on the server are switched off (setting server_paths). Upload the file.")
    return rows.job(desk.service.add_samples(project, server_files(wish.path, desk.service.settings)))


def decided(desk: DeskDep, number: int) -> Decided:
    result = desk.service.decisions(number)
    return Decided(
        excluded=list(result.excluded.values()),
        approved=list(result.approved.values()),
        steps=len(result.steps),
        pending=desk.service.undecided(number),
    )


@router.get("/projects/{number}/decisions", dependencies=[may("read")])
def list_decisions(desk: DeskDep, number: Id) -> Decided:
    """Sentences that are left out, or kept against a rule."""
    desk.store.projects.get(number)
    return decided(desk, number)


@router.post("/projects/{number}/decisions", dependencies=[may("write")])
def decide(desk: DeskDep, number: Id, wish: DecisionWish) -> Decided:
    """Leave sentences out, keep them, or take a decision back, in one step."""
    from engine.corpora.overrides import segment_key

    desk.store.projects.get(number)
    desk.service.decide(number, wish.action, {segment_key(one.text, one.source): one.text for one in wish.sentences})
    return decided(desk, number)


@router.post("/projects/{number}/decisions/undo", dependencies=[may("write")])
def undo(desk: DeskDep, number: Id) -> Decided:
    """Take the last step back."""
    desk.store.projects.get(number)
    try:
        desk.service.undo(number)
    except InputError as error:
        raise Problem(409, error.message) from None
    return decided(desk, number)


@router.get("/projects/{number}/tests", dependencies=[may("read")])
def list_tests(desk: DeskDep, number: Id) -> Tests:
    """Files to test with, and what of them is in the samples."""
    desk.store.projects.get(number)
    return Tests(
        files=[path.name for path in desk.service.test_files(number)], found=rows.finite(desk.service.leaks(number))
    )


@router.post("/projects/{number}/tests", status_code=202, dependencies=[may("write")])
def add_tests(
    desk: DeskDep, number: Id, files: Annotated[list[UploadFile], File(description="Files that you will test with.")]
) -> models.Job:
    """Name files to test with; a job looks for their sentences in the samples."""
    project = desk.store.projects.get(number)
    with kept(desk.service.settings, files) as places:
        return rows.job(desk.service.add_tests(project, places))


@router.delete("/projects/{number}/tests/{name}", status_code=202, dependencies=[may("write")])
def remove_test(desk: DeskDep, number: Id, name: FileName) -> models.Job:
    """Forget a test file."""
    project = desk.store.projects.get(number)
    if name not in {path.name for path in desk.service.test_files(number)}:
        raise Problem(404, f"{name[:80]} is no test file of project {number}.")
    return rows.job(desk.service.remove_test(project, name))
