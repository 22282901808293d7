"""Glossary terms: how a source term is to be translated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from engine.core.languages import unspaced
from engine.corpora.formats.columns import Columns, columns_of_header, looks_like_header
from engine.corpora.formats.csv_dialect import Dialect, parse_record, sniff
from engine.corpora.formats.encoding import check_file, detect_encoding
from engine.corpora.formats.records import Request
from engine.corpora.formats.tbx import is_tbx, read_tbx
from engine.corpora.formats.text_lines import lines_of_file
from engine.corpora.formats.textfile import TextFile
from engine.errors import InputError

MOST_TERMS = 20_000  # per file
DELIMITERS = ",;\t|"
TERM_FILES = (".tbx", ".xml", ".csv", ".tsv", ".tab", ".txt")
ENDING = r"\w{0,2}"


@dataclass(frozen=True)
class Term:
    """A term of the target language and its source term ("" if unknown)."""

    target: str
    language: str
    source: str = ""
    source_language: str = ""

    @cached_property
    def in_target(self) -> re.Pattern[str]:
        """Matches the target term: in any case if it is all lower case, otherwise as written or in capitals."""
        return _pattern(self.target, self.language, exact=self.target != self.target.lower())

    @cached_property
    def inflected(self) -> re.Pattern[str] | None:
        """Matches the source term with up to two letters added (inflectional endings), in any case unless it is an acronym."""
        return _pattern(self.source, self.source_language, ENDING) if self.source else None

    @cached_property
    def in_source(self) -> re.Pattern[str] | None:
        return _pattern(self.source, self.source_language) if self.source else None


def read_terms(path: Path, language: str, source_language: str = "") -> list[Term]:
    """The terms of a file: TBX, CSV (for both, only the first term per source term), or lines as read by `parse_terms`.

    Raises InputError if a line is malformed (stating its number), if there are no terms, or if there are more than MOST_TERMS.
    """
    check_file(path)
    if is_tbx(path):
        pairs = read_tbx(path, language, source_language)
    elif path.suffix.lower() == ".csv":
        pairs = _csv_pairs(path, language, source_language)
    else:
        lines = lines_of_file(path, detect_encoding(path, [language]), path.name)
        return _checked(parse_terms(lines, path.name, language, source_language), path)
    terms: dict[tuple[str, str], Term] = {}
    for source, target in pairs:
        terms.setdefault((source, "" if source else target), Term(target, language, source, source_language))
        if len(terms) > MOST_TERMS:
            break
    return _checked(list(terms.values()), path)


def _checked(terms: list[Term], path: Path) -> list[Term]:
    if not terms:
        raise InputError("There are no terms in {file}; enter one per line, or source term, tab, target term.", file=path.name)
    if len(terms) > MOST_TERMS:
        raise InputError(
            "{file} has more than {most:,} terms; keep those of this project's field.", file=path.name, most=MOST_TERMS
        )
    return terms


def _csv_pairs(path: Path, language: str, source_language: str) -> Iterator[tuple[str, str]]:
    """(source term, target term) of a table, by its header if it has one, otherwise from its first two columns."""
    request = Request(language, source_language or None)
    file = TextFile(path, request)
    ahead = [line.text for line in file.look_ahead() if not line.cut]
    dialect = sniff(ahead, DELIMITERS)
    if dialect.delimiter is None:  # ragged: guess a delimiter, so that the error can name the row that lacks a cell
        dialect = Dialect(next((mark for mark in DELIMITERS if mark in "".join(ahead[:1])), None), True)
    columns: Columns | None = None
    for number, cells in _csv_rows(file, dialect):
        if columns is None:
            columns = columns_of_header(cells, language, source_language) if looks_like_header(cells) else None
            if columns is not None:
                continue
            columns = Columns(len(cells), 1, 0) if dialect.delimiter else Columns(1, 0)
        if not any(cells):
            continue
        target = cells[columns.text] if columns.text < len(cells) else ""
        source = cells[columns.source] if columns.source is not None and columns.source < len(cells) else ""
        if not target or (columns.source is not None and not source):
            raise InputError("{file}, line {number}: a source term and a target term are needed.", file=path.name, number=number)
        yield source, target


def _csv_rows(file: TextFile, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    for line in file:
        lines = chain([line.text], (more.text for more in file))
        cells = None if line.cut else parse_record(lines, dialect)
        if cells is None:
            raise InputError(
                "{file}, line {number}: the quotes or the length of this line are not those of a table of terms.",
                file=file.path.name, number=line.number,
            )  # fmt: skip
        yield line.number, [" ".join(cell.split()) for cell in cells]


def lines_of(pairs: Iterable[tuple[str, str]]) -> str:
    """(source term, target term) pairs as lines for `parse_terms`; a term that begins with # is indented, as # marks a comment."""
    lines = ("\t".join(part for part in pair if part) for pair in pairs)
    return "\n".join(f" {line}" if line.startswith("#") else line for line in lines)


def parse_terms(lines: Iterable[str], where: str, language: str, source_language: str = "") -> list[Term]:
    """Parse one term per line: a target term, or a source term and a target term separated by a tab or ` = `.

    Blank lines and lines that begin with # are ignored. Raises InputError, naming `where` and the line, on any other line.
    """
    terms = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.rstrip("\n").split("\t" if "\t" in line else " = ")]
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
    """The terms whose source term occurs in the source, inflected or not; at overlaps only the longest, and one per target term."""
    matches = [(match, term) for term in terms if term.inflected for match in term.inflected.finditer(source)]
    covered: set[int] = set()
    results: dict[str, Term] = {}
    for match, term in sorted(matches, key=lambda pair: (pair[0].start() - pair[0].end(), pair[0].start())):
        positions = set(range(*match.span()))
        if not positions & covered:
            covered |= positions
            results.setdefault(term.target, term)
    return list(results.values())


def usage(terms: Sequence[Term], sources: Sequence[str], translations: Sequence[str]) -> tuple[int, int]:
    """How many of the terms that the sources call for occur in their translations, and how many are called for."""
    expected = [(term, line) for source, line in zip(sources, translations, strict=True) for term in called_for(terms, source)]
    return sum(bool(term.in_target.search(line)) for term, line in expected), len(expected)


def _pattern(term: str, language: str, ending: str = "", *, exact: bool = False) -> re.Pattern[str]:
    """Matches the term; if the script has spaces, only as a whole word, to which `ending` may be added in terms of over 3 letters.

    If `exact`, the term is matched as written or in capitals, otherwise in any case (acronyms only as written).
    """
    forms = dict.fromkeys((term, term.upper())) if exact or term.isupper() else (term,)
    text = "|".join(r"\s+".join(map(re.escape, form.split())) for form in forms)
    flags = re.RegexFlag(0) if exact or term.isupper() else re.IGNORECASE
    if not language or unspaced(language):
        return re.compile(text, flags)
    return re.compile(rf"(?<!\w)(?:{text}){ending if len(term) > 3 else ''}(?!\w)", flags)
