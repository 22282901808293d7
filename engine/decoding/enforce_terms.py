"""Terminology in translations: a translation that lacks a glossary term is rewritten from the term's position on.

Word alignment of the source term shows where its translation begins. The text before is kept, the term follows, and the model
continues freely from there. A lexically constrained beam (Post and Vilar, 2018, https://aclanthology.org/N18-1119) needs no
alignment, but a small base puts words that it finds unlikely after the full stop (docs/compare.md).
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

ROUNDS = 8  # maximum number of terms inserted into one sentence, one after another
SURE = 0.5  # of the highest weight: target words with at least this share are taken as translations of the source term


@dataclass(frozen=True)
class Beginning:
    """The beginning of a translation: its labels with end of sentence, and the tokens that may not come next."""

    labels: list[int]  # (T,)
    barred: list[int]

    @classmethod
    def of(cls, search: Search, before: str, old: str, term: str) -> Self:
        """The translation `before` the term, followed by the term instead of `old`.

        Tokens that would continue the term, or in languages without spaces the rest of `old`, are barred.
        """
        base = search.base
        joined = unspaced(base.target)
        space = "" if joined or not before or not before[-1].isalnum() else " "
        prefix = before + space + (term if before.strip() else term[:1].upper() + term[1:])
        barred = [number for number, piece in enumerate(search.pieces) if (piece[:1] in old if joined else piece[:1].isalnum())]
        return cls(base.encode_target([prefix])[0], barred)


def enforce(search: Search, pieces: Sequence[str], terms: Sequence[Term], decoding: Decoding, progress: Progress) -> None:
    """Insert the terms that `pieces` require and the translations of `search` lack, sentence by sentence.

    A new translation is kept if it contains more of the terms and is not repetitive. Raises Cancelled between two sentences.
    """
    from engine.decoding.translate import attached
    from engine.decoding.word_alignment import align

    required = {i: called_for(terms, piece) for i, piece in enumerate(pieces)}
    lacking = [i for i in required if _used(required[i], search.texts[i]) < len(required[i])]
    for _ in range(ROUNDS):
        alignments = align(search.base, [(pieces[i], search.texts[i]) for i in lacking])
        changed = []
        with attached(search.base, search.plugin, search.strength):
            for i, alignment in zip(lacking, alignments, strict=True):
                progress.check()
                if _write(search, i, pieces[i], required[i], alignment, decoding):
                    changed.append(i)
        lacking = [i for i in changed if _used(required[i], search.texts[i]) < len(required[i])]
        if not lacking:
            return


def _write(search: Search, row: int, source: str, terms: Sequence[Term], alignment: Alignment, decoding: Decoding) -> bool:
    """Rewrite the translation at the first missing term. Returns whether it now contains more of the terms."""
    text, tokens = search.texts[row], search.tokens[row]
    spans = [(span, term) for term in terms if not term.in_target.search(text) if (span := _span(term, source, alignment))]
    for (start, end), term in sorted(spans, key=lambda item: item[0]):
        search.decode([row], decoding, Beginning.of(search, text[:start], text[start:end], term.target))
        now = search.texts[row]
        looped = problem(source, now) is not None and problem(source, text) is None
        if not looped and _used(terms, now) > _used(terms, text):
            return True
        search.texts[row], search.tokens[row] = text, tokens
    return False


def _span(term: Term, source: str, alignment: Alignment) -> tuple[int, int] | None:
    """The first stretch of target words aligned with the source term; None if there is none."""
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
