"""Terminology in translations: what lacks a term of the glossary is written again from where the term belongs.

The source term's alignment says where its translation begins; what stands before is given, the term follows, and the model goes
on from there as it likes. A lexically constrained beam (Post and Vilar, 2018, https://aclanthology.org/N18-1119) needs no
alignment, but a small base puts what it finds unlikely behind the full stop (docs/compare.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.core.languages import unspaced
from engine.core.progress import Progress
from engine.corpora.terminology import Term, called_for
from engine.decoding.guard import problem

if TYPE_CHECKING:
    from engine.base.decoding_options import Decoding
    from engine.decoding.translate import Search
    from engine.decoding.word_alignment import Alignment

ROUNDS = 8  # terms of one sentence that can be put in, one after another
SURE = 0.5  # of the highest weight: target words with as much are taken for translations of the source term


@dataclass(frozen=True)
class Beginning:
    """How a translation begins: its labels with their end, and the tokens that may not come next."""

    labels: list[int]  # (T,)
    barred: list[int]

    @classmethod
    def of(cls, search: Search, before: str, old: str, term: str) -> Self:
        """The translation `before` the term, then the term in the place of `old`. It ends a word: what would go on with it, or
        with what is left of `old` where words are not parted, is barred.
        """
        base = search.base
        joined = unspaced(base.target)
        space = "" if joined or not before or not before[-1].isalnum() else " "
        begun = before + space + (term if before.strip() else term[:1].upper() + term[1:])
        barred = [
            number
            for number, piece in enumerate(search.pieces)
            if (piece[:1] in old if joined else piece[:1].isalnum())
        ]
        return cls(base.encode_target([begun])[0], barred)


def enforce(
    search: Search, pieces: Sequence[str], terms: Sequence[Term], decoding: Decoding, progress: Progress
) -> None:
    """Put the terms that `pieces` call for into the translations of `search`, sentence by sentence, where they lack.

    A new translation stays where it has more of the terms and is no loop. Raises Cancelled between two sentences.
    """
    from engine.decoding.translate import attached
    from engine.decoding.word_alignment import align

    wanted = {i: called_for(terms, piece) for i, piece in enumerate(pieces)}
    lacking = [i for i in wanted if _used(wanted[i], search.texts[i]) < len(wanted[i])]
    for _ in range(ROUNDS):
        alignments = align(search.base, [(pieces[i], search.texts[i]) for i in lacking])
        changed = []
        with attached(search.base, search.plugin, search.strength):
            for i, alignment in zip(lacking, alignments, strict=True):
                progress.check()
                if _write(search, i, pieces[i], wanted[i], alignment, decoding):
                    changed.append(i)
        lacking = [i for i in changed if _used(wanted[i], search.texts[i]) < len(wanted[i])]
        if not lacking:
            return


def _write(
    search: Search, row: int, source: str, terms: Sequence[Term], alignment: Alignment, decoding: Decoding
) -> bool:
    """Write the translation again from the first term that it lacks. Returns whether it has more of them now."""
    text, tokens = search.texts[row], search.tokens[row]
    spans = [
        (span, term) for term in terms if not term.in_target.search(text) if (span := _span(term, source, alignment))
    ]
    for (start, end), term in sorted(spans, key=lambda one: one[0]):
        search.decode([row], decoding, Beginning.of(search, text[:start], text[start:end], term.target))
        now = search.texts[row]
        looped = problem(source, now) is not None and problem(source, text) is None
        if not looped and _used(terms, now) > _used(terms, text):
            return True
        search.texts[row], search.tokens[row] = text, tokens
    return False


def _span(term: Term, source: str, alignment: Alignment) -> tuple[int, int] | None:
    """The first stretch of target words that the source term is translated by; None where nothing is aligned with it."""
    match = term.inflected.search(source) if term.inflected else None
    if match is None:
        return None
    words = {i for i, (begin, end) in enumerate(alignment.source) if begin < match.end() and end > match.start()}
    shares = [sum(share for word, share in row.items() if word in words) for row in alignment.weights]
    highest = max(shares, default=0.0)
    if not highest:
        return None
    first = next(i for i, share in enumerate(shares) if share >= SURE * highest)
    last = next((i for i in range(first, len(shares)) if shares[i] < SURE * highest), len(shares)) - 1
    return alignment.target[first][0], alignment.target[last][1]


def _used(terms: Sequence[Term], translation: str) -> int:
    return sum(bool(term.in_target.search(translation)) for term in terms)
