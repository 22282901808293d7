"""Style rules and translation memories in the DeepL API.

The style rules are the plugins, which can be read but only created, renamed and deleted in the studio. Translation memories are
not supported: the list is empty, and requests for a single one are refused.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from engine.core.json_object import Json
from engine.store import PluginRow
from studio.api.cat_tools import Named, SelectionDep, mount
from studio.api.deepl import ANSWERS, ANY, is_named, moment, no_memory, plugin_id, plugins, source_spelt
from studio.api.deepl_glossaries import Reads
from studio.api.deps import DepsDep
from studio.api.errors import Problem

router = APIRouter(tags=["DeepL"], responses=ANSWERS)
cat_routes = APIRouter()  # also for a project or plugin in the address
CHANGES = [method for method in ANY if method not in ("GET", "HEAD")]
PAGE = 10  # style rules per page if a client does not give the page size


def style(row: PluginRow, target: str, detailed: bool) -> Json:
    """A plugin as a style rule; its details are empty, since a plugin has no explicit rules."""
    details: Json = {"configured_rules": {}, "custom_instructions": []} if detailed else {}
    return {"style_id": plugin_id(row.id), "name": row.name, "language": source_spelt(target).lower(), "version": 1,
            "creation_time": moment(row.created), "updated_time": moment(row.created), **details}  # fmt: skip


@cat_routes.get("/v3/style_rules")
async def list_styles(
    request: Request,
    deps: DepsDep,
    selection: SelectionDep,
    page: Annotated[int | None, Query(ge=0, le=10**6, description="From 0; without, all are told.")] = None,
    page_size: Annotated[int | None, Query(ge=1, le=1000)] = None,
    detailed: bool = False,
) -> Json:
    """The plugins (of the project, if any) as style rules, which a translation selects by `style_id`."""
    rows = [style(row, target, detailed) for row, _, target in await plugins(request, deps, selection.project)]
    if page is not None or page_size is not None:
        size = page_size or PAGE
        rows = rows[(page or 0) * size :][:size]
    return {"style_rules": rows}


@cat_routes.get("/v3/style_rules/{style_id}")
async def get_style(request: Request, deps: DepsDep, selection: SelectionDep, style_id: Named) -> Json:
    """A plugin as a style rule."""
    for row, _, target in await plugins(request, deps, selection.project):
        if is_named(row, style_id):
            return style(row, target, detailed=True)
    raise Problem(404, f"There is no style rule {style_id[:80]}.")


@cat_routes.api_route("/v3/style_rules", methods=CHANGES, include_in_schema=False, dependencies=[Reads])
@cat_routes.api_route("/v3/style_rules/{style_id}", methods=CHANGES, include_in_schema=False, dependencies=[Reads])
def change_style() -> None:
    """Refuse changes of style rules: plugins are trained from samples in the studio."""
    raise Problem(405, "Style rules are the plugins of the studio: train, rename and delete them there.")


@cat_routes.api_route("/v3/style_rules/{style_id}/{part:path}", methods=ANY, include_in_schema=False, dependencies=[Reads])
def part_of_style() -> None:
    """Refuse requests for configured rules and custom instructions."""
    raise Problem(404, "A plugin, which stands for a style rule here, has no configured rules or custom instructions.")


@cat_routes.get("/v3/translation_memories", dependencies=[Reads])
def list_memories() -> Json:
    """An empty list, for clients that let users choose a translation memory."""
    return {"translation_memories": [], "total_count": 0}


@cat_routes.api_route("/v3/translation_memories", methods=CHANGES, include_in_schema=False, dependencies=[Reads])
@cat_routes.api_route("/v3/translation_memories/{number:path}", methods=ANY, include_in_schema=False, dependencies=[Reads])
def one_memory(number: str = "") -> None:
    """Refuse all operations on a translation memory: import, export, segments, jobs."""
    if number in ("", "import"):
        raise Problem(404, "Translation memories are not kept here. Give a project your translations as samples instead.")
    raise no_memory(number.removeprefix("jobs/").partition("/")[0])


mount(cat_routes, router)
