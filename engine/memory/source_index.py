"""An index of the samples' sources: which sentences share the rarest words of an input, and which rows are numbers or names.

A row is a target token of the samples: an entry of a datastore, or of a memory that is read by sentence.

datastore.sources.safetensors, memory.sources.safetensors
    features  (U,)   int64     n-grams of one and two source pieces, in increasing order
    begins    (U+1,) int32     where the list of each begins
    lists     (E,)   int32     sentences that contain it, as concatenated lists
    starts    (N+1,) int32     where the rows of each sentence begin in the datastore
    names     (R,)   int32     of each row: the checksum of the number, name, tag or placeholder that its token is part of; 0: none
    mean      (d,)   float32   the mean of the keys; only for a datastore
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from engine.base import BaseModel
from engine.core.tensor_files import save_tensors
from engine.corpora.formats.documents.placeholders import find_placeholders, find_tags
from engine.errors import BundleError

FILE = "datastore.sources.safetensors"
OF_MEMORY = "memory.sources.safetensors"
CODES = ("template", "named", "brace", "printf-strict", "variable")  # kinds of placeholders that must not be copied from a sample
COMMON = 0.25  # a feature of more than this share of the sentences is uninformative, and its list is the longest
WORDS = re.compile(r"\d+|[^\W\d_]+")
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a piece that stands for one byte
STEM = 5  # letters by which a name is identified, regardless of its ending

Ints = NDArray[np.int64]


PAIRS = 1 << 24  # codes of n-grams of two pieces start here


def features_of(row: Sequence[int]) -> Ints:
    """The n-grams of a row of pieces as numbers, without duplicates."""
    ids = np.asarray(row, dtype=np.int64) + 1
    return np.unique(np.concatenate([ids, ids[:-1] * PAIRS | ids[1:]]))


@dataclass
class Sources:
    """An inverted index of N sentences over U features, with the start of each sentence among the R rows."""

    features: Ints  # (U,)
    begins: NDArray[np.int32]  # (U + 1,)
    lists: NDArray[np.int32]  # (E,)
    starts: NDArray[np.int32]  # (N + 1,)
    names: torch.Tensor  # (R,) int32
    mean: torch.Tensor | None = None  # (d,)

    def __post_init__(self) -> None:
        count = max(1, len(self.starts) - 1)
        weights = np.log1p(count / np.maximum(1, np.diff(self.begins)))  # (U,) IDF
        self.weights = weights.astype(np.float32)

    @classmethod
    def build(cls, rows: Sequence[Sequence[int]], starts: Ints, names: torch.Tensor, mean: torch.Tensor | None = None) -> Sources:
        """Index rows of source pieces, one per sentence; `starts` (N + 1,) are the first datastore rows of each."""
        each = [features_of(row) for row in rows]
        flat = np.concatenate(each) if each else np.zeros(0, dtype=np.int64)
        owners = np.repeat(np.arange(len(each), dtype=np.int32), [len(part) for part in each])
        order = np.argsort(flat, kind="stable")  # sentences of a feature stay in order
        features, counts = np.unique(flat, return_counts=True)
        selected = counts <= max(8, COMMON * len(each))
        lists = owners[order][np.repeat(selected, counts)]
        begins = np.concatenate([[0], np.cumsum(counts[selected])]).astype(np.int32)
        return cls(features[selected], begins, lists, starts.astype(np.int32), names, mean)

    def shortlist(self, row: Sequence[int], top_k: int, blocked: Collection[int] = ()) -> tuple[Ints, NDArray[np.float32], float]:
        """The `top_k` sentences with the largest sum of IDF over features shared with a row of source pieces, best first.

        Also returns each one's coverage (that sum as a share of the row's, 0 to 1) and the share that any sentence has. Ties
        are in order; sentences that share nothing are excluded.
        """
        positions, exists = located(self.features, features_of(row))
        if not len(positions):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32), 0.0
        count = len(self.starts) - 1
        lists = [self.lists[self.begins[i] : self.begins[i + 1]] for i in positions]
        weights = np.repeat(self.weights[positions], [len(postings) for postings in lists])
        scores = np.bincount(np.concatenate(lists), weights, minlength=count)  # (N,)
        scores[list(blocked)] = 0
        best = np.flatnonzero(scores > 0)
        if len(best) > top_k:
            sharing = scores[best]
            best = best[sharing >= np.partition(sharing, len(best) - top_k)[len(best) - top_k]]
        best = best[np.lexsort((best, -scores[best]))][:top_k]
        # A feature that no sample has weighs as much as one that a single sample has.
        shared = float(self.weights[positions].sum())
        total = shared + float(np.log1p(count)) * int((~exists).sum())
        return best, (scores[best] / total).astype(np.float32), shared / total

    def rows_of(self, sentences: Ints, text: str) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows (R,) of these sentences (S,) that may be used in a translation of a text, and each one's sentence index (R,).

        Parts of a number, name, tag or placeholder that the text lacks are excluded.
        """
        starts = self.starts
        rows = torch.from_numpy(np.concatenate([*(np.arange(starts[i], starts[i + 1]) for i in sentences), np.arange(0)]))  # (R',)
        ranks = torch.from_numpy(np.repeat(np.arange(len(sentences)), starts[sentences + 1] - starts[sentences]))  # (R',)
        names = self.names[rows]  # (R',)
        selected = torch.isin(names, torch.tensor([0, *names_in(text)], dtype=names.dtype))  # (R',)
        return rows[selected], ranks[selected]

    def save(self, folder: Path, name: str = FILE) -> Path:
        tensors = {name: torch.from_numpy(getattr(self, name)) for name in ("features", "begins", "lists", "starts")}
        tensors |= {"names": self.names} | ({} if self.mean is None else {"mean": self.mean})
        return save_tensors(folder / name, tensors, "the index of the sources")

    @classmethod
    def open(cls, folder: Path, rows: int, d: int | None = None, name: str = FILE) -> Sources:
        """Map the file of a folder. Raises BundleError unless it fits this number of rows and, for a datastore, keys of size d."""
        try:
            data = load_file(folder / name)
            flat = {name: data.pop(name).numpy() for name in ("features", "begins", "lists", "starts")}
            names, mean = data.pop("names"), None if d is None else data.pop("mean")
            sources = cls(**flat, names=names, mean=mean)
        except (OSError, SafetensorError, LookupError, ValueError):
            raise BundleError("{file} is missing or damaged. Get a new copy of the bundle.", file=name) from None
        starts, begins = sources.starts, sources.begins
        fits = (
            not data and {str(flat[name].dtype) for name in ("begins", "lists", "starts")} == {"int32"}
            and flat["features"].dtype == np.int64 and names.dtype == torch.int32
            and (mean is None or (mean.dtype == torch.float32 and mean.shape == (d,)))
            and all(array.ndim == 1 for array in flat.values()) and len(begins) == len(sources.features) + 1
            and names.shape == (rows,) and len(starts) > 1
            and int(begins[0]) == 0 and int(begins[-1]) == len(sources.lists) and rising(begins)
            and int(starts[0]) == 0 and int(starts[-1]) == rows and rising(starts)
            and (not len(sources.lists) or 0 <= int(sources.lists.min()) <= int(sources.lists.max()) < len(starts) - 1)
        )  # fmt: skip
        if not fits:
            raise BundleError("{file} does not match the rows that it indexes. Get a new copy of the bundle.", file=name)
        return sources


def located(features: Ints, query: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The positions (K,) of the query's features in sorted features (U,), and which ones exist (Q,)."""
    if not len(features):
        return np.zeros(0, dtype=np.int64), np.zeros(len(query), dtype=bool)
    positions = np.minimum(np.searchsorted(features, query), len(features) - 1)
    exists = features[positions] == query
    return positions[exists], exists


def rising(numbers: NDArray[Any]) -> bool:
    return bool((np.diff(numbers) >= 0).all())


def checksum(word: str) -> int:
    return zlib.crc32(word[:STEM].encode("utf-8")) & 0x7FFFFFFF | 1


def is_name(word: str) -> bool:
    """Whether the word is a number, a capitalised word of more than three letters, or all capitals."""
    return word[0].isdigit() or (word[0].isupper() and (len(word) > 3 or (len(word) > 1 and word.isupper())))


def number_sum(word: str) -> int:
    """A number's checksum, of all its digits, in any script."""
    return zlib.crc32(str(int(word)).encode()) & 0x7FFFFFFF | 1 if word.isdecimal() else checksum(word)


def names_in(text: str) -> set[int]:
    """Checksums of a source text's numbers, words (some are names), tags and placeholders."""
    return {number_sum(word) for word in WORDS.findall(text)} | {code_sum(text[a:b]) for a, b in codes(text)}


def codes(text: str) -> list[tuple[int, int]]:
    """The positions of tags and placeholders in a text."""
    if not any(sign in text for sign in "<{%$"):
        return []
    return [*find_placeholders(text, CODES), *((begin, end) for begin, end, _, _ in find_tags(text))]


def code_sum(code: str) -> int:
    return zlib.crc32(code.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF | 1


def shown_pieces(base: BaseModel, ids: Sequence[int]) -> list[str]:
    """The pieces of these ids; empty for special tokens, since </s> looks like a tag."""
    return ["" if i in base.special_ids else piece for i, piece in zip(ids, base.tokenizer.convert_ids_to_tokens(ids), strict=True)]


def row_names(pieces: Iterable[Sequence[str]], sources: Iterable[str]) -> list[int]:
    """The checksum of the number, name, tag or placeholder that each target piece is part of, else 0.

    A name is a capitalised word that the sentence's source contains as well, so it was copied rather than translated.
    """
    results: list[int] = []
    for row, source in zip(pieces, sources, strict=True):
        names = names_in(source)
        text, owners = "", []
        for i, piece in enumerate(row):
            byte = BYTE.fullmatch(piece)
            plain = chr(int(byte[1], 16)) if byte and byte[1] < "80" else piece.replace("▁", " ").replace("Ġ", " ")
            text += plain
            owners += [i] * len(plain)
        # A rare character that is spelt in bytes is not copied byte by byte.
        sums = [code_sum(piece) if (byte := BYTE.fullmatch(piece)) and byte[1] >= "80" else 0 for piece in row]
        for match in WORDS.finditer(text):
            word = match.group()
            if is_name(word) and (word[0].isdigit() or number_sum(word) in names):
                for i in owners[match.start() : match.end()]:
                    sums[i] = number_sum(word)
        for begin, end in codes(text):
            for i in owners[begin:end]:
                sums[i] = code_sum(text[begin:end])
        results += sums
    return results
