"""Sentence pairs from TSV files, cleaned, with counts of the skipped lines by reason."""

from __future__ import annotations

import gzip
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from engine.core.progress import Progress
from engine.corpora.clean import clean
from engine.errors import CorpusError, OptionError

NOT_TWO_COLUMNS = "not two columns"
NOT_UTF8 = "not UTF-8"
EMPTY = "an empty side"
REPEATED = "read before"
HELD_OUT = "held out"
COPIED = "the same on both sides"
WRONG_SCRIPT = "the wrong script"
UNEQUAL = "one side far longer"

HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]+")
EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]+")
LETTERS = re.compile(r"[^\W\d_]+")
SCRIPTED = {"zh": HAN, "ja": re.compile("[\u3040-\u30ff\u3400-\u9fff]+"), "ko": re.compile("[\uac00-\ud7af]+")}
# ASCII, composed Latin letters, unified ideographs and common Chinese marks: `clean` changes nothing but spaces in these.
PLAIN = re.compile("[ -~\u00c0-\u00ff\u4e00-\u9fa5\u2018-\u201d\u3001\u3002\u300a\u300b\uff01\uff0c\uff1a\uff1b\uff1f]*")
CHARS_A_WORD = 3.0  # letters that one character of a language in SCRIPTED counts as when lengths are compared
RATIO = 4.0
BROKEN_SHARE = 0.5  # of the lines; beyond it, the file is not taken for a table of pairs

Pair = tuple[str, str]


@dataclass
class PairFile:
    """A file of pairs and the counts of its lines."""

    path: Path
    weight: float = 1.0
    synthetic: str = ""  # language of the machine-translated side, which is never a target
    lines: int = 0
    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)  # reason: its first line

    def skip(self, reason: str, line: int) -> None:
        self.skipped[reason] += 1
        self.first.setdefault(reason, line)

    def report(self) -> str:
        """One line for the user: the numbers kept and skipped by reason, with the first line of each."""
        reasons = ", ".join(
            f"{count:,} {reason} (first: line {self.first[reason]})" for reason, count in self.skipped.most_common()
        )
        return f"{self.path.name}: {self.kept:,} of {self.lines:,} pairs" + (f"; left out {reasons}" if reasons else "")


def parse_weight(text: str) -> PairFile:
    """Parse `FILE` or `FILE=WEIGHT`, the number of times its pairs occur in an epoch. Raises OptionError on an invalid weight."""
    name, mark, weight = text.rpartition("=")
    if not mark or Path(text).exists():
        return PairFile(Path(text))
    try:
        value = float(weight)
    except ValueError:
        raise OptionError(f"{text}: {weight!r} is not a number. Write FILE=WEIGHT, as news.tsv=2.") from None
    if not 0 < value <= 100:
        raise OptionError(f"{text}: a weight must be above 0 and at most 100.")
    return PairFile(Path(name), value)


def parse_back_translated(text: str, languages: tuple[str, str]) -> PairFile:
    """Parse `LANG:FILE` or `LANG:FILE=WEIGHT`, LANG being the machine-translated side. Raises OptionError on another LANG."""
    language, _, rest = text.partition(":")
    if language not in languages or not rest:
        raise OptionError(f"--back-translated {text}: name the machine-translated side first, as {languages[0]}:{rest or text}.")
    file = parse_weight(rest)
    file.synthetic = language
    return file


def clean_pairs(
    file: PairFile, source: str, target: str, *, held_out: Collection[str] = (), seen: set[int] | None = None
) -> Iterator[Pair]:
    """Yield the clean pairs of a file; skipped lines are counted in `file`.

    `seen` holds the hashes of the pairs read so far, also from other files, and is extended, so that each pair occurs once.
    Raises CorpusError if the file cannot be read, and at its end if it is not a table of pairs.
    """
    seen = set() if seen is None else seen
    for line, pair in _rows(file):
        reason = _reason(pair, source, target, held_out)
        key = hash(pair)
        if reason is None and key in seen:
            reason = REPEATED
        if reason:
            file.skip(reason, line)
        else:
            seen.add(key)
            file.kept += 1
            yield pair
    broken = file.skipped[NOT_TWO_COLUMNS] + file.skipped[NOT_UTF8]
    if file.lines and broken > BROKEN_SHARE * file.lines:
        line = min(file.first[reason] for reason in (NOT_TWO_COLUMNS, NOT_UTF8) if reason in file.first)
        raise CorpusError(
            f"{file.path} is no table of pairs: {broken:,} of its {file.lines:,} lines are not two columns of UTF-8 text (the "
            f"first is line {line}). Give lines of source, a tab, target."
        )


def sample_texts(files: Sequence[PairFile], number: int, seed: int, held_out: Collection[str], progress: Progress) -> list[str]:
    """About `number` cleaned sentences of both languages, sampled from all files by weight, for training the vocabulary.

    Raises CorpusError if a file cannot be read.
    """
    lines = []
    for file in files:
        with _readable(file.path) as content:
            lines.append(sum(1 for _ in content))
        progress.check()
    share = number / 2 / max(1.0, sum(min(1.0, file.weight) * count for file, count in zip(files, lines, strict=True)))
    rng = random.Random(seed)
    texts = []
    for index, file in enumerate(files):
        progress.advance(index, len(files), file.path.name)
        chance = min(1.0, share * min(1.0, file.weight))
        rows = _rows(PairFile(file.path), lambda chance=chance: rng.random() < chance)  # type: ignore[misc]
        texts += [text for _, pair in rows for text in pair if text and text not in held_out]
    rng.shuffle(texts)
    return texts


def read_held_out(files: Sequence[Path]) -> dict[str, list[Pair]]:
    """The cleaned pairs of held-out files by file name. Raises CorpusError on a file that cannot be read or has no pairs."""
    result: dict[str, list[Pair]] = {}
    for path in files:
        pair_file = PairFile(path)
        pairs = [pair for _, pair in _rows(pair_file) if all(pair)]
        if not pairs:
            raise CorpusError(f"{path} holds no pair to score on. Give lines of source, a tab, target.")
        result[path.name.removesuffix(".gz").removesuffix(".tsv")] = pairs
    return result


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open the file. Raises CorpusError if it is missing, a folder, or a truncated or invalid .gz."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CorpusError(f"{path} cannot be read ({reason}). Check the file.") from None


def _rows(pair_file: PairFile, select: Callable[[], bool] = lambda: True) -> Iterator[tuple[int, Pair]]:
    """Yield (line number, cleaned pair) for the lines of two columns; `select` is called once per line to choose it."""
    with _readable(pair_file.path) as file:
        for number, raw in enumerate(file, 1):
            pair_file.lines = number
            if not select():
                continue
            try:
                cells = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n").split("\t")
            except UnicodeDecodeError:
                pair_file.skip(NOT_UTF8, number)
                continue
            if len(cells) == 2:
                yield number, (_clean(cells[0]), _clean(cells[1]))
            else:
                pair_file.skip(NOT_TWO_COLUMNS, number)


def _clean(text: str) -> str:
    """`clean`, with a fast path for the many sentences that need no cleaning."""
    if PLAIN.fullmatch(text) and "  " not in text:
        return text.strip()
    return clean(text)


def _reason(pair: Pair, source: str, target: str, held_out: Collection[str]) -> str | None:
    if not all(pair):
        return EMPTY
    if pair[0] in held_out or pair[1] in held_out:
        return HELD_OUT
    if pair[0] == pair[1]:
        return COPIED
    lengths = []
    for text, language in zip(pair, (source, target), strict=True):
        script = SCRIPTED.get(language.split("-")[0])
        letters = sum(map(len, LETTERS.findall(text)))
        in_script = sum(map(len, (script or EAST_ASIAN).findall(text)))
        if letters and (in_script / letters < 0.3 if script else in_script / letters > 0.3):
            return WRONG_SCRIPT
        lengths.append(len(text) * (CHARS_A_WORD if script else 1.0) + 10)
    return UNEQUAL if max(lengths) > RATIO * min(lengths) else None
