"""Sentences to compare, with or without references, from a file or a pair of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.corpora.language import identify, language_name
from engine.corpora.read import READERS, format_of, open_samples
from engine.corpora.records import Record, Request
from engine.errors import CorpusError, InputError
from engine.settings import load_settings

__all__ = ["Sentences", "read_sentences", "split_lines"]

MOST = 50_000
STATED = ("tmx", "xliff")  # formats that say which language each text is in
LONE = ("txt", "docx", "odt", "srt", "pdf")  # formats with one language a file


@dataclass(frozen=True)
class Sentences:
    """(source, reference or None) of each sentence; `notes` say in sentences how the files were understood."""

    lines: list[tuple[str, str | None]]
    notes: list[str] = field(default_factory=list)

    @property
    def references(self) -> int:
        return sum(reference is not None for _, reference in self.lines)


def split_lines(text: str, most: int) -> list[str]:
    """The sentences of a text, one a line, without empty ones. Raises InputError when there are too many."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if len(lines) > most:
        raise InputError(f"Up to {most:,} sentences can be typed here, these are {len(lines):,}. Open them as a file.")
    return lines


def read_sentences(paths: Sequence[str | Path], source: str, target: str) -> Sentences:
    """From one file (sources alone, or a table, TMX, XLIFF or PO with references) or from two plain texts, sources and
    references, a line for a line. Raises CorpusError or InputError on files that cannot be used so.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise InputError(f"Choose a file with sentences in {language_name(source)}.")
    if len(files) > 2:
        raise InputError("Choose one file, or two of the same number of lines: sentences and their references.")
    found = pair(files, source, target) if len(files) == 2 else single(files[0], source, target)
    if not found.lines:
        raise CorpusError(f"{files[0].name} holds no sentence in {language_name(source)}. Choose another file.")
    if len(found.lines) > MOST:
        raise InputError(
            f"{files[0].name} holds {len(found.lines):,} sentences; a comparison takes up to {MOST:,}. Split the file."
        )
    return found


def single(path: Path, source: str, target: str) -> Sentences:
    kind = format_of(path)
    if kind in LONE:
        texts = [record.text for record in records(path, source, None)]
        check_language(path, texts, source, target)
        return Sentences([(one, None) for one in texts])
    if kind in STATED:  # read from the other side, so that units without a translation are taken as well
        turned = records(path, source, target)
        return Sentences([(record.text, clean(record.source)) for record in turned])
    known = records(path, target, source)
    if all(record.source is None for record in known):
        texts = [record.text for record in known]
        check_language(path, texts, source, target)
        return Sentences([(one, None) for one in texts])
    return Sentences([(one.source.strip(), clean(one.text)) for one in known if one.source and one.source.strip()])


def pair(files: Sequence[Path], source: str, target: str) -> Sentences:
    """Two plain texts. Which one holds the sources is told by their language."""
    from engine.evaluation.evaluate import read_lines

    for path in files:
        if format_of(path) != "txt":
            raise InputError(f"{path.name} is {READERS[format_of(path)].title}; of two files both must be plain text.")
    texts = [[" ".join(line.split()) for line in read_lines(path)] for path in files]
    if len(texts[0]) != len(texts[1]):
        raise InputError(
            f"{files[0].name} has {len(texts[0]):,} lines and {files[1].name} {len(texts[1]):,}, so sentences and "
            "references cannot be put together line by line."
        )
    shares = [(identify(part, source, target) or {}).get(source, 0.5) for part in texts]
    first = int(shares[1] > shares[0])
    check_language(files[first], texts[first], source, target)
    lines = [(a, b or None) for a, b in zip(texts[first], texts[1 - first], strict=True) if a]
    return Sentences(lines, [f"{files[first].name} holds the sentences, {files[1 - first].name} their references."])


def records(path: Path, language: str, source_language: str | None) -> list[Record]:
    """What the reader of samples finds in the file, tidied; nothing is left out but what is empty."""
    most = load_settings().max_line_chars
    reading = open_samples(path, Request(language, source_language, most))
    found = [one for one in reading.items if isinstance(one, Record)]
    return [
        Record(one.line, " ".join(one.text.split()), clean(one.source), one.domain) for one in found if one.text.strip()
    ]


def clean(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None


def check_language(path: Path, texts: Sequence[str], source: str, target: str) -> None:
    """Raises CorpusError where sentences are plainly in the language that is translated to."""
    found = identify(texts, source, target)
    if found and found.get(target, 0.0) > 0.6 and found.get(source, 0.0) < 0.2:
        raise CorpusError(
            f"{path.name} is in {language_name(target)}. Choose a file in {language_name(source)}, the language that is "
            "translated from."
        )
