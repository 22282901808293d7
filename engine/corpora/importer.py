"""From files to a corpus: read, clean, split into sentences, count what is left out, check the language."""

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

EXPECTED_SHARE = 0.7  # of a corpus in the target language; with less there is a warning
LEAST_SHARE = 0.1  # with less, a corpus of at least LEAST_SENTENCES is refused
LEAST_SENTENCES = 20
MANY_OTHERS = 20  # sentences in another language that a warning is worth
MOST_DETECTED = 5_000  # sentences whose language is detected, in about five seconds
MOST_COMPARED = 50_000  # sentences among which near-duplicates are looked for, in about ten seconds
EVERY = 200  # records between two looks at the progress


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

    `source_language` helps to tell the sides of bilingual files apart. Bilingual rows keep their source and are not
    split into sentences. `domains` are labels, one per file ("" for none), for sentences whose row names no domain itself.
    Of several files those that are empty or hold nothing usable are left out, and of a damaged one what comes after the damage;
    `FileReport.error` says why. Progress is reported in bytes. Raises CorpusError when a file is missing, when none of them can be
    read to its end, and when nearly nothing is in the target language.
    """
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        samples = SampleFiles(paths, language, source_language, domains)
        import_to(Path(folder), samples, options=options, progress=progress)
        return Corpus.load(Path(folder))


@dataclass(frozen=True)
class SampleFiles:
    """Files to read, their language, and what else is known of them: see `import_corpus`."""

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
    """The same into a folder, sentence by sentence: neither the files nor the corpus are ever held in memory.

    `decisions` are the user's about single sentences. `check` may raise when the report will not do; then, and whenever
    this fails, what lay in the folder before is still there. See `CorpusWriter` for the files.
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
    """The files' names, fit for JSON; with their folders where two have the same name."""
    names = [path.name for path in files]
    shown = [str(path) if names.count(path.name) > 1 else path.name for path in files]
    return [name.encode("utf-8", "replace").decode() for name in shown]


def _read_file(
    path: Path, file: FileReport, label: str, request: Request, sentences: SentenceFilter, report: ImportReport, progress: Progress
) -> None:  # fmt: skip
    """Fill `file` and the corpus from one file. Raises InputError or MissingError where it cannot be read, whole or to its end;
    what was read before stays.
    """
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
    """What is wrong with each of the files."""
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
    """Leave out what is more than can be worked with, evenly over all files, and say so."""
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
    writer: CorpusWriter,
    report: ImportReport,
    decisions: Decisions,
    progress: Progress,
    size: int,
    *,
    language_too: bool,
) -> None:
    """What can only be determined for the whole, `size` bytes: lengths, domains, language, near-duplicates."""
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
        others: Counter[str] = Counter()
        for row, code in _check_language(sample, report):
            others[code] += 1
            segment = sample[row][1]
            if segment_key(segment.text, segment.source) not in decisions.approved:
                note = language_name(code)
                files[segment.file].notice(ANOTHER_LANGUAGE, segment.line, segment.text, f" ({note})")
                writer.notice(sample[row][0], ANOTHER_LANGUAGE, note)
        _warn_of_others(others, report)
    for row, leader in _near_duplicates(first, _Within(progress, size)):
        one, like = first[row], first[leader]
        if segment_key(one.text, one.source) in decisions.approved:
            continue
        where = f"line {like.line}" if like.file == one.file else f"{like.file} line {like.line}"
        files[one.file].notice(NEAR_DUPLICATE, one.line, one.text, f" (like {where})")
        writer.notice(row, NEAR_DUPLICATE, like=leader)
    if writer.count > len(first):
        report.files[-1].notes.append(
            Message("Only the first {count:,} sentences were checked for near-duplicates.", count=MOST_COMPARED)
        )
    if set(labels) - {""}:
        report.domains = dict(labels)


def _check_language(sample: Sequence[tuple[int, Segment]], report: ImportReport) -> Iterator[tuple[int, str]]:
    """Fill in the languages found; warn, or refuse, when the target language is not among the most of them.

    Gives place in the sample and language of sentences that are surely in neither the target language nor a close call.
    """
    segments = [segment for _, segment in sample]
    wanted = base_language(report.language)
    expected = [report.language, *([report.source_language] if report.source_language else [])]
    seen = detect([segment.text for segment in segments], *expected, max_texts=MOST_DETECTED)
    if seen is None:
        report.warnings.append(
            Message(
                "The language of the sentences could not be checked: {language} is not among those that can be detected.",
                language=language_message(report.language),
            )
        )
        return
    if report.kept > MOST_DETECTED:
        report.files[-1].notes.append(
            Message("Languages were detected in {count:,} evenly selected sentences.", count=len(seen))
        )
    result = shares(seen)
    report.languages = {code: round(share, 4) for code, share in result.items()}
    share = result.get(wanted, 0.0)
    if share < EXPECTED_SHARE:
        _warn_of_language(segments, report, wanted, result)
    for position, code in seen:
        if surely_other(segments[position].text, code, report.language):
            yield position, code


def _warn_of_language(segments: Sequence[Segment], report: ImportReport, wanted: str, shares: dict[str, float]) -> None:
    share = shares.get(wanted, 0.0)
    other = next((code for code in shares if code not in (wanted, "unknown")), None)
    name = Message(language_name(wanted))
    looks = Message("; most others look like {other}", other=Message(language_name(other))) if other else ""
    if share < LEAST_SHARE and len(segments) >= LEAST_SENTENCES:
        of_sources = identify([segment.source for segment in segments if segment.source], wanted) or {}
        swapped = of_sources.get(wanted, 0.0) >= EXPECTED_SHARE
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


def _warn_of_others(others: Counter[str], report: ImportReport) -> None:
    """Sentences in other languages (counts by code) among those of a corpus that is mostly in the right one."""
    wanted = base_language(report.language)
    if others.total() < MANY_OTHERS or report.languages.get(wanted, 0.0) < EXPECTED_SHARE:
        return
    report.warnings.append(
        Message(
            "{count:,} sentences are not in {language}; most of them look like {other}. Exclude them, or remove their file.",
            count=others.total(),
            language=Message(language_name(wanted)),
            other=Message(language_name(others.most_common(1)[0][0])),
        )
    )


def _near_duplicates(segments: Sequence[Segment], progress: Progress) -> Iterator[tuple[int, int]]:
    """Sentences that are like an earlier one but for trifles, and that one; equal translations of unlike sources are fine."""
    for index, leader in enumerate(groups([f"{one.source or ''} {one.text}" for one in segments], (), progress)):
        if leader != index:
            yield index, leader


SELDOM = 5.0  # seconds between two words on what is not the step's own measure


class _Within(Quiet):
    """The last part of a step that counts bytes: all are read, and this message is shown with it."""

    def __init__(self, whole: Progress, size: int) -> None:
        super().__init__(whole)
        self.size = size
        self.shown_at = time.monotonic()

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        if time.monotonic() - self.shown_at < SELDOM:
            return
        self.shown_at = time.monotonic()
        share = f" {done / total:.0%}" if total else ""
        self.inner.advance(self.size, self.size, f"near-duplicates{share}")
