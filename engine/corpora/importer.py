"""From files to a corpus: read, clean, split into sentences, count what is left out, check the language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.corpora.clean import EMPTY, UNDECODABLE, clean, reason_to_skip
from engine.corpora.corpus import Corpus
from engine.corpora.encoding import check_file
from engine.corpora.garbled import GARBLED, is_garbled
from engine.corpora.language import base_language, detect, identify, language_name, shares, surely_other
from engine.corpora.near import groups
from engine.corpora.notice import ANOTHER_LANGUAGE, NEAR_DUPLICATE, notices
from engine.corpora.read import open_samples
from engine.corpora.records import Reading, Record, Request, Skip
from engine.corpora.report import DUPLICATE, FileReport, ImportReport
from engine.corpora.sentences import split_sentences
from engine.corpora.types import CorpusOptions, Segment
from engine.errors import CorpusError
from engine.progress import Progress
from engine.settings import load_settings

__all__ = ["import_corpus"]

EXPECTED_SHARE = 0.7  # of a corpus in the target language; with less there is a warning
LEAST_SHARE = 0.1  # with less, a corpus of at least LEAST_SENTENCES is refused
LEAST_SENTENCES = 20
SOURCE_EMPTY = "no source"
MOST_COMPARED = 50_000  # sentences among which near-duplicates are looked for, in about ten seconds


def import_corpus(
    paths: Sequence[str | Path],
    language: str,
    *,
    source_language: str | None = None,
    domains: Sequence[str] = (),
    options: CorpusOptions | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Read samples of the target `language` from files (plain text, CSV, TSV, JSON Lines; one format a file).

    `source_language` helps to tell the columns of bilingual tables apart. Bilingual rows keep their source and are not
    split into sentences. `domains` are labels, one a file ("" for none), for sentences whose row names no domain itself.
    Progress is reported in bytes. Raises CorpusError with one sentence on a file that is missing,
    empty, no text, holds nothing usable, or when nearly nothing is in the target language.
    """
    options = options or CorpusOptions()
    progress = progress or Progress()
    files = [Path(path) for path in paths]
    if not files:
        raise CorpusError("No file was given; choose at least one file with sentences in the target language.")
    if domains and len(domains) != len(files):
        raise CorpusError(f"There are {len(files)} files, but {len(domains)} domain labels; give one label a file.")
    sizes = [check_file(path) for path in files]
    request = Request(
        language=language,
        source_language=source_language,
        max_line_chars=options.max_line_chars or load_settings().max_line_chars,
        join_wrapped_lines=options.join_wrapped_lines,
    )
    report = ImportReport(language=language, source_language=source_language)
    segments: list[Segment] = []
    seen: set[tuple[str, str | None]] = set()
    for i, (path, name) in enumerate(zip(files, _names(files), strict=True)):
        file = FileReport(name=name)
        reading = open_samples(path, request)
        before = sum(sizes[:i])
        label = (domains[i] if domains else "") or (Path(name).stem if options.domain_from_file else "")
        for segment in _segments(reading, file, options, language, label, seen):
            segments.append(segment)
            if file.segments % 200 == 0:
                progress.advance(before + reading.position(), sum(sizes), name)
        file.encoding, file.lines, file.notes = reading.encoding, reading.lines(), reading.notes
        report.files.append(file)
        report.warnings += reading.warnings
        _check_something_left(path, file, report)
        progress.advance(before + sizes[i], sum(sizes), name)
    if options.check_language:
        _check_language(segments, report)
    _find_near_duplicates(segments, report)
    if any(segment.domain for segment in segments):
        report.domains = dict(Counter(segment.domain for segment in segments).most_common())
    return Corpus(language=language, segments=segments, report=report)


def _names(files: Sequence[Path]) -> list[str]:
    """The files' names; with their folders where two have the same name."""
    names = [path.name for path in files]
    return [str(path) if names.count(path.name) > 1 else path.name for path in files]


def _segments(
    reading: Reading,
    file: FileReport,
    options: CorpusOptions,
    language: str,
    label: str,
    seen: set[tuple[str, str | None]],
) -> Iterator[Segment]:
    """The usable sentences of one file; everything else is counted in its report."""
    for item in reading.items:
        if isinstance(item, Skip):
            file.skip(item.reason, item.line, item.text)
            continue
        if is_garbled(item.text) or (item.source and is_garbled(item.source)):
            file.skip(GARBLED, item.line, item.text)
            continue
        text = clean(item.text, options.normalization)
        source = None if item.source is None else clean(item.source, options.normalization)
        if source is not None and (not source or "�" in source):
            file.skip((UNDECODABLE if source else SOURCE_EMPTY) if text else EMPTY, item.line, item.text)
            continue
        several = source is None and options.split_sentences
        for piece in split_sentences(text, language) if several else [text]:
            reason = reason_to_skip(piece, options)
            if reason is None and options.deduplicate and (piece, source) in seen:
                reason = DUPLICATE
            if reason is not None:
                file.skip(reason, item.line, piece or item.text)
                continue
            if options.deduplicate:
                seen.add((piece, source))
            file.keep()
            for notice in notices(item.text, piece, language):
                file.notice(notice, item.line, piece)
            yield _segment(piece, source, item, file.name, label)


def _segment(text: str, source: str | None, record: Record, name: str, label: str) -> Segment:
    return Segment(text=text, source=source, file=name, line=record.line, domain=clean(record.domain) or clean(label))


def _check_something_left(path: Path, file: FileReport, report: ImportReport) -> None:
    if file.kept:
        return
    if not file.segments:
        raise CorpusError(f"{path} holds no sentences; choose a file with sentences in the target language.")
    if set(file.skipped) <= {DUPLICATE, EMPTY} and DUPLICATE in file.skipped:
        report.warnings.append(f"{file.name} adds nothing: all its sentences are in the other files already.")
        return
    raise CorpusError(
        f"{path} holds no usable sentence: everything in it was skipped ({file.reasons()}); "
        "choose a file with one sentence or paragraph a line."
    )


def _check_language(segments: Sequence[Segment], report: ImportReport) -> None:
    """Fill in the languages found; warn, or refuse, when the target language is not among the most of them."""
    wanted = base_language(report.language)
    expected = [report.language, *([report.source_language] if report.source_language else [])]
    seen = detect([segment.text for segment in segments], *expected)
    if seen is None:
        report.warnings.append(
            f"The language of the sentences could not be checked: {report.language} is not among those that can be told."
        )
        return
    found = shares(seen)
    _notice_other_languages(seen, segments, report)
    report.languages = {code: round(share, 4) for code, share in found.items()}
    share = found.get(wanted, 0.0)
    if share >= EXPECTED_SHARE:
        return
    name, other = language_name(wanted), next((code for code in found if code not in (wanted, "unknown")), None)
    looks = f"; most of it looks like {language_name(other)}" if other else ""
    if share < LEAST_SHARE and len(segments) >= LEAST_SENTENCES:
        swapped = _share_of_sources(segments, wanted) >= EXPECTED_SHARE
        hint = "the source and target columns seem to be swapped" if swapped else "choose samples in that language"
        raise CorpusError(
            f"The samples are not in the target language: only {share:.0%} looks like {name}{looks} "
            f"({', '.join(file.name for file in report.files)}); {hint}."
        )
    report.warnings.append(f"Only {share:.0%} of the sentences looks like {name}{looks}; check the samples.")


def _notice_other_languages(seen: Sequence[tuple[int, str]], segments: Sequence[Segment], report: ImportReport) -> None:
    """Sentences of the sample that are surely in neither the target language nor a close call."""
    files = {file.name: file for file in report.files}
    for place, code in seen:
        segment = segments[place]
        if surely_other(segment.text, code, report.language):
            files[segment.file].notice(ANOTHER_LANGUAGE, segment.line, segment.text, f" ({language_name(code)})")


def _find_near_duplicates(segments: Sequence[Segment], report: ImportReport) -> None:
    """Notice sentences that are like an earlier one but for trifles; equal translations of unlike sources are fine."""
    compared = segments[:MOST_COMPARED]
    files = {file.name: file for file in report.files}
    for place, leader in enumerate(groups([f"{one.source or ''} {one.text}" for one in compared])):
        if leader != place:
            one, like = segments[place], segments[leader]
            where = f"line {like.line}" if like.file == one.file else f"{like.file} line {like.line}"
            files[one.file].notice(NEAR_DUPLICATE, one.line, one.text, f" (like {where})")
    if len(segments) > len(compared):
        report.files[-1].notes.append(f"Near-duplicates were looked for in the first {MOST_COMPARED:,} sentences.")


def _share_of_sources(segments: Sequence[Segment], wanted: str) -> float:
    found = identify([segment.source for segment in segments if segment.source], wanted)
    return (found or {}).get(wanted, 0.0)
