"""Putting the tags of a sentence (bold, a link, a picture) into its translation, by the alignment of their words.

A text with tags is a list of parts: pieces of text and tags. A pair (`open`, `close`) goes around the stretch of the
translation that comes from the words it was around; a lone tag (`alone`) goes beside the word that it was beside. No tag is
lost, none is doubled, and pairs stay nested as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.decoding.align import Alignment

__all__ = ["Parts", "Tag", "project", "text_of"]


@dataclass(frozen=True)
class Tag:
    """A tag in a text. The two of a pair have the same `id`, which nothing else in the text has."""

    kind: Literal["open", "close", "alone"]
    id: int


Parts = list[str | Tag]


def text_of(parts: Sequence[str | Tag]) -> str:
    """The text without the tags."""
    return "".join(part for part in parts if isinstance(part, str))


@dataclass
class Node:
    """A pair with what is in it, a lone tag, or (the root) the whole text; places are characters of the source."""

    id: int
    start: int
    end: int = -1
    alone: Tag | None = None
    children: list[Node] = field(default_factory=list)
    words: range = range(0)  # of the source


def project(parts: Sequence[str | Tag], target: str, alignment: Alignment, *, spaced: bool = True) -> Parts:
    """The translation `target` with the tags of `parts`; `alignment` is between the text of `parts` and `target`.

    A pair around words is never left around nothing while there are words to go around. Tags that do not pair up are
    treated as lone ones. In a language with spaces, a lone tag that stood between two spaces does so again.
    """
    text = text_of(parts)
    root = _tree(parts, len(text))
    marks: list[tuple[int, Tag, bool]] = []
    _fit(root, alignment)
    _place(root, (0, len(alignment.target)), (0, len(target)), text, alignment, marks)
    result: Parts = []
    at = 0
    for place, tag, apart in marks:
        if place > at:
            result.append(target[at:place])
        at = max(at, place)
        before, after = target[at - 1 : at].isspace(), target[at : at + 1].isspace()
        pad = spaced and apart and 0 < at < len(target)
        result += [" ", tag] if pad and after and not before else [tag, " "] if pad and before and not after else [tag]
    return [*result, target[at:]] if at < len(target) else result


def _tree(parts: Sequence[str | Tag], length: int) -> Node:
    root = Node(-1, 0, length)
    stack, at = [root], 0
    pairs = _pairs(parts)
    closing = set(pairs.values())
    for place, part in enumerate(parts):
        if isinstance(part, str):
            at += len(part)
        elif part.kind == "open" and place in pairs:
            node = Node(part.id, at)
            stack[-1].children.append(node)
            stack.append(node)
        elif part.kind == "close" and place in closing:
            stack.pop().end = at
        else:
            stack[-1].children.append(Node(part.id, at, at, alone=part))
    return root


def _pairs(parts: Sequence[str | Tag]) -> dict[int, int]:
    """{place of an opening tag: place of its closing one}, for those that are nested as they should be."""
    found: dict[int, int] = {}
    stack: list[tuple[int, int]] = []
    for place, part in enumerate(parts):
        if isinstance(part, str) or part.kind == "alone":
            continue
        if part.kind == "open":
            stack.append((part.id, place))
        elif any(id == part.id for id, _ in stack):
            while stack[-1][0] != part.id:
                stack.pop()
            found[stack.pop()[1]] = place
    return found


def _fit(node: Node, alignment: Alignment) -> None:
    """Note which source words each pair is around: those that lie in it by more than half, else the one it is in."""
    parts = [(min(b, node.end) - max(a, node.start), a, b) for a, b in alignment.source]
    inside = [i for i, (part, a, b) in enumerate(parts) if 2 * part > b - a]
    if not inside and max(parts, default=(0, 0, 0))[0] > 0:
        inside = [max(range(len(parts)), key=lambda i: parts[i][0])]
    node.words = range(inside[0], inside[-1] + 1) if inside else range(0)
    for child in node.children:
        _fit(child, alignment)


Range = tuple[int, int]


def _place(
    node: Node, words: Range, chars: Range, text: str, alignment: Alignment, marks: list[tuple[int, Tag, bool]]
) -> None:
    """Add the tags in a node, which has the target's `words` and `chars`, to `marks` in the order in which they stand."""
    pairs = [child for child in node.children if child.words]
    chosen = _spans(pairs, node.words, words, alignment)
    placed: list[tuple[int, int, int, Node, Range]] = []
    for order, child in enumerate(node.children):
        if id(child) in chosen:
            span = chosen[id(child)]
            start = alignment.target[span[0]][0] if span[0] < span[1] else _between(span[0], chars, alignment)
            end = alignment.target[span[1] - 1][1] if span[0] < span[1] else start
            placed.append((start, end, order, child, span))
        else:
            at = _beside(child, node, words, chars, text, alignment, list(chosen.values()))
            placed.append((at, at, order, child, (0, 0)))
    # Where a lone tag and a pair meet, what was first stays first; what is empty never lands inside its neighbour.
    placed.sort(key=lambda one: (one[0], one[1], one[2]))
    for start, end, _, child, span in placed:
        if child.alone is not None:
            apart = text[child.start - 1 : child.start].isspace() and text[child.start : child.start + 1].isspace()
            marks.append((start, child.alone, apart))
            continue
        marks.append((start, Tag("open", child.id), False))
        _place(child, span, (start, end), text, alignment, marks)
        marks.append((end, Tag("close", child.id), False))


def _spans(pairs: list[Node], parent: range, words: Range, alignment: Alignment) -> dict[int, Range]:
    """The target words for each of the pairs, as {id of the node: range}; they do not overlap."""
    taken: dict[int, Range] = {}
    waiting = list(pairs)
    while waiting:
        found = [_best(child, parent, words, list(taken.values()), alignment) for child in waiting]
        first = max(range(len(waiting)), key=lambda k: (found[k][0], -k))
        taken[id(waiting.pop(first))] = found[first][1]
    return taken


def _best(child: Node, parent: range, words: Range, taken: list[Range], alignment: Alignment) -> tuple[float, Range]:
    """(gain, target words): the free stretch with the most words that come from the child and the fewest that do not."""
    low, high = words
    if len(child.words) == len(parent) and not taken:
        return float("inf"), words
    best, span = 0.0, (-1, -1)
    gain, start = 0.0, low
    single, lone = -1.0, -1
    for t in range(low, high):
        if any(a <= t < b for a, b in taken):
            gain, start = 0.0, t + 1
            continue
        row = alignment.weights[t]
        inside = sum(weight for s, weight in row.items() if s in child.words)
        outside = sum(weight for s, weight in row.items() if s in parent) - inside
        if inside > single:
            single, lone = inside, t
        if gain <= 0:
            gain, start = 0.0, t
        gain += inside - outside
        if gain > best:
            best, span = gain, (start, t + 1)
    if best > 0:
        return best, span
    if lone >= 0:
        return single - 1.0, (lone, lone + 1)
    # Every word has a tag of its own already: the pair stands between words, where it stood in the source.
    share = (child.words.start - parent.start) / max(1, len(parent))
    return -2.0, (place := low + round(share * (high - low)), place)


def _between(word: int, chars: Range, alignment: Alignment) -> int:
    """The character before a target word, within `chars`."""
    place = alignment.target[word][0] if word < len(alignment.target) else chars[1]
    return min(max(place, chars[0]), chars[1])


def _beside(
    child: Node, parent: Node, words: Range, chars: Range, text: str, alignment: Alignment, taken: list[Range]
) -> int:
    """Where a lone tag, or a pair around nothing, goes: beside the word that it was beside, never inside a pair."""
    before = [s for s in parent.words if alignment.source[s][1] <= child.start]
    after = [s for s in parent.words if alignment.source[s][0] >= child.end]
    if not before or not after or words[0] >= words[1]:
        return chars[0] if not before else chars[1]
    left = alignment.source[before[-1]][1] == child.start
    right = alignment.source[after[0]][0] == child.end
    to_right = right and not left
    word = after[0] if to_right else before[-1]
    place = max(range(*words), key=lambda t: (alignment.weights[t].get(word, 0.0), -t))
    for a, b in taken:  # a pair that the tag was outside of stays whole
        if a <= place < b:
            place = a if to_right else b - 1
    return alignment.target[place][0 if to_right else 1]
