"""What stands around the plugins' cards: the default, a blend in the making, an import check by check; as safe HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.plugins.checks import TITLES, Check
from studio.html import esc, tag
from studio.incoming import Waiting

if TYPE_CHECKING:
    from engine.store import PluginRow
    from studio.plugin_cards import Shown

__all__ = ["blend_box", "check_list", "default_menu", "waiting_box"]


def default_menu(rows: Sequence[PluginRow], default: int | None) -> str:
    """The menu of the plugin that is used where none is named."""
    if not rows:
        return ""
    names: dict[str, int] = {}
    for row in rows:
        names[row.name] = names.get(row.name, 0) + 1
    options = "".join(
        f'<option value="{row.id}"{" selected" if row.id == default else ""}>{esc(row.name)}'
        f"{f' · {row.created:%d %b %H:%M}' if names[row.name] > 1 else ''}</option>"
        for row in rows
        if row.exists
    )
    none = f'<option value=""{" selected" if default is None else ""}>the base alone</option>'
    return (
        '<label class="tm-default">Default plugin'
        f'<select class="tm-select" data-default>{options}{none}</select></label>'
    )


def blend_box(rows: Sequence[Shown]) -> str:
    """Two plugins, their weights, a name; folded. Nothing where there are not two that can be blended."""
    fit = [one for one in rows if one.blendable]
    if len(fit) < 2:
        return ""

    def choice(which: str, chosen: int) -> str:
        options = "".join(
            f'<option value="{one.row.id}"{" selected" if place == chosen else ""}>{esc(one.row.name)} · '
            f"{esc(one.row.method.replace('_', ' '))}</option>"
            for place, one in enumerate(fit)
        )
        return f'<select class="tm-select" name="{which}" aria-label="Plugin {which}">{options}</select>'

    def dial(which: str) -> str:
        return (
            f'<span class="tm-dial"><input type="range" name="weight_{which}" min="0" max="1" step="0.05" value="0.7" '
            f'aria-label="Weight of plugin {which}"><output>0.7</output></span>'
        )

    return (
        '<details class="tm-card tm-pad tm-blend"><summary>Blend two plugins</summary>'
        '<p class="tm-quiet">For example a style and a domain. The blend is a plugin of its own and holds copies of both. '
        "Weight 1 is as trained.</p>"
        f'<div class="tm-blend-row">{choice("one", 1)}{dial("one")}{choice("two", 0)}{dial("two")}</div>'
        '<div class="tm-blend-row"><input type="text" name="name" maxlength="120" aria-label="Name of the blend" '
        'placeholder="Name of the blend"><button type="button" class="tm-link-button" data-blend>Save the blend</button></div>'
        "</details>"
    )


def check_list(name: str, checks: Sequence[Check], *, done: str = "", asked: Waiting | None = None) -> str:
    """An import as it goes: what was looked at, what is looked at now, what was not reached."""
    failed = any(not check.ok for check in checks)
    known = {check.name: check for check in checks}
    now = next((key for key in TITLES if key not in known), "") if not failed else ""
    lines = ""
    for key, title in TITLES.items():
        check = known.get(key)
        if check is not None:
            state, words = ("ok", tag("good", "done")) if check.ok else ("failed", tag("stops here", "bad"))
            words = tag("asks you", "accent") if check.restricted and asked else words
            lines += f'<li class="{state}"><b>{esc(title)}</b>{words}<span>{esc(check.sentence)}</span></li>'
        else:
            words = tag("looking", "accent") if key == now else ""
            lines += f'<li class="open"><b>{esc(title)}</b>{words}<span></span></li>'
    end = f'<p class="tm-import-end">{esc(done)}</p>' if done else ""
    if failed:
        end = '<p class="tm-import-end">Nothing was imported.</p>'
    if asked is not None:
        end = _question(asked)
    role = ' role="alert"' if failed else ""
    return (
        f'<section class="tm-card tm-pad tm-import"{role}><h3>Import of {esc(name)}</h3><ol>{lines}</ol>{end}</section>'
    )


def waiting_box(waiting: Sequence[Waiting]) -> str:
    """Imports that ask for a word on their licence."""
    return "".join(
        f'<section class="tm-card tm-pad tm-import"><h3>Import of {esc(one.name)}</h3>{_question(one)}</section>'
        for one in waiting
    )


def _question(one: Waiting) -> str:
    return (
        f'<p class="tm-license tm-restricted">Licence: {esc(one.licence)}</p><div class="tm-plugin-links">'
        f'<button type="button" class="tm-link-button" data-act="accept" data-number="{esc(one.key)}">Accept and import</button>'
        f'<button type="button" class="tm-link-button" data-act="drop" data-number="{esc(one.key)}">Do not import</button></div>'
    )
