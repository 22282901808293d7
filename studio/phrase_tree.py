"""A sentence's tree as SVG. Every node can be reached with the keyboard; those that are phrases can be chosen."""

from __future__ import annotations

import bisect
import itertools
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.phrases.surface import is_punctuation
from engine.phrases.types import Tree
from studio.html import esc, lang_attribute
from studio.i18n import tr

__all__ = ["TREE_SCRIPT", "tree_svg"]

LEVEL, NODE, GAP, MARGIN = 34, 22, 16, 14  # px
CAPTION = 34
DOT = 6  # px, the radius of a node without a name

# One stop of the tab key for the whole tree; arrows go from node to node, Enter chooses. Clicks choose too.
TREE_SCRIPT = """
const centre = () => {
  const frame = element.querySelector('.tm-tree'), mark = element.querySelector('.tm-under-phrase');
  if (!frame || !mark) return;
  const at = mark.getBoundingClientRect(), seen = frame.getBoundingClientRect();
  frame.scrollLeft += at.left + at.width / 2 - seen.left - seen.width / 2;
};
watch('value', centre);
const nodes = () => [...element.querySelectorAll('[data-node]')];
const go = (node) => {
  if (!node) return;
  nodes().forEach((one) => one.setAttribute('tabindex', one === node ? '0' : '-1'));
  node.focus({preventScroll: false});
};
const near = (name, node) => element.querySelector(`[data-node="${node.dataset[name]}"]`);
const choose = (event) => {
  const node = event.target.closest('[data-node]');
  const at = node?.closest('[data-sentence]').dataset.sentence;
  if (node?.dataset.key) trigger('pick', {phrase: node.dataset.key, sentence: at});
  const step = event.target.closest('[data-step]');
  if (step) trigger('step', {sentence: step.dataset.step});
};
element.addEventListener('click', choose);
element.addEventListener('keydown', (event) => {
  const node = event.target.closest('[data-node]');
  if (!node) return;
  const all = nodes(), place = all.indexOf(node);
  const ways = {ArrowUp: () => near('up', node), ArrowDown: () => near('down', node), ArrowRight: () => all[place + 1],
    ArrowLeft: () => all[place - 1], Home: () => all[0], End: () => all[all.length - 1]};
  if (ways[event.key]) { event.preventDefault(); go(ways[event.key]()); }
  if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(event); }
});
"""


@dataclass
class Node:
    """A node with its place; `up` is its parent's number, `down` its first child's, `first` and `last` are leaves."""

    label: str
    text: str
    up: int = -1
    down: int = -1
    height: int = 0
    x: float = 0.0
    first: int = 0
    last: int = 0
    children: list[int] = field(default_factory=list)


def tree_svg(
    tree: Tree,
    language: str,
    *,
    sentence: int,
    key_of: Callable[[str], str],
    chosen: str = "",
    caption: str = "",
) -> str:
    """Draw a tree. `key_of` gives a text's phrase as the table writes it, "" where it is none; `chosen` is one of these,
    underlined with the `caption` below.
    """
    nodes = flat(tree)
    leaves = [node for node in nodes if not node.children]
    x = float(MARGIN)
    for leaf in leaves:
        wide = width_of(leaf.text) + GAP
        leaf.x = x + wide / 2
        x += wide
    for node in reversed(nodes):
        if node.children:
            node.x = (nodes[node.children[0]].x + nodes[node.children[-1]].x) / 2
    tallest = nodes[0].height
    bottom = MARGIN + NODE + tallest * LEVEL
    whole, high = x + MARGIN, bottom + CAPTION
    keys = [key_of(trimmed(node.text)) for node in nodes]
    marked = next((place for place, key in enumerate(keys) if key and key == chosen), -1)
    current = max(marked, 0)
    edges, drawn = [], []
    for place, node in enumerate(nodes):
        y = bottom - node.height * LEVEL
        for child in node.children:
            below = nodes[child]
            roof = 18 if not below.children else 2 * DOT if below.label == "statistical" else NODE
            top = bottom - below.height * LEVEL - roof
            bend = (top - y) / 2
            edges.append(
                f"M{node.x:.0f} {y:.0f}C{node.x:.0f} {y + bend:.0f} {below.x:.0f} {y + bend:.0f} {below.x:.0f} {top:.0f}"
            )
        drawn.append(node_svg(place, node, y, keys[place], place == marked, place == current, language))
    scrolls, tree_name = tr("Tree of the sentence, scrolls"), tr("Parse tree")
    under = (
        underline(leaves, nodes[marked], bottom, caption)
        if marked >= 0
        else underline_text(leaves, chosen, bottom, caption)
    )
    return (
        f'<div class="tm-tree" tabindex="0" role="region" aria-label="{esc(scrolls)}"><svg width="{whole:.0f}" '
        f'height="{high:.0f}" viewBox="0 0 {whole:.0f} {high:.0f}" role="tree" aria-label="{esc(tree_name)}" '
        f'data-sentence="{sentence}"><path class="tm-edge" d="{"".join(edges)}"/>{under}{"".join(drawn)}</svg></div>'
    )


def flat(tree: Tree) -> list[Node]:
    """The nodes, parents before children, left before right; a node with one child is drawn as one with it."""
    nodes: list[Node] = []
    waiting = [(tree, -1)]
    while waiting:
        one, up = waiting.pop()
        label = one.label
        while len(one.children) == 1:
            one = one.children[0]
        place = len(nodes)
        nodes.append(Node(label, one.text, up))
        if up >= 0:
            nodes[up].children.append(place)
        waiting.extend((child, place) for child in reversed(one.children))
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


def node_svg(place: int, node: Node, y: float, key: str, chosen: bool, current: bool, language: str) -> str:
    kind = " ".join(["tm-node", *(["phrase"] if key else []), *(["chosen"] if chosen else [])])
    unnamed = node.label == "statistical"  # words that often stand together have no name in any grammar
    label = tr("Words that stand together") if unnamed else tr(node.label)  # a parser's names stay as they are
    says = f"{label}: {node.text}" + (tr(", a phrase") if key else "")
    common = (
        f'<g class="{kind}" role="treeitem" tabindex="{0 if current else -1}" data-node="{place}" data-up="{node.up}" '
        f'data-down="{node.down}" aria-selected="{str(chosen).lower()}" aria-label="{esc(says)}"'
        + (f' data-key="{esc(key)}"' if key else "")
        + f"><title>{esc(says)}</title>"
    )
    if not node.children:
        return (
            f'{common}<rect class="tm-word" x="{node.x - width_of(node.text) / 2 - 5:.0f}" y="{y - 17:.0f}" '
            f'width="{width_of(node.text) + 10:.0f}" height="24" rx="5"/><text x="{node.x:.1f}" y="{y:.0f}"'
            f"{lang_attribute(language)}>{esc(node.text)}</text></g>"
        )
    if unnamed:
        at = f'cx="{node.x:.1f}" cy="{y - DOT:.0f}"'
        return f'{common}<circle {at} r="{DOT}"/><circle class="tm-hit" {at} r="{2 * DOT}"/></g>'
    wide = max(34.0, sum(7.0 if ord(one) < 0x2E80 else 12.0 for one in label) + 16)
    return (
        f'{common}<rect x="{node.x - wide / 2:.1f}" y="{y - NODE:.0f}" width="{wide:.0f}" height="{NODE}" rx="11"/>'
        f'<text class="label" x="{node.x:.1f}" y="{y - 7:.0f}">{esc(label)}</text></g>'
    )


def underline(leaves: list[Node], node: Node, bottom: float, caption: str) -> str:
    left, right = leaves[node.first], leaves[node.last]
    x1, x2 = left.x - width_of(left.text) / 2, right.x + width_of(right.text) / 2
    middle = min(max((x1 + x2) / 2, 3.1 * len(caption)), max(leaves[-1].x, 3.1 * len(caption)))
    return (
        f'<rect class="tm-under-phrase" x="{x1:.0f}" y="{bottom + 9:.0f}" width="{x2 - x1:.0f}" height="4" rx="2"/>'
        f'<text class="tm-tree-caption" x="{middle:.0f}" y="{bottom + 27:.0f}">{esc(caption)}</text>'
    )


def underline_text(leaves: list[Node], phrase: str, bottom: float, caption: str) -> str:
    """The same for a phrase that is no node of its own: the words that hold it; nothing where none do."""
    found = words_of(leaves, phrase)
    return underline(leaves, Node("", "", first=found[0], last=found[1]), bottom, caption) if found else ""


def words_of(leaves: list[Node], phrase: str) -> tuple[int, int] | None:
    """The first and last word that a phrase stands in: a stretch that it fills exactly, else one that holds it."""
    wanted = "".join(phrase.casefold().split())
    texts = ["".join(leaf.text.casefold().split()) for leaf in leaves]
    starts = [0, *itertools.accumulate(map(len, texts))]
    whole, at, holds = "".join(texts), -1, None
    while wanted and (at := whole.find(wanted, at + 1)) >= 0:
        first = bisect.bisect_right(starts, at) - 1
        last = bisect.bisect_left(starts, at + len(wanted)) - 1
        if starts[first] == at and starts[last + 1] == at + len(wanted):
            return first, last
        holds = holds or (first, last)
    return holds


def trimmed(text: str) -> str:
    """Without the punctuation at its ends, as phrases are."""
    start, end = 0, len(text)
    while start < end and (is_punctuation(text[start]) or text[start].isspace()):
        start += 1
    while end > start and (is_punctuation(text[end - 1]) or text[end - 1].isspace()):
        end -= 1
    return text[start:end]


def width_of(text: str) -> float:
    """Pixels that a text takes, about."""
    return sum(15.0 if unicodedata.east_asian_width(one) in "WF" else 7.6 for one in text)
