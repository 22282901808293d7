"""A parsed sentence, independent of the parser: its words, the spans of their tokens in the text, and their heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.phrases.token_spans import Offsets, Span, align


@dataclass(frozen=True)
class Parsed:
    """Words as counted by trees and tokens as written in the text (German "zum" is one token of two words)."""

    words: tuple[str, ...]
    tags: tuple[str, ...]  # universal part of speech, "" if unknown
    heads: tuple[int, ...]  # index of each word's head, -1 for the root; empty without a dependency parse
    relations: tuple[str, ...]
    tree: Any  # constituency tree (nodes with .label and .children), or None
    tokens: tuple[str, ...]
    offsets: tuple[Offsets, ...]  # one per token, into the given text
    token_of: tuple[int, ...]  # the token that each word belongs to


def read_stanza(sentence: Any, text: str, base: int = 0) -> Parsed | None:
    """Convert a stanza Sentence over `text`; `base` is the position in `text` from which stanza's offsets count.

    stanza's offsets are used if available; tokens read from a treebank are aligned with the text. None if the tokens do not fit
    the text.
    """
    tokens = [token.text for token in sentence.tokens]
    offsets = _given_offsets(sentence.tokens, base, len(text))
    if offsets is None:
        offsets = align(tokens, text, base)
    if offsets is None:
        return None
    surfaces = tuple(text[start:end] for start, end in offsets)
    words, forms, token_of = [], [], []
    for index, token in enumerate(sentence.tokens):
        words.extend(token.words)
        forms.extend([surfaces[index]] if len(token.words) == 1 else [word.text for word in token.words])
        token_of.extend([index] * len(token.words))
    heads: tuple[int, ...] = ()
    if words and all(isinstance(word.head, int) and 0 <= word.head <= len(words) for word in words):
        heads = tuple(word.head - 1 for word in words)
    return Parsed(
        words=tuple(forms),
        tags=tuple(word.upos or "" for word in words),
        heads=heads,
        relations=tuple(word.deprel or "dep" for word in words),
        tree=getattr(sentence, "constituency", None),
        tokens=surfaces,
        offsets=tuple(offsets),
        token_of=tuple(token_of),
    )


def _given_offsets(tokens: Sequence[Any], base: int, size: int) -> list[Offsets] | None:
    results: list[Offsets] = []
    end = base
    for token in tokens:
        if token.start_char is None or token.end_char is None:
            return None
        first, last = token.start_char + base, token.end_char + base
        if not end <= first < last <= size:
            return None
        results.append((first, last))
        end = last
    return results


def token_spans(spans: Sequence[Span], parsed: Parsed) -> list[Span]:
    """Spans of words as spans of tokens; those that would split a token (the "zu" of "zum") are dropped."""
    selected = []
    count = len(parsed.words)
    for first, last, label in spans:
        head, tail = parsed.token_of[first], parsed.token_of[last - 1]
        starts = first == 0 or parsed.token_of[first - 1] != head
        ends = last == count or parsed.token_of[last] != tail
        if starts and ends:
            selected.append((head, tail + 1, label))
    return selected
