"""Plugins as cards: figures, where they come from, licence, versions, and what can be done with each; as safe HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cards import Card, parse_card
from engine.errors import TailorError
from studio.cards import card_fold, license_line
from studio.figures import NAMES, scores
from studio.forms import label
from studio.frame import address
from studio.home import ago
from studio.html import empty, esc, note, number, size, tag, way
from studio.i18n import listed, mark, tr, trn

if TYPE_CHECKING:
    from engine.plugins.library import Versions
    from engine.store import JobRow, PluginRow, ProjectRow

__all__ = ["Shown", "no_plugins", "plugin_card", "plugin_cards", "seen"]

KEPT_BACK = mark("Its method reads your sentences while it translates, so they cannot be left out.")
PLAIN = ("created", "made_of", "sentences", "phrases", "budget")  # of the provenance: said in the line above the table


@dataclass(frozen=True)
class Shown:
    """A bundle as its card shows it: what the bundle says of itself, for programs and for people."""

    row: PluginRow
    about: Mapping[str, Any] = field(default_factory=dict)
    card: Card = field(default_factory=lambda: Card(""))
    needs_texts: bool = False
    job: JobRow | None = None

    @property
    def blendable(self) -> bool:
        """Whether it can be part of a blend: its method has a strength dial."""
        from engine.methods import get_method

        try:
            method = get_method(self.row.method)
        except TailorError:
            return False
        return bool(self.about) and self.row.method != "blend" and method.capabilities.offers_strength


def seen(row: PluginRow, jobs: Mapping[int, JobRow] | None = None) -> Shown:
    """What there is to show of a plugin; little where its bundle is gone or damaged."""
    job = (jobs or {}).get(row.job_id) if row.job_id else None
    try:
        stat = Path(row.path).stat()
        about, text, needs = _read(row.path, stat.st_mtime_ns, stat.st_size)
    except (OSError, TailorError):
        return Shown(row, card=Card(row.name), job=job)
    return Shown(row, about, parse_card(text, row.name), needs, job)


@lru_cache(maxsize=512)
def _read(path: str, stamp: int, bytes_: int) -> tuple[dict[str, Any], str, bool]:
    from engine.plugins import read_bundle_card, read_bundle_text
    from engine.plugins.library import needs_texts

    return read_bundle_card(path), read_bundle_text(path), needs_texts(Path(path))


def plugin_cards(
    plugins: Sequence[Versions],
    shown: Mapping[int, Shown],
    project: ProjectRow,
    base: Card | None = None,
    *,
    tags: Mapping[int, Sequence[str]] | None = None,
    default: int | None = None,
    wanted: str = "",
) -> str:
    """The licence of the base, which no plugin can be used without, then one card a plugin. `tags` by number of a row,
    `default` the number of the row that is used where none is named; with a `wanted` tag only the plugins that have it."""
    if not plugins:
        return no_plugins(project)
    known = {one.name: sorted({tag for row in one.rows for tag in (tags or {}).get(row.id, ())}) for one in plugins}
    picked = [one for one in plugins if not wanted or wanted in known[one.name]]
    cards = "".join(plugin_card(one, shown, project, known[one.name], default) for one in picked)
    head = ""
    if wanted:
        show = tr("show all {count}", count=len(plugins))
        everything = f'<a href="{esc(address("plugins", project.id))}">{esc(show)}</a>'
        tagged = tr("{count} tagged {tag}", count=len(picked), tag=tag(wanted))
        head = f'<p class="tm-quiet tm-filtered">{tagged} · {everything}</p>'
    terms = license_line(base or Card(""))
    licence = tr("Licence: {name}", name="")
    terms = terms.replace(licence, tr("Licence of the base: {name}", name=""), 1)
    return f'<div class="tm-terms">{terms}</div>{head}<div class="tm-grid tm-plugins">{cards}</div>'


def plugin_card(
    plugin: Versions,
    shown: Mapping[int, Shown],
    project: ProjectRow,
    tags: Sequence[str],
    default: int | None,
) -> str:
    """Name, method, tags; what it is made of; figures; licence; older versions; what can be done."""
    row = plugin.newest
    one = shown.get(row.id, Shown(row))
    bytes_ = one.about.get("bytes")
    made_for = str(one.about.get("base_model_name_or_path") or project.base.rstrip("/").rsplit("/", 1)[-1])
    place = esc(address("plugins", project.id))
    marks = "".join(f'<a class="tm-tag" href="{place}&amp;tag={esc(mark)}">{esc(mark)}</a> ' for mark in tags)
    is_default = tag(tr("default"), "done") if default in [each.id for each in plugin.rows] else ""
    facts = [tr("base {name}", name=made_for), size(bytes_), tr("made {when}", when=ago(row.created))]
    facts += [tr("version {number}", number=len(plugin.rows))] if plugin.older else []
    gone = "" if row.exists else note(tr("The bundle is no longer at {path}.", path=row.path), bad=True)
    return (
        f'<article class="tm-card tm-pad tm-plugin" data-plugin="{row.id}"><h3 aria-level=2>{esc(row.name)} {is_default}</h3>'
        f'<p class="tm-tags">{tag(tr(row.method.replace("_", " ")), "accent")} {marks}</p>'
        f'<p class="tm-quiet">{esc(" · ".join(facts))}</p>{gone}'
        f"{_figures(row)}{_origin(one, project)}"
        f'<div class="tm-plugin-terms">{license_line(one.card) if one.card.license else ""}{card_fold(one.card, tr("Card"))}</div>'
        f"{_older(plugin, shown, project, default)}{_actions(plugin, one, project, tags, default)}</article>"
    )


def _figures(row: PluginRow) -> str:
    """The scores: where they were measured as a line, then a row a metric."""
    found = scores(row.metrics)
    if not found:
        return f'<p class="tm-quiet">{esc(tr("Not evaluated."))}</p>'
    tables = ""
    for kind in dict.fromkeys(score.kind for score in found):
        rows = "".join(
            f"<tr><td>{esc(NAMES.get(score.metric, score.metric))}</td><td class=num>{score.before:.1f} → <b>{score.after:.1f}</b>"
            f"</td><td class='num quiet'>{esc(score.sure)}</td></tr>"
            for score in found
            if score.kind == kind
        )
        caption = f"<caption>{esc(tr(kind))}</caption>" if kind else ""
        tables += f'<table class="tm tm-small">{caption}{rows}</table>'
    return tables


def _origin(one: Shown, project: ProjectRow) -> str:
    """What the plugin was made from, in a line; when, by which version, with which settings below it."""
    if not one.about:
        return ""
    made = dict(one.about.get("provenance", {}))
    if made.get("made_of"):
        head = tr("Made of {what}", what=tr(str(made["made_of"]).replace("_", " ")))
    else:
        units = {
            "sentences": ("{count} sentence", "{count} sentences"),
            "phrases": ("{count} phrase", "{count} phrases"),
        }
        parts = [trn(*forms, made[key]) for key, forms in units.items() if isinstance(made.get(key), int) and made[key]]
        head = tr("Made from {what}", what=listed(parts)) if parts else tr("Where it comes from")
        head += tr(", budget {name}", name=tr(str(made["budget"]))) if made.get("budget") else ""
    rows: list[tuple[str, str]] = []
    if one.job is not None:
        files = ", ".join(Path(str(name)).name for name in one.job.arguments.get("samples", ()))
        link = f"{esc(address('train', project.id))}&amp;run={one.job.id}"
        job = tr("job {number}", number=one.job.id)
        rows.append((tr("run"), f'<a href="{link}">{esc(job)}</a>'))
        rows += [(tr("samples"), esc(files))] if files else []
    else:
        rows.append((tr("run"), esc(tr("none of this project: imported, blended or made by a command"))))
    rows.append(
        (
            tr("made"),
            esc(
                tr(
                    "{when} by Tailor MT {version}",
                    when=str(made.get("created", ""))[:16].replace("T", " "),
                    version=one.about.get("tailormt_version", "?"),
                )
            ),
        )
    )
    rows += [
        (setting_said(key), _value(value))
        for key, value in made.items()
        if key not in PLAIN and value not in ("", None)
    ]
    rows += [(setting_said(key), _value(value)) for key, value in one.about.get("decoding", {}).items()]
    settings = "".join(
        f"<tr><td>{esc(setting_said(key))}</td><td>{_value(value)}</td></tr>"
        for key, value in sorted(one.about.get("config", {}).items())
    )
    body = "".join(f"<tr><td>{esc(key)}</td><td>{value}</td></tr>" for key, value in rows)
    folded = (
        f"<details><summary>{esc(tr('Settings of the method'))}</summary><table>{settings}</table></details>"
        if settings
        else ""
    )
    return (
        f'<details class="tm-card-fold tm-origin"><summary>{esc(head)}</summary>'
        f'<div class="tm-doc"><table>{body}</table>{folded}</div></details>'
    )


def setting_said(key: str) -> str:
    """A setting's name in a table: `learning rate`."""
    found = tr(label(key))
    return found[:1].lower() + found[1:]


def _value(value: Any) -> str:
    if isinstance(value, float):
        return esc(f"{value:g}")
    if isinstance(value, int) and not isinstance(value, bool):
        return esc(number(value))
    if isinstance(value, list | tuple):
        return esc(", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value))
    return esc(tr("none") if value is None else value)


def _older(plugin: Versions, shown: Mapping[int, Shown], project: ProjectRow, default: int | None) -> str:
    """The versions before the newest, folded."""
    if not plugin.older:
        return ""
    lines, usual = "", esc(tr("Use by default"))
    for row in plugin.older:
        best = next((f"{score.title} {score.after:.1f}" for score in scores(row.metrics)), "")
        sign = f" {tag(tr('default'), 'done')}" if row.id == default else ""
        words = " · ".join(
            part for part in (esc(tr(row.method.replace("_", " "))), esc(best), esc(ago(row.created))) if part
        )
        links = (
            f'<a href="{esc(address("compare", project.id))}&amp;plugin={row.id}">{esc(tr("Compare"))}</a> '
            f'<a href="/download/plugins/{row.id}" download>{esc(tr("Download"))}</a> '
            f'<button type="button" class="tm-text-button" data-act="default" data-number="{row.id}">{usual}</button> '
            if row.exists
            else f"{tag(tr('the file is gone'), 'bad')} "
        )
        confirm = _confirm(row.id, tr("Delete…"), tr("Delete version {number}", number=plugin.number(row)), small=True)
        lines += (
            f"<li><b>{esc(tr('version {number}', number=plugin.number(row)))}</b>{sign} <span>{words}</span>"
            f'<span class="tm-version-links">{links}{confirm}</span></li>'
        )
    word = trn("{count} older version", "{count} older versions", len(plugin.older))
    return f'<details class="tm-card-fold tm-versions"><summary>{esc(word)}</summary><ul>{lines}</ul></details>'


def _confirm(number_: int, word: str, sure: str, *, small: bool = False) -> str:
    """A button that unfolds the one which does it."""
    kind = "tm-confirm tm-small-confirm" if small else "tm-confirm"
    return (
        f'<details class="{kind}"><summary>{esc(word)}</summary><button type="button" class="tm-link-button tm-danger" '
        f'data-act="delete" data-number="{number_}">{esc(sure)}</button></details>'
    )


def _actions(plugin: Versions, one: Shown, project: ProjectRow, tags: Sequence[str], default: int | None) -> str:
    """Compare and download at hand; the rest folded."""
    row = plugin.newest
    links = ""
    if row.exists:
        links = (
            f'<a class="tm-link-button" href="/download/plugins/{row.id}" download>{esc(tr("Download"))}</a> '
            f'<a class="tm-link-button" href="{esc(address("compare", project.id))}&amp;plugin={row.id}">'
            f"{esc(tr('Compare'))}</a>"
        )
    bare = (
        f'<p class="tm-quiet">{esc(tr(KEPT_BACK))}</p>'
        if one.needs_texts
        else f'<a class="tm-link-button" href="/download/plugins/{row.id}?phrases=no" download>'
        f"{esc(tr('Download without phrases'))}</a>"
        if row.exists and one.about
        else ""
    )
    use = (
        ""
        if row.id == default or not row.exists
        else f'<button type="button" class="tm-link-button" data-act="default" data-number="{row.id}">'
        f"{esc(tr('Use by default'))}</button>"
    )
    sure = (
        tr("Delete it and its file for good")
        if len(plugin.rows) == 1
        else tr("Delete this version and its file for good")
    )
    confirm = _confirm(row.id, tr("Delete…"), sure)
    return (
        f'<div class="tm-plugin-links">{links}<details class="tm-manage-plugin">'
        f'<summary class="tm-link-button">{esc(tr("Change…"))}</summary>'
        f'<div class="tm-manage-box">{_field("name", tr("Name"), row.name, "rename", tr("Rename"))}'
        f"{_field('tags', tr('Tags'), ', '.join(tags), 'tag', tr('Save tags'))}"
        f'<div class="tm-manage-row">{use}{bare}{confirm}</div></div></details></div>'
    )


def _field(name: str, label: str, value: str, act: str, word: str) -> str:
    hint = f' placeholder="{esc(tr("client A, draft"))}"' if name == "tags" else ""
    return (
        f'<label>{esc(label)}<input type="text" name="{name}" maxlength="300" value="{esc(value)}"{hint}></label>'
        f'<button type="button" class="tm-link-button" data-act="{act}" data-field="{name}">{esc(word)}</button>'
    )


def no_plugins(project: ProjectRow | None) -> str:
    """The empty page with the next step."""
    link = address("train", project.id) if project else "/samples?project=new"
    word = tr("Train one") if project else tr("Go to Samples")
    return empty(
        tr("No plugins yet"),
        tr("Train one from your samples, or import a bundle."),
        way(link, word),
    )
