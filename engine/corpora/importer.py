"""Importing files into a corpus: read, clean, split into sentences, count skipped text, check the language."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.languages import language_message
from engine.core.progress import Part, Progress, Quiet
from engine.core.settings import load_settings
from engine.corpora.clean import EMPTY
from engine.corpora.corpus import Corpus
from engine.corpora.filter import SentenceFilter
from engine.corpora.formats.encoding import check_file, check_there
from engine.corpora.formats.read import open_samples
from engine.corpora.formats.records import Reading, Request
from engine.corpora.language import base_language, detect, identify, language_name, shares, surely_other
from engine.corpora.near_duplicates import groups
from engine.corpora.overrides import Decisions, segment_key
from engine.corpora.report import DUPLICATE, EXCLUDED, LEFT_OUT, FileReport, ImportReport
from engine.corpora.types import CorpusOptions, Segment
from engine.corpora.warnings import ANOTHER_LANGUAGE, NEAR_DUPLICATE
from engine.corpora.writer import CorpusWriter
from engine.errors import CorpusError, InputError, MissingError, TailorError
from engine.messages import Message, mark

EXPECTED_SHARE = 0.7  # of a corpus in the target language; a smaller share causes a warning
LEAST_SHARE = 0.1  # below it, a corpus of at least LEAST_SENTENCES is refused
LEAST_SENTENCES = 20
MANY_OTHERS = 20  # fewest sentences in another language that cause a warning
MOST_DETECTED = 5_000  # sentences whose language is detected; takes about five seconds
MOST_COMPARED = 50_000  # sentences searched for near-duplicates; takes about ten seconds
EVERY = 200  # records between two progress reports


def import_corpus(
    paths: Sequence[str | Path],
    language: str,
    *,
    source_language: str | None = None,
    domains: Sequence[str] = (),
    options: CorpusOptions | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Read samples of the target `language` from files in any of the formats in READERS.

    `source_language` helps to distinguish the sides of bilingual files. Bilingual rows keep their source and are not
    split into sentences. `domains` are labels, one per file ("" for none), for sentences whose row specifies no domain.
    If there are several files, those without usable text and anything after the damage in a damaged one are left out, and
    `FileReport.error` states why. Progress is reported in bytes. Raises CorpusError if a file is missing, if no file can be
    read to its end, or if almost nothing is in the target language.
    """
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        samples = SampleFiles(paths, language, source_language, domains)
        import_to(Path(folder), samples, options=options, progress=progress)
        return Corpus.load(Path(folder))


@dataclass(frozen=True)
class SampleFiles:
    """Files to read, with their languages and domain labels; see `import_corpus`."""

    paths: Sequence[str | Path]
    language: str
    source_language: str | None = None
    domains: Sequence[str] = ()


def import_to(
    folder: Path,
    samples: SampleFiles,
    *,
    options: CorpusOptions | None = None,
    decisions: Decisions | None = None,
    progress: Progress | None = None,
    check: Callable[[ImportReport], None] = lambda report: None,
) -> ImportReport:
    """Import samples as `import_corpus` does, but into a folder and without ever holding the files or the corpus in memory.

    `decisions` are the user's decisions about individual sentences. `check` may raise to reject the report; in that case, as
    after any failure, the folder's earlier files are intact. See `CorpusWriter` for the files.
    """
    options = options or CorpusOptions()
    progress = progress or Progress()
    files, domains = [Path(path) for path in samples.paths], samples.domains
    language, source_language = samples.language, samples.source_language
    if not files:
        raise CorpusError("No file was specified; choose at least one file with sentences in the target language.")
    if domains and len(domains) != len(files):
        raise CorpusError(
            "There are {files} files, but {labels} domain labels; provide one label per file.",
            files=len(files),
            labels=len(domains),
        )
    for path in files:
        check_there(path)
    sizes = [path.stat().st_size for path in files]
    request = Request(
        language=language,
        source_language=source_language,
        max_line_chars=options.max_line_chars or load_settings().max_line_chars,
        join_wrapped_lines=options.join_wrapped_lines,
    )
    report = ImportReport(language=language, source_language=source_language)
    report.decided = decisions.key() if decisions else ""
    errors: list[TailorError] = []
    with CorpusWriter(folder) as writer:
        sentences = SentenceFilter(writer, options, language, decisions or Decisions())
        for i, (path, name) in enumerate(zip(files, _names(files), strict=True)):
            file = FileReport(name=name)
            report.files.append(file)
            label = (domains[i] if domains else "") or (Path(name).stem if options.domain_from_file else "")
            part = Part(progress, sum(sizes[:i]), sum(sizes))
            try:
                _read_file(path, file, label, request, sentences, report, part)
            except (InputError, MissingError) as error:
                file.error = error.message.naming(str(path), name)
                errors.append(error)
            part.advance(sizes[i], None, name)
        if len(errors) == len(files):
            raise type(errors[0])(report.files[0].error) if len(errors) == 1 else CorpusError(_joined(report.files))
        _thin(writer, options.max_sentences, report)
        _look_over(writer, report, sentences.decisions, progress, sum(sizes), language_too=options.check_language)
        check(report)
        writer.commit(report)
    return report


def _names(files: Sequence[Path]) -> list[str]:
    """The files' names, encodable as UTF-8 for JSON; full paths for files that share a name."""
    names = [path.name for path in files]
    labels = [str(path) if names.count(path.name) > 1 else path.name for path in files]
    return [name.encode("utf-8", "replace").decode() for name in labels]


def _read_file(
    path: Path, file: FileReport, label: str, request: Request, sentences: SentenceFilter, report: ImportReport, progress: Progress
) -> None:
    """Fill `file` and the corpus from one file, as far as it can be read. Raises InputError or MissingError if not to its end."""
    check_file(path)
    reading, size = open_samples(path, request), path.stat().st_size
    try:
        for count, _ in enumerate(sentences.run(reading, file, label)):
            if count % EVERY == 0:
                progress.advance(min(reading.position(), size), None, file.name)
    finally:
        file.encoding, file.lines, file.unit = reading.encoding, reading.lines(), reading.unit
        file.notes, file.found = reading.notes, dict(reading.stated_languages)
        report.warnings += reading.warnings
    _check_something_left(path, file, reading, report)


def _joined(files: Sequence[FileReport]) -> Message:
    """The errors of all files in one message."""
    result = Message("None of the {count} files can be read.", count=len(files))
    for file in files:
        result = Message("{reasons} {reason}", reasons=result, reason=Message(file.error))
    return result


def _check_something_left(path: Path, file: FileReport, reading: Reading, report: ImportReport) -> None:
    if file.kept:
        return
    if not file.segments:
        raise CorpusError("{path} holds no sentences; choose a file with sentences in the target language.", path=path)
    if file.skipped and set(file.skipped) <= {DUPLICATE, EMPTY, EXCLUDED} and set(file.skipped) != {EMPTY}:
        if DUPLICATE in file.skipped:
            why = Message("{file} adds nothing: all its sentences are in the other files already.", file=file.name)
        else:
            why = Message("{file} adds nothing: all its sentences are excluded by you.", file=file.name)
        report.warnings.append(why)
        return
    advice: str = reading.hint()
    if not advice and file.unit == "line":
        advice = Message("choose a file with one sentence or paragraph per line")
    nothing = Message(
        "{path} holds no usable sentence: everything in it was skipped ({reasons})", path=path, reasons=file.reasons()
    )
    if advice:
        raise CorpusError("{nothing}; {advice}.", nothing=nothing, advice=advice)
    raise CorpusError("{nothing}.", nothing=nothing)


def _thin(writer: CorpusWriter, max_sentences: int, report: ImportReport) -> None:
    """Leave out the sentences beyond `max_sentences`, evenly over all files, and add a warning."""
    total = writer.count
    files = {file.name: file for file in report.files}
    for segment in writer.thin(max_sentences):
        files[segment.file].leave_out(segment.line, segment.text)
        writer.skip(segment.file, segment.line, LEFT_OUT, segment.text, segment.source)
    if total > max_sentences:
        report.warnings.append(
            Message(
                "Of {all:,} usable sentences {count:,} are used, taken evenly from all files; set max_sentences higher to "
                "use more.",
                all=total,
                count=max_sentences,
            )
        )


def _look_over(
    writer: CorpusWriter, report: ImportReport, decisions: Decisions, progress: Progress, size: int, *, language_too: bool
) -> None:
    """Report what depends on the whole import (of `size` bytes): lengths, domains, languages, near-duplicates."""
    files = {file.name: file for file in report.files}
    lengths: Counter[int] = Counter()
    labels: Counter[str] = Counter()
    first: list[Segment] = []
    sample, stride = [], max(1, writer.count // MOST_COMPARED)
    noticed = writer.notices()
    notice = next(noticed, None)
    for row, segment in enumerate(writer.segments()):
        if row % 10_000 == 0:
            progress.check()
        lengths[len(segment.text)] += 1
        labels[segment.domain] += 1
        if row < MOST_COMPARED:
            first.append(segment)
        if row % stride == 0:
            sample.append((row, segment))
        while notice is not None and notice["row"] == row:
            files[segment.file].notice(notice["reason"], segment.line, segment.text)
            notice = next(noticed, None)
    report.lengths = dict(sorted(lengths.items()))
    if language_too:
        other_languages: Counter[str] = Counter()
        for row, code in _check_language(sample, report):
            other_languages[code] += 1
            segment = sample[row][1]
            if segment_key(segment.text, segment.source) not in decisions.approved:
                note = language_name(code)
                files[segment.file].notice(ANOTHER_LANGUAGE, segment.line, segment.text, f" ({note})")
                writer.notice(sample[row][0], ANOTHER_LANGUAGE, note)
        _warn_of_others(other_languages, report)
    for row, leader in _near_duplicates(first, _Within(progress, size)):
        duplicate, like = first[row], first[leader]
        if segment_key(duplicate.text, duplicate.source) in decisions.approved:
            continue
        where = f"line {like.line}" if like.file == duplicate.file else f"{like.file} line {like.line}"
        files[duplicate.file].notice(NEAR_DUPLICATE, duplicate.line, duplicate.text, f" (like {where})")
        writer.notice(row, NEAR_DUPLICATE, like=leader)
    if writer.count > len(first):
        report.files[-1].notes.append(
            Message("Only the first {count:,} sentences were checked for near-duplicates.", count=MOST_COMPARED)
        )
    if set(labels) - {""}:
        report.domains = dict(labels)


def _check_language(sample: Sequence[tuple[int, Segment]], report: ImportReport) -> Iterator[tuple[int, str]]:
    """Add the detected languages to the report; warn if too few sentences are in the target language, or refuse the corpus.

    Yields (position in the sample, language code) of sentences that are certainly not in the target language.
    """
    segments = [segment for _, segment in sample]
    language = base_language(report.language)
    expected = [report.language, *([report.source_language] if report.source_language else [])]
    detected = detect([segment.text for segment in segments], *expected, max_texts=MOST_DETECTED)
    if detected is None:
        report.warnings.append(
            Message(
                "The language of the sentences could not be checked: {language} is not among those that can be detected.",
                language=language_message(report.language),
            )
        )
        return
    if report.kept > MOST_DETECTED:
        report.files[-1].notes.append(
            Message("Languages were detected in {count:,} evenly selected sentences.", count=len(detected))
        )
    result = shares(detected)
    report.languages = {code: round(share, 4) for code, share in result.items()}
    share = result.get(language, 0.0)
    if share < EXPECTED_SHARE:
        _warn_of_language(segments, report, language, result)
    for position, code in detected:
        if surely_other(segments[position].text, code, report.language):
            yield position, code


def _warn_of_language(segments: Sequence[Segment], report: ImportReport, language: str, shares: dict[str, float]) -> None:
    share = shares.get(language, 0.0)
    other = next((code for code in shares if code not in (language, "unknown")), None)
    name = Message(language_name(language))
    looks = Message("; most others look like {other}", other=Message(language_name(other))) if other else ""
    if share < LEAST_SHARE and len(segments) >= LEAST_SENTENCES:
        of_sources = identify([segment.source for segment in segments if segment.source], language) or {}
        swapped = of_sources.get(language, 0.0) >= EXPECTED_SHARE
        hint = mark("the source and target columns seem to be swapped")
        raise CorpusError(
            "The samples are not in the target language: only {share:.0%} looks like {language}{looks} ({files}); {hint}.",
            share=share,
            language=name,
            looks=looks,
            files=", ".join(file.name for file in report.files),
            hint=Message(hint if swapped else mark("choose samples in that language")),
        )
    report.warnings.append(
        Message(
            "Only {share:.0%} of the sentences look like {language}{looks}; check the samples.",
            share=share,
            language=name,
            looks=looks,
        )
    )


def _warn_of_others(other_languages: Counter[str], report: ImportReport) -> None:
    """Warn of many sentences in other languages (counts by code) in a corpus that is mostly in the target language."""
    language = base_language(report.language)
    if other_languages.total() < MANY_OTHERS or report.languages.get(language, 0.0) < EXPECTED_SHARE:
        return
    report.warnings.append(
        Message(
            "{count:,} sentences are not in {language}; most of them look like {other}. Exclude them, or remove their file.",
            count=other_languages.total(),
            language=Message(language_name(language)),
            other=Message(language_name(other_languages.most_common(1)[0][0])),
        )
    )


def _near_duplicates(segments: Sequence[Segment], progress: Progress) -> Iterator[tuple[int, int]]:
    """Yield (index of a near-duplicate, index of the sentence it resembles); equal translations of different sources are fine."""
    for index, leader in enumerate(groups([f"{segment.source or ''} {segment.text}" for segment in segments], (), progress)):
        if leader != index:
            yield index, leader


SELDOM = 5.0  # seconds between two messages of `_Within`


class _Within(Quiet):
    """Progress of the near-duplicate search, shown as a note on a step that counts bytes and has read them all."""

    def __init__(self, parent: Progress, size: int) -> None:
        super().__init__(parent)
        self.size = size
        self.shown_at = time.monotonic()

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        if time.monotonic() - self.shown_at < SELDOM:
            return
        self.shown_at = time.monotonic()
        share = f" {done / total:.0%}" if total else ""
        self.inner.advance(self.size, self.size, f"near-duplicates{share}")
