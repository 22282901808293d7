"""The settings of dataclasses as fields of a page, light enough to lay out a hundred of them at once.

`studio.forms` makes a Gradio component of every setting, each of which costs the browser milliseconds at every step to its
page. Where the settings of a method, of training and of kNN stand together, they are one component: its HTML comes from
`settings_fields`, and `COLLECT` reads what stands in it as JSON, `{kind: {setting: value}}`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from engine.options import Option, Options, describe
from studio.forms import label, shown
from studio.html import esc
from studio.i18n import tr

__all__ = ["FOLD", "fold", "settings_fields", "settings_form"]

# What the fields of the page hold, of whichever settings they are.
COLLECT = """
window.tmSettings = () => {
  const box = document.querySelector('[data-settings]');
  if (!box) return '';
  const found = {};
  for (const one of box.querySelectorAll('[data-kind]')) {
    (found[one.dataset.kind] ??= {})[one.name] = one.type === 'checkbox' ? one.checked : one.value;
  }
  return JSON.stringify({of: box.dataset.settings, values: found});
};
"""
# Folded parts open and close, and stay so when the server writes the fields anew. Gradio then changes only what differs in
# the HTML, which leaves what was typed where it was: so every field is set to what was written.
FOLD = (
    COLLECT
    + """
const open = new Set();
const show = () => {
  for (const one of element.querySelectorAll('button[data-fold]')) {
    const there = open.has(one.dataset.fold);
    if (one.getAttribute('aria-expanded') !== String(there)) one.setAttribute('aria-expanded', String(there));
    one.nextElementSibling.hidden = !there;
  }
};
element.addEventListener('click', (event) => {
  const one = event.target.closest('button[data-fold]');
  if (!one) return;
  if (!open.delete(one.dataset.fold)) open.add(one.dataset.fold);
  show();
});
element.addEventListener('change', () => trigger('settle', {held: window.tmSettings()}));
new MutationObserver(() => {
  for (const one of element.querySelectorAll('[data-kind]')) {
    if (one.tagName === 'SELECT') for (const choice of one.options) choice.selected = choice.defaultSelected;
    else if (one.type === 'checkbox') one.checked = one.defaultChecked;
    else one.value = one.defaultValue;
  }
  show();
}).observe(element, {subtree: true, childList: true, attributeFilter: ['data-written']});
"""
)


def fold(name: str, title: str, body: str) -> str:
    """A part that is folded until its title is clicked; `title` is plain text, `body` safe HTML."""
    return (
        f'<button type="button" class="tm-fold" data-fold="{esc(name)}" aria-expanded="false">{esc(title)}</button>'
        f'<div class="tm-folded" hidden>{body}</div>'
    )


def settings_form(of: str, body: str) -> str:
    """The fields of one page, read together; `of` is said with what they hold, `body` is safe HTML."""
    return f'<div data-settings="{esc(of)}" data-written="{time.monotonic_ns()}">{body}</div>'


def settings_fields(cls: type[Options], kind: str, values: Mapping[str, Any]) -> str:
    """A field for every setting of the class, what is rarely needed folded below the others.

    `kind` is the name that the settings have in what `COLLECT` reads; `values` are what the fields hold, by setting, the
    setting's default where one is left out.
    """
    items = describe(cls)
    held = {item.name: values.get(item.name, shown(item, item.default)) for item in items}
    body = _fields([item for item in items if not item.advanced], kind, held)
    if rare := [item for item in items if item.advanced]:
        body += fold(f"{kind}-rare", tr("Rarely needed"), _fields(rare, kind, held))
    return body


def _fields(items: Sequence[Option], kind: str, values: Mapping[str, Any]) -> str:
    return f'<div class="tm-fields-grid">{"".join(_field(item, kind, values[item.name]) for item in items)}</div>'


def _field(item: Option, kind: str, value: Any) -> str:
    key = f"tm-{kind}-{item.name}"
    said = f'id="{key}" name="{item.name}" data-kind="{kind}" aria-describedby="{key}-help"'
    name = f'<label for="{key}">{esc(tr(label(item.name)))}</label>'
    help_ = f'<p id="{key}-help">{esc(tr(item.help))}</p>'
    if item.type is bool and not item.many:
        checked = " checked" if value else ""
        return f'<div class="tm-field tm-check"><input type="checkbox" {said}{checked}>{name}{help_}</div>'
    if item.choices and not item.many:
        choices = "".join(
            f"<option{' selected' if str(one) == str(value) else ''}>{esc(one)}</option>" for one in item.choices
        )
        return f'<div class="tm-field">{name}{help_}<select {said}>{choices}</select></div>'
    if item.type in (int, float) and not item.many and not item.optional:
        # The range is checked by the setting itself, which says it in a sentence.
        step = "1" if item.type is int else "any"
        box = f'<input type="number" step="{step}" {said} value="{esc(value)}">'
    else:
        hint = f' placeholder="{esc(tr("automatic"))}"' if item.optional else ""
        box = f'<input type="text" {said}{hint} value="{esc(value)}" spellcheck="false" autocomplete="off">'
    return f'<div class="tm-field">{name}{help_}{box}</div>'
