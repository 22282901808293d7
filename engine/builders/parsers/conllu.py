"""Reading CoNLL-U: sentences with their words, heads and relations; broken sentences are reported separately.

Format: https://universaldependencies.org/format.html. Only the fields that the parsers are trained on are kept: form, part of
speech, the treebank's own tag (XPOS), head, relation, whether a space follows, and tokens of several words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

COLUMNS = 10
WORD, RANGE, EMPTY = re.compile(r"[1-9]\d*"), re.compile(r"([1-9]\d*)-([1-9]\d*)"), re.compile(r"\d+\.\d+")


class Broken(ValueError):  # noqa: N818 - describes a sentence
    """A sentence or tree cannot be used; the message is the reason, worded the same for every such sentence."""


@dataclass(frozen=True)
class Word:
    form: str
    upos: str
    xpos: str  # "_" if the treebank has none
    head: int  # number of its head, from 1; 0 for the root
    relation: str


@dataclass(frozen=True)
class Token:
    """A token of the text: one word, or several (German "zum", English "don't")."""

    form: str
    words: tuple[Word, ...]
    space_after: bool


@dataclass(frozen=True)
class ConlluSentence:
    tokens: tuple[Token, ...]
    line: int = 0  # its first line in the file, from 1

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for token in self.tokens for word in token.words)

    @property
    def text(self) -> str:
        """The text of the sentence, assembled from its tokens."""
        pieces = [token.form + (" " if token.space_after else "") for token in self.tokens]
        return "".join(pieces).rstrip(" ")

    def without_contractions(self) -> ConlluSentence:
        """The same sentence with each word as a separate token."""
        tokens = [Token(word.form, (word,), True) for word in self.words]
        return ConlluSentence(tuple(tokens), self.line)

    def conllu(self) -> str:
        """The sentence's CoNLL-U block without the final empty line; the lemma is the form, features are omitted."""
        rows = [f"# text = {self.text}"]
        number = 0
        for index, token in enumerate(self.tokens):
            glued = not token.space_after and index < len(self.tokens) - 1
            misc = "SpaceAfter=No" if glued else "_"
            several = len(token.words) > 1
            if several:
                span = f"{number + 1}-{number + len(token.words)}"
                rows.append("\t".join([span, token.form, *["_"] * 7, misc]))
            for word in token.words:
                number += 1
                row = [str(number), word.form, word.form, word.upos, word.xpos, "_", str(word.head), word.relation, "_"]
                rows.append("\t".join([*row, "_" if several else misc]))
        return "\n".join(rows)


def read_conllu(lines: Iterable[str]) -> Iterator[ConlluSentence | tuple[int, str]]:
    """Yield the sentences of a treebank in order; for a broken one, (number of the line at fault, reason)."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate((line.rstrip("\r\n") for line in lines), 1):
        if line.strip():
            if not line.startswith("#"):
                block.append((number, line))
        elif block:
            yield _sentence(block)
            block = []
    if block:
        yield _sentence(block)


def write_conllu(sentences: Iterable[ConlluSentence]) -> str:
    """The sentences as a CoNLL-U treebank for stanza's trainers."""
    return "".join(sentence.conllu() + "\n\n" for sentence in sentences)


def _sentence(block: list[tuple[int, str]]) -> ConlluSentence | tuple[int, str]:
    number = block[0][0]
    try:
        tokens: list[Token] = []
        count = 0  # words so far
        span: tuple[int, str, bool] | None = None  # last word of an open token, its form, space after it
        inside: list[Word] = []
        for number, line in block:  # noqa: B007 - reported if the sentence is broken
            cells = line.split("\t")
            if len(cells) != COLUMNS:
                raise Broken(f"a line without {COLUMNS} columns")
            if EMPTY.fullmatch(cells[0]):
                continue  # elided words, which are not in the text
            form, spaced = cells[1], "SpaceAfter=No" not in cells[9].split("|")
            if not form.strip() or form != form.strip():
                raise Broken("a word without a form")
            if match := RANGE.fullmatch(cells[0]):
                first, last = int(match[1]), int(match[2])
                if span or first != count + 1 or last <= first:
                    raise Broken("numbers out of order")
                span, inside = (last, form, spaced), []
                continue
            if not WORD.fullmatch(cells[0]) or int(cells[0]) != count + 1:
                raise Broken("numbers out of order")
            count += 1
            if span is None:
                tokens.append(Token(form, (_word(cells),), spaced))
                continue
            inside.append(_word(cells))
            if count == span[0]:
                tokens.append(Token(span[1], tuple(inside), span[2]))
                span = None
        if span:
            raise Broken("numbers out of order")
        number = block[0][0]
        sentence = ConlluSentence(tuple(tokens), number)
        check_heads([word.head for word in sentence.words])
    except Broken as broken:
        return number, str(broken)
    return sentence


def _word(cells: list[str]) -> Word:
    _, form, _, upos, xpos, _, head, relation, _, _ = cells
    if upos in ("", "_"):
        raise Broken("a word without a part of speech")
    if not head.isascii() or not head.isdigit():
        raise Broken("a word without a head")
    if relation in ("", "_"):
        raise Broken("a word without a relation")
    return Word(form, upos, xpos or "_", int(head), relation)


def check_heads(heads: list[int]) -> None:
    """Raises Broken unless the heads form one tree with one root."""
    if not heads:
        raise Broken("no words")
    if max(heads) > len(heads):
        raise Broken("a head that is not there")
    if heads.count(0) != 1:
        raise Broken("not exactly one root")
    safe = [False] * (len(heads) + 1)
    safe[0] = True
    for start in range(1, len(heads) + 1):
        word, path = start, list[int]()
        while not safe[word] and len(path) <= len(heads):
            path.append(word)
            word = heads[word - 1]
        if not safe[word]:
            raise Broken("words that hang on each other in a circle")
        for passed in path:
            safe[passed] = True
