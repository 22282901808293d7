"""Placing the tags of a sentence (bold, a link, a picture) in its translation by word alignment.

A text with tags is a list of parts: pieces of text and tags. A pair (`open`, `close`) encloses the translation of the words
that it enclosed in the source; a standalone tag (`alone`) goes beside the same word. No tag is lost or duplicated, and pairs
stay nested.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of
from engine.decoding.word_alignment import Alignment

Range = tuple[int, int]
CUTS = 8  # maximum number of tags inside a word that are handled by splitting it; real words have fewer
SHARED = 3  # minimum number of shared characters at the edge of two different words
NEAR = 4  # words from a tag on that are considered for its position
STOPS = frozenset(".!?…。！？｡")  # characters that end a sentence


@dataclass
class TagNode:
    """A pair with its content, a standalone tag, or (the root) the whole text; positions are source characters."""

    id: int
    start: int
    end: int = -1
    alone: Tag | None = None
    children: list[TagNode] = field(default_factory=list)
    words: range = range(0)  # source words


def project(parts: Sequence[str | Tag], target: str, alignment: Alignment, *, spaced: bool = True) -> TaggedText:
    """The translation `target` with the tags of `parts`; `alignment` is between the text of `parts` and `target`.

    A pair around words is never left empty as long as there are words to enclose. Unpaired tags are treated as standalone. In a
    language with spaces, a standalone tag between two spaces keeps a space on both sides.
    """
    text = text_of(parts)
    root = _tree(parts, len(text))
    marks: list[tuple[int, Tag, bool]] = []
    links = Links(_divided(parts, text, target, alignment), target)
    _fit(root, links)
    _insert_tags(root, (0, len(links.target)), (0, len(target)), text, links, marks)
    result: TaggedText = []
    at = 0
    for position, tag, apart in marks:
        if position > at:
            result.append(target[at:position])
        at = max(at, position)
        before, after = target[at - 1 : at].isspace(), target[at : at + 1].isspace()
        pad = spaced and apart and 0 < at < len(target)
        result += [" ", tag] if pad and after and not before else [tag, " "] if pad and before and not after else [tag]
    return [*result, target[at:]] if at < len(target) else result


def _divided(parts: Sequence[str | Tag], text: str, target: str, alignment: Alignment) -> Alignment:
    """The alignment with words that contain a tag split there on both sides, if the translation has the same parts.

    Thus the 2 of H2O is aligned with the 2, and Inter of international with that of Internationales.
    """
    cuts: dict[int, set[int]] = {}  # {source word: positions inside it}
    ends, at = [end for _, end in alignment.source], 0
    for part in parts:
        if isinstance(part, str):
            at += len(part)
        elif (word := bisect_right(ends, at)) < len(ends) and alignment.source[word][0] < at:
            cuts.setdefault(word, set()).add(at - alignment.source[word][0])
    cuts = {word: places for word, places in cuts.items() if len(places) <= CUTS}
    divided: dict[int, tuple[int, list[int]]] = {}  # {target word: its source word, positions inside it}
    for index, (span, row) in enumerate(zip(alignment.target, alignment.weights, strict=True) if cuts else ()):
        word = max(row, key=row.__getitem__, default=-1)
        if word in cuts and (places := _places(text[slice(*alignment.source[word])], target[slice(*span)], cuts[word])):
            divided[index] = word, places
    if not divided:
        return alignment
    halved = {word for word, _ in divided.values()}
    source = [_cut(span, sorted(cuts[i]) if i in halved else []) for i, span in enumerate(alignment.source)]
    numbers = [*itertools.accumulate(map(len, source), initial=0)]
    spans: list[Range] = []
    weights: list[dict[int, float]] = []
    rows: dict[int, dict[int, float]] = {}  # keeps rows shared that were shared before
    for index, (span, row) in enumerate(zip(alignment.target, alignment.weights, strict=True)):
        word, places = divided.get(index, (-1, []))
        spans += _cut(span, places)
        if places:
            weights += [{numbers[word] + k: 1.0} for k in range(len(places) + 1)]
            continue
        if id(row) not in rows:
            rows[id(row)] = {numbers[i] + k: w / len(source[i]) for i, w in row.items() for k in range(len(source[i]))}
        weights.append(rows[id(row)])
    return Alignment([span for word in source for span in word], spans, weights)


def _places(word: str, other: str, cuts: set[int]) -> list[int]:
    """Positions of a word's cuts in another word with the same text before or after each; empty if any has none."""
    first, second = word.casefold(), other.casefold()
    if len(first) != len(word) or len(second) != len(other):
        return []
    head, tail = (_shared(first, second), _shared(first[::-1], second[::-1])) if first != second else (len(first), 0)
    places = []
    for cut in sorted(cuts):
        if cut <= head and (cut >= SHARED or first == second):
            places.append(cut)
        elif SHARED <= len(first) - cut <= tail:
            places.append(cut + len(second) - len(first))
        else:
            return []
    return places if places[0] > 0 and places[-1] < len(other) and places == sorted(set(places)) else []


def _shared(first: str, second: str) -> int:
    """The length of two texts' common prefix."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(first), len(second)))


def _cut(span: Range, places: Sequence[int]) -> list[Range]:
    edges = [span[0], *(span[0] + place for place in places), span[1]]
    return list(itertools.pairwise(edges))


class Links:
    """An alignment with the translation's text, and the first and last target word aligned with each source word."""

    def __init__(self, alignment: Alignment, text: str) -> None:
        self.text = text
        self.source, self.target, self.weights = alignment.source, alignment.target, alignment.weights
        self.ends = [end for _, end in self.source]
        self.reach: dict[int, Range] = {}  # {source word: target words, from the first to after the last}
        for rows in _runs(self.weights):
            for word in self.weights[rows[0]]:
                self.reach[word] = (self.reach.get(word, rows)[0], rows[1])

    def window(self, sources: range, words: Range) -> Range:
        """The target words in `words` from the first to the last one aligned with these source words; if none, (0, 0)."""
        reaches = [self.reach[word] for word in sources if word in self.reach]
        low = max(words[0], min((start for start, _ in reaches), default=0))
        high = min(words[1], max((end for _, end in reaches), default=0))
        return (low, high) if low < high else (0, 0)


def _runs(rows: Sequence[object]) -> Iterator[Range]:
    """Ranges of rows that are the same object, as words of an unaligned sentence may be."""
    start = 0
    for position in range(1, len(rows) + 1):
        if position == len(rows) or rows[position] is not rows[start]:
            yield start, position
            start = position


def _tree(parts: Sequence[str | Tag], length: int) -> TagNode:
    root = TagNode(-1, 0, length)
    stack, at = [root], 0
    pairs = _pairs(parts)
    closing = set(pairs.values())
    for index, part in enumerate(parts):
        if isinstance(part, str):
            at += len(part)
        elif part.kind == "open" and index in pairs:
            node = TagNode(part.id, at)
            stack[-1].children.append(node)
            stack.append(node)
        elif part.kind == "close" and index in closing:
            stack.pop().end = at
        else:
            stack[-1].children.append(TagNode(part.id, at, at, alone=part))
    return root


def _pairs(parts: Sequence[str | Tag]) -> dict[int, int]:
    """{index of an opening tag: index of its closing tag}, for correctly nested pairs."""
    result: dict[int, int] = {}
    stack: list[tuple[int, int]] = []
    for index, part in enumerate(parts):
        if isinstance(part, str) or part.kind == "alone":
            continue
        if part.kind == "open":
            stack.append((part.id, index))
        elif any(id == part.id for id, _ in stack):
            while stack[-1][0] != part.id:
                stack.pop()
            result[stack.pop()[1]] = index
    return result


def _fit(node: TagNode, links: Links) -> None:
    """Store the source words of each pair: those more than half inside it, otherwise the word that contains it."""
    first, end = bisect_right(links.ends, node.start), bisect_left(links.source, (node.end, 0))
    parts = [min(b, node.end) - max(a, node.start) for a, b in links.source[first:end]]
    inside = [first + i for i, (a, b) in enumerate(links.source[first:end]) if 2 * parts[i] > b - a]
    if not inside and max(parts, default=0) > 0:
        inside = [first + parts.index(max(parts))]
    node.words = range(inside[0], inside[-1] + 1) if inside else range(0)
    for child in node.children:
        _fit(child, links)


def _insert_tags(node: TagNode, words: Range, chars: Range, text: str, links: Links, marks: list[tuple[int, Tag, bool]]) -> None:
    """Add the tags of a node, which covers the target's `words` and `chars`, to `marks` in text order."""
    pairs = [child for child in node.children if child.words]
    chosen = _spans(pairs, node.words, words, links)
    occupied = sorted(chosen.values())
    placed: list[tuple[int, int, int, TagNode, Range]] = []
    for order, child in enumerate(node.children):
        if id(child) in chosen:
            span = chosen[id(child)]
            start = links.target[span[0]][0] if span[0] < span[1] else _between(span[0], chars, links)
            end = links.target[span[1] - 1][1] if span[0] < span[1] else start
            placed.append((start, end, order, child, span))
        else:
            at = _beside(child, node, words, chars, text, links, occupied)
            placed.append((at, at, order, child, (0, 0)))
    # If a standalone tag and a pair meet, their order is kept; an empty pair never ends up inside its neighbour.
    placed.sort(key=lambda item: (item[0], item[1], item[2]))
    for start, end, _, child, span in placed:
        if child.alone is not None:
            apart = text[child.start - 1 : child.start].isspace() and text[child.start : child.start + 1].isspace()
            marks.append((start, child.alone, apart))
            continue
        marks.append((start, Tag("open", child.id), False))
        _insert_tags(child, span, (start, end), text, links, marks)
        marks.append((end, Tag("close", child.id), False))


def _spans(pairs: list[TagNode], parent: range, words: Range, links: Links) -> dict[int, Range]:
    """The target words of each pair, as {id of the node: range}, without overlaps.

    Pairs are placed in order of decreasing gain. A pair's best range is only recomputed if another pair has taken part of it;
    otherwise its gain is unchanged.
    """
    spans: dict[int, Range] = {}
    occupied = bytearray(words[1] + 1)  # 1 at target words that are taken
    queue = [(-math.inf, order) for order in range(len(pairs))]
    best: dict[int, tuple[float, Range]] = {}
    while queue:
        _, order = heapq.heappop(queue)
        if order not in best or 1 in occupied[slice(*best[order][1])]:
            best[order] = _best(pairs[order], parent, words, occupied, links)
            heapq.heappush(queue, (-best[order][0], order))
            continue
        start, end = spans[id(pairs[order])] = best[order][1]
        occupied[start:end] = bytes([1]) * (end - start)
    return spans


def _best(child: TagNode, parent: range, words: Range, occupied: bytearray, links: Links) -> tuple[float, Range]:
    """(gain, target words): the free range with the most words that come from the child and the fewest that do not."""
    low, high = words
    if len(child.words) == len(parent) and 1 not in occupied:
        return math.inf, words
    best, span = 0.0, (-1, -1)
    gain, start = 0.0, low
    single, lone = -1.0, -1
    shares: dict[int, tuple[float, float]] = {}  # by id of the row: words of a sentence may share one
    for t in range(*links.window(child.words, words)):
        if occupied[t]:
            gain, start = 0.0, t + 1
            continue
        row = links.weights[t]
        if id(row) not in shares:
            inside = sum(weight for s, weight in row.items() if s in child.words)
            shares[id(row)] = inside, sum(weight for s, weight in row.items() if s in parent) - inside
        inside, outside = shares[id(row)]
        if inside > single:
            single, lone = inside, t
        if gain <= 0:
            gain, start = 0.0, t
        gain += inside - outside
        if gain > best:
            best, span = gain, (start, t + 1)
    if best > 0:
        return best, span
    if single <= 0 and (free := occupied.find(0, low, high)) >= 0:
        return -1.0, (free, free + 1)
    if lone >= 0:
        return single - 1.0, (lone, lone + 1)
    # Every word is in another pair already: place the pair between words, at its relative position in the source.
    share = (child.words.start - parent.start) / max(1, len(parent))
    return -2.0, (position := low + round(share * (high - low)), position)


def _between(word: int, chars: Range, links: Links) -> int:
    """The character position before a target word, within `chars`."""
    position = links.target[word][0] if word < len(links.target) else chars[1]
    return min(max(position, chars[0]), chars[1])


def _beside(child: TagNode, parent: TagNode, words: Range, chars: Range, text: str, links: Links, occupied: list[Range]) -> int:
    """The position of a standalone tag or an empty pair: beside the word that it was beside, never inside another pair."""
    before = min(bisect_right(links.ends, child.start), parent.words.stop) - 1
    after = max(bisect_left(links.source, (child.end, 0)), parent.words.start)
    if before < parent.words.start or after >= parent.words.stop or words[0] >= words[1]:
        return chars[0] if before < parent.words.start else chars[1]
    left = links.source[before][1] == child.start
    right = links.source[after][0] == child.end
    to_right = right and not left
    if left and right and text[slice(*links.source[after])] in STOPS:  # a footnote mark precedes the full stop
        stop = _closest(after, words, links)
        if links.text[slice(*links.target[stop])] in STOPS:
            to_right = True
    away = range(after, parent.words.stop) if to_right else range(before, parent.words.start - 1, -1)
    word = next((i for i in away[:NEAR] if i in links.reach), away[0])  # "a" has no translation, "a helmet" has
    position = _whole(word, _closest(word, words, links), words, links, text, to_right=to_right)
    span = occupied[bisect_right(occupied, (position, len(links.target))) - 1] if occupied else (0, 0)
    if span[0] <= position < span[1]:  # a pair that the tag was outside of is not split
        position = span[0] if to_right else span[1] - 1
    return links.target[position][0 if to_right else 1]


def _closest(word: int, words: Range, links: Links) -> int:
    """The target word in `words` with the largest weight for a source word, the first if several."""
    near = range(*links.window(range(word, word + 1), words)) or range(*words)
    return max(near, key=lambda t: (links.weights[t].get(word, 0.0), -t))


def _whole(word: int, position: int, words: Range, links: Links, text: str, *, to_right: bool) -> int:
    """The last (`to_right`: first) target word of the range around `position` that is aligned with a source word.

    In languages without spaces each character is a separate word. Characters aligned with the same word form one range; those
    of one vocabulary piece have the same weights, and no tag goes between them either.
    """
    step = -1 if to_right else 1
    if not text[slice(*links.source[word])][0].isalnum():
        return position
    while words[0] <= position + step < words[1]:
        current, beyond = links.weights[position], links.weights[position + step]
        if beyond is current or not links.text[links.target[position + step][0]].isalnum():
            break  # words of an unaligned sentence share one row
        if beyond != current and max(beyond, key=beyond.__getitem__, default=-1) != word:
            break
        position += step
    return position
