"""Form fields for settings dataclasses, generated from `engine.core.options.describe`.

All fields of a page form one component, which stays light with a hundred settings; a Gradio component for each would slow down
every visit to the page. `COLLECTED` passes their values to an event as JSON, `{"of": owner, "values": {kind: {setting: value}}}`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.core.options import Option, Options, describe
from studio.components.templating import render, script
from studio.i18n.labels import label
from studio.i18n.translate import tr

# Opens and closes folded parts, and keeps their state when the server rerenders the fields.
FOLD = script("settings-fields.js")
# Replaces the last input of an event by the current values of the fields, even if an edit has not been committed yet.
COLLECTED = script("settings-collected.js")


@dataclass(frozen=True)
class SettingsGroup:
    """The settings of one dataclass. `kind` is their name in the collected JSON; `values` are the field values by setting, with
    defaults for missing ones; `skip` names settings without a field."""

    kind: str
    cls: type[Options]
    values: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    skip: Sequence[str] = ()


def settings_fields(of: str, groups: Sequence[SettingsGroup], folded: str = "") -> str:
    """A field for every setting, with advanced ones folded below the others; if `folded` is given, all are under that title.

    `of` is the owner sent with the values of the fields.
    """
    return render(
        "settings_fields.html",
        of=of,
        written=time.monotonic_ns(),
        folded=folded,
        shown=[
            {"kind": group.kind, "title": group.title, "plain": _fields(group, False), "rare": _fields(group, True)}
            for group in groups
        ],
    )


def collected(text: str, of: str = "") -> dict[str, dict[str, object]]:
    """{kind: {setting: value}} from the collected JSON; empty if it is invalid or belongs to another owner than `of`."""
    try:
        content = json.loads(text or "{}")
        values = {str(kind): dict(settings) for kind, settings in content.get("values", {}).items()}
        return values if content.get("of") == of or not of else {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def changed(cls: type[Options], field_values: Mapping[str, Any], preset: Mapping[str, Any] | None = None) -> dict[str, object]:
    """The validated settings among `field_values` that differ from the preset, or from their defaults if it lacks them.

    Raises OptionError naming an invalid setting.
    """
    result, base = {}, preset or {}
    for item in describe(cls):
        if item.name not in field_values:
            continue
        value = field_values[item.name]
        parsed = None if value in (None, "") and item.optional else item.parse(value)
        if parsed != item.parse(base.get(item.name, item.default)):
            result[item.name] = list(parsed) if isinstance(parsed, tuple) else parsed
    cls.from_mapping({**base, **result})
    return result


def field_value(item: Option, value: Any) -> Any:
    """A setting's value in the form in which its field holds it."""
    if item.type is bool and not item.many:
        return bool(value)
    if item.many:
        return ", ".join(map(str, value or ()))
    if item.choices:
        return str(value)
    if item.type in (int, float) and not item.optional:
        return value
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _fields(group: SettingsGroup, advanced: bool) -> list[dict[str, object]]:
    items = [item for item in describe(group.cls) if item.advanced == advanced and item.name not in group.skip]
    return [
        {
            "kind": group.kind,
            "name": item.name,
            "shape": _shape(item),
            "label": tr(label(item.name, group.cls)),
            "help": tr(item.help),
            "value": group.values.get(item.name, field_value(item, item.default)),
            "choices": [str(choice) for choice in item.choices or ()],
            "step": "1" if item.type is int else "any",
            "optional": item.optional,
        }
        for item in items
    ]


def _shape(item: Option) -> str:
    if item.many:
        return "text"
    if item.type is bool:
        return "check"
    if item.choices:
        return "choice"
    # The setting itself validates its range, with a message in words. Optional numbers use a text field, because a number field
    # cannot be empty.
    return "number" if item.type in (int, float) and not item.optional else "text"
