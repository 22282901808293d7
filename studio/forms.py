"""One form for every settings dataclass: `engine.options.describe` says what there is, this makes Gradio widgets of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from engine.options import Option, Options, describe

__all__ = ["Form", "build_form", "changed", "label", "shown"]


class Form:
    """The widgets of one dataclass, in its order, and the way back from their values to settings."""

    def __init__(self, cls: type[Options], items: Sequence[Option], widgets: Sequence[Any]) -> None:
        self.cls = cls
        self.items = list(items)
        self.widgets = list(widgets)

    def values(self, preset: Mapping[str, Any]) -> list[Any]:
        """What the widgets show under a preset (a budget's overrides of the defaults)."""
        return [shown(item, preset.get(item.name, item.default)) for item in self.items]

    def changed(self, values: Sequence[Any], preset: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The settings that differ from the preset over the defaults, checked. Raises OptionError naming the setting."""
        given = {item.name: value for item, value in zip(self.items, values, strict=True)}
        return changed(self.cls, given, preset)


def build_form(cls: type[Options], preset: Mapping[str, Any] | None = None, *, skip: Sequence[str] = ()) -> Form:
    """Lay out one widget a setting, showing the preset over the defaults; rarely used ones lie folded below.

    `skip` names settings not to show.
    """
    values = preset or {}
    items = [item for item in describe(cls) if item.name not in skip]
    order = [item for item in items if not item.advanced] + [item for item in items if item.advanced]
    widgets = []
    plain = [item for item in order if not item.advanced]
    rare = [item for item in order if item.advanced]
    with gr.Row(elem_classes="tm-form"):
        widgets += [_widget(item, values) for item in plain]
    if rare:
        with gr.Accordion("Rarely needed", open=False), gr.Row(elem_classes="tm-form"):
            widgets += [_widget(item, values) for item in rare]
    return Form(cls, order, widgets)


def label(name: str) -> str:
    """`learning_rate` -> `Learning rate`."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def changed(cls: type[Options], given: Mapping[str, Any], preset: Mapping[str, Any] | None = None) -> dict[str, Any]:
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


def _widget(item: Option, preset: Mapping[str, Any]) -> Any:
    common: dict[str, Any] = {"label": label(item.name), "info": item.help, "min_width": 220}
    value = shown(item, preset.get(item.name, item.default))
    if item.type is bool and not item.many:
        return gr.Checkbox(value=value, **common)
    if item.choices and not item.many:
        return gr.Dropdown([str(choice) for choice in item.choices], value=value, **common)
    if item.type in (int, float) and not item.many and not item.optional:
        whole = item.type is int
        # The range is checked by the setting itself, which says it in a sentence.
        return gr.Number(value=value, precision=0 if whole else None, step=1 if whole else "any", **common)
    # A number that may be left out is a text field: a number field cannot be empty.
    return gr.Textbox(value, placeholder="automatic" if item.optional else "", **common)
