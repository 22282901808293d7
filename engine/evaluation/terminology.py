"""Term use in translations: how many of the expected terms occur, and how much was copied from the source."""

from __future__ import annotations

from collections.abc import Sequence

from engine.corpora.terminology import Term
from engine.evaluation.diff import tokens


def term_counts(
    terms: Sequence[Term], lines: Sequence[str], sources: Sequence[str] | None, references: Sequence[str] | None
) -> list[tuple[float, float]]:
    """(found, expected) terms of each line.

    A term is expected if its source term occurs in the source and, given references, it occurs in the reference itself. A term
    without a source term depends on the reference only.
    """
    results = []
    for index, line in enumerate(lines):
        expected = [term for term in terms if _called_for(term, index, sources, references)]
        results.append((float(sum(bool(term.in_target.search(line)) for term in expected)), float(len(expected))))
    return results


def _called_for(term: Term, index: int, sources: Sequence[str] | None, references: Sequence[str] | None) -> bool:
    by_source = term.in_source is not None and sources is not None
    if by_source and not (term.in_source and sources and term.in_source.search(sources[index])):
        return False
    if references is not None:
        return bool(term.in_target.search(references[index]))
    return by_source


def copied_share(lines: Sequence[str], sources: Sequence[str], language: str, source_language: str) -> float:
    """Percentage of the translations' words (characters in scripts without spaces) that also occur in their sources. Signs, numbers
    and single letters do not count.
    """
    copied = words = 0
    for line, source in zip(lines, sources, strict=True):
        source_words = {token.casefold() for token in tokens(source, source_language or language)}
        for token in tokens(line, language):
            if not token.isalpha() or (len(token) < 2 and token.isascii()):
                continue
            words += 1
            copied += token.casefold() in source_words
    return 100 * copied / max(1, words)
