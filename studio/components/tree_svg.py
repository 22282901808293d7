"""A sentence's tree as SVG. Every node can be reached with the keyboard; nodes that are phrases can be selected."""

from __future__ import annotations

import bisect
import itertools
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.phrases.token_spans import is_punctuation
from engine.phrases.types import Tree
from studio.components.templating import render
from studio.i18n.translate import tr

LEVEL, NODE, GAP, MARGIN = 34, 22, 16, 14  # px
CAPTION = 34
DOT = 6  # px, radius of an unnamed node


@dataclass
class TreeNode:
    """A node with its position. `up` and `down` are the indices of its parent and first child; `first`, `last`: its leaf range."""

    label: str
    text: str
    up: int = -1
    down: int = -1
    height: int = 0
    x: float = 0.0
    y: int = 0
    first: int = 0
    last: int = 0
    key: str = ""  # the phrase, as spelled in the table
    children: list[int] = field(default_factory=list)

    @property
    def unnamed(self) -> bool:
        """Whether the node is a statistical collocation, which has no grammatical name."""
        return self.label == "statistical"

    @property
    def name(self) -> str:
        """The label to display, translated if the catalog has it."""
        return tr("Collocation") if self.unnamed else tr(self.label)

    @property
    def title(self) -> str:
        return f"{self.name}: {self.text}" + (tr(", a phrase") if self.key else "")

    @property
    def width(self) -> float:
        """The approximate width of the node's text in pixels."""
        return sum(15.0 if unicodedata.east_asian_width(char) in "WF" else 7.6 for char in self.text)

    @property
    def badge_width(self) -> float:
        """The width of the shape around the label in pixels."""
        return max(34.0, sum(7.0 if ord(char) < 0x2E80 else 12.0 for char in self.name) + 16)

    @property
    def roof(self) -> int:
        """The distance in pixels from the node's foot to the end of the edge from its parent."""
        return 18 if not self.children else 2 * DOT if self.unnamed else NODE


def tree_svg(tree: Tree, language: str, *, sentence: int, key_of: Callable[[str], str], chosen: str = "", caption: str = "") -> str:
    """Draw a tree. `key_of` returns the phrase for a text as spelled in the table, "" if it is not a phrase; `chosen` is the
    selected phrase, which is underlined with the `caption` below.
    """
    nodes = flat(tree)
    leaves = [node for node in nodes if not node.children]
    x = float(MARGIN)
    for leaf in leaves:
        leaf.x = x + (leaf.width + GAP) / 2
        x += leaf.width + GAP
    bottom = MARGIN + NODE + nodes[0].height * LEVEL
    for node in reversed(nodes):
        if node.children:
            node.x = (nodes[node.children[0]].x + nodes[node.children[-1]].x) / 2
        node.y = bottom - node.height * LEVEL
        node.key = key_of(trimmed(node.text))
    marked = next((index for index, node in enumerate(nodes) if node.key and node.key == chosen), -1)
    words = (nodes[marked].first, nodes[marked].last) if marked >= 0 else words_of(leaves, chosen)
    return render(
        "tree.html",
        nodes=nodes,
        edges="".join(edge(node, nodes[child]) for node in nodes for child in node.children),
        sentence=sentence,
        width=f"{x + MARGIN:.0f}",
        height=bottom + CAPTION,
        chosen=marked,
        focused=max(marked, 0),
        underline=underline(leaves, *words, caption) if words else None,
        bottom=bottom,
        caption=caption,
        language=language,
        dot=DOT,
        badge_height=NODE,
    )


def edge(node: TreeNode, child: TreeNode) -> str:
    """The path from a node to its child."""
    top = child.y - child.roof
    middle = node.y + (top - node.y) / 2
    return f"M{node.x:.0f} {node.y:.0f}C{node.x:.0f} {middle:.0f} {child.x:.0f} {middle:.0f} {child.x:.0f} {top:.0f}"


def underline(leaves: list[TreeNode], first: int, last: int, caption: str) -> tuple[float, float, float]:
    """The line below the words from `first` to `last`: its start, its width, and the centre of its caption."""
    start, end = leaves[first].x - leaves[first].width / 2, leaves[last].x + leaves[last].width / 2
    half = 3.1 * len(caption)  # px of the caption
    return start, end - start, min(max((start + end) / 2, half), max(leaves[-1].x, half))


def flat(tree: Tree) -> list[TreeNode]:
    """The nodes, parents before children, left before right; a node with one child is merged with it."""
    nodes: list[TreeNode] = []
    waiting = [(tree, -1)]
    while waiting:
        subtree, up = waiting.pop()
        label = subtree.label
        while len(subtree.children) == 1:
            subtree = subtree.children[0]
        position = len(nodes)
        nodes.append(TreeNode(label, subtree.text, up))
        if up >= 0:
            nodes[up].children.append(position)
        waiting.extend((child, position) for child in reversed(subtree.children))
    leaf = 0
    for node in nodes:
        if not node.children:
            node.first = node.last = leaf
            leaf += 1
    for node in reversed(nodes):
        if node.children:
            node.down = node.children[0]
            node.height = 1 + max(nodes[child].height for child in node.children)
            node.first = min(nodes[child].first for child in node.children)
            node.last = max(nodes[child].last for child in node.children)
    return nodes


def words_of(leaves: list[TreeNode], phrase: str) -> tuple[int, int] | None:
    """The first and last leaf of a phrase: a span that it fills exactly, else one that contains it; None if it does not occur."""
    letters = "".join(phrase.casefold().split())
    texts = ["".join(leaf.text.casefold().split()) for leaf in leaves]
    starts = [0, *itertools.accumulate(map(len, texts))]
    joined, at, holds = "".join(texts), -1, None
    while letters and (at := joined.find(letters, at + 1)) >= 0:
        first = bisect.bisect_right(starts, at) - 1
        last = bisect.bisect_left(starts, at + len(letters)) - 1
        if starts[first] == at and starts[last + 1] == at + len(letters):
            return first, last
        holds = holds or (first, last)
    return holds


def trimmed(text: str) -> str:
    """The text without surrounding punctuation and spaces, as in phrases."""
    start, end = 0, len(text)
    while start < end and (is_punctuation(text[start]) or text[start].isspace()):
        start += 1
    while end > start and (is_punctuation(text[end - 1]) or text[end - 1].isspace()):
        end -= 1
    return text[start:end]
