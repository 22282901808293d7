"""Phrases from dependency trees, for languages without a constituency parser.

A phrase is a word with all its dependents if these words are adjacent, ignoring punctuation between them that is attached
elsewhere. Its label is the relation of its topmost word: nsubj, obl, advcl… Two smaller phrases that constituency trees have
and subtrees lack are added: the phrase without its additions (further clauses, conjuncts), and the predicate without its
subject (a verb phrase). Every word is a phrase of length 1 too. Edges are cleaned of punctuation as in constituency trees.
"""

from __future__ import annotations

from operator import itemgetter

from engine.phrases.parsed_sentence import Parsed, token_spans
from engine.phrases.token_spans import Span, is_punctuation
from engine.phrases.types import Tree

ADDED = frozenset({"conj", "parataxis", "list", "discourse", "vocative"})  # relations without their subtypes
SUBJECTS = frozenset({"nsubj", "csubj", "expl"})


def dependency_spans(parsed: Parsed) -> list[Span]:
    """All contiguous subtrees, their cores and predicates, and all single tokens as token spans, longest first.

    Empty without a dependency parse.
    """
    if not parsed.heads:
        return []
    below = _subtrees(parsed.heads)
    marks = [is_punctuation(word) for word in parsed.words]
    spans = [
        (under[0], under[-1] + 1, relation)
        for under, relation in zip(below, parsed.relations, strict=True)
        if _contiguous(under, marks)
    ]
    spans += _inner_spans(parsed, below, marks)
    spans.sort(key=lambda span: (span[0] - span[1], span[0]))
    singles: dict[int, str] = {}
    for word, token in enumerate(parsed.token_of):
        singles.setdefault(token, parsed.relations[word])
    return token_spans(spans, parsed) + [(token, token + 1, relation) for token, relation in singles.items()]


def _inner_spans(parsed: Parsed, below: list[list[int]], marks: list[bool]) -> list[Span]:
    """Subtrees without trailing additions, and predicates that follow their subject."""
    plain = [relation.partition(":")[0] for relation in parsed.relations]
    under: dict[int, list[int]] = {}
    for word, head in enumerate(parsed.heads):
        under.setdefault(head, []).append(word)
    spans: list[Span] = []
    for word, subtree in enumerate(below):
        hanging = under.get(word, [])
        added = {w for child in hanging if plain[child] in ADDED and child > word for w in below[child]}
        core = [w for w in subtree if w not in added]
        while added and core and marks[core[-1]]:  # the full stop that ends both clauses
            core.pop()
        subjects = [child for child in hanging if plain[child] in SUBJECTS and child < word]
        last = max((below[child][-1] for child in subjects), default=word)
        parts = [(core, parsed.relations[word])] if added else []
        if last < word:
            parts += [([w for w in part if w > last], "predicate") for part in (core, subtree)]
        spans += [(part[0], part[-1] + 1, label) for part, label in parts if part and _contiguous(part, marks)]
    return spans


def dependency_tree(parsed: Parsed, text: str) -> Tree | None:
    """The tree for drawing: a node for each word with dependents (its relation, its subtree's text), with the word as a child.

    Leaves have their relation as label; the head word of a node has its part of speech. Non-adjacent words of a subtree are
    joined by " … ". None without a dependency parse.
    """
    if not parsed.heads:
        return None
    below = _subtrees(parsed.heads)
    roots = [word for word, head in enumerate(parsed.heads) if head < 0]
    if not roots or any(len(under) == 0 for under in below) or len({w for root in roots for w in below[root]}) < len(below):
        return None  # a cycle of words: not a tree
    under: dict[int, list[int]] = {}
    for word, head in enumerate(parsed.heads):
        under.setdefault(head, []).append(word)
    built: dict[int, Tree] = {}
    for word in sorted(range(len(below)), key=lambda index: len(below[index])):
        if len(below[word]) == 1:
            built[word] = Tree(parsed.relations[word], parsed.words[word])
            continue
        itself = Tree(parsed.tags[word] or "head", parsed.words[word])
        children = [(child, built[child]) for child in under.get(word, [])] + [(word, itself)]
        built[word] = Tree(
            parsed.relations[word], _text(below[word], parsed, text), tuple(node for _, node in sorted(children, key=itemgetter(0)))
        )
    if len(roots) == 1:
        top = built[roots[0]]
        return top if top.children else Tree("root", top.text, (top,))
    return Tree("root", _text(sorted(range(len(below))), parsed, text), tuple(built[root] for root in roots))


def _subtrees(heads: tuple[int, ...]) -> list[list[int]]:
    """For each word, the sorted indices of the words in its subtree, itself included."""
    below: list[list[int]] = [[] for _ in heads]
    for word in range(len(heads)):
        above, steps = word, 0
        while above >= 0 and steps <= len(heads):  # a broken parse may contain a cycle
            below[above].append(word)
            above, steps = heads[above], steps + 1
    return [sorted(set(under)) for under in below]


def _contiguous(under: list[int], marks: list[bool]) -> bool:
    if under[-1] - under[0] + 1 == len(under):
        return True
    inside = set(under)
    return all(word in inside or marks[word] for word in range(under[0], under[-1]))


def _text(words: list[int], parsed: Parsed, text: str) -> str:
    tokens = sorted({parsed.token_of[word] for word in words})
    pieces: list[str] = []
    start = tokens[0]
    for before, after in zip(tokens, [*tokens[1:], -1], strict=True):
        if after != before + 1:
            pieces.append(text[parsed.offsets[start][0] : parsed.offsets[before][1]])
            start = after
    return " … ".join(pieces)
