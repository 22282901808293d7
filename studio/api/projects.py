"""/projects: a project's languages, base, name and default plugin."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from engine.base.registry import BaseRegistry
from engine.core.languages import canonical
from engine.store.project_files import delete_project as remove
from studio.api import serializers as rows
from studio.api.deps import DepsDep, Limit, Offset, ProjectDep
from studio.api.errors import Problem, conflicts
from studio.api.permissions import may
from studio.api.schemas import models

router = APIRouter(prefix="/projects", tags=["projects"])


@router.get("", dependencies=[may("read")])
def list_projects(deps: DepsDep, offset: Offset = 0, limit: Limit = 100) -> models.Page[models.Project]:
    """All projects, newest first."""
    projects = deps.store.projects.list()
    return rows.page(models.Page[models.Project], projects, offset, limit, partial(rows.project, deps.service))


@router.post("", status_code=201, dependencies=[may("write")])
def create_project(deps: DepsDep, body: models.ProjectRequest) -> models.Project:
    """Create a project without samples."""
    registry = BaseRegistry(deps.service.settings)
    if body.base:
        names = {entry.name: str(entry.folder) for entry in registry.entries()}
        if body.base not in names:  # only names are accepted, since remote programs must not use paths of this machine
            raise Problem(404, f"There is no base {body.base}. There are: {', '.join(names) or 'none'}.")
        base = names[body.base]
    else:
        base = str(registry.default(canonical(body.source), canonical(body.target)))
    return rows.project(deps.service, deps.service.create_project(body.name, body.source, body.target, base))


@router.get("/{number}", dependencies=[may("read")])
def get_project(deps: DepsDep, project: ProjectDep) -> models.Project:
    """A project with its counts of sentences, phrases, plugins and runs."""
    return rows.project(deps.service, project)


@router.patch("/{number}", dependencies=[may("write")])
def change_project(deps: DepsDep, project: ProjectDep, change: models.ProjectChange) -> models.Project:
    """Rename a project."""
    return rows.project(deps.service, deps.store.projects.update(project.id, name=change.name.strip()))


@router.delete("/{number}", status_code=204, dependencies=[may("write")])
def delete_project(
    deps: DepsDep,
    project: ProjectDep,
    files: Annotated[bool, Query(description="Remove its folder with samples and bundles as well.")] = False,
) -> Response:
    """Delete a project with its jobs, plugins and comparisons. Files are kept unless `files` is set."""
    service = deps.service
    with conflicts():
        if files:
            remove(service.settings, service.store, project.id)
        else:
            service.store.projects.delete(project.id)
    return Response(status_code=204)


@router.put("/{number}/default-plugin", dependencies=[may("write")])
def set_default_plugin(deps: DepsDep, project: ProjectDep, body: models.DefaultRequest) -> models.Project:
    """Set the plugin for requests that name none. Unless set, it is the newest plugin trained here that does no harm."""
    if body.plugin is not None:
        deps.store.plugins.get(body.plugin)
    deps.store.defaults.set(project.id, body.plugin)
    return rows.project(deps.service, deps.store.projects.get(project.id))


@router.delete("/{number}/default-plugin", status_code=204, dependencies=[may("write")])
def clear_default_plugin(deps: DepsDep, project: ProjectDep) -> Response:
    """Clear the choice, so that the newest plugin trained here that does no harm is the default again."""
    deps.store.defaults.clear(project.id)
    return Response(status_code=204)
