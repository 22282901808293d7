"""Documents in the DeepL API: /v2/document uploads one, /v2/document/{id} reports its progress, …/result returns it.

They become documents of a project, as on the Translate page; the project and plugin are selected as for texts. The key that an
upload returns is derived from the secret name of the document's folder, so that only the sender can download the document.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Path, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from engine.core.languages import same_language
from engine.corpora.formats.documents.model import DocumentError
from engine.errors import InputError
from engine.jobs.handlers.documents import TranslatedDocument
from engine.messages import without_paths
from studio.api.cat_tools import Selection, SelectionDep, admit, mount
from studio.api.deepl import ANSWERS, DeepLRequest, Formality, check_offered, named, route_of, terms_of
from studio.api.deps import LARGEST_ID, Deps, DepsDep
from studio.api.documents import documents
from studio.api.errors import RETRY_AFTER, Problem
from studio.api.form_or_json import body_schema
from studio.api.permissions import Caller, check
from studio.api.translate import counted
from studio.api.uploads import stored_uploads

router = APIRouter(tags=["DeepL"], responses=ANSWERS)
cat_routes = APIRouter()
HEX = re.compile(r"[0-9A-Fa-f]{1,32}")
STATES = {"queued": "queued", "running": "translating", "succeeded": "done"}  # anything else is an error
WHY = {
    "cancelled": "The translation was cancelled in the studio.",
    "interrupted": "The studio's worker was stopped. Go on with it on the page Translate, or send the document again.",
}


class Uploaded(BaseModel):
    document_id: str
    document_key: str


class DocumentStatus(BaseModel):
    document_id: str
    status: Literal["queued", "translating", "done", "error"]
    seconds_remaining: int | None = None
    billed_characters: int | None = None
    error_message: str | None = None


class KeyRequest(BaseModel):
    document_key: str = Field(max_length=200)
    auth_key: str = Field("", max_length=200)


DocumentId = Annotated[str, Path(max_length=64, description="As the upload answered it.")]
Short = Annotated[str, Form(max_length=120)]


class StyleFields:
    """The fields of an upload that select glossaries, style and formality."""

    def __init__(
        self,
        glossary_id: Short = "",
        glossary_ids: Annotated[str, Form(max_length=700)] = "",
        style_id: Short = "",
        translation_memory_id: Short = "",
        formality: Annotated[Formality, Form()] = "default",
    ) -> None:
        self.glossary_id, self.style_id, self.formality = glossary_id, style_id, formality
        self.translation_memory_id = translation_memory_id
        self.glossary_ids = [item.strip() for item in glossary_ids.split(",") if item.strip()][:5]


class Fields:
    """The fields of an upload other than the file; unknown ones are ignored."""

    def __init__(
        self,
        style: Annotated[StyleFields, Depends(StyleFields)],
        target_lang: Annotated[str, Form(min_length=2, max_length=35)],
        source_lang: Annotated[str, Form(max_length=35)] = "",
        filename: Annotated[str, Form(max_length=255, description="Its name, where the file itself has none.")] = "",
        output_format: Short = "",
        auth_key: Annotated[str, Form(max_length=200)] = "",
    ) -> None:
        self.filename = filename
        self.output_format, self.auth_key = output_format, auth_key
        self.body = DeepLRequest.model_construct(source_lang=source_lang, target_lang=target_lang, **vars(style))


def document_id(document: TranslatedDocument) -> str:
    return f"{document.job.id:032X}"


def document_key(document: TranslatedDocument) -> str:
    secret = FilePath(str(document.job.arguments["document"])).parent.name
    return hashlib.sha256(f"{secret}/{document.job.id}".encode()).hexdigest().upper()


def accept_upload(deps: Deps, request: Request, caller: Caller, form: Fields, file: UploadFile, selection: Selection) -> Uploaded:
    check_offered(form.body)
    route = route_of(deps, named(deps, request, selection, form.body), form.body)
    row = route.project
    if row is None:
        raise InputError("Documents belong to a project. Make one of these languages in the studio first.")
    if not same_language(route.target, row.target):
        raise InputError(f"Documents of the project {row.name} are translated from {row.source} to {row.target} alone.")
    if form.filename:
        file.filename = form.filename
    with stored_uploads(deps.service.settings, [file]) as paths:
        ending = paths[0].suffix.lower().lstrip(".")
        if form.output_format and form.output_format.lower().lstrip(".") != ending:
            raise InputError(f"output_format: a document keeps its format, {ending}. Leave it out.")
        try:
            read = documents(deps).read(row, paths[0])
        except DocumentError as error:
            raise InputError(f"Invalid file. {error}") from None
        with counted(deps, caller, read.characters):
            terms = terms_of(deps, form.body, route)
            document = documents(deps).add(row, paths[0], plugin=route.plugin, terms=terms, read=read)
    return Uploaded(document_id=document_id(document), document_key=document_key(document))


FormDep = Annotated[Fields, Depends(Fields)]
Sent = Annotated[UploadFile, File(description="The document.")]


@cat_routes.post("/v2/document")
async def upload_document(request: Request, deps: DepsDep, selection: SelectionDep, form: FormDep, file: Sent) -> Uploaded:
    """Upload a document and queue its translation."""
    caller = await run_in_threadpool(check, request, "translate", form.auth_key)
    return await deps.run_in_thread(request, lambda ticket: accept_upload(deps, request, caller, form, file, selection))


# -- status and result


async def requested_document(request: Request, deps: Deps, number: str) -> TranslatedDocument:
    """The document with this id and key. Raises Problem 404 if either is wrong."""
    key = (await admit(request, "auth_key")).values.get("document_key")
    return await run_in_threadpool(document_of, deps, number, key if isinstance(key, str) else "")


def document_of(deps: Deps, number: str, key: str) -> TranslatedDocument:
    unknown = Problem(404, "There is no document of this id and key: it may have been deleted.")
    try:
        job = int(number, 16) if HEX.fullmatch(number) else 0
        document = documents(deps).get(job) if 0 < job <= LARGEST_ID else None
    except InputError:
        document = None
    if document is None or not hmac.compare_digest(document_key(document).encode(), key.upper().encode()):
        raise unknown
    return document


def status_of(document: TranslatedDocument) -> DocumentStatus:
    job = document.job
    state: Any = STATES.get(job.state.value, "error")
    status = DocumentStatus(document_id=document_id(document), status=state)
    if state == "done" and document.output is None:
        return status.model_copy(update={"status": "error", "error_message": "The translation is no longer on the disk."})
    if state == "done":
        status.billed_characters = int(document.report.get("characters", 0))
    elif state == "translating" and job.eta is not None:
        status.seconds_remaining = max(1, round(job.eta))
    elif state == "error":
        status.error_message = without_paths(job.error) or WHY.get(job.state.value, "The translation failed.")
    return status


@cat_routes.post("/v2/document/{number}", openapi_extra=body_schema(KeyRequest), response_model_exclude_none=True)
async def document_status(request: Request, deps: DepsDep, number: DocumentId) -> DocumentStatus:
    """The progress of a document's translation."""
    return status_of(await requested_document(request, deps, number))


def result_of(document: TranslatedDocument) -> FileResponse:
    if document.output is None:
        status = status_of(document)
        if status.status == "error":
            raise Problem(404, status.error_message or "This document was not translated.")
        # DeepL's status for "not yet", after which its clients retry.
        raise Problem(503, "This document is not translated yet.", headers={"Retry-After": RETRY_AFTER})
    return FileResponse(document.output, filename=document.output.name, media_type="application/octet-stream")


@cat_routes.post(
    "/v2/document/{number}/result",
    openapi_extra=body_schema(KeyRequest),
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The translated document."}},
)
async def document_result(request: Request, deps: DepsDep, number: DocumentId) -> FileResponse:
    """Download the translated document. It stays in the project and can be downloaded again."""
    return result_of(await requested_document(request, deps, number))


mount(cat_routes, router)
