"""Rows of the store as the interface shows them: without paths of this machine, with what a program asks next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from studio.api.schemas import models

if TYPE_CHECKING:
    from engine.core.options import Option
    from engine.store import JobRow, PluginRow, ProjectRow
    from studio.services.service import Service

Item = TypeVar("Item")
Row = TypeVar("Row")
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def page(
    kind: type[models.Page[Item]], items: Sequence[Row], offset: int, limit: int, shown: Callable[[Row], Item]
) -> models.Page[Item]:
    """A part of what is all at hand, each as `shown` shows it."""
    part = [shown(row) for row in items[offset : offset + limit]]
    return kind(items=part, total=len(items), offset=offset)


def finite(value: Any) -> Any:
    """The same with null for what JSON has no number for; a measurement may be infinite or none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, (list, tuple)) else value


def base_name(path: str) -> str:
    """The short name of a base in a folder; a hub id as it is."""
    return Path(path).name if Path(path).is_absolute() else path


def project(service: Service, row: ProjectRow) -> models.Project:
    corpus, default = service.corpus(row.id), service.store.defaults.get(row.id)
    return models.Project(
        id=row.id,
        name=row.name,
        source=row.source,
        target=row.target,
        base=base_name(row.base),
        created=row.created,
        updated=row.updated,
        sentences=corpus.kept if corpus and corpus.state == "ready" else None,
        phrases=service.phrase_count(row.id),
        plugins=len(service.store.plugins.list(row.id)),
        runs=len(service.runs(row.id)),
        default_plugin=default.id if default else None,
    )


def job(row: JobRow) -> models.Job:
    return models.Job(
        id=row.id,
        project=row.project_id,
        kind=row.kind,
        state=row.state.value,
        step=row.step,
        step_index=row.step_index,
        steps=row.steps,
        fraction=row.fraction,
        eta=row.eta,
        note=row.note,
        metrics=finite(row.metrics),
        error=row.error,
        result=finite(shown_result(row.result)),
        attempt=row.attempt,
        method=str(row.arguments.get("method", "")),
        budget=str(row.arguments.get("budget", "")),
        created=row.created,
        started=row.started,
        finished=row.finished,
        cancel_requested=row.cancel_requested,
        owner=row.owner,
        priority=row.priority,
        device=row.device,
        not_before=row.not_before,
        retries=max(0, row.retries),
    )


def plugin(service: Service, row: PluginRow) -> models.Plugin:
    default = service.store.defaults.get(row.project_id)
    same = [one.id for one in service.store.plugins.list(row.project_id) if one.name == row.name]
    return models.Plugin(
        id=row.id,
        project=row.project_id,
        name=row.name,
        method=row.method,
        job=row.job_id,
        version=sum(one <= row.id for one in same),
        tags=service.store.tags.of(row.project_id).get(row.id, []),
        default=default is not None and default.id == row.id,
        available=row.exists,
        bytes=Path(row.path).stat().st_size if row.exists else None,
        base_fingerprint=row.base_fingerprint,
        metrics=finite(row.metrics),
        created=row.created,
    )


def shown_result(result: Mapping[str, Any]) -> models.JsonObject:
    """What a job came to, without where its files lie on the machine."""
    return {key: value for key, value in result.items() if not (isinstance(value, str) and Path(value).is_absolute())}


def option(item: Option) -> models.Option:
    default = list(item.default) if isinstance(item.default, tuple) else item.default
    return models.Option(
        name=item.name,
        type=TYPES.get(item.type, "string"),  # type: ignore[arg-type]
        many=item.many,
        optional=item.optional,
        default=default,
        help=item.help,
        choices=list(item.choices) if item.choices else None,
        low=item.low,
        high=item.high,
        advanced=item.advanced,
    )


def json_schema(items: Sequence[Option]) -> models.JsonObject:
    """The settings of a dataclass as a JSON Schema object."""
    properties: models.JsonObject = {}
    for item in items:
        shown = option(item)
        one: models.JsonObject = {"type": shown.type}
        if shown.choices:
            one["enum"] = shown.choices
        if shown.low is not None:
            one["minimum"] = shown.low
        if shown.high is not None:
            one["maximum"] = shown.high
        if item.many:
            one = {"type": "array", "items": one}
        if item.optional:
            one = {"anyOf": [one, {"type": "null"}]}
        properties[item.name] = {**one, "description": item.help, "default": shown.default}
    return {"type": "object", "properties": properties, "additionalProperties": False}
