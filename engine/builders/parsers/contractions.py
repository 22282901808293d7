"""Splitting contractions (German "zum") that a treebank splits in some sentences but not in others.

A form is split if other sentences split it, nearly always into the same words, parts of speech and relations with a common
head, and if the unsplit word has the part of speech and relation that its first word would have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from engine.builders.parsers.conllu import ConlluSentence, Token, Word
from engine.builders.parsers.treebanks import Treebanks, TreebankSplits

Pattern = tuple[tuple[str, str, str, str], ...]  # form, part of speech, XPOS, relation of each word
OFTEN = 3  # times that a form must occur split before its unsplit occurrences are split


def open_contractions(banks: Treebanks) -> tuple[Treebanks, int]:
    """The treebanks with contractions split in the training sentences, and the number split."""
    patterns = _patterns(banks.sentences.train)
    if not patterns:
        return banks, 0
    opened = 0
    train = []
    for sentence in banks.sentences.train:
        closed = [_pattern(token, patterns) for token in sentence.tokens]
        opened += sum(pattern is not None for pattern in closed)
        train.append(_open(sentence, closed) if any(closed) else sentence)
    sentences = TreebankSplits(train, banks.sentences.dev, banks.sentences.test)
    return replace(banks, sentences=sentences), opened


def _patterns(sentences: list[ConlluSentence]) -> dict[str, Pattern]:
    pattern_counts: dict[str, Counter[Pattern | None]] = defaultdict(Counter)
    for sentence in sentences:
        number = 0
        for token in sentence.tokens:
            numbers = range(number + 1, number + len(token.words) + 1)
            number += len(token.words)
            if len(token.words) == 1:
                continue
            heads = {word.head for word in token.words}
            plain = len(heads) == 1 and not heads & {0, *numbers}
            pattern = tuple((word.form.lower(), word.upos, word.xpos, word.relation) for word in token.words)
            pattern_counts[token.form.lower()][pattern if plain else None] += 1
    result: dict[str, Pattern] = {}
    for form, counts in pattern_counts.items():
        commonest, count = counts.most_common(1)[0]
        if commonest is not None and count >= OFTEN and counts[None] * 4 <= count:  # nearly always the same
            result[form] = commonest
    return result


def _pattern(token: Token, patterns: dict[str, Pattern]) -> Pattern | None:
    pattern = patterns.get(token.form.lower()) if len(token.words) == 1 else None
    if pattern is None:
        return None
    word = token.words[0]
    return pattern if word.head and (word.upos, word.relation) == (pattern[0][1], pattern[0][3]) else None


def _open(sentence: ConlluSentence, closed: list[Pattern | None]) -> ConlluSentence:
    """Split the contractions and renumber; dependents of a contraction are attached to the first of its words."""
    position = [0]
    total = 1
    for token, opened in zip(sentence.tokens, closed, strict=True):
        for _ in token.words:
            position.append(total)
            total += len(opened) if opened else 1
    tokens = []
    for token, opened in zip(sentence.tokens, closed, strict=True):
        words = [replace(word, head=position[word.head]) for word in token.words]
        if opened:
            head = words[0].head
            words = [Word(form, upos, xpos, head, relation) for form, upos, xpos, relation in opened]
        tokens.append(replace(token, words=tuple(words)))
    return replace(sentence, tokens=tuple(tokens))
