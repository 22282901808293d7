"""/documents: documents, translated in their own format by background jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, File, Form, Path, Response, UploadFile
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from engine.jobs.handlers.documents import Documents, TranslatedDocument
from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep, Id, Limit, Offset, ProjectDep, reads_files
from studio.api.errors import Problem, conflicts, json_field
from studio.api.permissions import Caller, may
from studio.api.schemas import models
from studio.api.translate import counted
from studio.api.uploads import stored_uploads
from studio.services.document_segments import MOST, documents_of, edit_document, segments_of

router = APIRouter(tags=["documents"])


class Document(BaseModel):
    """A document and its translation job, which can be cancelled and resumed under /jobs."""

    id: int = Field(description="The number of the document and of its job.")
    project: int | None
    name: str
    plugin: int | None = Field(description="The plugin that translates; null: the base alone.")
    plugin_name: str
    strength: float
    output: str = Field(description="The translation's file name; empty while there is none.")
    report: models.JsonObject = Field(description="When done: texts, characters, what was kept, and what to look at.")
    job: models.Job


class Segment(BaseModel):
    index: int = Field(description="From 0.")
    place: str = Field(description="Where it stands in the document, in words.")
    source: str
    translation: str
    doubt: str = Field(description="Why to look at it; empty where nothing is odd.")
    edited: bool


class SegmentChange(models.Given):
    translation: Annotated[str, Field(min_length=1, max_length=MOST)]


def documents(deps: Deps) -> Documents:
    return documents_of(deps.service)


def to_response(document: TranslatedDocument) -> Document:
    return Document(
        id=document.job.id,
        project=document.job.project_id,
        name=document.name,
        plugin=document.plugin_id,
        plugin_name=document.plugin,
        strength=document.strength,
        output=document.output.name if document.output else "",
        report=rows.finite({key: value for key, value in document.report.items() if key != "output"}),
        job=rows.job(document.job),
    )


@router.get("/projects/{number}/documents", dependencies=[may("read")])
def list_documents(deps: DepsDep, project: ProjectDep, offset: Offset = 0, limit: Limit = 100) -> models.Page[Document]:
    """A project's documents, newest first."""
    return rows.page(models.Page[Document], documents(deps).list(project.id), offset, limit, to_response)


@router.post("/projects/{number}/documents", status_code=202)
@reads_files
def translate_document(
    deps: DepsDep,
    caller: Annotated[Caller, may("translate")],
    project: ProjectDep,
    file: Annotated[UploadFile, File(description="DOCX, PPTX, XLSX, ODT, XLIFF, PO, SRT, VTT, HTML, Markdown or text.")],
    plugin: Annotated[
        str, Form(max_length=120, description="Number or name, `base` for none; without, the project's default.")
    ] = "",
    strength: Annotated[float, Form(ge=0, le=2, description="0: the base exactly, 1: as trained.")] = 1.0,
    terminology: Annotated[bool, Form(description="Enforce the terms of the project.")] = False,
    options: Annotated[
        str, Form(max_length=4000, description="Settings of documents as JSON, as /options/documents describes them.")
    ] = "",
) -> Document:
    """Upload a document and queue its translation. The translation keeps the format of the document."""
    route = deps.route("", "", str(project.id), plugin or None)
    row, terms = route.plugin, deps.terms(route) if terminology else ""
    why = 'options: a JSON object is needed, as {"review": true}.'
    parsed = json_field(options, models.JsonObject, why) or {}
    strength = strength if row is not None else 1.0
    with stored_uploads(deps.service.settings, [file]) as paths:
        read = documents(deps).read(project, paths[0], parsed)
        with counted(deps, caller, read.characters):
            document = documents(deps).add(project, paths[0], plugin=row, strength=strength, options=parsed, terms=terms, read=read)
    return to_response(document)


@router.get("/documents/{number}", dependencies=[may("read")])
def get_document(deps: DepsDep, number: Id) -> Document:
    """The progress of a document's translation and, when it is done, a report of what to check."""
    return to_response(documents(deps).get(number))


@router.get(
    "/documents/{number}/download",
    dependencies=[may("read")],
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The translated document."}},
)
def download_document(deps: DepsDep, number: Id) -> FileResponse:
    """Download the translation, in the format of the document."""
    document = documents(deps).get(number)
    if document.output is None:
        raise Problem(409, f"There is no translation of {document.name} yet. Wait until its job has succeeded.")
    return FileResponse(document.output, filename=document.output.name, media_type="application/octet-stream")


@router.get("/documents/{number}/segments", dependencies=[may("read")])
def list_document_segments(deps: DepsDep, number: Id, offset: Offset = 0, limit: Limit = 100) -> models.Page[Segment]:
    """The segments of a translated document, with source and translation."""
    items, total = segments_of(documents(deps).get(number), offset, limit)
    return models.Page[Segment](items=[Segment(**vars(segment)) for segment in items], total=total, offset=offset)


@router.patch("/documents/{number}/segments/{index}", status_code=204, dependencies=[may("write")])
def edit_document_segment(
    deps: DepsDep, number: Id, index: Annotated[int, Path(ge=0, le=10**7, description="From 0.")], change: SegmentChange
) -> Response:
    """Replace the translation of a segment; the translated document is rebuilt."""
    edit_document(deps.service, number, index, change.translation)
    return Response(status_code=204)


@router.delete("/documents/{number}", status_code=204, dependencies=[may("write")])
def delete_document(deps: DepsDep, number: Id) -> Response:
    """Delete a document and its translation."""
    with conflicts():
        documents(deps).delete(number)
    return Response(status_code=204)
