"""/projects/{number}/samples: files with sentences and the segments read from them; /samples: the bundled corpora."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Path, Query, UploadFile

from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep, Limit, Offset, ProjectDep, reads_files
from studio.api.errors import Problem, json_field
from studio.api.permissions import may
from studio.api.schemas import models
from studio.api.uploads import stored_uploads
from studio.services.edited_pairs import check_direction, learn
from studio.services.jsonl_pages import open_lines
from studio.services.new_project import labels_of, open_terms

router = APIRouter(tags=["samples"])

FileName = Annotated[str, Path(max_length=255, description="A file's name, as the list of samples gives it.")]


def to_response(deps: Deps, number: int) -> models.Samples:
    labels, reading = deps.service.labels(number), deps.service.reading(number)
    return models.Samples(
        files=[
            models.SampleFile(name=path.name, bytes=path.stat().st_size, domain=labels.get(path.name, ""))
            for path in deps.service.sample_files(number)
        ],
        report=dict(deps.service.report(number)),
        job=rows.job(reading) if reading else None,
        refused=deps.service.refused(number),
    )


@router.get("/projects/{number}/samples", dependencies=[may("read")])
def list_samples(deps: DepsDep, project: ProjectDep) -> models.Samples:
    """A project's sample files, the import report, and the job that reads the files."""
    return to_response(deps, project.id)


@router.post("/projects/{number}/samples", status_code=202, dependencies=[may("write")])
@reads_files
def upload_samples(
    deps: DepsDep,
    project: ProjectDep,
    files: Annotated[list[UploadFile], File(description="Files with sentences; all of them are read anew.")],
    domains: Annotated[str, Form(description='Domain labels by file name, as JSON: {"a.txt": "novels"}.', max_length=20_000)] = "",
) -> models.Job:
    """Add files and queue the job that reads the project's samples and extracts phrases.

    Files that cannot be used are left out; the list of samples names them with the reason. If none can, the request fails.
    """
    with stored_uploads(deps.service.settings, files) as paths:
        why = 'domains: a JSON object of texts is needed, as {"a.txt": "novels"}.'
        return rows.job(deps.service.add_samples(project, paths, json_field(domains, dict[str, str], why)))


@router.post("/projects/{number}/samples/bundled", status_code=202, dependencies=[may("write")])
def use_bundled_samples(deps: DepsDep, project: ProjectDep, body: models.UseSamples) -> models.Job:
    """Add bundled corpora to the project's samples, each as a separate domain."""
    catalog = deps.service.catalog
    by_name = {corpus.name: corpus for corpus in catalog.samples()}
    for name in body.names:
        if name not in by_name:
            raise Problem(404, f"No sample corpus is called {name}. There are: {', '.join(by_name) or 'none'}.")
    chosen = [by_name[name] for name in dict.fromkeys(body.names)]
    for card, position in open_terms(deps.service, "", chosen):
        if not body.accept_terms:
            raise Problem(409, f"{card.title} is for {card.license_name}. Set accept_terms to use it.")
        catalog.accept(card, position)
    files = [file for corpus in chosen for file in corpus.files]
    return rows.job(deps.service.add_samples(project, files, labels_of(chosen)))


@router.post("/projects/{number}/samples/pairs", status_code=201, dependencies=[may("write")])
def add_pair(deps: DepsDep, project: ProjectDep, body: models.PairRequest) -> models.PairAdded:
    """Add a text and its edited translation to the project's samples, in a separate file; an identical pair is added only once."""
    check_direction(project, body.source or "", body.target or "")
    result = learn(deps.service, project, body.text, body.translation, replaces=body.replaces)
    return models.PairAdded(added=result.added, pairs=result.count, job=rows.job(result.job) if result.job else None)


@router.get("/projects/{number}/samples/segments", dependencies=[may("read")])
def list_segments(
    deps: DepsDep,
    project: ProjectDep,
    offset: Offset = 0,
    limit: Limit = 100,
    search: Annotated[str, Query(max_length=200, description="Words in the sentence or its source.")] = "",
    file: Annotated[str, Query(max_length=255)] = "",
    domain: Annotated[str, Query(max_length=80)] = "",
) -> models.Page[models.Segment]:
    """The sentences kept from the samples, in the order of the files."""
    lines = open_lines(deps.service.workspace(project.id) / "corpus.jsonl")
    if lines is None:
        return models.Page[models.Segment](items=[], total=0, offset=offset)

    def fits(row: Mapping[str, Any]) -> bool:
        return (not file or row.get("file") == file) and (not domain or row.get("domain") == domain)

    positions = lines.search(search, fits if file or domain else None, (file, domain))
    part = lines.get(positions[offset : offset + limit])
    items = [models.Segment(**{key: row[key] for key in models.Segment.model_fields if key in row}) for row in part]
    return models.Page[models.Segment](items=items, total=len(positions), offset=offset)


@router.patch("/projects/{number}/samples/{name}", status_code=202, dependencies=[may("write")])
def label_sample(deps: DepsDep, project: ProjectDep, name: FileName, change: models.SampleChange) -> models.Job:
    """Change the domain label of a file; the samples are read again."""
    find_file(deps, project.id, name)
    return rows.job(deps.service.label_sample(project, name, change.domain))


@router.delete("/projects/{number}/samples/{name}", status_code=202, dependencies=[may("write")])
def remove_sample(deps: DepsDep, project: ProjectDep, name: FileName) -> models.Job:
    """Remove a file; the other files are read again."""
    find_file(deps, project.id, name)
    if len(deps.service.sample_files(project.id)) == 1:
        raise Problem(409, "This is the project's only file. Add another one first, or delete the project.")
    return rows.job(deps.service.remove_sample(project, name) or deps.service.read_again(project))


def find_file(deps: Deps, number: int, name: str) -> None:
    if name not in {path.name for path in deps.service.sample_files(number)}:
        raise Problem(404, f"{name[:80]} is no file of project {number}.")


@router.get("/samples", dependencies=[may("read")])
def list_bundled_samples(deps: DepsDep) -> list[models.BundledSample]:
    """The bundled sample corpora."""
    return [
        rows.from_row(models.BundledSample, corpus, license=corpus.card.license_name, restricted=corpus.card.restricted)
        for corpus in deps.service.catalog.samples()
    ]
