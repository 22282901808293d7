"""Sentences to compare, with or without references, from a file or a pair of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.core.settings import load_settings
from engine.corpora.formats.read import READERS, all_records, format_of
from engine.corpora.formats.records import Record, Request
from engine.corpora.language import identify, language_name
from engine.errors import CorpusError, InputError
from engine.messages import Message
from engine.workflows.read_apart import lines_apart, records_apart

MOST = 50_000
STATED = ("tmx", "xliff")  # formats that state the language of each text
LONE = ("txt", "docx", "odt", "srt", "pdf")  # formats with one language per file


@dataclass(frozen=True)
class Sentences:
    """(source, reference or None) of each sentence; `notes` are messages on how the files were interpreted."""

    lines: list[tuple[str, str | None]]
    notes: list[str] = field(default_factory=list)

    @property
    def references(self) -> int:
        return sum(reference is not None for _, reference in self.lines)


def split_lines(text: str, limit: int) -> list[str]:
    """The sentences of a text, one per line, without empty ones. Raises InputError when there are too many."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if len(lines) > limit:
        raise InputError(
            "Up to {most:,} sentences can be typed here, and there are {count:,}. Open them as a file.",
            most=limit,
            count=len(lines),
        )
    return lines


def read_sentences(paths: Sequence[str | Path], source: str, target: str, *, apart: bool = False) -> Sentences:
    """Read one file (sources only, or a table, TMX, XLIFF or PO with references), or two plain texts, sources and references, line
    by line; `apart` in a separate process. Raises CorpusError or InputError on unsuitable files.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise InputError("Choose a file with sentences in {language_name}.", language_name=Message(language_name(source)))
    if len(files) > 2:
        raise InputError("Choose one file, or two of the same number of lines: sentences and their references.")
    result = pair(files, source, target, apart) if len(files) == 2 else single(files[0], source, target, apart)
    if not result.lines:
        raise CorpusError(
            "{file} holds no sentence in {language_name}. Choose another file.",
            file=files[0].name,
            language_name=Message(language_name(source)),
        )
    if len(result.lines) > MOST:
        raise InputError(
            "{file} holds {count:,} sentences; a comparison takes up to {most:,}. Split the file.",
            file=files[0].name, count=len(result.lines), most=MOST,
        )  # fmt: skip
    return result


def single(path: Path, source: str, target: str, apart: bool) -> Sentences:
    kind = format_of(path)
    if kind in LONE:
        texts = [record.text for record in records(path, source, None, apart)]
        check_language(path, texts, source, target)
        return Sentences([(text, None) for text in texts])
    if kind in STATED:  # read in the reverse direction, to include units without a translation
        turned = records(path, source, target, apart)
        return Sentences([(record.text, clean(record.source)) for record in turned])
    parsed = records(path, target, source, apart)
    if all(record.source is None for record in parsed):
        texts = [record.text for record in parsed]
        check_language(path, texts, source, target)
        return Sentences([(text, None) for text in texts])
    return Sentences([(record.source.strip(), clean(record.text)) for record in parsed if record.source and record.source.strip()])


def pair(files: Sequence[Path], source: str, target: str, apart: bool) -> Sentences:
    """Two plain texts. Their language determines which one contains the sources. Raises InputError for other formats or different
    numbers of lines.
    """
    from engine.evaluation import read_lines

    read = lines_apart if apart else read_lines
    for path in files:
        if format_of(path) != "txt":
            raise InputError(
                "{path} is {readers}; if you choose two files, both must be plain text.",
                path=path.name,
                readers=Message(READERS[format_of(path)].title),
            )
    texts = [[" ".join(line.split()) for line in read(path)] for path in files]
    if len(texts[0]) != len(texts[1]):
        raise InputError(
            "{file} has {lines:,} lines and {other} has {other_lines:,}, so sentences and references cannot "
            "be matched line by line.",
            file=files[0].name, lines=len(texts[0]), other=files[1].name, other_lines=len(texts[1]),
        )  # fmt: skip
    shares = [(identify(part, source, target) or {}).get(source, 0.5) for part in texts]
    first = int(shares[1] > shares[0])
    check_language(files[first], texts[first], source, target)
    lines = [(a, b or None) for a, b in zip(texts[first], texts[1 - first], strict=True) if a]
    return Sentences(lines, [f"{files[first].name} holds the sentences, {files[1 - first].name} their references."])


def records(path: Path, language: str, source_language: str | None, apart: bool) -> list[Record]:
    """The records that the samples' reader finds in the file, with spaces normalised; only empty ones are left out."""
    request = Request(language, source_language, load_settings().max_line_chars)
    read = records_apart if apart else all_records
    return [
        Record(record.line, " ".join(record.text.split()), clean(record.source), record.domain)
        for record in read(path, request)
        if record.text.strip()
    ]


def clean(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None


def check_language(path: Path, texts: Sequence[str], source: str, target: str) -> None:
    """Raises CorpusError if the sentences are plainly in the target language."""
    result = identify(texts, source, target)
    if result and result.get(target, 0.0) > 0.6 and result.get(source, 0.0) < 0.2:
        raise CorpusError(
            "{path} is in {language}. Choose a file in {expected}, the source language.",
            path=path.name, language=Message(language_name(target)), expected=Message(language_name(source)),
        )  # fmt: skip
