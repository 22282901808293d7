"""Terms that a translation should use: how many of those called for are there; and what was copied from the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.core.languages import unspaced
from engine.errors import InputError
from engine.evaluation.diff import tokens


@dataclass(frozen=True)
class Term:
    """A term of the target language, and what stands for it in the source; "" where that is not known."""

    target: str
    language: str
    source: str = ""
    source_language: str = ""

    @cached_property
    def in_target(self) -> re.Pattern[str]:
        return _pattern(self.target, self.language)

    @cached_property
    def in_source(self) -> re.Pattern[str] | None:
        return _pattern(self.source, self.source_language) if self.source else None


def read_terms(path: Path, language: str, source_language: str = "") -> list[Term]:
    """The terms of a glossary (parse_terms). Raises InputError, with the line, where it is none or has none."""
    from engine.evaluation.evaluate import read_lines

    terms = parse_terms(read_lines(path), str(path), language, source_language)
    if not terms:
        raise InputError("There are no terms in {path}; give one a line, or source term, tab, target term.", path=path)
    return terms


def parse_terms(lines: Iterable[str], where: str, language: str, source_language: str = "") -> list[Term]:
    """A term of the target language a line, or source term, tab or ` = `, target term. Blank lines and those that begin with
    # are passed over. Raises InputError, with `where` and the line, on anything else.
    """
    terms = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in re.split(r"\t| = ", line)]
        if len(parts) > 2 or not all(parts):
            raise InputError(
                "{where}, line {number}: give a term, or source term, tab or =, target term; this has {count} "
                "columns.",
                where=where, number=number, count=len(parts),
            )  # fmt: skip
        source = parts[0] if len(parts) == 2 else ""
        terms.append(Term(parts[-1], language, source, source_language))
    return terms


def term_counts(
    terms: Sequence[Term],
    lines: Sequence[str],
    sources: Sequence[str] | None,
    references: Sequence[str] | None,
) -> list[tuple[float, float]]:
    """(there, called for) of each line. A term is called for where its source term stands in the source and, where there are
    references, it stands in the reference itself; a term without a source term by the reference alone.
    """
    results = []
    for index, line in enumerate(lines):
        wanted = [term for term in terms if _called_for(term, index, sources, references)]
        results.append((float(sum(bool(term.in_target.search(line)) for term in wanted)), float(len(wanted))))
    return results


def _called_for(term: Term, place: int, sources: Sequence[str] | None, references: Sequence[str] | None) -> bool:
    asked = term.in_source is not None and sources is not None
    if asked and not (term.in_source and sources and term.in_source.search(sources[place])):
        return False
    if references is not None:
        return bool(term.in_target.search(references[place]))
    return asked


def copied_share(lines: Sequence[str], sources: Sequence[str], language: str, source_language: str) -> float:
    """Percent of the translations' words (characters in scripts without spaces) that stand in their sources as well. Marks,
    numbers and single letters do not count.
    """
    copied = words = 0
    for line, source in zip(lines, sources, strict=True):
        there = {token.casefold() for token in tokens(source, source_language or language)}
        for token in tokens(line, language):
            if not token.isalpha() or (len(token) < 2 and token.isascii()):
                continue
            words += 1
            copied += token.casefold() in there
    return 100 * copied / max(1, words)


def _pattern(term: str, language: str) -> re.Pattern[str]:
    """The term in any case; as a whole word where the script has spaces."""
    text = r"\s+".join(map(re.escape, term.split()))
    if not language or unspaced(language):
        return re.compile(text, re.IGNORECASE)
    return re.compile(rf"(?<!\w){text}(?!\w)", re.IGNORECASE)
