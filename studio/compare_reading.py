"""What was read from memory for a word, as a panel: the words that weigh most, a bar each, by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.comparison.reading import Place, Reading
from studio.html import esc, lang_attribute
from studio.i18n import mark, tr
from studio.told import told

__all__ = ["reading_panel", "waiting_panel"]

PLACES = {
    "self_attn": mark("self-attention"),
    "encoder_attn": mark("cross-attention"),
    "decoder": mark("decoder"),
    "datastore": mark("kNN datastore"),
    "output": mark("output"),
    "prompt": mark("request"),
}
FROM_MEMORY = mark("{share} read from memory")
# What the items of a place are, and what its share means.
KINDS = {
    "datastore": (mark("Neighbours in the samples"), mark("{share} of the word's probability came from them")),
    "output": (mark("Sentences found"), mark("{share} of the word's probability was copied from them")),
    "prompt": (mark("Samples in the request"), ""),
    "decoder": (mark("Domains"), ""),
    "encoder_attn": ("", FROM_MEMORY),
    "self_attn": ("", FROM_MEMORY),
}


def reading_panel(found: Reading, *, system: str, strength: float, source: str, target: str) -> str:
    """The panel of a word; `source` and `target` are language codes."""
    head = (
        f'<div class="tm-card-head"><h2>{esc(tr("What was read for"))} <b{lang_attribute(target)}>{esc(found.word)}</b></h2>'
        f'<button type="button" class="tm-text-button" data-close>{esc(tr("Close"))}</button></div>'
    )
    who = f'<p class="tm-quiet">{esc(system)}</p>'
    if not found.places:
        return _card(f"{head}{who}<p>{esc(told(found.why))}</p>")
    groups = _groups(found.places)
    shown = _heaviest(groups)
    sections = "".join(
        f'<div data-of="{key}"{"" if key == shown else " hidden"}>{_section(place, source, target)}</div>'
        for key, place in groups
    )
    turned = (
        f'<p class="tm-quiet">{esc(tr("Read as at strength 1; at {value} it counts for less.", value=f"{strength:g}"))}</p>'
        if strength < 1
        else ""
    )
    chooser, chart = (_chooser(groups, shown), _chart(groups, shown)) if len(groups) > 1 else ("", "")
    return _card(f"{head}{who}{chooser}{sections}{turned}") + chart


def waiting_panel(word: str) -> str:
    """While it is looked up."""
    return _card(
        f'<div class="tm-card-head"><h2>{esc(tr("What was read for"))} <b>{esc(word)}</b></h2></div><p>{esc(tr("Looking …"))}</p>'
    )


def _card(body: str) -> str:
    return f'<div class="tm-card tm-pad tm-reading" role="region" aria-label="{esc(tr("What was read"))}">{body}</div>'


def _groups(places: Sequence[Place]) -> list[tuple[str, Place]]:
    return [(f"{place.layer}-{place.place}", place) for place in places]


def _heaviest(groups: Sequence[tuple[str, Place]]) -> str:
    return max(groups, key=lambda group: abs(group[1].share))[0]


def _name(place: Place) -> str:
    where = tr(PLACES.get(place.place, place.place))
    return where if place.layer < 0 else tr("layer {number}, {where}", number=place.layer + 1, where=where)


def _chooser(groups: Sequence[tuple[str, Place]], shown: str) -> str:
    options = "".join(
        f'<option value="{key}"{" selected" if key == shown else ""}>{esc(_name(place))}</option>'
        for key, place in groups
    )
    return f'<label class="tm-reading-at">{esc(tr("at"))} <select data-at class="tm-plain-select">{options}</select></label>'


def _section(place: Place, source: str, target: str) -> str:
    title, meaning = KINDS.get(place.place, ("", FROM_MEMORY))
    head = f"<h3>{esc(tr(title))}</h3>" if title else ""
    most = max((item["weight"] for item in place.items), default=0.0) or 1.0
    items = "".join(_item(item, most, place, source, target) for item in place.items)
    share = tr(meaning, share=f"<b>{_percent(place.share)}</b>") if meaning else ""
    if place.place in ("self_attn", "encoder_attn"):
        rest = esc(tr("{share} the base’s own", share=_percent(1 - place.share)))
        share = f"{share} · {rest}" if place.share >= 0 else esc(_read(place.share))
    foot = f'<p class="tm-reading-foot">{share}</p>' if share else ""
    return f'{head}<ol class="tm-read">{items}</ol>{foot}'


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 or share <= 0 else tr("under 1 %")


def _item(item: dict[str, Any], most: float, place: Place, source: str, target: str) -> str:
    weight = float(item["weight"])
    text = str(item.get("text", ""))
    language = "" if place.place == "decoder" else target
    left_out = tr("item {number}, its text was left out of the plugin", number=f"{int(item.get('row', 0)) + 1:,}")
    shown = esc(text) if text else esc(left_out)
    facts = []
    if item.get("token"):
        facts.append(
            f"{esc(tr('next word there:'))} <b{lang_attribute(target)}>{esc(str(item['token']).replace('▁', ' ').strip())}</b>"
        )
    if item.get("distance") is not None:
        facts.append(esc(tr("distance {value}", value=f"{float(item['distance']):.1f}")))
    if item.get("relevance") is not None:
        facts.append(esc(tr("similarity {value}", value=f"{float(item['relevance']):.2f}")))
    below = f"<small>{' · '.join(facts)}</small>" if facts else ""
    if item.get("source"):
        below += f'<small class="tm-read-source" dir="auto"{lang_attribute(source)}>{esc(item["source"])}</small>'
    said = f"{weight:.2f}" if weight >= 0.005 else tr("under 0.01")
    width = max(0.0, min(100.0, 100 * weight / max(most, 1e-9)))
    return (
        f'<li><div><span dir="auto"{lang_attribute(language)}>{shown}</span><span class="num">{said}</span></div>'
        f'<div class="tm-bar" aria-hidden="true"><i style="width:{width:.0f}%"></i></div>{below}</li>'
    )


def _read(share: float) -> str:
    if share >= 0:
        return tr(FROM_MEMORY, share=_percent(share))
    return tr("{share} away from what was read", share=_percent(-share))


def _chart(groups: Sequence[tuple[str, Place]], shown: str) -> str:
    """The share that was read, by layer: a column each, to be pressed."""
    by_layer: dict[int, tuple[str, Place]] = {}
    for key, place in groups:
        if place.layer >= 0 and (place.layer not in by_layer or abs(place.share) > abs(by_layer[place.layer][1].share)):
            by_layer[place.layer] = (key, place)
    if len(by_layer) < 2 or groups[0][1].place == "decoder":  # of domains there is no share of memory
        return ""
    most = max(0.01, *(abs(place.share) for _, place in by_layer.values()))
    columns = "".join(
        f'<button type="button" data-layer="{key}" aria-pressed="{"true" if key == shown else "false"}" '
        f'aria-label="{esc(tr("layer {number}", number=layer + 1))}: {esc(_read(place.share))}" title="{esc(_read(place.share))}">'
        f'<i style="height:{max(3.0, 64 * abs(place.share) / most):.0f}px"{" class=tm-away" if place.share < 0 else ""}></i>'
        f"<span>{layer + 1}</span></button>"
        for layer, (key, place) in sorted(by_layer.items())
    )
    return (
        f'<div class="tm-card tm-pad tm-read-chart"><h2>{esc(tr("Read from memory, by layer"))}</h2>'
        f'<div class="tm-columns">{columns}</div></div>'
    )
