"""The attribution panel: the memory entries read for a word, as bars by weight, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.workflows.compare.attribution import MemoryRead, WordAttribution
from studio.components.html import parted
from studio.components.templating import render
from studio.i18n.translate import mark, percent, tr, translate_message

MODULE_NAMES = {
    "self_attn": mark("self-attention"),
    "encoder_attn": mark("cross-attention"),
    "decoder": mark("decoder"),
    "datastore": mark("kNN datastore"),
    "output": mark("output"),
    "prompt": mark("request"),
}
SHARE = "\0"  # placeholder at which a translated sentence is split around its figure
FROM_MEMORY = mark("{share} read from memory")
# By place of reading: the title of its items, and the meaning of its share.
KINDS = {
    "datastore": (mark("Nearest neighbours in the samples"), mark("{share} of the word's probability came from them")),
    "output": (mark("Sentences retrieved"), mark("{share} of the word's probability was copied from them")),
    "prompt": (mark("Samples in the request"), ""),
    "decoder": (mark("Domains"), ""),
    "encoder_attn": ("", FROM_MEMORY),
    "self_attn": ("", FROM_MEMORY),
}


@dataclass(frozen=True)
class Item:
    """A memory entry with its weight. Texts are triples: the text before the marked word, the word, and the text after it."""

    text: tuple[str, str, str]
    language: str
    weight: str
    width: float  # per cent of the heaviest
    token: str
    facts: Sequence[str]
    source: tuple[str, str, str] | None


@dataclass(frozen=True)
class Group:
    """All entries read at one place of the model; `foot` explains its share: text before the figure, the figure, text after it."""

    key: str
    read: MemoryRead
    name: str
    title: str
    entries: Sequence[Item]
    foot: tuple[str, str, str] | None


def reading_panel(attribution: WordAttribution, *, system: str, strength: float, source: str, target: str) -> str:
    """The panel for a word as HTML; `source` and `target` are language codes."""
    groups = [_group(read, target) for read in attribution.reads]
    return render(
        "reading_panel.html",
        waiting=False,
        word=attribution.word,
        why=translate_message(attribution.why),
        system=system,
        strength=strength,
        source=source,
        target=target,
        groups=groups,
        words=_words(attribution, system),
        open=max(groups, key=lambda group: abs(group.read.share)).key if groups else "",
        columns=_columns(groups),
    )


def waiting_panel(word: str) -> str:
    """The panel while the attribution of a word is computed."""
    return render("reading_panel.html", waiting=True, word=word, target="")


def _group(read: MemoryRead, target: str) -> Group:
    name = tr(MODULE_NAMES.get(read.place, read.place))
    if read.layer >= 0:
        name = tr("layer {number}, {where}", number=read.layer + 1, where=name)
    title, meaning = KINDS.get(read.place, ("", FROM_MEMORY))
    heaviest = max((item["weight"] for item in read.items), default=0.0) or 1.0
    items = [_item(item, heaviest, "" if read.place == "decoder" else target) for item in read.items]
    return Group(f"{read.layer}-{read.place}", read, name, title, items, _foot(read, meaning))


def _foot(read: MemoryRead, meaning: str) -> tuple[str, str, str] | None:
    if not meaning:
        return None
    base_share = ""
    if read.place in ("self_attn", "encoder_attn"):
        if read.share < 0:
            return _share_line(read.share), "", ""
        base_share = " · " + tr("{share} from the base", share=_percent(1 - read.share))
    before, after = tr(meaning, share=SHARE).split(SHARE)
    return before, _percent(read.share), after + base_share


def _words(attribution: WordAttribution, system: str) -> list[dict[str, object]]:
    """The most probable words at this position, one column each for the base and the system."""
    columns = [(tr("Vanilla"), attribution.by_base), (system, attribution.by_plugin)]
    return [
        {
            "name": name,
            "words": [
                {
                    "text": word.text or tr("end of sentence"),
                    "share": _percent(word.probability),
                    "width": 100 * word.probability,
                    "here": word.text == attribution.word,
                    "said": bool(word.text),
                }
                for word in words
            ],
        }
        for name, words in columns
        if words
    ]


def _percent(share: float) -> str:
    return percent(share) if share >= 0.005 or share <= 0 else tr("under 1 %")


def _item(item: Mapping[str, Any], heaviest: float, language: str) -> Item:
    weight, text = float(item["weight"]), str(item.get("text", ""))
    left_out = tr("entry {number} (the plugin does not include its text)", number=f"{int(item.get('row', 0)) + 1:,}")
    facts = []
    if item.get("distance") is not None:
        facts.append(tr("distance {value}", value=f"{float(item['distance']):.1f}"))
    if item.get("relevance") is not None:
        facts.append(tr("similarity {value}", value=f"{float(item['relevance']):.2f}"))
    return Item(
        text=parted(text, item.get("text_span")) if text else (left_out, "", ""),
        language=language,
        weight=f"{weight:.2f}" if weight >= 0.005 else tr("under 0.01"),
        width=max(0.0, min(100.0, 100 * weight / max(heaviest, 1e-9))),
        token=str(item.get("token") or "").replace("▁", " ").strip(),
        facts=facts,
        source=parted(str(item["source"]), item.get("source_span")) if item.get("source") else None,
    )


def _share_line(share: float) -> str:
    if share >= 0:
        return tr(FROM_MEMORY, share=_percent(share))
    return tr("Gate −{share}", share=_percent(-share))


def _columns(groups: Sequence[Group]) -> list[dict[str, object]]:
    """The share read from memory by layer, as clickable columns."""
    by_layer: dict[int, Group] = {}
    for group in groups:
        layer, share = group.read.layer, group.read.share
        if layer >= 0 and (layer not in by_layer or abs(share) > abs(by_layer[layer].read.share)):
            by_layer[layer] = group
    if len(by_layer) < 2 or groups[0].read.place == "decoder":  # domains have no memory share
        return []
    largest = max(0.01, *(abs(group.read.share) for group in by_layer.values()))
    return [
        {
            "key": group.key,
            "layer": layer + 1,
            "title": _share_line(group.read.share),
            "height": max(3.0, 64 * abs(group.read.share) / largest),
            "away": group.read.share < 0,
        }
        for layer, group in sorted(by_layer.items())
    ]
