"""Writing treebanks as the files that stanza's trainers read: CoNLL-U, bracketed trees, and text with a digit per character."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.builders.parsers.brackets import write_brackets
from engine.builders.parsers.conllu import ConlluSentence, write_conllu
from engine.core.languages import unspaced

WORD_ENDS, SENTENCE_ENDS, SEVERAL = 1, 2, 2  # stanza's digits: 1 word, 2 sentence end; 3 and 4 for contractions


def write_characters(sentences: Sequence[ConlluSentence], folder: Path, name: str, language: str, seed: int) -> None:
    """Write NAME.txt and NAME.labels for the tokenizer, NAME.conllu in the same order, and NAME.mwt.json.

    Paragraphs hold one to four sentences, so that both single sentences and running text are learnt.
    """
    rng = random.Random(seed)
    between = "" if unspaced(language) else " "
    texts, labels, position = [], [], 0
    while position < len(sentences):
        group = sentences[position : position + rng.randint(1, 4)]
        position += len(group)
        labelled = [character_labels(sentence) for sentence in group]
        texts.append(between.join(text for text, _ in labelled))
        labels.append(("0" * len(between)).join(label for _, label in labelled))
    (folder / f"{name}.txt").write_text("\n\n".join(texts) + "\n\n", encoding="utf-8")
    (folder / f"{name}.labels").write_text("\n\n".join(labels) + "\n\n", encoding="utf-8")
    counts = [[list(key), count] for key, count in sorted(mwt_counts(sentences).items())]
    (folder / f"{name}.mwt.json").write_text(json.dumps(counts, ensure_ascii=False), encoding="utf-8")
    write_dependencies(sentences, folder / f"{name}.conllu", tags=True)


def character_labels(sentence: ConlluSentence) -> tuple[str, str]:
    """The sentence's text and a digit per character that marks the ends of words, contractions and the sentence."""
    text, digits = [], []
    last = len(sentence.tokens) - 1
    for index, token in enumerate(sentence.tokens):
        # The tokenizer reads spaces inside a word (10 000) as one space.
        form = " ".join(token.form.split())
        digit = (SENTENCE_ENDS if index == last else WORD_ENDS) + (SEVERAL if len(token.words) > 1 else 0)
        text.append(form)
        digits.append("0" * (len(form) - 1) + str(digit))
        if token.space_after and index != last:
            text.append(" ")
            digits.append("0")
    return "".join(text), "".join(digits)


def mwt_counts(sentences: Sequence[ConlluSentence]) -> Counter[tuple[str, tuple[str, ...]]]:
    """Counts of each contraction and its expansion (in lower case, as stanza counts them)."""
    return Counter(
        (token.form, tuple(word.form.lower() for word in token.words))
        for sentence in sentences
        for token in sentence.tokens
        if len(token.words) > 1
    )


def write_dependencies(sentences: Sequence[ConlluSentence], path: Path, *, tags: bool) -> None:
    """Write CoNLL-U. Without `tags`, XPOS tags are left out, since treebanks of the same language may use different ones."""
    if not tags:
        sentences = [
            replace(
                sentence,
                tokens=tuple(
                    replace(token, words=tuple(replace(word, xpos="_") for word in token.words)) for token in sentence.tokens
                ),
            )
            for sentence in sentences
        ]
    path.write_text(write_conllu(sentences), encoding="utf-8")


def write_trees(trees: Sequence[Any], path: Path) -> None:
    path.write_text(write_brackets(trees), encoding="utf-8")
