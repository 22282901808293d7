"""Filtering the records of a file: which sentences are kept; all others are counted with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.corpora.clean import EMPTY, MARKUP, NO_LETTERS, TOO_LONG, TOO_SHORT, UNDECODABLE, clean, reason_to_skip
from engine.corpora.formats.records import Reading, Record, SkippedLine
from engine.corpora.inline_tags import with_placeholders, without_tags
from engine.corpora.mojibake import GARBLED, is_garbled
from engine.corpora.overrides import Decisions, segment_digest
from engine.corpora.report import DUPLICATE, EXCLUDED, FileReport
from engine.corpora.sentences import split_sentences
from engine.corpora.types import CorpusOptions, Segment
from engine.corpora.warnings import notices
from engine.corpora.writer import CorpusWriter
from engine.messages import mark

SOURCE_EMPTY = mark("no source")
# Reasons that the user may overrule for a sentence; undecodable and empty text always stays out.
USABLE = (TOO_SHORT, TOO_LONG, NO_LETTERS, MARKUP, GARBLED)


@dataclass
class SentenceFilter:
    """The filter of one import; it remembers sentences, so that duplicates are found across all files."""

    writer: CorpusWriter
    options: CorpusOptions
    language: str
    decisions: Decisions
    seen: set[bytes] = field(default_factory=set)

    def run(self, reading: Reading, report: FileReport, label: str) -> Iterator[None]:
        """Write the kept and skipped sentences of a file; yields after every record."""
        for item in reading.items:
            if isinstance(item, SkippedLine):
                self._skipped(item, report, label)
            else:
                self._record(item, report, label)
            yield

    def _skipped(self, item: SkippedLine, report: FileReport, label: str) -> None:
        if item.record is None:
            self._skip(report, item.line, item.reason, item.text)
            return
        text, source = self._plain(item.record)
        if segment_digest(text, source).hex() in self.decisions.approved:
            self._record(item.record, report, label)
        else:
            report.skip(item.reason, item.line, text)
            self.writer.skip(report.name, item.line, item.reason, text, source, usable=True)

    def _skip(self, report: FileReport, line: int, reason: str, text: str, source: str | None = None, raw: str = "") -> None:
        report.skip(reason, line, raw or text)
        usable = reason in (*USABLE, EXCLUDED) and bool(text)
        self.writer.skip(report.name, line, reason, text, source, usable=usable)

    def _plain(self, record: Record) -> tuple[str, str | None]:
        """The cleaned text and source, with tags removed or replaced by placeholders."""
        text, source = record.text, record.source
        if self.options.inline_tags == "placeholders":
            text, source = with_placeholders(text, source)
        else:
            text, source = without_tags(text), None if source is None else without_tags(source)
        form = self.options.normalization
        return clean(text, form), None if source is None else clean(source, form)

    def _record(self, record: Record, report: FileReport, label: str) -> None:
        text, source = self._plain(record)
        approved = segment_digest(text, source).hex() in self.decisions.approved
        if not approved and (is_garbled(record.text) or (record.source and is_garbled(record.source))):
            self._skip(report, record.line, GARBLED, text or record.text, source, record.text)
            return
        if source is not None and (not source or "�" in source):
            reason = (UNDECODABLE if source else SOURCE_EMPTY) if text else EMPTY
            self._skip(report, record.line, reason, text or record.text)
            return
        if not text and record.text.strip() and clean(record.text, self.options.normalization):
            self._skip(report, record.line, MARKUP, record.text.strip())
            return
        several = source is None and self.options.split_sentences
        for piece in split_sentences(text, self.language) if several else [text]:
            self._piece(piece, source, record, report, label)

    def _piece(self, piece: str, source: str | None, record: Record, report: FileReport, label: str) -> None:
        digest = segment_digest(piece, source)
        key = digest.hex()
        approved = key in self.decisions.approved
        reason = reason_to_skip(piece, self.options)
        if approved and reason in USABLE:
            reason = None
        if reason is None and key in self.decisions.excluded:
            reason = EXCLUDED
        if reason is None and self.options.deduplicate and digest in self.seen:
            reason = DUPLICATE
        if reason is not None:
            self._skip(report, record.line, reason, piece or record.text, source)
            return
        if self.options.deduplicate:
            self.seen.add(digest)
        report.keep()
        domain = clean(record.domain) or clean(label)
        row = self.writer.add(Segment(piece, source, report.name, record.line, domain))
        if not approved:
            for notice in notices(record.text, piece, self.language):
                self.writer.notice(row, notice)
