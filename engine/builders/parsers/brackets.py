"""Reading bracketed constituency trees (Penn Treebank format) with stanza's reader, one tree at a time.

A broken tree is reported with its line, and reading continues at the next tree that begins a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from engine.builders.parsers.conllu import Broken
from engine.phrases.token_spans import BRACKETS

ROOT = re.compile(r"\(\s*(ROOT|TOP|S1)\b")
START = re.compile(r"\(\s*(?:(?:ROOT|TOP|S1)\s*)?(?:\(|$)")


def read_brackets(lines: Iterable[str]) -> Iterator[tuple[int, Any | str]]:
    """Yield (line, tree) for each tree in order, or (line, reason) for a broken one; line numbers start at 1."""
    block: list[str] = []
    start, depth = 0, 0
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line:
            continue
        if block and START.match(line) and not line.startswith("((") and depth > 0 and ROOT.match(line):
            yield start, "brackets that are not closed"
            block, depth = [], 0
        if not block:
            start = number
        block.append(line)
        depth += line.count("(") - line.count(")")
        if depth <= 0:
            yield start, _tree(" ".join(block), depth)
            block, depth = [], 0
    if block:
        yield start, "brackets that are not closed"


def write_brackets(trees: Iterable[Any]) -> str:
    """The trees as text, one per line."""
    return "".join(f"{tree}\n" for tree in trees)


def leaves_text(tree: Any) -> str:
    """The words of a tree without spaces, with brackets unescaped."""
    return "".join(BRACKETS.get(word, word) for word in tree.leaf_labels())


def _tree(text: str, depth: int) -> Any | str:
    """stanza's tree without function labels (NP-SBJ becomes NP) and empty words, or the reason why it cannot be read."""
    from stanza.models.constituency import tree_reader

    if depth < 0:
        return "brackets that were never opened"
    try:
        result = tree_reader.read_trees(text, use_tqdm=False)
        if len(result) != 1:
            raise Broken("text outside the brackets")
        tree = result[0].prune_none()
        if tree is None or not tree.children:
            raise Broken("no words")
        tree = tree.simplify_labels()
        if tree.label not in ("ROOT", "TOP", "S1"):
            tree = type(tree)("ROOT", [tree])
        if len(tree.children) != 1:
            raise Broken("more than one tree under the root")
        if any(not node.label or node.is_leaf() for node in tree.children):
            raise Broken("words without a part of speech")
        list(tree.yield_preterminals())
    except Broken as broken:
        return str(broken)
    except (ValueError, AttributeError, IndexError, RecursionError):
        return "brackets or labels out of place"
    return tree
