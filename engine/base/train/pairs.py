"""Sentence pairs from TSV files, cleaned, with a count of what was left out and why."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from engine.corpora.clean import clean
from engine.errors import CorpusError, OptionError
from engine.progress import Progress

__all__ = ["Pair", "PairFile", "parse_weight", "read_held_out", "read_pairs"]

NOT_TWO_COLUMNS = "not two columns"
NOT_UTF8 = "not UTF-8"
EMPTY = "an empty side"
REPEATED = "read before"
HELD_OUT = "held out"
COPIED = "the same on both sides"
WRONG_SCRIPT = "the wrong script"
UNEQUAL = "one side far longer"

HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
KANA_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
LETTER = re.compile(r"[^\W\d_]")
SCRIPTED = {"zh": HAN, "ja": re.compile("[\u3040-\u30ff\u3400-\u9fff]"), "ko": re.compile("[\uac00-\ud7af]")}
CHARS_A_WORD = 3.0  # letters of an alphabet for one Chinese or Japanese character, when lengths are compared
RATIO = 4.0
BROKEN_SHARE = 0.5  # of the lines: beyond it the file is taken for something else

Pair = tuple[str, str]


@dataclass
class PairFile:
    """What was read of one file."""

    path: Path
    weight: float = 1.0
    lines: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)  # reason: the first line of it
    pairs: list[Pair] = field(default_factory=list)

    def skip(self, reason: str, line: int) -> None:
        self.skipped[reason] += 1
        self.first.setdefault(reason, line)

    def report(self) -> str:
        """One line for the user: what was kept, what was left out, why, and where the first such line is."""
        reasons = ", ".join(
            f"{count:,} {reason} (first: line {self.first[reason]})" for reason, count in self.skipped.most_common()
        )
        return f"{self.path.name}: {len(self.pairs):,} of {self.lines:,} pairs" + (
            f"; left out {reasons}" if reasons else ""
        )


def parse_weight(text: str) -> tuple[Path, float]:
    """`FILE` or `FILE=WEIGHT`, how often its pairs come in a pass. Raises OptionError on a weight that is no number."""
    name, mark, weight = text.rpartition("=")
    if not mark or Path(text).exists():
        return Path(text), 1.0
    try:
        value = float(weight)
    except ValueError:
        raise OptionError(f"{text}: {weight!r} is not a number. Write FILE=WEIGHT, as news.tsv=2.") from None
    if not 0 < value <= 100:
        raise OptionError(f"{text}: a weight must be above 0 and at most 100.")
    return Path(name), value


def read_pairs(
    files: Sequence[tuple[Path, float]],
    source: str,
    target: str,
    *,
    held_out: Collection[str] = (),
    progress: Progress | None = None,
) -> list[PairFile]:
    """The clean pairs of every file, each pair once. Sentences in `held_out` (either side) stay out.

    Broken lines are counted and passed over. Raises CorpusError when a file cannot be read or is no table of pairs.
    """
    progress = progress or Progress()
    seen: set[Pair] = set()
    found = []
    for number, (path, weight) in enumerate(files):
        progress.advance(number, len(files), path.name)
        one = PairFile(path, weight)
        for line, pair in _rows(one):
            if line % 4096 == 0:
                progress.check()
            reason = _reason(pair, source, target, seen, held_out)
            if reason:
                one.skip(reason, line)
            else:
                seen.add(pair)
                one.pairs.append(pair)
        broken = one.skipped[NOT_TWO_COLUMNS] + one.skipped[NOT_UTF8]
        if one.lines and broken > BROKEN_SHARE * one.lines:
            line = min(one.first[reason] for reason in (NOT_TWO_COLUMNS, NOT_UTF8) if reason in one.first)
            raise CorpusError(
                f"{path} is no table of pairs: {broken:,} of its {one.lines:,} lines are not two columns of UTF-8 text (the "
                f"first is line {line}). Give lines of source, a tab, target."
            )
        found.append(one)
    return found


def read_held_out(files: Sequence[Path]) -> dict[str, list[Pair]]:
    """The pairs of held-out files by the file's name, unchanged but for surrounding spaces. Raises CorpusError on an empty one."""
    found: dict[str, list[Pair]] = {}
    for path in files:
        one = PairFile(path)
        pairs = [pair for _, pair in _rows(one) if all(pair)]
        if not pairs:
            raise CorpusError(f"{path} holds no pair to score on. Give lines of source, a tab, target.")
        found[path.name.removesuffix(".gz").removesuffix(".tsv")] = pairs
    return found


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _rows(one: PairFile) -> Iterator[tuple[int, Pair]]:
    try:
        with _open(one.path) as file:
            for number, raw in enumerate(file, 1):
                one.lines = number
                try:
                    cells = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n").split("\t")
                except UnicodeDecodeError:
                    one.skip(NOT_UTF8, number)
                    continue
                if len(cells) == 2:
                    yield number, (clean(cells[0]), clean(cells[1]))
                else:
                    one.skip(NOT_TWO_COLUMNS, number)
    except (OSError, EOFError) as error:  # a missing file, a folder, a cut or false .gz
        reason = getattr(error, "strerror", None) or str(error)
        raise CorpusError(f"{one.path} cannot be read ({reason}). Check the file.") from None


def _reason(pair: Pair, source: str, target: str, seen: set[Pair], held_out: Collection[str]) -> str | None:
    if not all(pair):
        return EMPTY
    if pair[0] in held_out or pair[1] in held_out:
        return HELD_OUT
    if pair in seen:
        return REPEATED
    if pair[0] == pair[1]:
        return COPIED
    lengths = []
    for text, language in zip(pair, (source, target), strict=True):
        script = SCRIPTED.get(language.split("-")[0])
        letters = len(LETTER.findall(text))
        own = len((script or HAN).findall(text)) + (0 if script else len(KANA_HANGUL.findall(text)))
        if letters and (own / letters < 0.3 if script else own / letters > 0.3):
            return WRONG_SCRIPT
        lengths.append(len(text) * (CHARS_A_WORD if script else 1.0) + 10)
    return UNEQUAL if max(lengths) > RATIO * min(lengths) else None
