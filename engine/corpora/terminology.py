"""Terms of a glossary: what a word of the source is called in the translation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.core.languages import unspaced
from engine.corpora.formats.encoding import detect_encoding
from engine.errors import InputError

ENDING = r"\w{0,2}"


@dataclass(frozen=True)
class Term:
    """A term of the target language, and its source term; "" if that is not known."""

    target: str
    language: str
    source: str = ""
    source_language: str = ""

    @cached_property
    def in_target(self) -> re.Pattern[str]:
        return _pattern(self.target, self.language)

    @cached_property
    def inflected(self) -> re.Pattern[str] | None:
        """The source term with up to two letters more, as endings of inflection are."""
        return _pattern(self.source, self.source_language, ENDING) if self.source else None

    @cached_property
    def in_source(self) -> re.Pattern[str] | None:
        return _pattern(self.source, self.source_language) if self.source else None


def read_terms(path: Path, language: str, source_language: str = "") -> list[Term]:
    """The terms of a glossary (parse_terms). Raises InputError, with the line, where it is none or has none."""
    with path.open(encoding=detect_encoding(path)) as file:
        terms = parse_terms(file, str(path), language, source_language)
    if not terms:
        raise InputError(
            "There are no terms in {path}; enter one per line, or source term, tab, target term.", path=path
        )
    return terms


def parse_terms(lines: Iterable[str], where: str, language: str, source_language: str = "") -> list[Term]:
    """A term of the target language a line, or source term, tab or ` = `, target term. Blank lines and those that begin with
    # are passed over. Raises InputError, with `where` and the line, on anything else.
    """
    terms = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in re.split(r"\t| = ", line.rstrip("\n"))]
        if len(parts) > 2 or not all(parts):
            raise InputError(
                "{where}, line {number}: specify a term, or source term, tab or =, target term; this has "
                "{count} columns.",
                where=where, number=number, count=len(parts),
            )  # fmt: skip
        source = parts[0] if len(parts) == 2 else ""
        terms.append(Term(parts[-1], language, source, source_language))
    return terms


def called_for(terms: Sequence[Term], source: str) -> list[Term]:
    """The terms whose source term occurs in the source, inflected or not; of two that overlap the longer one, and one of each
    target term.
    """
    matches = [(match, term) for term in terms if term.inflected for match in term.inflected.finditer(source)]
    covered: set[int] = set()
    results: dict[str, Term] = {}
    for match, term in sorted(matches, key=lambda one: (one[0].start() - one[0].end(), one[0].start())):
        positions = set(range(*match.span()))
        if not positions & covered:
            covered |= positions
            results.setdefault(term.target, term)
    return list(results.values())


def usage(terms: Sequence[Term], sources: Sequence[str], translations: Sequence[str]) -> tuple[int, int]:
    """How many terms that sources call for stand in their translations, and how many are called for."""
    wanted = [
        (term, line) for source, line in zip(sources, translations, strict=True) for term in called_for(terms, source)
    ]
    return sum(bool(term.in_target.search(line)) for term, line in wanted), len(wanted)


def _pattern(term: str, language: str, ending: str = "") -> re.Pattern[str]:
    """The term in any case; as a whole word, which may have an `ending`, where the script has spaces."""
    text = r"\s+".join(map(re.escape, term.split()))
    if not language or unspaced(language):
        return re.compile(text, re.IGNORECASE)
    return re.compile(rf"(?<!\w){text}{ending if len(term) > 3 else ''}(?!\w)", re.IGNORECASE)
