"""Fields of forms that FastAPI reads for a route: one that occurs twice or is no text is refused, as it is in queries and JSON."""

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
    """For all routes that are added to it afterwards."""
    router.dependencies.append(Depends(check_fields))


def decoded(src: bytes | bytearray, codec: str) -> str:
    """A name or a text of a form in parts. Raises Problem 400 where it is no text in its encoding, UTF-8 where none is named."""
    try:
        return src.decode(codec)
    except (LookupError, UnicodeError):
        raise Problem(UNREADABLE[0], UNREADABLE[2], code=UNREADABLE[1]) from None


formparsers._user_safe_decode = decoded  # Starlette's own reads as Latin-1 what cannot be decoded


async def check_fields(request: Request) -> None:
    """Raises Problem 400 where a field is no text, or one that is no list is given more than once: the last would count, unseen."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not takes_form(route):
        return
    form = await request.form()  # which FastAPI has read by now
    check_given(form, tuple(lists_of(route.dependant)))


def takes_form(route: APIRoute) -> bool:
    """Whether FastAPI itself reads a form for this route."""
    return route.body_field is not None and isinstance(route.body_field.field_info, params.Form)


def lists_of(dependant: Any) -> Iterator[str]:
    """The fields that may occur more than once, such as several files."""
    for field in dependant.body_params:
        annotation = field.field_info.annotation
        if any(get_origin(one) is list for one in (annotation, *get_args(annotation))):
            yield field.alias
    for inner in dependant.dependencies:
        yield from lists_of(inner)
