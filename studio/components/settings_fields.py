"""The settings of dataclasses as fields of a page: `engine.core.options.describe` says what there is.

All fields of a page are one component, light enough for a hundred settings at once; a Gradio component for each would cost the
browser milliseconds at every step to its page. `COLLECTED` gives an event what stands in them as JSON,
`{"of": owner, "values": {kind: {setting: value}}}`.
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

# Folded parts open and close, and stay so when the server writes the fields anew.
FOLD = script("settings-fields.js")
# The last input of an event becomes what stands in the fields now, be it settled or not.
COLLECTED = "(...held) => [...held.slice(0, -1), window.tmSettings?.() || held.at(-1)]"


@dataclass(frozen=True)
class SettingsGroup:
    """The settings of one dataclass. `kind` is their name in what is collected; `values` are what the fields hold, by setting,
    its default where one is left out; `skip` names settings without a field."""

    kind: str
    cls: type[Options]
    values: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    skip: Sequence[str] = ()


def settings_fields(of: str, groups: Sequence[SettingsGroup], folded: str = "") -> str:
    """A field for every setting, what is rarely needed folded below the others; under the title `folded`, where one is given.

    `of` is sent with the values of the fields.
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
    """{kind: {setting: value}} of what was collected; empty where it is of another owner than the one named."""
    try:
        content = json.loads(text or "{}")
        values = {str(kind): dict(settings) for kind, settings in content.get("values", {}).items()}
        return values if content.get("of") == of or not of else {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def changed(cls: type[Options], given: Mapping[str, Any], preset: Mapping[str, Any] | None = None) -> dict[str, object]:
    """The settings among those given that differ from the preset over the defaults, checked.

    `given` are values as fields hold them. Raises OptionError naming the setting.
    """
    result, base = {}, preset or {}
    for item in describe(cls):
        if item.name not in given:
            continue
        value = given[item.name]
        parsed = None if value in (None, "") and item.optional else item.parse(value)
        if parsed != item.parse(base.get(item.name, item.default)):
            result[item.name] = list(parsed) if isinstance(parsed, tuple) else parsed
    cls.from_mapping({**base, **result})
    return result


def shown(item: Option, value: Any) -> Any:
    """A setting's value as its field holds it."""
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
            "value": group.values.get(item.name, shown(item, item.default)),
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
    # The range is checked by the setting itself, which says it in a sentence. A number that may be left out is a text field,
    # since a number field cannot be empty.
    return "number" if item.type in (int, float) and not item.optional else "text"
