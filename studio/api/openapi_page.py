"""/api/v1/docs: the OpenAPI document as a plain page of this server. The usual viewers load their scripts from another host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from studio.components.page_policy import plain_page
from studio.components.templating import script

router = APIRouter()
Spec = Mapping[str, Any]


@router.get("/docs", response_class=HTMLResponse)
def page(request: Request) -> HTMLResponse:
    """The documentation page of the API."""
    return page_of(request.app.openapi())


@router.get("")
@router.get("/")
def start() -> RedirectResponse:
    return RedirectResponse("/api/v1/docs")


def page_of(spec: Spec) -> HTMLResponse:
    """The page of an OpenAPI document."""
    groups: dict[str, list[Operation]] = {}
    for path, operations in spec["paths"].items():
        for verb, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[-1]
            groups.setdefault(tag, []).append(_operation(path, verb, operation, spec))
    return plain_page("openapi.html", script("openapi.css"), info=spec["info"], groups=groups)


@dataclass(frozen=True)
class Operation:
    """An operation of the API; `rows` are (name, location, type, description) of its parameters and body fields."""

    path: str
    verb: str
    short: str
    description: str
    rows: Sequence[tuple[str, str, str, str]]


def _operation(path: str, verb: str, operation: Spec, spec: Spec) -> Operation:
    rows = [
        (param["name"], f"{param['in']}{'' if param.get('required') else ', optional'}", _kind(param.get("schema", {}), spec),
         param.get("description") or param.get("schema", {}).get("description", ""))
        for param in operation.get("parameters", ())
    ]  # fmt: skip
    content = operation.get("requestBody", {}).get("content", {})
    for kind, body in list(content.items())[:1]:
        schema = _resolved(body.get("schema", {}), spec)
        needed = schema.get("required", ())
        rows += [
            (name, f"{'form' if 'form' in kind else 'body'}{'' if name in needed else ', optional'}", _kind(field, spec),
             field.get("description", ""))
            for name, field in schema.get("properties", {}).items()
        ]  # fmt: skip
    description = operation.get("description", "").replace("`", "")
    short = description.split("\n\n")[0].split(". ")[0].rstrip(".")
    return Operation(path, verb.upper(), short, description, rows)


def _resolved(schema: Spec, spec: Spec) -> Spec:
    if "$ref" in schema:
        return spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _kind(schema: Spec, spec: Spec) -> str:
    """The name of a schema's type for readers."""
    return " or ".join(dict.fromkeys(_kinds(_resolved(schema, spec), spec)))


def _kinds(schema: Spec, spec: Spec) -> Iterator[str]:
    for variant in schema.get("anyOf", ()):
        yield _kind(variant, spec)
    if schema.get("enum"):
        yield ", ".join(map(str, schema["enum"]))
    elif schema.get("type") == "array":
        yield f"list of {_kind(schema.get('items', {}), spec)}"
    elif "type" in schema:
        yield str(schema["type"])
    elif "anyOf" not in schema:
        yield "any"
