"""Parser scores: stanza's scorer for words, tags and heads; labelled brackets for constituents."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from engine.phrases.token_spans import is_punctuation


def f1(right: float, predicted: float, expected: float) -> dict[str, float]:
    """Precision, recall and their harmonic mean, from 0 to 1."""
    precision = right / predicted if predicted else 0.0
    recall = right / expected if expected else 0.0
    total = precision + recall
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / total if total else 0.0}


def bracket_scores(pairs: Iterable[tuple[Any, Any]]) -> dict[str, float]:
    """Labelled precision, recall and F1 over (gold, predicted) trees of the same words.

    Counted as by evalb (https://nlp.cs.nyu.edu/evalb): all nodes except the root and the parts of speech; punctuation is
    excluded from the words that a bracket covers.
    """
    right = result = expected = 0
    for gold, predicted in pairs:
        first, second = brackets(gold), brackets(predicted)
        right += sum((first & second).values())
        expected += sum(first.values())
        result += sum(second.values())
    return f1(right, result, expected)


def brackets(tree: Any) -> Counter[tuple[str, int, int]]:
    """Counts of (label, first word, word after the last) over the nodes of a tree."""
    result: Counter[tuple[str, int, int]] = Counter()

    def walk(node: Any, start: int) -> int:
        if node.is_preterminal():
            return start + (not is_punctuation(node.children[0].label))
        end = start
        for child in node.children:
            end = walk(child, end)
        if end > start and node.label not in ("ROOT", "TOP", "S1"):
            result[node.label, start, end] += 1
        return end

    walk(tree, 0)
    return result


def ud_scores(gold: str, system: str) -> dict[str, float]:
    """F1 of tokens, sentences, words, parts of speech and heads of two CoNLL-U texts, as in the CoNLL 2018 shared task.

    LAS ignores the subtypes of relations (nsubj:pass counts as nsubj).
    """
    from stanza.models.common.utils import ud_scores as score

    result = score(io.StringIO(gold), io.StringIO(system))
    names = ("Tokens", "Sentences", "Words", "UPOS", "XPOS", "UAS", "LAS")
    return {name: result[name].f1 for name in names}


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
