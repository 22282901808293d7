"""/projects: languages, base and name; the default plugin."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from engine.errors import InputError
from studio.api import serializers as rows
from studio.api.deps import DeskDep, Id, Limit, Offset
from studio.api.errors import Problem
from studio.api.permissions import may
from studio.api.schemas import models

router = APIRouter(prefix="/projects", tags=["projects"])


@router.get("", dependencies=[may("read")])
def list_projects(desk: DeskDep, offset: Offset = 0, limit: Limit = 100) -> models.Page[models.Project]:
    """All projects, newest first."""
    projects = desk.store.projects.list()
    return rows.page(models.Page[models.Project], projects, offset, limit, partial(rows.project, desk.service))


@router.post("", status_code=201, dependencies=[may("write")])
def create_project(desk: DeskDep, wish: models.ProjectWish) -> models.Project:
    """A new project without samples."""
    from engine.base.registry import BaseRegistry
    from engine.core.languages import canonical

    shelf = BaseRegistry(desk.service.settings)
    if wish.base:
        names = {entry.name: str(entry.folder) for entry in shelf.entries()}
        if wish.base not in names:  # paths of the machine are no business of a program elsewhere
            raise Problem(404, f"There is no base {wish.base}. There are: {', '.join(names) or 'none'}.")
        base = names[wish.base]
    else:
        base = str(shelf.default(canonical(wish.source), canonical(wish.target)))
    return rows.project(desk.service, desk.service.create_project(wish.name, wish.source, wish.target, base))


@router.get("/{number}", dependencies=[may("read")])
def get_project(desk: DeskDep, number: Id) -> models.Project:
    """One project with its counts."""
    return rows.project(desk.service, desk.store.projects.get(number))


@router.patch("/{number}", dependencies=[may("write")])
def change_project(desk: DeskDep, number: Id, change: models.ProjectChange) -> models.Project:
    """Another name."""
    desk.store.projects.get(number)
    return rows.project(desk.service, desk.store.projects.update(number, name=change.name.strip()))


@router.delete("/{number}", status_code=204, dependencies=[may("write")])
def delete_project(
    desk: DeskDep,
    number: Id,
    files: Annotated[bool, Query(description="Remove its folder with samples and bundles as well.")] = False,
) -> Response:
    """Remove a project with its jobs, plugins and comparisons. Files stay unless asked otherwise."""
    from engine.store.project_files import delete_project as remove

    desk.store.projects.get(number)
    service = desk.service
    try:
        if files:
            remove(service.settings, service.store, number)
        else:
            service.store.projects.delete(number)
    except InputError as error:
        raise Problem(409, error.message) from None
    return Response(status_code=204)


@router.put("/{number}/default-plugin", dependencies=[may("write")])
def set_default_plugin(desk: DeskDep, number: Id, wish: models.DefaultWish) -> models.Project:
    """Which plugin is used where a request names none. Before a choice it is the newest that was not imported."""
    desk.store.projects.get(number)
    if wish.plugin is not None:
        desk.store.plugins.get(wish.plugin)
    desk.store.defaults.set(number, wish.plugin)
    return rows.project(desk.service, desk.store.projects.get(number))


@router.delete("/{number}/default-plugin", status_code=204, dependencies=[may("write")])
def clear_default_plugin(desk: DeskDep, number: Id) -> Response:
    """Forget the choice: the newest plugin is the default again."""
    desk.store.projects.get(number)
    desk.store.defaults.clear(number)
    return Response(status_code=204)
