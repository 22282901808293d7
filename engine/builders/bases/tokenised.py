"""Sentence pairs tokenised once and kept: memory-mapped arrays beside the checkpoint, made again only when files change.

source.pieces, target.pieces    pieces of all sentences one after another, each with its end (uint16, or int32)
source.starts, target.starts    where each sentence begins, and the end of the last (int64)
file                            which file each pair is from (uint16)
pairs.json                      what the arrays were made of, and the counts of each file
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
    """The pairs of all files as arrays in `folder`/pairs, those of an earlier run where they are of the same files.

    Pairs with a side of over `longest` pieces are left out and counted. The counts of every file are filled in. Raises
    CorpusError when a file cannot be read or is no table of pairs.
    """
    progress = progress or Progress()
    where = folder / "pairs"
    made_of = _made_of(files, vocabulary, longest, held_out)
    record = read_json(where / "pairs.json")
    if record.get("made_of") != made_of:
        with atomic_folder(where, "the tokenised pairs") as fresh:
            too_long = _tokenise(files, vocabulary, fresh, longest, held_out, progress)
            counts = [{"lines": f.lines, "kept": f.kept, "skipped": f.skipped, "first": f.first} for f in files]
            write_json(
                fresh / "pairs.json", {"made_of": made_of, "too_long": too_long, "files": counts}, "the tokenised pairs"
            )
        record = read_json(where / "pairs.json")
    for file, counts in zip(files, record["files"], strict=True):
        file.lines, file.kept, file.first = counts["lines"], counts["kept"], counts["first"]
        file.skipped = Counter(counts["skipped"])
    examples = open_pairs(where, vocabulary)
    examples.weights[:] = np.array([file.weight for file in files])[examples.file]
    return examples


def open_pairs(folder: Path, vocabulary: Vocabulary) -> Examples:
    """What `tokenised_pairs` left in `folder`, each pair with weight 1. Raises StorageError when it is damaged."""
    sides = [Side(_mapped(folder, f"{name}.pieces"), _mapped(folder, f"{name}.starts")) for name in SIDES]
    record, of = read_json(folder / "pairs.json"), np.asarray(_mapped(folder, "file"))
    numbers = {"": 0, vocabulary.source: 1, vocabulary.target: 2}
    synthetic = np.array([numbers[language] for *_, language in record["made_of"]["files"]], dtype=np.int8)
    return Examples((sides[0], sides[1]), np.ones(len(of)), vocabulary, record["too_long"], synthetic[of], of)


def _tokenise(
    files: Sequence[PairFile],
    vocabulary: Vocabulary,
    folder: Path,
    longest: int,
    held_out: Collection[str],
    progress: Progress,
) -> int:
    """Write the arrays; returns how many pairs were too long."""
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
                for side, out, marked, size in zip(
                    sides, (first, second), _marks(file, vocabulary), lengths, strict=True
                ):
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
    """What each side's sentences begin with: the mark of back-translations on the side that is one (Caswell et al. 2019)."""
    mark = [] if vocabulary.synthetic is None else [vocabulary.synthetic]
    return (mark if file.synthetic == vocabulary.source else [], mark if file.synthetic == vocabulary.target else [])


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


def _raw_to_npy(path: Path, kind: Any, count: int) -> None:
    """Put NumPy's header before what was written as it came."""
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
    """What the arrays depend on. A weight is not part of it: it counts when a pass is drawn."""
    stats = []
    for file in files:
        try:
            stat = file.path.stat()
            stats.append([str(file.path.resolve()), stat.st_size, stat.st_mtime_ns, file.synthetic])
        except OSError:
            stats.append([str(file.path), 0, 0, file.synthetic])  # reading it will say why not
    texts = hashlib.sha256("\0".join(sorted(held_out)).encode("utf-8", "surrogatepass")).hexdigest()
    pieces = hashlib.sha256(vocabulary.processor.serialized_model_proto()).hexdigest()
    return {"files": stats, "longest": longest, "held_out": texts, "vocabulary": pieces, "tags": vocabulary.tags}
