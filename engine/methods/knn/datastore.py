"""The datastore: for each target token of the samples its key (a hidden state), the token, and its position.

datastore.safetensors
    keys      (N, d) float16   hidden states; may be absent with an ivfpq index; int8 for retrieval by sentence, with
    exponents (N,)   int8      powers of two by which the keys are scaled (engine.core.eight_bits)
    tokens    (N,)   int32     the target token
    sentences (N,)   int32     its sentence, an index of lines in datastore.jsonl
    positions (N,)   int32     its position in the sentence, from 0
datastore.jsonl                {"source", "target"} per sentence; may be omitted for confidentiality
datastore.sources.safetensors  retrieval by sentence: the index of the sources (engine.memory.source_index)
datastore.gate.safetensors     retrieval by sentence: the learned gate (gate.py)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.base import BaseModel
from engine.core.atomic_files import read_jsonl, write_jsonl
from engine.core.eight_bits import EightBits
from engine.core.progress import Progress
from engine.core.tensor_files import check_keys, load_tensors, save_tensors
from engine.errors import BundleError, CorpusError
from engine.memory.source_index import Sources, row_names, shown_pieces
from engine.methods.batches import Pairs
from engine.methods.knn.forced_decoding import forced
from engine.methods.trained import TrainedMethod

TENSORS, TEXTS = "datastore.safetensors", "datastore.jsonl"
BLOCK = 65_536


@dataclass
class Datastore:
    """Entries in the order of their sentences. `texts` are (source, target) pairs, empty if they were omitted."""

    keys: torch.Tensor | EightBits | None  # (N, d), float16 if a tensor
    tokens: torch.Tensor  # (N,) int32
    sentences: torch.Tensor  # (N,) int32
    positions: torch.Tensor  # (N,) int32
    texts: list[tuple[str, str]] = field(default_factory=list)
    sources: Sources | None = None  # for retrieval by sentence

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def build(
        cls,
        base: BaseModel,
        pairs: Pairs,
        plugin: TrainedMethod | None = None,
        *,
        location: str = "output",
        max_entries: int | None = None,
        progress: Progress | None = None,
    ) -> Datastore:
        """Record the pairs in one teacher-forced pass of the base, customized or not. Raises CorpusError if there are no pairs."""
        if not len(pairs):
            raise CorpusError("A datastore needs sentence pairs, and there are none. Add samples.")
        total = sum(map(len, pairs.labels))
        keys: Any = torch.empty(0)
        columns = {name: torch.empty(total, dtype=torch.int32) for name in ("tokens", "sentences", "positions")}  # (N,)
        count = 0
        for part in forced(base, pairs, plugin, location, progress=progress):
            if not count:
                keys = torch.empty(total, part.states.shape[1], dtype=torch.float16)  # (N, d)
            end = count + len(part.tokens)
            largest = torch.finfo(torch.float16).max
            keys[count:end] = part.states.clamp(-largest, largest).to("cpu", torch.float16)
            for name, column in columns.items():
                column[count:end] = getattr(part, name).to("cpu", torch.int32)
            count = end
        # Sorted by sentence, so that the same pairs give the same file regardless of batching.
        sort_keys = (
            columns["sentences"][:count].long() * (1 + int(columns["positions"][:count].max()))
            + columns["positions"][:count].long()
        )  # (N,)
        order = sort_keys.argsort()[: max_entries or count]  # (N,)
        texts = [(pair.source, pair.target) for pair in pairs.sentences]
        tokens, sentences, positions = (column[order] for column in columns.values())  # (N,) each
        built = cls(keys[order], tokens, sentences, positions, texts)
        built.sources = built.indexed(base, pairs.sources)
        return built

    def indexed(self, base: BaseModel, rows: Sequence[Sequence[int]]) -> Sources:
        """The index of the sources, given as rows of token ids per sentence."""
        assert isinstance(self.keys, torch.Tensor)
        starts = np.searchsorted(self.sentences.numpy(), np.arange(len(rows) + 1))  # (N + 1,)
        ids, position = self.tokens.unique(return_inverse=True)  # (U,), (R,)
        pieces = shown_pieces(base, ids.tolist())
        written = [pieces[i] for i in position.tolist()]
        names = row_names(
            (written[begin:end] for begin, end in itertools.pairwise(starts.tolist())), (source for source, _ in self.texts)
        )
        total = sum(part.double().sum(0) for part in self.keys.split(BLOCK))  # (d,)
        plain = [[i for i in row if i not in base.special_ids] for row in rows]
        mean = (total / len(self)).float()  # type: ignore[union-attr]  # (d,)
        return Sources.build(plain, starts, torch.tensor(names, dtype=torch.int32), mean)

    def in_eight_bits(self) -> Datastore:
        """The same datastore with keys in eight bits, half the size. An index cannot search such keys."""
        return replace(self, keys=EightBits.of(self.keys)) if isinstance(self.keys, torch.Tensor) else self

    def vectors(self) -> torch.Tensor:
        """The keys (N, d) in float16; they must not be absent."""
        assert self.keys is not None
        return self.keys[:].half() if isinstance(self.keys, EightBits) else self.keys  # (N, d)

    def save(self, folder: Path, *, keep_keys: bool = True, with_sources: bool = False) -> dict[str, Path]:
        """Write the files to a folder. Returns their paths by name."""
        tensors = {"tokens": self.tokens, "sentences": self.sentences, "positions": self.positions}
        if keep_keys and isinstance(self.keys, EightBits):
            tensors |= {"keys": self.keys.values, "exponents": self.keys.exponents}
        elif keep_keys and isinstance(self.keys, torch.Tensor):
            tensors["keys"] = self.keys
        save_tensors(folder / TENSORS, tensors, "the datastore")
        rows = ({"source": source, "target": target} for source, target in self.texts)
        write_jsonl(folder / TEXTS, rows, "the datastore's sentences")
        files = {name: folder / name for name in (TENSORS, TEXTS)}
        if with_sources and self.sources is not None:
            file = self.sources.save(folder)
            files[file.name] = file
        return files

    @classmethod
    def open(cls, folder: Path, d: int, vocabulary: int, *, with_sources: bool = False) -> Datastore:
        """Open the files of a folder. Raises BundleError unless shapes, types and ids fit a base of these sizes."""
        file = folder / TENSORS
        if not file.exists():
            raise BundleError("it has no {tensors}, which its decoding needs. Get a new copy of the bundle.", tensors=TENSORS)
        data = load_tensors(file)
        eight = with_sources and "exponents" in data
        check_keys(file, {*data, "keys"}, {"tokens", "sentences", "positions", "keys", *["exponents"] * eight})
        count = len(data["tokens"]) if data["tokens"].dim() == 1 else 0
        kinds = {"keys": torch.int8 if eight else torch.float16, "exponents": torch.int8}
        for key, value in data.items():
            shape, kind = (count, d) if key == "keys" else (count,), kinds.get(key, torch.int32)
            if tuple(value.shape) != shape or value.dtype != kind or not count:
                raise BundleError(
                    "{key} in {tensors} has the shape {tuple} and type {dtype}, which does not fit this "
                    "base. Get a new copy of the bundle.",
                    key=key, tensors=TENSORS, tuple=tuple(value.shape), dtype=value.dtype,
                )  # fmt: skip
        texts = read_texts(folder / TEXTS)
        limits = {"tokens": vocabulary, "sentences": len(texts) or 2**31 - 1, "positions": 2**31 - 1}
        for key, limit in limits.items():
            if int(data[key].min()) < 0 or int(data[key].max()) >= limit:
                raise BundleError("{key} in {tensors} are out of range. Get a new copy of the bundle.", key=key, tensors=TENSORS)
        keys = EightBits(data["keys"], data["exponents"]) if eight and "keys" in data else data.get("keys")
        opened = cls(keys, data["tokens"], data["sentences"], data["positions"], texts)
        if with_sources:
            from engine.memory.source_index import Sources

            if opened.keys is None:
                raise BundleError("{tensors} lacks the key keys. Get a new copy of the bundle.", tensors=TENSORS)
            opened.sources = Sources.open(folder, len(opened), d)
        return opened

    def sentence(self, entry: int) -> tuple[str, str]:
        """Source and target of an entry's sentence; empty strings if texts were omitted."""
        return self.texts[int(self.sentences[entry])] if self.texts else ("", "")


def read_texts(file: Path) -> list[tuple[str, str]]:
    if not file.exists():
        return []
    try:
        return [(str(row["source"]), str(row["target"])) for row in read_jsonl(file)]
    except (ValueError, LookupError, TypeError):
        raise BundleError("{texts} cannot be read. Get a new copy of the bundle.", texts=TEXTS) from None
