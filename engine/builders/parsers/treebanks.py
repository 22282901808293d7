"""The treebanks for training a parser: reading files, counting broken sentences, and splitting into train, dev and test."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from engine.builders.parsers.brackets import leaves_text, read_brackets
from engine.builders.parsers.conllu import ConlluSentence, read_conllu
from engine.core.json_object import Json
from engine.errors import InputError

T = TypeVar("T")
SHOWN = 3  # line numbers reported for each reason
OWN_PART = re.compile(r"(?:^|[-_.])(train|dev|test)(?=[-_.]|$)")
LARGEST = 1 << 30  # bytes of one treebank, unpacked


@dataclass
class TreebankFile:
    """A treebank file and the counts of its sentences."""

    name: str
    kind: str  # dependency or constituency
    part: str  # dev or test if the file's name says so, else ""
    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # reason -> sentences
    lines: dict[str, list[int]] = field(default_factory=dict)  # reason -> the first line numbers

    def skip(self, line: int, reason: str) -> None:
        self.skipped[reason] += 1
        numbers = self.lines.setdefault(reason, [])
        if len(numbers) < SHOWN:
            numbers.append(line)

    def __str__(self) -> str:
        unit = "sentences" if self.kind == "dependency" else "trees"
        note = f"{self.name}: {self.kept:,} {unit}"
        if self.skipped:
            reasons = "; ".join(
                f"{count} with {reason} (line {', '.join(map(str, self.lines[reason]))}{', …' if count > SHOWN else ''})"
                for reason, count in self.skipped.most_common()
            )
            note += f", {sum(self.skipped.values())} skipped: {reasons}"
        return note

    def to_mapping(self) -> Json:
        """A row of the set's figures.json."""
        return vars(self) | {"skipped": dict(self.skipped)}


@dataclass
class TreebankSplits(Generic[T]):
    """The sentences for training, for choosing the best model, and for the final measurement."""

    train: list[T] = field(default_factory=list)
    dev: list[T] = field(default_factory=list)
    test: list[T] = field(default_factory=list)


@dataclass
class Treebanks:
    files: list[TreebankFile]
    sentences: TreebankSplits[ConlluSentence]
    trees: TreebankSplits[Any]
    texts: dict[str, ConlluSentence] = field(default_factory=dict)  # letters of a test tree -> its sentence

    def test_trees(self) -> list[tuple[str, Any]]:
        return [(leaves_text(tree), tree) for tree in self.trees.test]


def read_treebanks(paths: Sequence[Path], *, held_out: float = 0.05, seed: int = 1) -> Treebanks:
    """Read .conllu and .ptb (or .mrg) files, plain or .gz, and split them.

    A file named -dev or -test is that part and never trained on. If a kind (dependencies, constituents) has no such files, a
    share `held_out` of the sentences goes to dev and the same share to test, chosen by a hash of the sentence's letters. A
    sentence is thus in the same part in every file, and test sentences of the constituency parser are never trained on as
    dependency trees. Raises InputError on a file that cannot be read or holds no usable sentence.
    """
    files: list[TreebankFile] = []
    results: list[tuple[TreebankFile, str, Any]] = []
    for path in map(Path, paths):
        file = TreebankFile(path.name, kind_of(path), own_part(path))
        files.append(file)
        for line, letters, item in _items(path, file.kind):
            if isinstance(item, str):
                file.skip(line, item)
            else:
                file.kept += 1
                results.append((file, letters, item))
        if not file.kept:
            raise InputError(f"{file}. No sentence in it can be used: give a CoNLL-U or a bracketed treebank.")
    kinds = {file.kind for file in files}
    explicit = {(file.kind, file.part) for file in files}
    missing = {part for kind in kinds for part in ("dev", "test") if (kind, part) not in explicit}
    split: dict[str, TreebankSplits[Any]] = {"dependency": TreebankSplits(), "constituency": TreebankSplits()}
    # A sentence in a file named -dev or -test is also held out where it occurs in another file.
    names = {letters: file.part for file, letters, _ in results if file.part in ("dev", "test")}
    for file, letters, item in results:
        part = file.part or names.get(letters) or _drawn(letters, missing, held_out, seed)
        if part in ("dev", "test") and not file.part and (file.kind, part) in explicit:
            continue  # this kind has its own dev or test file: the sentence is only excluded from training
        getattr(split[file.kind], part).append(item)
    test_texts = {leaves_text(tree) for tree in split["constituency"].test}
    texts = {letters: item for file, letters, item in results if file.kind == "dependency" and letters in test_texts}
    return Treebanks(files, split["dependency"], split["constituency"], texts)


def kind_of(path: Path) -> str:
    """The kind of a treebank, dependency or constituency, by its file name. Raises InputError on any other name."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".conllu", ".conll")):
        return "dependency"
    if name.endswith((".ptb", ".mrg", ".bracket", ".brackets")):
        return "constituency"
    raise InputError(
        f"{path} is no treebank that is known by its name: dependencies are read from .conllu, constituents from .ptb or "
        ".mrg, each plain or as .gz."
    )


def own_part(path: Path) -> str:
    """dev or test if the name says so (gsd-dev.conllu, en_ewt-ud-test.conllu.gz), else empty."""
    result = OWN_PART.findall(path.name.lower())
    return result[-1] if result and result[-1] != "train" else ""


def squeeze(text: str) -> str:
    return "".join(text.split())


def _items(path: Path, kind: str) -> Iterator[tuple[int, str, ConlluSentence | Any | str]]:
    """Yield (line, the sentence's letters, sentence or tree); for a broken one, (line, "", reason)."""
    lines = io.StringIO(read_text(path))
    if kind == "constituency":
        for line, tree in read_brackets(lines):
            yield line, "" if isinstance(tree, str) else leaves_text(tree), tree
        return
    for result in read_conllu(lines):
        if isinstance(result, tuple):
            yield result[0], "", result[1]
        else:
            yield result.line, squeeze(result.text), result


def read_text(path: Path) -> str:
    """The text of a file, decompressed if it is .gz. Raises InputError."""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise InputError(f"{path} was not found: check the path.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path} is no whole gzip file: unpack it, or fetch it again.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}): check the path.") from None
    if len(data) > LARGEST:
        raise InputError(f"{path} is larger than {LARGEST >> 30} GiB: give it in smaller files.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path} is not UTF-8 (line {line}): save it as UTF-8 and try again.") from None


def _drawn(letters: str, missing: set[str], held_out: float, seed: int) -> str:
    """The part that a sentence is assigned to, reproducibly, by a hash."""
    if not missing:
        return "train"
    number = int.from_bytes(hashlib.sha256(f"{seed} {letters}".encode()).digest()[:8], "big") / 2**64
    if number < held_out:
        return "test"
    return "dev" if number < 2 * held_out else "train"
