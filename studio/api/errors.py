"""Errors of the REST API: one format under /api/v1, and the formats that clients of LibreTranslate and DeepL expect.

    /api/v1        {"error": {"code": "not_found", "message": "There is no project 7: it may have been deleted.",
                              "reason": "there-is-no-project-number-it-may-have", "params": {"number": 7}}}
    LibreTranslate {"error": "zz is not a language code. …"}
    DeepL          {"message": "zz is not a language code. …"}

A message is one sentence for people; tracebacks go to the studio's log.
"""

from __future__ import annotations

import contextlib
import http
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from engine.core.actor import Forbidden
from engine.errors import Cancelled, InputError, MissingError, NotFoundError, StorageError, TailorError, TransientError
from engine.messages import Message, without_paths
from engine.serving.turns import DeadlineError, OverloadedError

log = logging.getLogger(__name__)

RETRY_AFTER = "30"  # seconds
FAULT = "This is an error in the studio, not something you did. The details are in its log; please report them."
CODES = {
    400: "bad_input", 401: "token_needed", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 409: "conflict",
    413: "too_large", 415: "unsupported_type", 422: "invalid", 429: "busy", 500: "fault", 503: "busy",
    504: "too_slow", 507: "no_space",
}  # fmt: skip


MOST_CHARACTERS = 100_000  # of one text under /api/v1


class ErrorDetail(BaseModel):
    code: str = Field(description="What kind of error it is, for programs.", examples=["not_found"])
    message: str = Field(description="One sentence for a person: what is wrong and what to do.")
    reason: str = Field("", description="Which sentence it is, for programs.", examples=["there-is-nothing-at-path"])
    params: dict[str, object] = Field({}, description="The values in the sentence, by name.")


class ErrorBody(BaseModel):
    """The body of every error under /api/v1."""

    error: ErrorDetail


class Problem(HTTPException):
    """An error with its HTTP status and a message of one sentence."""

    def __init__(self, status: int, message: str, *, code: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, dict(headers) if headers else None)
        self.code = code or CODES.get(status, "error")


@contextlib.contextmanager
def conflicts() -> Iterator[None]:
    """Turn an InputError inside the block into 409, except NotFoundError, which becomes 404 as elsewhere."""
    try:
        yield
    except NotFoundError:
        raise
    except InputError as error:
        raise Problem(409, error.message) from None


def json_field(text: str, kind: Any, why: str) -> Any:
    """The JSON value of type `kind` in a form field; None if it is empty. Raises Problem 422 with the message `why`."""
    try:
        return TypeAdapter(kind).validate_json(text) if text.strip() else None
    except ValidationError:
        raise Problem(422, why) from None


DESCRIPTIONS = {
    400: "What was asked cannot be done as it stands.",
    401: "A token is needed, or the one given is unknown or revoked.",
    403: "The token lacks the scope, or the request comes from a page of another site.",
    404: "There is no such thing.",
    409: "It cannot be done in this state: what is to be cancelled has ended, or what is needed is not installed.",
    413: "Too large.",
    422: "A value is missing, of the wrong type, or out of its range.",
    429: "Too many requests in a minute; try again later.",
    500: "A fault of the studio.",
    503: "Too much is waiting; try again after the time in Retry-After.",
    504: "It was not translated within the seconds that the setting translation_seconds says.",
    507: "The disk is full.",
}
SCHEMAS = "#/components/schemas/{model}"
Answers = dict[int | str, dict[str, object]]  # as FastAPI takes them


def answer_of(model: type[BaseModel], description: str) -> dict[str, object]:
    """An error for the OpenAPI document, with a reference to the model's schema. Given the model itself, FastAPI would build a
    validator for each error of each route, which would dominate the start time of the API.
    """
    schema = {"$ref": SCHEMAS.format(model=model.__name__)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def answers_of(model: type[BaseModel], *, without: int = 0) -> Answers:
    """The errors of a router for the OpenAPI document, with the model as body."""
    return {status: answer_of(model, text) for status, text in DESCRIPTIONS.items() if status != without}


ERRORS = answers_of(ErrorBody)


def style_of(path: str) -> str:
    """The error format of a path: `api`, `deepl` or `libre`."""
    inner = re.sub(r"^/cat/[^/]+", "", path)
    if path.startswith("/api/"):
        return "api"
    return "deepl" if re.match(r"(?:/[^/]+)?/v[23](?:/|$)", inner) else "libre"


def shaped(path: str, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response for an error, in the format of its path."""
    if isinstance(message, Message):
        message = without_paths(message)
    detail: dict[str, object] = {"code": code, "message": message}
    if isinstance(message, Message):
        detail |= {"reason": message.code, "params": dict(message.params)}
    body = {"api": {"error": detail}, "deepl": {"message": message}}.get(style_of(path), {"error": message})
    return JSONResponse(body, status, dict(headers) if headers else None)


def add_handlers(app: FastAPI) -> None:
    """Add handlers that answer every error of the application in the format of its path."""

    @app.exception_handler(StarletteHTTPException)
    async def known(request: Request, error: StarletteHTTPException) -> JSONResponse:
        code = error.code if isinstance(error, Problem) else CODES.get(error.status_code, "error")
        message = error.detail
        if not isinstance(error, Problem):
            message = plain(request, error)
        headers = {"Allow": allowed(app, request.url.path)} if error.status_code == 405 else error.headers
        return shaped(request.url.path, error.status_code, code, message, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        if any(is_large(problem) for problem in error.errors()):
            return shaped(request.url.path, 413, CODES[413], too_large(MOST_CHARACTERS))
        # DeepL and LibreTranslate answer 400 here, and their clients expect it.
        status = 422 if style_of(request.url.path) == "api" else 400
        return shaped(request.url.path, status, "invalid", sentence(error.errors()))

    @app.exception_handler(TailorError)
    async def handle_error(request: Request, error: TailorError) -> JSONResponse:
        status = status_of(error)
        headers = {"Retry-After": RETRY_AFTER} if status == 503 else None
        code = "missing" if isinstance(error, MissingError) else CODES[status]
        if isinstance(error, StorageError):
            log.warning("%s", error)  # with the paths, which the response omits
        return shaped(request.url.path, status, code, error.message, headers)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> JSONResponse:
        log.exception("a request of the REST interface failed", exc_info=error)
        return shaped(request.url.path, 500, "fault", FAULT)


def is_large(failure: Mapping[str, Any]) -> bool:
    """Whether a validation error is a text of more than MOST_CHARACTERS characters."""
    return failure["type"] == "string_too_long" and failure.get("ctx", {}).get("max_length") == MOST_CHARACTERS


def too_large(limit: int) -> str:
    return f"A text has more than {limit:,} characters. Send it in parts, or as a document."


def status_of(error: TailorError) -> int:
    """The HTTP status of an engine error."""
    if isinstance(error, (OverloadedError, TransientError)):
        return 503
    if isinstance(error, DeadlineError):
        return 504
    if isinstance(error, Forbidden):
        return 403
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, StorageError):
        return 507
    return 409 if isinstance(error, (Cancelled, MissingError)) else 400


def allowed(app: FastAPI, path: str) -> str:
    """The methods that an address accepts, for the Allow header. The router only reports those of the first operation."""
    matches = [
        (template.count("{"), operations)
        for template, operations in app.openapi()["paths"].items()
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)), path)
    ]
    operations = min(matches, key=lambda match: match[0])[1] if matches else {"get": {}}  # OpenAPI document and page
    verbs = {verb.upper() for verb in operations}
    return ", ".join(sorted(verbs | {"HEAD"} if "GET" in verbs else verbs))


def plain(request: Request, error: StarletteHTTPException) -> str:
    """The message for an error raised by the framework."""
    if error.status_code == 404:
        return f"There is nothing at {request.url.path}."
    if error.status_code == 405:
        return f"{request.url.path} does not take {request.method}."
    words = str(error.detail or http.HTTPStatus(error.status_code).phrase).strip().rstrip(".")
    return f"{words}."


def sentence(errors: Any) -> str:
    """Validation errors as one sentence, with the first error and the number of further ones."""
    problems = list(errors)
    first = problems[0] if problems else {"loc": (), "msg": "It cannot be read"}
    if first.get("type") == "json_invalid":
        return "The body is not valid JSON."
    field = ".".join(str(part) for part in first["loc"][1:]) or "The body"
    message = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    if message.startswith("Expected UploadFile"):  # FastAPI's message names its own classes
        message = "a file is expected, as a part with a filename of multipart/form-data"
    message = message[:1].lower() + message[1:]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{field}: {message}{more}."
