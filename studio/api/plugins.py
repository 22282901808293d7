"""/plugins: what was learned, one file each: cards, download, import, names."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, File, Query, Response, UploadFile
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from engine.errors import TailorError
from studio.api import models, rows
from studio.api.auth import may
from studio.api.desk import DeskDep, Id, Limit, Offset
from studio.api.errors import Problem
from studio.api.uploads import kept

__all__ = ["router"]

router = APIRouter(tags=["plugins"])


@router.get("/plugins", dependencies=[may("read")])
def list_plugins(
    desk: DeskDep,
    offset: Offset = 0,
    limit: Limit = 100,
    project: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> models.Page[models.Plugin]:
    """Plugins of one project or of all, newest first."""
    part = rows.page(desk.service.store.plugins.list(project), offset, limit)
    part["items"] = [rows.plugin(desk.service, row) for row in part["items"]]
    return models.Page[models.Plugin](**part)


@router.get("/plugins/{number}", dependencies=[may("read")])
def get_plugin(desk: DeskDep, number: Id) -> models.Plugin:
    """One plugin with its figures."""
    return rows.plugin(desk.service, desk.plugin(number))


@router.get("/plugins/{number}/card", dependencies=[may("read")])
def get_card(desk: DeskDep, number: Id) -> models.PluginCard:
    """What the bundle says of itself: card, method and settings, base, provenance, files."""
    from engine.plugins import read_bundle_card

    row = desk.plugin(number)
    if not row.exists:
        raise Problem(409, f"The bundle of {row.name} is no longer at its place.")
    card = desk.service.plugin_card(row)
    config = {key: value for key, value in read_bundle_card(row.path).items() if key != "base_model_name_or_path"}
    return models.PluginCard(
        title=card.title,
        license=card.license_name,
        license_note=card.license_note,
        body=card.body,
        config=rows.finite(config),
    )


@router.get(
    "/plugins/{number}/download",
    dependencies=[may("read")],
    response_class=FileResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The bundle."}},
)
def download_plugin(
    desk: DeskDep,
    number: Id,
    with_phrases: Annotated[bool, Query(description="Without, your sentences and phrases are left out.")] = True,
) -> FileResponse:
    """The bundle as a file."""
    from engine.plugins.repack import repack

    row = desk.plugin(number)
    if not row.exists:
        raise Problem(409, f"The bundle of {row.name} is no longer at its place.")
    name = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', Path(row.path).stem).strip('-') or 'plugin'}.zip"
    if with_phrases:
        return FileResponse(row.path, filename=name, media_type="application/zip")
    folder = desk.service.settings.home_dir / "uploads"
    folder.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix="without-", suffix=".zip", dir=folder, delete=False) as file:
        place = Path(file.name)
    try:
        repack(Path(row.path), place, with_phrases=False)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return FileResponse(place, filename=name, media_type="application/zip", background=BackgroundTask(place.unlink))


@router.post("/projects/{number}/plugins", status_code=201, dependencies=[may("write")])
def import_plugin(
    desk: DeskDep, number: Id, file: Annotated[UploadFile, File(description="The bundle, a .zip.")]
) -> models.Plugin:
    """Check a bundle and take it into the project. It must be whole, safe, and made for the project's base."""
    project = desk.project(number)
    with kept(desk.service.settings, [file]) as places:
        return rows.plugin(desk.service, desk.service.import_bundle(project, places[0]))


@router.patch("/plugins/{number}", dependencies=[may("write")])
def change_plugin(desk: DeskDep, number: Id, change: models.PluginChange) -> models.Plugin:
    """Another name."""
    desk.plugin(number)
    return rows.plugin(desk.service, desk.service.store.plugins.update(number, name=change.name.strip()))


@router.delete("/plugins/{number}", status_code=204, dependencies=[may("write")])
def delete_plugin(
    desk: DeskDep,
    number: Id,
    file: Annotated[bool, Query(description="Remove its bundle from the disk as well.")] = False,
) -> Response:
    """Take a plugin out of its project. The bundle stays unless asked otherwise."""
    row = desk.plugin(number)
    desk.service.store.plugins.delete(number)
    own = desk.service.workspace(row.project_id)
    if file and row.exists and Path(row.path).resolve().is_relative_to(own.resolve()):  # nothing outside the project
        try:
            Path(row.path).unlink()
        except OSError as error:
            raise TailorError(f"The plugin is out of its project, but its file stays: {error.strerror}.") from error
    return Response(status_code=204)
