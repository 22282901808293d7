"""The boxes around the plugins' cards: default plugin, blend, import check by check; as safe HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.plugins.import_checks import TITLES, Check
from engine.store import PluginRow, ProjectRow
from studio.components.templating import render
from studio.i18n.translate import moment, tr, translate_message
from studio.services.plugin_imports import PendingImport, PendingImports

if TYPE_CHECKING:
    from studio.components.plugin_cards import PluginCardData
    from studio.services.service import Service


def default_menu(rows: Sequence[PluginRow], default: int | None) -> str:
    """The menu for the default plugin."""
    if not rows:
        return ""
    doubled = [name for name, count in Counter(row.name for row in rows).items() if count > 1]
    existing = [row for row in rows if row.exists]
    return render("plugin_default.html", rows=existing, default=default, doubled=doubled, moment=moment)


def blend_box(rows: Sequence[PluginCardData]) -> str:
    """The folded form for a blend: two plugins, their weights, a name. Empty if fewer than two plugins can be blended."""
    plugins = [plugin for plugin in rows if plugin.blendable]
    return render("plugin_blend.html", plugins=plugins) if len(plugins) > 1 else ""


def check_list(name: str, checks: Sequence[Check], *, done: str = "", pending: PendingImport | None = None) -> str:
    """The progress of an import: completed checks, the current one, and those not reached."""
    failed = any(not check.ok for check in checks)
    checks_by_name = {check.name: check for check in checks}
    now = next((key for key in TITLES if key not in checks_by_name), "") if not failed else ""
    steps = [
        {"title": tr(title), **_step(checks_by_name.get(key), key == now, pending is not None)} for key, title in TITLES.items()
    ]
    progress = {"name": name, "steps": steps, "failed": failed, "done": done, "question": pending}
    return render("plugin_imports.html", imports=[progress])


def _step(check: Check | None, now: bool, pending: bool) -> dict[str, str]:
    if check is None:
        return {"state": "open", "words": tr("checking") if now else "", "colour": "accent", "sentence": ""}
    if check.restricted and pending:
        words, colour = tr("needs your consent"), "accent"
    elif check.ok:
        words, colour = tr("passed"), "done"
    else:
        words, colour = tr("blocked"), "bad"
    state = "ok" if check.ok else "failed"
    return {"state": state, "words": words, "colour": colour, "sentence": translate_message(check.sentence)}


def waiting_box(waiting: Sequence[PendingImport]) -> str:
    """Imports that wait for their licence to be accepted."""
    imports = [{"name": pending.name, "steps": [], "failed": False, "done": "", "question": pending} for pending in waiting]
    return render("plugin_imports.html", imports=imports)


def bring_in(service: Service, project: ProjectRow, file: Path) -> Iterator[str]:
    """Check and import a bundle, yielding the progress as HTML; a restrictive licence must be accepted first."""
    incoming = PendingImports(service, project)
    done: list[Check] = []
    yield check_list(file.name, done)
    key = incoming.keep(file)
    for check in incoming.checks(key, file.name):
        done.append(check)
        yield check_list(file.name, done)
    if not done[-1].ok:
        return
    if done[-1].restricted:
        yield check_list(file.name, done, pending=incoming.ask(key, file.name, done[-1].sentence))
        return
    row = incoming.finish(key, file.name)
    versions = next(plugin for plugin in service.library.versions(project.id) if plugin.name == row.name)
    end = tr("Imported as {name}.", name=row.name)
    if versions.older:
        end = tr("Imported as version {number} of {name}.", number=versions.number(row), name=row.name)
    yield check_list(file.name, done, done=end)
