"""Plugins as cards: figures, origin, licence, versions and actions, as safe HTML."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from engine.core.model_card import ModelCard, parse_card
from engine.errors import OptionError, TailorError
from engine.methods import Method, get_method
from engine.plugins import read_bundle_card, read_bundle_text
from engine.plugins.ablate import check_ablate
from engine.plugins.library import Versions, needs_texts
from engine.store import JobRow, PluginRow, ProjectRow
from studio.components.ablation import ablation_box
from studio.components.html import empty, link_line, mid_sentence, number, size, tag
from studio.components.layout import address
from studio.components.method_names import method_name
from studio.components.model_cards import card_fold, license_line
from studio.components.templating import render
from studio.i18n.labels import label
from studio.i18n.translate import ago, listed, mark, tr, translate_message, trn
from studio.services.scores import NAMES, harm, scores

UNLIKE = mark("Differs from the paper")  # label of a provenance entry
PLAIN = ("created", "made_of", "sentences", "phrases", "budget")  # provenance entries stated in the line above the table


@dataclass(frozen=True)
class PluginCardData:
    """The data of a plugin's card: the bundle's metadata, its model card, and the plugin's jobs."""

    row: PluginRow
    metadata: Mapping[str, Any] = field(default_factory=dict)
    card: ModelCard = field(default_factory=lambda: ModelCard(""))
    needs_texts: bool = False
    job: JobRow | None = None
    ablation: JobRow | None = None  # the last one

    @property
    def has_memory(self) -> bool:
        """Whether the plugin has a memory that an ablation can replace."""
        try:
            check_ablate(self.metadata)
        except (OptionError, KeyError):
            return False
        return True

    @property
    def method(self) -> Method | None:
        """The plugin's method; None if this version does not have it."""
        try:
            return get_method(self.row.method)
        except TailorError:
            return None

    @property
    def blendable(self) -> bool:
        """Whether the plugin can be part of a blend: its method must support a strength."""
        strong = self.method is not None and self.method.capabilities.offers_strength
        return bool(self.metadata) and self.row.method != "blend" and strong


def card_data(
    row: PluginRow, jobs: Mapping[int, JobRow] | None = None, ablations: Mapping[int, JobRow] | None = None
) -> PluginCardData:
    """The card data of a plugin, minimal if its bundle is missing or damaged. `ablations`: last ablation by plugin id."""
    job = (jobs or {}).get(row.job_id) if row.job_id else None
    try:
        stat = Path(row.path).stat()
        metadata, card, needs = _read(row.path, row.name, stat.st_mtime_ns, stat.st_size)
    except (OSError, TailorError):
        return PluginCardData(row, card=ModelCard(row.name), job=job)
    return PluginCardData(row, metadata, card, needs, job, (ablations or {}).get(row.id))


@lru_cache(maxsize=16_384)
def _read(path: str, name: str, modified: int, bytes_: int) -> tuple[dict[str, object], ModelCard, bool]:
    return read_bundle_card(path), parse_card(read_bundle_text(path), name), needs_texts(Path(path))


def plugin_cards(
    plugins: Sequence[Versions],
    cards: Mapping[int, PluginCardData],
    project: ProjectRow,
    base: ModelCard | None = None,
    *,
    tags: Mapping[int, Sequence[str]] | None = None,
    default: int | None = None,
    wanted: str = "",
) -> str:
    """The licence of the base, which every plugin needs, then one card per plugin. `tags`: by row id; `default`: the id of the
    default plugin's row; `wanted`: a tag, to show only the plugins that have it."""
    if not plugins:
        return no_plugins(project)
    of = {plugin.name: sorted({tag for row in plugin.rows for tag in (tags or {}).get(row.id, ())}) for plugin in plugins}
    picked = [plugin for plugin in plugins if not wanted or wanted in of[plugin.name]]
    licence, names = tr("Licence: {name}", name=""), tr("Licence of the base: {name}", name="")
    return render(
        "plugin_cards.html",
        licence=Markup(license_line(base or ModelCard("")).replace(licence, names, 1)),
        wanted=wanted,
        tagged=Markup(tr("{count} tagged {tag}", count=len(picked), tag=tag(wanted))),
        count=len(plugins),
        cards=[_card(plugin, cards, project, of[plugin.name], default) for plugin in picked],
        project=project,
        default=default,
        names=NAMES,
        address=address,
    )


def _card(
    plugin: Versions, cards: Mapping[int, PluginCardData], project: ProjectRow, tags: Sequence[str], default: int | None
) -> dict[str, object]:
    """The template values of a plugin's card."""
    row = plugin.newest
    data = cards.get(row.id, PluginCardData(row))
    base = str(data.metadata.get("base_model_name_or_path") or Path(project.base).name)
    facts = [tr("base {name}", name=base), size(data.metadata.get("bytes")), *_when(data)]
    facts += [tr("version {number}", number=len(plugin.rows))] if plugin.older else []
    licence = license_line(data.card) if data.card.license else ""
    measured = scores(row.metrics)
    return {
        "row": row,
        "method": method_name(row.method),
        "is_default": default in [each.id for each in plugin.rows],
        "tags": tags,
        "facts": facts,
        "figures": [
            (kind, [score for score in measured if score.kind == kind]) for kind in dict.fromkeys(score.kind for score in measured)
        ],
        "harm": harm(row),
        "readable": bool(data.metadata),
        "needs_texts": data.needs_texts,
        "job": data.job,
        "licence": Markup(licence + card_fold(data.card, tr("Card"))),
        "ablation": Markup(ablation_box(row.id, data.ablation)) if row.exists and data.has_memory else "",
        "older": [_version(plugin, older) for older in plugin.older],
        **_origin(data),
    }


def _when(data: PluginCardData) -> list[str]:
    """When the plugin was created, for an imported one according to its bundle, and when it was imported."""
    if not data.row.imported:
        return [tr("created {when}", when=ago(data.row.created))]
    try:
        created = datetime.datetime.fromisoformat(str(dict(data.metadata.get("provenance", {})).get("created", "")))
        first = tr("created {when}", when=ago(created if created.tzinfo else created.replace(tzinfo=datetime.UTC)))
    except ValueError:
        first = tr("creation date unknown")
    return [first, tr("imported {when}", when=ago(data.row.created))]


def _version(plugin: Versions, row: PluginRow) -> dict[str, object]:
    best = next((f"{score.title} {score.after:.1f}" for score in scores(row.metrics)), "")
    facts = (method_name(row.method), best, ago(row.created))
    return {"row": row, "number": plugin.number(row), "facts": [fact for fact in facts if fact]}


def _origin(data: PluginCardData) -> dict[str, object]:
    """The origin of a plugin: what it was built from, in one line, and its provenance and settings as tables."""
    if not data.metadata:
        return {"origin": ""}
    origin = dict(data.metadata.get("provenance", {}))
    files = [Path(str(name)).name for name in data.job.arguments.get("samples", ())] if data.job else []
    rows = [(tr("samples"), ", ".join(files))] if files else []
    moment, version = str(origin.get("created", ""))[:16].replace("T", " "), data.metadata.get("tailormt_version", "?")
    rows.append((tr("created"), tr("{when} by Tailor MT {version}", when=moment, version=version)))
    provenance = {key: value for key, value in origin.items() if key not in PLAIN and value not in ("", None)}
    decoding, config = data.metadata.get("decoding", {}), data.metadata.get("config", {})
    cls = data.method.config_class if data.method else None
    rows += [(setting_label(key), _value(value)) for values in (provenance, decoding) for key, value in values.items()]
    return {
        "origin": _made_from(origin),
        "provenance": rows,
        "settings": [(setting_label(key, cls), _value(value)) for key, value in sorted(config.items())],
    }


def _made_from(origin: Mapping[str, Any]) -> str:
    """A line such as `Built from 60 sentences and 212 phrases, budget quick`."""
    if origin.get("made_of"):
        return tr("Blended from {what}", what=tr(str(origin["made_of"]).replace("_", " ")))
    units = {"sentences": ("{count} sentence", "{count} sentences"), "phrases": ("{count} phrase", "{count} phrases")}
    parts = [trn(*forms, origin[key]) for key, forms in units.items() if isinstance(origin.get(key), int) and origin[key]]
    line = tr("Built from {what}", what=listed(parts)) if parts else tr("Origin")
    return line + (tr(", budget {name}", name=tr(str(origin["budget"]))) if origin.get("budget") else "")


def setting_label(key: str, cls: type | None = None) -> str:
    """A setting's name in a table: `learning rate`; `cls`: the class of settings to which it belongs."""
    return mid_sentence(tr(label(key, cls)))


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
    return tr("none") if value is None else translate_message(value if isinstance(value, str) else str(value))


def no_plugins(project: ProjectRow | None) -> str:
    """The placeholder shown without plugins, with the next step."""
    link = address("train", project.id) if project else "/samples?project=new"
    word = tr("Train one") if project else tr("Go to Samples")
    return empty(tr("No plugins yet"), tr("Train one from your samples, or import a bundle."), link_line(link, word))
