"""/api/v1/docs: the OpenAPI as a plain page of this server. The usual viewers fetch their scripts from another host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

__all__ = ["render", "router"]

router = APIRouter()
STYLE = """
:root { color-scheme: light dark; --paper: #FBFAF7; --card: #fff; --line: #E6E2DA; --ink: #22252B; --quiet: #5C6068;
  --accent: #2B4C7E; }
@media (prefers-color-scheme: dark) { :root { --paper: #17191D; --card: #1F2227; --line: #343840; --ink: #E8E6E1;
  --quiet: #A3A7AF; --accent: #9DBBE8; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 14px/1.5 Inter, system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 24px 16px 64px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 32px 0 8px; text-transform: capitalize; }
a { color: var(--accent); } p { margin: 4px 0 8px; } .quiet, small { color: var(--quiet); } small { margin-left: 8px; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 6px; margin: 6px 0; }
summary { cursor: pointer; padding: 8px 12px; } details > div { padding: 0 12px 12px; overflow-x: auto; }
code { font: 13px ui-monospace, monospace; } .verb { display: inline-block; min-width: 64px; font-weight: 600;
  color: var(--accent); }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: 4px 12px 4px 0;
  border-top: 1px solid var(--line); } th { font-weight: 600; }
"""


@router.get("/docs", response_class=HTMLResponse)
def page(request: Request) -> HTMLResponse:
    """What there is, for people."""
    return HTMLResponse(render(request.app.openapi()))


@router.get("")
@router.get("/")
def start() -> RedirectResponse:
    return RedirectResponse("/api/v1/docs")


def render(spec: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document."""
    groups: dict[str, list[str]] = {}
    for path, operations in spec["paths"].items():
        for verb, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[-1]
            groups.setdefault(tag, []).append(_operation(path, verb, operation, spec))
    info = spec["info"]
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(rows)}" for tag, rows in groups.items())
    about = escape(info.get("description", "")).replace("`", "")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tailor MT: REST interface</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body><main>'
        f'<p><a href="/">Tailor MT</a></p><h1>REST interface</h1><p class="quiet">Version {escape(info["version"])} · '
        f'<a href="/api/v1/openapi.json">openapi.json</a></p><p>{about}</p>{body}</main></body></html>'
    )


def _operation(path: str, verb: str, operation: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    said = operation.get("description", "").replace("`", "")
    rows = [
        (one["name"], f"{one['in']}{'' if one.get('required') else ', optional'}", _kind(one.get("schema", {}), spec),
         one.get("description") or one.get("schema", {}).get("description", ""))
        for one in operation.get("parameters", ())
    ]  # fmt: skip
    content = operation.get("requestBody", {}).get("content", {})
    for kind, body in list(content.items())[:1]:
        schema = _resolved(body.get("schema", {}), spec)
        needed = schema.get("required", ())
        rows += [
            (name, f"{'form' if 'form' in kind else 'body'}{'' if name in needed else ', optional'}", _kind(one, spec),
             one.get("description", ""))
            for name, one in schema.get("properties", {}).items()
        ]  # fmt: skip
    table = ""
    if rows:
        cells = "".join(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(place)}</td><td>{escape(kind)}</td><td>{escape(text)}</td></tr>"
            for name, place, kind, text in rows
        )
        table = f"<table><tr><th>Name</th><th>In</th><th>Type</th><th></th></tr>{cells}</table>"
    short = escape(said.split("\n\n")[0].split(". ")[0].rstrip("."))
    return (
        f'<details><summary><span class="verb">{verb.upper()}</span> <code>{escape(path)}</code> <small>{short}</small></summary>'
        f"<div><p>{escape(said)}</p>{table}</div></details>"
    )


def _resolved(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        found: Mapping[str, Any] = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def _kind(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """A type in words."""
    return " or ".join(dict.fromkeys(_kinds(_resolved(schema, spec), spec)))


def _kinds(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    for one in schema.get("anyOf", ()):
        yield _kind(one, spec)
    if schema.get("enum"):
        yield ", ".join(map(str, schema["enum"]))
    elif schema.get("type") == "array":
        yield f"list of {_kind(schema.get('items', {}), spec)}"
    elif "type" in schema:
        yield str(schema["type"])
    elif "anyOf" not in schema:
        yield "any"
