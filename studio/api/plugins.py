"""/plugins: trained customizations, one file each: cards, download, import, names and tags, blends."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, File, Query, Response, UploadFile
from fastapi.responses import FileResponse

from engine.plugins import read_bundle_card
from studio.api import serializers as rows
from studio.api.deps import DepsDep, Id, Limit, Offset, ProjectDep, reads_files
from studio.api.errors import Problem
from studio.api.permissions import may
from studio.api.schemas import models
from studio.api.uploads import sent_once, stored_uploads
from studio.services.plugin_imports import checks_of

router = APIRouter(tags=["plugins"])


@router.get("/plugins", dependencies=[may("read")])
def list_plugins(
    deps: DepsDep, offset: Offset = 0, limit: Limit = 100, project: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> models.Page[models.Plugin]:
    """The plugins of one project or of all projects, newest first."""
    plugins = deps.store.plugins.list(project)
    return rows.page(models.Page[models.Plugin], plugins, offset, limit, partial(rows.plugin, deps.service))


@router.get("/plugins/{number}", dependencies=[may("read")])
def get_plugin(deps: DepsDep, number: Id) -> models.Plugin:
    """A plugin with its metrics."""
    return rows.plugin(deps.service, deps.store.plugins.get(number))


@router.get("/plugins/{number}/card", dependencies=[may("read")])
def get_card(deps: DepsDep, number: Id) -> models.PluginCard:
    """The card of a plugin's bundle: description, method and settings, base, provenance, files."""
    row = deps.store.plugins.get(number)
    if not row.exists:
        raise Problem(409, f"The bundle of {row.name} is no longer at its place.")
    card = deps.service.plugin_card(row)
    config = {key: value for key, value in read_bundle_card(row.path).items() if key != "base_model_name_or_path"}
    return models.PluginCard(
        title=card.title, license=card.license_name, license_note=card.license_note, body=card.body, config=rows.finite(config)
    )


@router.get(
    "/plugins/{number}/download",
    dependencies=[may("read")],
    response_class=FileResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The bundle."}},
)
def download_plugin(
    deps: DepsDep,
    number: Id,
    with_phrases: Annotated[bool, Query(description="Without, your sentences and phrases are left out.")] = True,
) -> FileResponse:
    """Download the bundle of a plugin."""
    row = deps.store.plugins.get(number)
    if not row.exists:
        raise Problem(409, f"The bundle of {row.name} is no longer at its place.")
    name = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', Path(row.path).stem).strip('-') or 'plugin'}.zip"
    if with_phrases:
        return FileResponse(row.path, filename=name, media_type="application/zip")
    return sent_once(
        deps.service.settings, ".zip", lambda path: deps.service.library.export(row, path, with_phrases=False), filename=name,
        media_type="application/zip",
    )  # fmt: skip


@router.post("/projects/{number}/plugins", status_code=201, dependencies=[may("write")])
@reads_files
def import_plugin(
    deps: DepsDep, project: ProjectDep, file: Annotated[UploadFile, File(description="The bundle, a .zip.")]
) -> models.Plugin:
    """Check a bundle and import it into the project. It must be complete, safe, and made for the project's base."""
    with stored_uploads(deps.service.settings, [file]) as paths:
        row = deps.service.library.import_bundle(project, paths[0], lambda: deps.service.base_model(project))
    return rows.plugin(deps.service, row)


@router.post("/projects/{number}/plugins/check", dependencies=[may("write")])
@reads_files
def check_plugin(
    deps: DepsDep, project: ProjectDep, file: Annotated[UploadFile, File(description="The bundle, a .zip.")]
) -> list[models.PluginCheck]:
    """Check a bundle as for an import, without importing it. Returns the checks up to the first that fails."""
    with stored_uploads(deps.service.settings, [file]) as paths:
        result = checks_of(deps.service, project, paths[0], paths[0].name)
        return [models.PluginCheck.model_validate({**check.to_mapping(), "title": check.title}) for check in result]


@router.post("/projects/{number}/blends", status_code=201, dependencies=[may("write")])
def blend(deps: DepsDep, project: ProjectDep, body: models.BlendRequest) -> models.Plugin:
    """Combine several plugins into one, for example a style and a domain, each with a weight; the result contains all of them."""
    for part in body.parts:
        if deps.store.plugins.get(part.plugin).project_id != project.id:
            raise Problem(404, f"Plugin {part.plugin} belongs to another project. Import it into this one first.")
    weights = {part.plugin: part.weight for part in body.parts}
    if len(weights) < len(body.parts):
        raise Problem(422, "parts: a plugin is named twice.", code="invalid")
    row = deps.service.library.blend(project, body.name.strip(), weights, deps.service.base_model(project))
    return rows.plugin(deps.service, row)


@router.patch("/plugins/{number}", dependencies=[may("write")])
def change_plugin(deps: DepsDep, number: Id, change: models.PluginChange) -> models.Plugin:
    """Change the name or tags of all versions of a plugin, that is, of the plugins with the same name in its project."""
    row = deps.store.plugins.get(number)
    if change.name is not None and change.name.strip() != row.name:
        deps.service.library.rename(row.project_id, row.name, change.name)
        row = deps.store.plugins.get(number)
    if change.tags is not None:
        deps.service.library.tag(row.project_id, row.name, change.tags)
    return rows.plugin(deps.service, row)


@router.delete("/plugins/{number}", status_code=204, dependencies=[may("write")])
def delete_plugin(
    deps: DepsDep,
    number: Id,
    file: Annotated[bool, Query(description="Remove its bundle as well, where it lies in the project's folder.")] = False,
) -> Response:
    """Remove a plugin from its project. The bundle is kept unless `file` is set."""
    row = deps.store.plugins.get(number)
    if file:
        deps.service.library.delete(row)
    else:
        deps.store.plugins.delete(number)
    return Response(status_code=204)
