"""Reading of samples: settings, decisions about single sentences, test files, paths on the server."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, File, UploadFile
from pydantic import BaseModel, Field, StringConstraints

from engine.corpora.leakage import TEST_FOLDER
from engine.corpora.overrides import segment_key
from studio.api import serializers as rows
from studio.api.deps import DepsDep, ProjectDep, reads_files
from studio.api.errors import Problem, conflicts
from studio.api.permissions import may
from studio.api.samples import FileName
from studio.api.schemas import models
from studio.api.uploads import stored_uploads
from studio.services.uploads import server_files

router = APIRouter(tags=["samples"])


class ReadingRequest(models.Given):
    options: models.JsonObject = Field(description="Settings of reading, as /options/corpus describes them.")


class Reading(BaseModel):
    options: models.JsonObject = Field(description="Settings that differ from the defaults.")


class PathRequest(models.Given):
    path: Annotated[str, StringConstraints(min_length=1, max_length=4000)] = Field(
        description="A file or a folder on the studio's machine, from the root."
    )


class Sentence(models.Given):
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
    source: Annotated[str, StringConstraints(max_length=100_000)] | None = None


class DecisionRequest(models.Given):
    action: Literal["exclude", "approve", "clear"]
    sentences: Annotated[list[Sentence], Field(min_length=1, max_length=1000)]


class Decided(BaseModel):
    """The current decisions, which take effect with the next reading or training."""

    excluded: list[str] = Field(description="Texts that are left out.")
    approved: list[str] = Field(description="Texts that are kept although a rule would skip them.")
    steps: int = Field(description="How many steps can be undone.")
    pending: bool = Field(description="Whether the last reading did not know of them yet.")


class Tests(BaseModel):
    files: list[str]
    found: models.JsonObject = Field(description="What of them is in the samples; empty before they were compared.")
    refused: dict[str, str] = Field(description="Uploaded files that were not taken, with the reason.")


@router.get("/projects/{number}/samples/options", dependencies=[may("read")])
def get_options(deps: DepsDep, project: ProjectDep) -> Reading:
    """The settings for reading the project's samples."""
    return Reading(options=deps.service.import_options(project.id))


@router.put("/projects/{number}/samples/options", dependencies=[may("write")])
def set_options(deps: DepsDep, project: ProjectDep, body: ReadingRequest) -> Reading:
    """Change the settings for reading samples; they take effect with the next reading."""
    deps.service.set_import_options(project.id, body.options)
    return Reading(options=deps.service.import_options(project.id))


@router.post("/projects/{number}/samples/read", status_code=202, dependencies=[may("write")])
def read_again(deps: DepsDep, project: ProjectDep) -> models.Job:
    """Queue a job that reads the samples again with the current settings and decisions."""
    if not deps.service.sample_files(project.id):
        raise Problem(409, "This project has no samples yet. Add a file first.")
    return rows.job(deps.service.read_again(project))


@router.post("/projects/{number}/samples/paths", status_code=202, dependencies=[may("write")])
def add_path(deps: DepsDep, project: ProjectDep, body: PathRequest) -> models.Job:
    """Add samples from files on the studio's machine, if its settings allow that."""
    if not deps.service.settings.server_paths_allowed:
        raise Problem(403, "Paths on the server are switched off (setting server_paths). Upload the file.")
    return rows.job(deps.service.add_samples(project, server_files(body.path, deps.service.settings)))


def decided(deps: DepsDep, number: int) -> Decided:
    result = deps.service.decisions(number)
    return Decided(
        excluded=list(result.excluded.values()),
        approved=list(result.approved.values()),
        steps=len(result.steps),
        pending=deps.service.undecided(number),
    )


@router.get("/projects/{number}/decisions", dependencies=[may("read")])
def list_decisions(deps: DepsDep, project: ProjectDep) -> Decided:
    """The sentences that are excluded, or kept although a rule would skip them."""
    return decided(deps, project.id)


@router.post("/projects/{number}/decisions", dependencies=[may("write")])
def decide(deps: DepsDep, project: ProjectDep, body: DecisionRequest) -> Decided:
    """Exclude or approve sentences, or clear their decisions, in one step that can be undone."""
    deps.service.decide(
        project.id, body.action, {segment_key(sentence.text, sentence.source): sentence.text for sentence in body.sentences}
    )
    return decided(deps, project.id)


@router.post("/projects/{number}/decisions/undo", dependencies=[may("write")])
def undo(deps: DepsDep, project: ProjectDep) -> Decided:
    """Undo the last decision step."""
    with conflicts():
        deps.service.undo(project.id)
    return decided(deps, project.id)


@router.get("/projects/{number}/tests", dependencies=[may("read")])
def list_tests(deps: DepsDep, project: ProjectDep) -> Tests:
    """The test files, and which of their sentences are in the samples."""
    return Tests(
        files=[path.name for path in deps.service.test_files(project.id)],
        found=rows.finite(deps.service.leaks(project.id)),
        refused=deps.service.refused(project.id, TEST_FOLDER),
    )


@router.post("/projects/{number}/tests", status_code=202, dependencies=[may("write")])
@reads_files
def add_tests(
    deps: DepsDep, project: ProjectDep, files: Annotated[list[UploadFile], File(description="Files that you will test with.")]
) -> models.Job:
    """Add test files and queue a job that looks for their sentences in the samples.

    Files that cannot be used are left out; the list of test files names them with the reason. If none can, the request fails.
    """
    with stored_uploads(deps.service.settings, files) as paths:
        return rows.job(deps.service.add_tests(project, paths))


@router.delete("/projects/{number}/tests/{name}", status_code=202, dependencies=[may("write")])
def remove_test(deps: DepsDep, project: ProjectDep, name: FileName) -> models.Job:
    """Remove a test file."""
    if name not in {path.name for path in deps.service.test_files(project.id)}:
        raise Problem(404, f"{name[:80]} is no test file of project {project.id}.")
    return rows.job(deps.service.remove_test(project, name))
