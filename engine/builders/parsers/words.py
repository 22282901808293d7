"""The word list that a tokenizer leans on where no spaces tell words apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from engine.builders.parsers.conllu import Sentence
from engine.builders.parsers.treebanks import read_text
from engine.errors import InputError

SHORTEST, LONGEST = 2, 4  # characters; one alone is no help, and longer words are rare
TWICE = 2  # a word seen once in training must look like the unknown words of other texts


def write_words(path: Path, sentences: Sequence[Sentence], given: Path | None, least: int) -> None:
    """Words of the treebanks that occur at least twice, and those of a list: one per line, first the word, then how often it
    occurs where the list says so (as jieba's dict.txt does); those below `least` are left out.

    Raises InputError on a list that is no text or gives no word.
    """
    counts = Counter(token.form for sentence in sentences for token in sentence.tokens)
    words = {word for word, count in counts.items() if count >= TWICE and len(word) >= SHORTEST}
    if given is not None:
        results = set()
        for line in read_text(given).splitlines():
            cells = line.split()
            rare = len(cells) > 1 and cells[1].isdecimal() and int(cells[1]) < least
            if cells and not rare and SHORTEST <= len(cells[0]) <= LONGEST and cells[0].isalpha():
                results.add(cells[0])
        if not results:
            raise InputError(f"{given} holds no words of {SHORTEST} to {LONGEST} characters: give one word a line.")
        words |= results
    path.write_text("".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")
