"""Converts rows of the store to the API's models: without paths of this machine, with related data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from engine.core.options import Option
from engine.messages import without_paths
from engine.store import JobRow, PluginRow, ProjectRow
from studio.api.schemas import models
from studio.services.service import TRAINING, Service

Item = TypeVar("Item", bound=BaseModel)
Row = TypeVar("Row")
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def from_row(kind: type[Item], row: object, **overrides: object) -> Item:
    """The model with the values in `overrides` and, for its other fields, the row's attributes of the same names."""
    return kind(**{name: getattr(row, name) for name in kind.model_fields if name not in overrides}, **overrides)


def page(
    kind: type[models.Page[Item]], items: Sequence[Row], offset: int, limit: int, make: Callable[[Row], Item]
) -> models.Page[Item]:
    """A page of a complete list, each item converted by `make`."""
    part = [make(row) for row in items[offset : offset + limit]]
    return kind(items=part, total=len(items), offset=offset)


def finite(value: Any) -> Any:
    """The value with null for infinite and NaN numbers, which JSON cannot represent; tuples become lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def base_name(path: str) -> str:
    """The short name of a base in a folder; a hub id is returned unchanged."""
    return Path(path).name if Path(path).is_absolute() else path


def project(service: Service, row: ProjectRow) -> models.Project:
    corpus, default = service.corpus(row.id), service.store.defaults.get(row.id)
    return from_row(
        models.Project,
        row,
        base=base_name(row.base),
        sentences=corpus.kept if corpus and corpus.state == "ready" else None,
        phrases=service.phrase_count(row.id),
        plugins=service.store.plugins.count(row.id),
        runs=service.store.jobs.count(row.id, kinds=(TRAINING,)),
        default_plugin=default.id if default else None,
    )


def job(row: JobRow) -> models.Job:
    return from_row(
        models.Job,
        row,
        project=row.project_id,
        state=row.state.value,
        note=without_paths(row.note),
        error=without_paths(row.error),
        metrics=finite(row.metrics),
        result=finite(shown_result(row.result)),
        method=str(row.arguments.get("method", "")),
        budget=str(row.arguments.get("budget", "")),
        retries=max(0, row.retries),
    )


def plugin(service: Service, row: PluginRow) -> models.Plugin:
    default = service.store.defaults.get(row.project_id)
    version_ids = [version.id for version in service.store.plugins.list(row.project_id) if version.name == row.name]
    return from_row(
        models.Plugin,
        row,
        project=row.project_id,
        job=row.job_id,
        version=sum(number <= row.id for number in version_ids),
        tags=service.store.tags.of(row.project_id).get(row.id, []),
        default=default is not None and default.id == row.id,
        available=row.exists,
        bytes=Path(row.path).stat().st_size if row.exists else None,
        metrics=finite(row.metrics),
    )


def shown_result(result: Mapping[str, Any]) -> models.JsonObject:
    """The result of a job without absolute paths."""
    return {key: value for key, value in result.items() if not (isinstance(value, str) and Path(value).is_absolute())}


def option(item: Option) -> models.Option:
    default = list(item.default) if isinstance(item.default, tuple) else item.default
    choices = list(item.choices) if item.choices else None
    return from_row(models.Option, item, type=TYPES.get(item.type, "string"), default=default, choices=choices)


def json_schema(items: Sequence[Option]) -> models.JsonObject:
    """The settings of a dataclass as a JSON Schema object."""
    properties: models.JsonObject = {}
    for item in items:
        setting = option(item)
        schema: models.JsonObject = {"type": setting.type}
        if setting.choices:
            schema["enum"] = setting.choices
        if setting.low is not None:
            schema["minimum"] = setting.low
        if setting.high is not None:
            schema["maximum"] = setting.high
        if item.many:
            schema = {"type": "array", "items": schema}
        if item.optional:
            schema = {"anyOf": [schema, {"type": "null"}]}
        properties[item.name] = {**schema, "description": item.help, "default": setting.default}
    return {"type": "object", "properties": properties, "additionalProperties": False}
