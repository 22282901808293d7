"""What was read from memory for a word, as a panel: the words that weigh most, a bar each, by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.comparison.reading import Place, Reading
from studio.html import esc, lang_attribute

__all__ = ["reading_panel", "waiting_panel"]

PLACES = {
    "self_attn": "self-attention",
    "encoder_attn": "cross-attention",
    "decoder": "decoder",
    "datastore": "kNN datastore",
    "output": "output",
    "prompt": "request",
}
# What the items of a place are, and what its share means.
KINDS = {
    "datastore": ("Neighbours in the samples", "of the word's probability came from them"),
    "output": ("Sentences found", "of the word's probability was copied from them"),
    "prompt": ("Samples in the request", ""),
    "decoder": ("Domains", ""),
    "encoder_attn": ("", "read from memory"),
    "self_attn": ("", "read from memory"),
}


def reading_panel(found: Reading, *, system: str, strength: float, source: str, target: str) -> str:
    """The panel of a word; `source` and `target` are language codes."""
    head = (
        f'<div class="tm-card-head"><h2>What was read for <b{lang_attribute(target)}>{esc(found.word)}</b></h2>'
        '<button type="button" class="tm-text-button" data-close aria-label="Close">Close</button></div>'
    )
    who = f'<p class="tm-quiet">{esc(system)}</p>'
    if not found.places:
        return _card(f"{head}{who}<p>{esc(found.why)}</p>")
    groups = _groups(found.places)
    shown = _heaviest(groups)
    sections = "".join(
        f'<div data-of="{key}"{"" if key == shown else " hidden"}>{_section(place, source, target)}</div>'
        for key, place in groups
    )
    turned = (
        f'<p class="tm-quiet">Read as at strength 1; at {strength:g} it counts for less.</p>' if strength < 1 else ""
    )
    chooser, chart = (_chooser(groups, shown), _chart(groups, shown)) if len(groups) > 1 else ("", "")
    return _card(f"{head}{who}{chooser}{sections}{turned}") + chart


def waiting_panel(word: str) -> str:
    """While it is looked up."""
    return _card(f'<div class="tm-card-head"><h2>What was read for <b>{esc(word)}</b></h2></div><p>Looking …</p>')


def _card(body: str) -> str:
    return f'<div class="tm-card tm-pad tm-reading" role="region" aria-label="What was read">{body}</div>'


def _groups(places: Sequence[Place]) -> list[tuple[str, Place]]:
    return [(f"{place.layer}-{place.place}", place) for place in places]


def _heaviest(groups: Sequence[tuple[str, Place]]) -> str:
    return max(groups, key=lambda group: abs(group[1].share))[0]


def _name(place: Place) -> str:
    where = PLACES.get(place.place, place.place)
    return where if place.layer < 0 else f"layer {place.layer + 1}, {where}"


def _chooser(groups: Sequence[tuple[str, Place]], shown: str) -> str:
    options = "".join(
        f'<option value="{key}"{" selected" if key == shown else ""}>{esc(_name(place))}</option>'
        for key, place in groups
    )
    return f'<label class="tm-reading-at">at <select data-at class="tm-plain-select">{options}</select></label>'


def _section(place: Place, source: str, target: str) -> str:
    title, meaning = KINDS.get(place.place, ("", "read from memory"))
    head = f"<h3>{esc(title)}</h3>" if title else ""
    most = max((item["weight"] for item in place.items), default=0.0) or 1.0
    items = "".join(_item(item, most, place, source, target) for item in place.items)
    share = f"<b>{_percent(place.share)}</b> {meaning}" if meaning else ""
    if place.place in ("self_attn", "encoder_attn"):
        rest = f"{_percent(1 - place.share)} the base’s own"
        share = f"{share} · {rest}" if place.share >= 0 else _read(place.share)
    foot = f'<p class="tm-reading-foot">{share}</p>' if share else ""
    return f'{head}<ol class="tm-read">{items}</ol>{foot}'


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 or share <= 0 else "under 1 %"


def _item(item: dict[str, Any], most: float, place: Place, source: str, target: str) -> str:
    weight = float(item["weight"])
    text = str(item.get("text", ""))
    language = "" if place.place == "decoder" else target
    shown = esc(text) if text else f"item {int(item.get('row', 0)) + 1:,}, its text was left out of the plugin"
    facts = []
    if item.get("token"):
        facts.append(
            f"next word there: <b{lang_attribute(target)}>{esc(str(item['token']).replace('▁', ' ').strip())}</b>"
        )
    if item.get("distance") is not None:
        facts.append(f"distance {float(item['distance']):.1f}")
    if item.get("relevance") is not None:
        facts.append(f"similarity {float(item['relevance']):.2f}")
    below = f"<small>{' · '.join(facts)}</small>" if facts else ""
    if item.get("source"):
        below += f'<small class="tm-read-source" dir="auto"{lang_attribute(source)}>{esc(item["source"])}</small>'
    said = f"{weight:.2f}" if weight >= 0.005 else "under 0.01"
    width = max(0.0, min(100.0, 100 * weight / max(most, 1e-9)))
    return (
        f'<li><div><span dir="auto"{lang_attribute(language)}>{shown}</span><span class="num">{said}</span></div>'
        f'<div class="tm-bar" aria-hidden="true"><i style="width:{width:.0f}%"></i></div>{below}</li>'
    )


def _read(share: float) -> str:
    return f"{_percent(share)} read from memory" if share >= 0 else f"{_percent(-share)} away from what was read"


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
        f'aria-label="layer {layer + 1}: {_read(place.share)}" title="{_read(place.share)}">'
        f'<i style="height:{max(3.0, 64 * abs(place.share) / most):.0f}px"{" class=tm-away" if place.share < 0 else ""}></i>'
        f"<span>{layer + 1}</span></button>"
        for layer, (key, place) in sorted(by_layer.items())
    )
    return (
        '<div class="tm-card tm-pad tm-read-chart"><h2>Read from memory, by layer</h2>'
        f'<div class="tm-columns">{columns}</div></div>'
    )
