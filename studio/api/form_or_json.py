"""Requests of clients of other services: JSON, a form, or values in the address, with one model for all three."""

from __future__ import annotations

import json
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import ImmutableMultiDict

from studio.api.errors import Problem
from studio.auth.wellformed import FORMS, MOST_FIELDS, UNREADABLE, kind_of, repeated, unreadable

Model = TypeVar("Model", bound=BaseModel)
Values = dict[str, object]


async def values_of(request: Request, many: tuple[str, ...] = ()) -> tuple[Values, bool]:
    """The values of a request, those in the body overriding those in the address, and whether they came as JSON, with types.

    Values named in `many` may be repeated and are then lists. Raises Problem 400 if the body cannot be read.
    """
    check_given(request.query_params, many)
    values = _plain(request.query_params, many)
    kind = kind_of(request.headers)
    if kind in FORMS:
        form = await _form(request, kind)
        check_given(form, many)
        return values | _plain(form, many), False
    body = await request.body()
    if not body.strip():
        return values, False
    try:
        body_values = json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "The body is neither a form nor valid JSON.", code="bad_input") from None
    if not isinstance(body_values, dict):
        raise Problem(400, "The body must be a JSON object.", code="bad_input")
    return values | body_values, True


def check_given(fields: ImmutableMultiDict[str, Any], many: tuple[str, ...]) -> None:
    """Raises Problem 400 if a value not named in `many` is given more than once, or if one contains invalid characters."""
    why = unreadable(fields.multi_items()) or repeated(fields.multi_items(), many)
    if why is not None:
        raise Problem(why[0], why[2], code=why[1])


async def _form(request: Request, kind: str) -> ImmutableMultiDict[str, Any]:
    """The fields of a form; a URL-encoded one is decoded in a thread, since large ones take seconds. Raises Problem 400."""
    body = await request.body()
    try:
        if kind == FORMS[0]:
            pairs = await run_in_threadpool(
                parse_qsl, body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
            )
            return ImmutableMultiDict(pairs)
        body.decode()  # must be UTF-8, since it holds no files; the parser would read other bytes as Latin-1
        async with request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=8 << 20) as form:
            return form
    except UnicodeDecodeError:
        raise Problem(UNREADABLE[0], UNREADABLE[2], code=UNREADABLE[1]) from None
    except Exception:
        raise Problem(400, "The form cannot be read.", code="bad_input") from None


def _plain(fields: ImmutableMultiDict[str, Any], many: tuple[str, ...]) -> Values:
    values: Values = {}
    for key in dict.fromkeys(fields.keys()):
        texts = [text for text in fields.getlist(key) if isinstance(text, str)]
        if texts:
            values[key] = texts if key in many and len(texts) > 1 else texts[-1]
    return values


def validated_body(model: type[Model], values: Values, typed: bool) -> Model:
    """The values validated as the model: strictly if `typed` (JSON), else parsed from text. Raises RequestValidationError."""
    try:
        return model.model_validate(values, strict=typed)
    except ValidationError as error:
        problems = [
            {**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_input=False, include_context=False)
        ]
        raise RequestValidationError(problems) from None


def body_schema(model: type[BaseModel]) -> dict[str, object]:
    """The OpenAPI description of a body that may be JSON or a form."""
    schema = inlined(model.model_json_schema())
    kinds = ("application/json", FORMS[0])
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with `$defs` inlined, since the schema of a path cannot refer to them."""
    definitions = schema.pop("$defs", {})

    def whole(part: Any) -> Any:
        if isinstance(part, list):
            return [whole(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return whole(definitions[part["$ref"].rpartition("/")[2]])
        return {name: whole(item) for name, item in part.items()}

    return whole(schema)
