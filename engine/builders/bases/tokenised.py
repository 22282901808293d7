"""Tokenised sentence pairs, cached as memory-mapped arrays beside the checkpoint and rebuilt only when the inputs change.

source.pieces, target.pieces    pieces of all sentences, concatenated, each sentence with its end (uint16 or int32)
source.starts, target.starts    where each sentence begins, and the end of the last (int64)
file                            the file that each pair is from (uint16)
pairs.json                      a record of the inputs, and the counts of each file
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.builders.bases.packing import Examples, Side
from engine.builders.bases.pairs import Pair, PairFile, clean_pairs
from engine.builders.bases.vocabulary import EOS, Vocabulary
from engine.core.atomic_files import atomic_folder, read_json, write_json
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.errors import StorageError

SIDES = ("source", "target")
CHUNK = 20_000  # pairs tokenised at a time


def tokenised_pairs(
    files: Sequence[PairFile], vocabulary: Vocabulary, folder: Path, *, longest: int, held_out: Collection[str] = (),
    progress: Progress | None = None,
) -> Examples:  # fmt: skip
    """The pairs of all files as arrays in `folder`/pairs; those of an earlier run are reused if its inputs were the same.

    Pairs with a side of over `longest` pieces are left out and counted. The counts of every file are filled in. Raises
    CorpusError if a file cannot be read or is not a table of pairs.
    """
    progress = progress or Progress()
    where = folder / "pairs"
    made_of = _made_of(files, vocabulary, longest, held_out)
    record = read_json(where / "pairs.json")
    if record.get("made_of") != made_of:
        with atomic_folder(where, "the tokenised pairs") as temporary:
            too_long = _tokenise(files, vocabulary, temporary, longest, held_out, progress)
            counts = [{"lines": f.lines, "kept": f.kept, "skipped": f.skipped, "first": f.first} for f in files]
            write_json(temporary / "pairs.json", {"made_of": made_of, "too_long": too_long, "files": counts}, "the tokenised pairs")
        record = read_json(where / "pairs.json")
    for file, counts in zip(files, record["files"], strict=True):
        file.lines, file.kept, file.first = counts["lines"], counts["kept"], counts["first"]
        file.skipped = Counter(counts["skipped"])
    examples = open_pairs(where, vocabulary)
    examples.weights[:] = np.array([file.weight for file in files])[examples.file]
    return examples


def open_pairs(folder: Path, vocabulary: Vocabulary) -> Examples:
    """Open the arrays that `tokenised_pairs` wrote into `folder`, each pair with weight 1. Raises StorageError if damaged."""
    sides = [Side(_mapped(folder, f"{name}.pieces"), _mapped(folder, f"{name}.starts")) for name in SIDES]
    record, of = read_json(folder / "pairs.json"), np.asarray(_mapped(folder, "file"))
    numbers = {"": 0, vocabulary.source: 1, vocabulary.target: 2}
    synthetic = np.array([numbers[language] for *_, language in record["made_of"]["files"]], dtype=np.int8)
    return Examples((sides[0], sides[1]), np.ones(len(of)), vocabulary, record["too_long"], synthetic[of], of)


def _tokenise(
    files: Sequence[PairFile], vocabulary: Vocabulary, folder: Path, longest: int, held_out: Collection[str], progress: Progress
) -> int:
    """Write the arrays; returns the number of pairs that were too long."""
    kind = np.uint16 if vocabulary.size < 2**16 else np.int32
    lengths: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    of = []
    too_long = 0
    seen: set[int] = set()
    with (folder / "source.pieces.raw").open("wb") as first, (folder / "target.pieces.raw").open("wb") as second:
        for number, file in enumerate(files):
            progress.advance(number, len(files), file.path.name)
            pairs = clean_pairs(file, vocabulary.source, vocabulary.target, held_out=held_out, seen=seen)
            for chunk in _chunks(pairs):
                progress.check()
                sides = [vocabulary.encode([pair[side] for pair in chunk]) for side in (0, 1)]
                sizes = np.array([[len(pieces) for pieces in side] for side in sides])  # (2, pairs)
                fits = (sizes.min(0) > 0) & (sizes.max(0) <= longest)  # (pairs,)
                too_long += int((~fits).sum())
                of.append(np.full(int(fits.sum()), number, dtype=np.uint16))
                for side, out, marked, size in zip(sides, (first, second), _marks(file, vocabulary), lengths, strict=True):
                    chosen = [[*marked, *pieces, EOS] for pieces, fit in zip(side, fits, strict=True) if fit]
                    size.append(np.array([len(pieces) for pieces in chosen], dtype=np.int64))
                    out.write(np.fromiter(itertools.chain.from_iterable(chosen), dtype=kind).tobytes())
    for name, size in zip(SIDES, lengths, strict=True):
        starts = np.concatenate([np.zeros(1, dtype=np.int64), *size]).cumsum()
        np.save(folder / f"{name}.starts.npy", starts)
        _raw_to_npy(folder / f"{name}.pieces", kind, int(starts[-1]))
    np.save(folder / "file.npy", np.concatenate(of) if of else np.zeros(0, dtype=np.uint16))
    return too_long


def _marks(file: PairFile, vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
    """The prefix of each side's sentences: the back-translation mark on a machine-translated side (Caswell et al. 2019)."""
    mark = [] if vocabulary.synthetic is None else [vocabulary.synthetic]
    return (mark if file.synthetic == vocabulary.source else [], mark if file.synthetic == vocabulary.target else [])


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


def _raw_to_npy(path: Path, kind: Any, count: int) -> None:
    """Convert the raw file to .npy."""
    raw = path.with_name(path.name + ".raw")
    array = np.lib.format.open_memmap(path.with_name(path.name + ".npy"), mode="w+", dtype=kind, shape=(count,))
    if count:
        array[:] = np.memmap(raw, dtype=kind, mode="r")
    array.flush()
    raw.unlink()


def _mapped(folder: Path, name: str) -> np.ndarray:
    try:
        return np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{folder / name}.npy cannot be read ({error}). Remove {folder}; it is made again from the files of pairs."
        ) from None


def _made_of(files: Sequence[PairFile], vocabulary: Vocabulary, longest: int, held_out: Collection[str]) -> Json:
    """The inputs that the arrays depend on. Weights are not among them: they only matter when an epoch is drawn."""
    stats = []
    for file in files:
        try:
            stat = file.path.stat()
            stats.append([str(file.path.resolve()), stat.st_size, stat.st_mtime_ns, file.synthetic])
        except OSError:
            stats.append([str(file.path), 0, 0, file.synthetic])  # reading it will report the error
    texts = hashlib.sha256("\0".join(sorted(held_out)).encode("utf-8", "surrogatepass")).hexdigest()
    pieces = hashlib.sha256(vocabulary.processor.serialized_model_proto()).hexdigest()
    return {"files": stats, "longest": longest, "held_out": texts, "vocabulary": pieces, "tags": vocabulary.tags}
