"""The memory read for one word of a translation: phrases by layer, neighbours, retrieved sentences, domains."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.base.adapter import active_adapter
from engine.decoding.candidates import Candidate, candidates
from engine.errors import InputError, OptionError
from engine.messages import Message, mark

if TYPE_CHECKING:
    from engine.plugins import Plugin

TOP = 5
MARK = "\u2581"  # SentencePiece's space
BYTE = re.compile(r"^<0x[0-9A-F]{2}>$")


@dataclass(frozen=True)
class MemoryRead:
    """What was read at one position in the model, averaged over the word's tokens.

    `layer` counts from 0, -1 is the output; `share` (0 to 1) is the part from memory instead of the base; `items` are {"text",
    "source", "weight", …}, heaviest first. Datastore items also have `text_span`, the characters of the retrieved word, and
    `source_span`, those of its source.
    """

    layer: int
    place: str
    share: float
    items: list[dict[str, Any]]


@dataclass(frozen=True)
class WordAttribution:
    """`word` is the text of all tokens that overlap the requested characters, from `start` to `end`. `reads` is empty if nothing
    was read; `why` then gives the reason. `by_base` are the words with which the base would continue here, likeliest first,
    `by_plugin` those of the plugin that wrote the text; empty without a plugin, or if it returns no probabilities.
    """

    word: str
    start: int
    end: int
    reads: list[MemoryRead]
    why: str = ""
    by_base: list[Candidate] = field(default_factory=list)
    by_plugin: list[Candidate] = field(default_factory=list)


def read_word(plugin: Plugin | None, base: BaseModel, source: str, text: str, start: int, end: int) -> WordAttribution:
    """What `plugin` read for the characters `start` to `end` of its translation `text`, by teacher forcing at strength 1.

    `plugin` None is the base alone. Raises InputError on characters outside the text, or a sentence too long for the base.
    """
    if not 0 <= start < end <= len(text):
        raise InputError("That word is no longer in the translation. Click it again.")
    if not base.fits(source, text):
        raise InputError("This sentence is longer than the base can process, so it cannot be inspected. Split it.")
    with base.lock:
        result = spans(base, text)
    touched = [index for index, span in enumerate(result) if span and span[0] < end and span[1] > start]
    touched_spans = [span for index in touched if (span := result[index])]
    start, end = (touched_spans[0][0], touched_spans[-1][1]) if touched_spans else (start, end)
    reads, why = _memory_reads(plugin, base, source, text, touched)
    by_base = words_at(base, source, text, touched[:1])
    by_plugin = words_at(base, source, text, touched[:1], plugin) if plugin is not None else []
    return WordAttribution(text[start:end].strip(), start, end, reads, why, by_base, by_plugin)


def words_at(base: BaseModel, source: str, text: str, position: Sequence[int], plugin: Plugin | None = None) -> list[Candidate]:
    """The candidate words of base or plugin at the given token positions of `text`; empty without positions or probabilities."""
    with base.lock:
        ids = base.encode_target([text])[0]
    try:
        return [candidate for at in position for candidate in candidates(base, source, ids[:at], plugin)]
    except OptionError:
        return []


def _memory_reads(
    plugin: Plugin | None, base: BaseModel, source: str, text: str, touched: Sequence[int]
) -> tuple[list[MemoryRead], str]:
    """What was read for the tokens `touched`, or why nothing was."""
    if plugin is None:
        return [], mark("The base alone wrote this. It has no memory to read from.")
    if active_adapter(base, source, plugin, 1.0) is None:
        return [], mark("This sentence is unlike the samples, so the plugin's domain filter left it to the base.")
    if not (plugin.method.capabilities.offers_reads or plugin.knn is not None):
        return [], Message(
            "{method} reads nothing: what it has learned is in its weights.", method=Message(plugin.method.capabilities.title)
        )
    rows = plugin.attributions(base, source, text, top=4 * TOP)
    selected = [row for row in rows if row["position"] in touched or row["place"] == "prompt"]
    reads = with_words(base, merged(selected, TOP))
    return reads, "" if reads else mark("Nothing was retrieved for this word: the base was sufficiently confident.")


def spans(base: BaseModel, text: str) -> list[tuple[int, int] | None]:
    """The character offsets of each target token in a text; None for special tokens.

    Characters that the tokenizer spells differently, or as bytes, are assigned to the first token between their neighbours.
    """
    ids = base.encode_target([text])[0]
    pieces = base.tokenizer.convert_ids_to_tokens(ids)
    spelled, owners = "", []
    for index, (token, piece) in enumerate(zip(ids, pieces, strict=True)):
        piece_text = "" if token in base.special_ids else BYTE.sub("\ufffd", piece).replace(MARK, " ")
        spelled += piece_text
        owners += [index] * len(piece_text)
    results: list[tuple[int, int] | None] = [None] * len(ids)
    for block in difflib.SequenceMatcher(None, spelled, text, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            index, at = owners[block.a + i], block.b + i
            if not text[at].isspace():
                previous = results[index]
                results[index] = (previous[0] if previous else at, at + 1)
    lone = [p for p in range(len(ids)) if results[p] is None and p in owners and spelled[owners.index(p) :].strip()]
    for index in lone:
        before = max((span[1] for span in results[:index] if span), default=0)
        after = min((span[0] for span in results[index + 1 :] if span), default=len(text))
        gap = text[before:after]
        if gap.strip():
            begin = before + len(gap) - len(gap.lstrip())
            results[index] = (begin, begin + len(gap.strip()))
    return results


def with_words(base: BaseModel, reads: list[MemoryRead]) -> list[MemoryRead]:
    """Add the spans of their words to neighbours of a datastore: the next word there, and the source word that it was translated
    from, by the base's attention.
    """
    from engine.decoding.word_alignment import align

    near = [item for read in reads for item in read.items if "at" in item and item["text"]]
    if not near:
        return reads
    for item, result in zip(near, align(base, [(item["source"] or "", item["text"]) for item in near]), strict=True):
        with base.lock:
            token_spans = spans(base, item["text"])
        span = token_spans[item["at"]] if item["at"] < len(token_spans) else None
        if span is None:
            continue
        word = next((j for j, (a, b) in enumerate(result.target) if a < span[1] and span[0] < b), None)
        item["text_span"] = span if word is None else result.target[word]
        if word is not None and result.weights[word]:
            item["source_span"] = result.source[max(result.weights[word].items(), key=lambda entry: entry[1])[0]]
    return reads


def merged(rows: Sequence[Mapping[str, Any]], top: int) -> list[MemoryRead]:
    """Rows of single tokens merged by layer and place, with the means of the shares and of each item's weights."""
    groups: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((int(row["layer"]), str(row["place"])), []).append(row)
    reads = []
    for (layer, position), group in sorted(groups.items()):
        items: dict[Any, dict[str, Any]] = {}
        for row in group:
            for item in row["items"]:
                key = (item.get("row"), item["text"], item["source"])
                if key in items:
                    items[key]["weight"] += item["weight"] / len(group)
                else:
                    items[key] = {**item, "weight": item["weight"] / len(group)}
        best = sorted(items.values(), key=lambda item: -item["weight"])[:top]
        share = 1 - sum(float(row["gate"]) for row in group) / len(group)
        reads.append(MemoryRead(layer, position, share, best))
    return reads
