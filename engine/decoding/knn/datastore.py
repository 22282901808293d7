"""The datastore: for each target token of the samples its key (a hidden state), the token, and where it stands.

datastore.safetensors
    keys      (N, d) float16   hidden states (see collect.py); may be absent with an ivfpq index
    tokens    (N,)   int32     the target token that followed
    sentences (N,)   int32     which sentence it is from, a line of datastore.jsonl
    positions (N,)   int32     its place in that sentence, from 0
datastore.jsonl                {"source", "target"} a sentence; may be left out for confidentiality
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BundleError, CorpusError
from engine.files import replacing, write_jsonl
from engine.progress import Progress

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.plugins import Plugin
    from engine.training.data import Pairs

__all__ = ["TENSORS", "TEXTS", "Datastore"]

TENSORS, TEXTS = "datastore.safetensors", "datastore.jsonl"


@dataclass
class Datastore:
    """Entries in the order of their sentences; `texts` are (source, target), empty where they were left out."""

    keys: torch.Tensor | None  # (N, d) float16
    tokens: torch.Tensor  # (N,) int32
    sentences: torch.Tensor  # (N,) int32
    positions: torch.Tensor  # (N,) int32
    texts: list[tuple[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def build(
        cls,
        base: BaseModel,
        pairs: Pairs,
        plugin: Plugin | None = None,
        *,
        place: str = "output",
        max_entries: int | None = None,
        progress: Progress | None = None,
    ) -> Datastore:
        """One teacher-forced pass of the base, or of the customized base, over the pairs."""
        import torch

        from engine.decoding.knn.collect import forced

        if not len(pairs):
            raise CorpusError("A datastore needs sentence pairs, and there are none. Add samples.")
        room = sum(map(len, pairs.labels))
        keys: Any = torch.empty(0)
        columns = {name: torch.empty(room, dtype=torch.int32) for name in ("tokens", "sentences", "positions")}  # (N,)
        filled = 0
        for part in forced(base, pairs, plugin, place, progress=progress):
            if not filled:
                keys = torch.empty(room, part.states.shape[1], dtype=torch.float16)  # (N, d)
            end = filled + len(part.tokens)
            largest = torch.finfo(torch.float16).max
            keys[filled:end] = part.states.clamp(-largest, largest).to("cpu", torch.float16)
            for name, column in columns.items():
                column[filled:end] = getattr(part, name).to("cpu", torch.int32)
            filled = end
        # In the order of the sentences, so that the same pairs give the same file however they were batched.
        place_of = (
            columns["sentences"][:filled].long() * (1 + int(columns["positions"][:filled].max()))
            + columns["positions"][:filled].long()
        )  # (N,)
        order = place_of.argsort()[: max_entries or filled]  # (N,)
        texts = [(one.source, one.target) for one in pairs.sentences]
        tokens, sentences, positions = (column[order] for column in columns.values())  # (N,) each
        return cls(keys[order], tokens, sentences, positions, texts)

    def save(self, folder: Path, *, keep_keys: bool = True) -> dict[str, Path]:
        """Write both files; returns them by name."""
        from safetensors.torch import save_file

        tensors = {"tokens": self.tokens, "sentences": self.sentences, "positions": self.positions}
        if keep_keys and self.keys is not None:
            tensors["keys"] = self.keys
        with replacing(folder / TENSORS, "the datastore") as temporary:
            save_file({key: value.contiguous() for key, value in tensors.items()}, temporary)
        rows = ({"source": source, "target": target} for source, target in self.texts)
        write_jsonl(folder / TEXTS, rows, "the datastore's sentences")
        return {name: folder / name for name in (TENSORS, TEXTS)}

    @classmethod
    def open(cls, folder: Path, d: int, vocabulary: int) -> Datastore:
        """Map the files of a folder. Raises BundleError unless shapes, types and ids fit a base of that size."""
        import torch
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        file = folder / TENSORS
        if not file.exists():
            raise BundleError(f"it has no {TENSORS}, which its decoding needs. Get the bundle again.")
        try:
            found = load_file(file)
        except (SafetensorError, OSError) as error:
            raise BundleError(f"{TENSORS} is damaged ({error}). Get the bundle again.") from None
        columns = ("tokens", "sentences", "positions")
        for key in sorted({*columns, "keys"} ^ {*found, "keys"}):
            raise BundleError(
                f"{TENSORS} {'lacks' if key in columns else 'has an unknown'} key {key}. Get the bundle again."
            )
        count = len(found["tokens"]) if found["tokens"].dim() == 1 else 0
        for key, value in found.items():
            shape, kind = ((count, d), torch.float16) if key == "keys" else ((count,), torch.int32)
            if tuple(value.shape) != shape or value.dtype != kind or not count:
                raise BundleError(
                    f"{key} in {TENSORS} has the shape {tuple(value.shape)} and type {value.dtype}, which does not fit this "
                    "base. Get the bundle again."
                )
        texts = read_texts(folder / TEXTS)
        limits = {"tokens": vocabulary, "sentences": len(texts) or 2**31 - 1, "positions": 2**31 - 1}
        for key, limit in limits.items():
            if int(found[key].min()) < 0 or int(found[key].max()) >= limit:
                raise BundleError(f"{key} in {TENSORS} are out of their range. Get the bundle again.")
        return cls(found.get("keys"), found["tokens"], found["sentences"], found["positions"], texts)

    def sentence(self, entry: int) -> tuple[str, str]:
        """Source and target of the sentence that an entry is from; empty texts where they were left out."""
        return self.texts[int(self.sentences[entry])] if self.texts else ("", "")


def read_texts(file: Path) -> list[tuple[str, str]]:
    if not file.exists():
        return []
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            return [(str(row["source"]), str(row["target"])) for row in map(json.loads, lines)]
    except (ValueError, LookupError, TypeError):
        raise BundleError(f"{TEXTS} cannot be read. Get the bundle again.") from None
