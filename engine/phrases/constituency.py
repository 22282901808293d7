"""Phrases from constituency trees: every constituent, from single words to whole clauses (paper 1, section 4.2).

Rules:
- every node except the root (ROOT, TOP) is a phrase; a clause that covers the whole sentence is a regular constituent;
- punctuation at the edges is removed, punctuation inside stays ("to be, or not to be");
- nodes over the same words are one phrase with the topmost specific label (NP over PRP gives NP);
- a single word is a phrase of length 1, labelled by its part of speech or by the node that holds only it.
"""

from __future__ import annotations

import re
from typing import Any

from engine.phrases.parsed_sentence import Parsed, token_spans
from engine.phrases.token_spans import Span
from engine.phrases.types import Tree

ROOTS = frozenset({"ROOT", "TOP", "S1", ""})
VAGUE = frozenset({"X", "FRAG", "DUMMY"})  # unspecific labels: a label below says more


def constituency_spans(parsed: Parsed) -> list[Span]:
    """All constituents as token spans, parents first. Empty if the tree's leaves are not the sentence's words."""
    if parsed.tree is None:
        return []
    rows = _walk(parsed.tree)
    if not rows or rows[0][1] != len(parsed.words):
        return []
    best: dict[tuple[int, int], str] = {}  # in order of first appearance, so parents stay first
    for first, last, raw in rows:
        label = _plain(raw)
        if label in ROOTS:
            continue
        existing = best.setdefault((first, last), label)
        if existing in VAGUE and label not in VAGUE:
            best[first, last] = label
    return token_spans([(first, last, label) for (first, last), label in best.items()], parsed)


def constituency_tree(parsed: Parsed, text: str) -> Tree | None:
    """The tree for drawing, each node with its exact text; None if it does not fit the sentence."""
    rows = _walk(parsed.tree) if parsed.tree is not None else []
    if not rows or rows[0][1] != len(parsed.words):
        return None
    position, leaf = len(rows), len(parsed.words)
    built: list[Tree] = []  # nodes still without a parent, leftmost last
    for node in reversed(list(_nodes(parsed.tree))):
        if not node.children:
            leaf -= 1
            continue
        position -= 1
        first, last, label = rows[position]
        if all(not child.children for child in node.children):
            built.append(Tree(_plain(label), parsed.words[first]))
            continue
        children = tuple(built.pop() for _ in node.children)
        start, end = parsed.offsets[parsed.token_of[first]][0], parsed.offsets[parsed.token_of[last - 1]][1]
        built.append(Tree(_plain(label), text[start:end], children))
    return built[0]


def _plain(label: str | None) -> str:
    """The label without suffixes: NP-SBJ, NP=2 and NP#1 become NP; tags such as -LRB- stay."""
    label = label or ""
    return re.split(r"[-=#*|]", label)[0] or label


def _nodes(tree: Any) -> list[Any]:
    """All nodes, parents before children, left before right."""
    result, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        result.append(node)
        waiting.extend(reversed(node.children))
    return result


def _walk(tree: Any) -> list[Span]:
    """Spans of all inner nodes over the leaves, parents first; without recursion, since trees may be hundreds of levels deep."""
    rows: list[list[Any]] = []
    waiting: list[tuple[Any, int]] = [(tree, -1)]
    leaf = 0
    while waiting:
        node, row = waiting.pop()
        if row >= 0:
            rows[row][1] = leaf
        elif not node.children:
            leaf += 1
        else:
            rows.append([leaf, leaf, node.label])
            waiting.append((node, len(rows) - 1))
            waiting.extend((child, -1) for child in reversed(node.children))
    return [(first, last, label) for first, last, label in rows]
