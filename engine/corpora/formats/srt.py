"""SRT subtitles: the spoken text, with sentences that span several subtitles joined."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.core.numerals import whole_number
from engine.corpora.clean import TOO_LONG
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.textfile import TextFile
from engine.errors import CorpusError

TIME = r"([0-9]{1,3}):([0-9]{1,2}):([0-9]{1,2})[,.:]([0-9]{1,3})"
TIMING = re.compile(rf"^\s*{TIME}\s*-->\s*{TIME}")
OVERRIDE = re.compile(r"\{\\[^{}]{0,100}\}")  # positions and effects: {\an8}
SPEAKER = re.compile(r"^\s*[-–—‐]\s?(?=\S)")
ENDS = re.compile(r"[.!?…。！？:;][\"'”’»)\]♪]*$")
LONGEST_GAP = 2.0  # seconds between two subtitles of one sentence


@dataclass
class Cue:
    line: int
    start: float
    end: float
    lines: list[str] = field(default_factory=list)
    cut: bool = False


def read_srt(path: Path, request: Request) -> Reading:
    """Reader of SRT; two speakers in one subtitle are two records. Raises CorpusError if the file has no times."""
    file = TextFile(path, request)

    def items() -> Iterator[Record | SkippedLine]:
        any_cue = False
        waiting: tuple[Cue, str] | None = None
        for cue in _cues(file):
            any_cue = True
            if cue.cut:
                yield SkippedLine(cue.line, TOO_LONG, cue.lines[-1] if cue.lines else "")
                continue
            for text in _speeches(cue.lines):
                if waiting and _goes_on(waiting, cue, text) and len(waiting[1]) + len(text) < request.max_line_chars:
                    first, before = waiting
                    waiting = (Cue(first.line, first.start, cue.end), f"{before} {text}")
                    continue
                if waiting:
                    yield Record(waiting[0].line, waiting[1])
                waiting = (cue, text)
        if waiting:
            yield Record(waiting[0].line, waiting[1])
        if not any_cue:
            raise CorpusError("{path} contains no subtitles: no line with times, such as 00:00:01,000 --> 00:00:02,000.", path=path)

    return Reading(file.encoding, items(), lambda: file.lines, file.position)


def _cues(file: TextFile) -> Iterator[Cue]:
    """Subtitles with their lines; a number is skipped only if it precedes a line with times."""
    cue: Cue | None = None
    number: str | None = None
    for line in file:
        times = TIMING.match(line.text)
        if times:
            if cue:
                yield cue
            parts = [whole_number(group) or 0 for group in times.groups()]
            cue, number = Cue(line.number, _seconds(parts[:4]), _seconds(parts[4:])), None
            continue
        if number is not None and cue:
            cue.lines.append(number)
            number = None
        if line.text.strip().isdigit():
            number = line.text.strip()
        elif cue and line.text.strip():
            cue.lines.append(line.text)
            cue.cut = cue.cut or line.cut
    if cue:
        if number is not None:
            cue.lines.append(number)
        yield cue


def _seconds(parts: list[int]) -> float:
    hours, minutes, seconds, thousandths = parts
    return 3600 * hours + 60 * minutes + seconds + thousandths / 1000


def _speeches(lines: list[str]) -> Iterator[str]:
    """The lines of a subtitle as one text, or as one text per speaker if dashes mark them."""
    texts: list[str] = []
    for raw in lines:
        line = OVERRIDE.sub("", raw).strip()
        dashed = SPEAKER.match(line)
        if not line:
            continue
        if dashed or not texts:
            texts.append(line[dashed.end() :] if dashed else line)
        else:
            wide = texts[-1][-1:] > "\u2e7f" and line[:1] > "\u2e7f"
            texts[-1] += line if wide else f" {line}"
    yield from texts


def _goes_on(waiting: tuple[Cue, str], cue: Cue, text: str) -> bool:
    """Whether this text continues the previous sentence: it lacks an end mark, and this follows soon, in lower case."""
    first, before = waiting
    return not ENDS.search(before) and text[:1].islower() and cue.start - first.end <= LONGEST_GAP
