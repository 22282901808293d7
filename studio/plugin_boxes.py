"""What stands around the plugins' cards: the default, a blend in the making, an import check by check; as safe HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.plugins.checks import TITLES, Check
from studio.html import esc, tag
from studio.i18n import mark, moment, tr
from studio.incoming import Waiting
from studio.told import told

if TYPE_CHECKING:
    from engine.store import PluginRow
    from studio.plugin_cards import Shown

__all__ = ["blend_box", "check_list", "default_menu", "waiting_box"]


PLACES = {
    "one": (mark("Plugin one"), mark("Weight of plugin one")),
    "two": (mark("Plugin two"), mark("Weight of plugin two")),
}


def default_menu(rows: Sequence[PluginRow], default: int | None) -> str:
    """The menu of the plugin that is used where none is named."""
    if not rows:
        return ""
    names: dict[str, int] = {}
    for row in rows:
        names[row.name] = names.get(row.name, 0) + 1
    options = "".join(
        f'<option value="{row.id}"{" selected" if row.id == default else ""}>{esc(row.name)}'
        f"{f' · {moment(row.created)}' if names[row.name] > 1 else ''}</option>"
        for row in rows
        if row.exists
    )
    none = f'<option value=""{" selected" if default is None else ""}>{esc(tr("the base alone"))}</option>'
    return (
        f'<label class="tm-default">{esc(tr("Default plugin"))}'
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
            f"{esc(tr(one.row.method.replace('_', ' ')))}</option>"
            for place, one in enumerate(fit)
        )
        return f'<select class="tm-select" name="{which}" aria-label="{esc(tr(PLACES[which][0]))}">{options}</select>'

    def dial(which: str) -> str:
        return (
            f'<span class="tm-dial"><input type="range" name="weight_{which}" min="0" max="1" step="0.05" value="0.7" '
            f'aria-label="{esc(tr(PLACES[which][1]))}"><output>0.7</output></span>'
        )

    what = tr(
        "For example a style and a domain. The blend is a plugin of its own and holds copies of both. Weight 1 is as trained."
    )
    name = tr("Name of the blend")
    return (
        f'<details class="tm-card tm-pad tm-blend"><summary>{esc(tr("Blend two plugins"))}</summary>'
        f'<p class="tm-quiet">{esc(what)}</p>'
        f'<div class="tm-blend-row">{choice("one", 1)}{dial("one")}{choice("two", 0)}{dial("two")}</div>'
        f'<div class="tm-blend-row"><input type="text" name="name" maxlength="120" aria-label="{esc(name)}" '
        f'placeholder="{esc(name)}"><button type="button" class="tm-link-button" data-blend>{esc(tr("Save the blend"))}</button>'
        "</div>"
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
            state, words = ("ok", tag(tr("good"), "done")) if check.ok else ("failed", tag(tr("stops here"), "bad"))
            words = tag(tr("asks you"), "accent") if check.restricted and asked else words
            lines += f'<li class="{state}"><b>{esc(tr(title))}</b>{words}<span>{esc(told(check.sentence))}</span></li>'
        else:
            words = tag(tr("looking"), "accent") if key == now else ""
            lines += f'<li class="open"><b>{esc(tr(title))}</b>{words}<span></span></li>'
    end = f'<p class="tm-import-end">{esc(done)}</p>' if done else ""
    if failed:
        end = f'<p class="tm-import-end">{esc(tr("Nothing was imported."))}</p>'
    if asked is not None:
        end = _question(asked)
    of = tr("Import of {name}", name=name)
    role = ' role="alert"' if failed else ""
    return f'<section class="tm-card tm-pad tm-import"{role}><h3 aria-level=2>{esc(of)}</h3><ol>{lines}</ol>{end}</section>'


def waiting_box(waiting: Sequence[Waiting]) -> str:
    """Imports that ask for a word on their licence."""
    return "".join(
        f'<section class="tm-card tm-pad tm-import"><h3 aria-level=2>{esc(tr("Import of {name}", name=one.name))}</h3>'
        f"{_question(one)}</section>"
        for one in waiting
    )


def _question(one: Waiting) -> str:
    return (
        f'<p class="tm-license tm-restricted">{esc(tr("Licence: {name}", name=one.licence))}</p><div class="tm-plugin-links">'
        f'<button type="button" class="tm-link-button" data-act="accept" data-number="{esc(one.key)}">'
        f"{esc(tr('Accept and import'))}</button>"
        f'<button type="button" class="tm-link-button" data-act="drop" data-number="{esc(one.key)}">'
        f"{esc(tr('Do not import'))}</button></div>"
    )
