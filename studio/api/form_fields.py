"""Checks of form fields that FastAPI reads: repeated fields and invalid text are refused, as in queries and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from fastapi import APIRouter, Depends, Request, params
from fastapi.routing import APIRoute
from starlette import formparsers

from studio.api.errors import Problem
from studio.api.form_or_json import check_given
from studio.auth.wellformed import UNREADABLE


def refuse_repeated_fields(router: APIRouter) -> None:
    """Add the check to all routes that are added to the router afterwards."""
    router.dependencies.append(Depends(check_fields))


def decoded(src: bytes | bytearray, codec: str) -> str:
    """Decode a name or text of a multipart form. Raises Problem 400 if it is not valid in `codec`."""
    try:
        return src.decode(codec)
    except (LookupError, UnicodeError):
        raise Problem(UNREADABLE[0], UNREADABLE[2], code=UNREADABLE[1]) from None


formparsers._user_safe_decode = decoded  # Starlette's decoder reads undecodable bytes as Latin-1


async def check_fields(request: Request) -> None:
    """Raises Problem 400 if a field is not text, or if one that is not a list is repeated (FastAPI would silently use the last)."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not takes_form(route):
        return
    form = await request.form()  # already read by FastAPI
    check_given(form, tuple(lists_of(route.dependant)))


def takes_form(route: APIRoute) -> bool:
    """Whether FastAPI reads a form for this route."""
    return route.body_field is not None and isinstance(route.body_field.field_info, params.Form)


def lists_of(dependant: Any) -> Iterator[str]:
    """Yield the fields that may occur more than once, such as several files."""
    for field in dependant.body_params:
        annotation = field.field_info.annotation
        if any(get_origin(part) is list for part in (annotation, *get_args(annotation))):
            yield field.alias
    for inner in dependant.dependencies:
        yield from lists_of(inner)
