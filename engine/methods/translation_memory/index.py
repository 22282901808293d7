"""The index over the memory's vectors, and its refresh in the background while E_tgt is trained.

At every multiple r of `refresh_every`, E_tgt's weights are copied. A thread encodes the memory with the copy and builds an index,
while training continues with the current index. With `refresh_waits`, the new index takes effect exactly at r + refresh_every,
and training waits for the thread if necessary, so that the index used by an update depends only on the update's number. The
copies are stored in the workspace until training ends. A resumed training therefore rebuilds its index from the same weights and
gives exactly the same result as an uninterrupted one. Without `refresh_waits`, an index takes effect as soon as it is ready, which
depends on the machine.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from engine.memory.vector_index import VectorIndex
from engine.methods.translation_memory.encoders import SentenceEncoder, encode_all


def build_index(encoder: SentenceEncoder, rows: Sequence[list[int]], pad: int, device: Any, depth: int) -> VectorIndex:
    """The index of sentences given as ids, using the encoder's current weights."""
    return VectorIndex(encode_all(encoder, rows, pad, device), "dot", depth=depth)


class Builder(threading.Thread):
    """Builds an index with a copy of the encoder. A separate thread has separate autocast and gradient modes, so that the index is
    computed in the same way during training and after a resume.
    """

    def __init__(self, encoder: SentenceEncoder, arguments: tuple[Any, ...]) -> None:
        super().__init__(name="index refresh", daemon=True)
        self.encoder, self.arguments, self.threads = encoder, arguments, torch.get_num_threads()
        self.index: VectorIndex | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            torch.set_num_threads(self.threads)  # a new thread would use the default
            self.index = build_index(self.encoder, *self.arguments)
        except BaseException as error:
            self.error = error

    def result(self) -> VectorIndex:
        """Wait for the index. Raises the error of the thread, if any."""
        self.join()
        if self.error is not None:
            raise self.error
        assert self.index is not None
        return self.index


class Refresher:
    """Provides the index that training uses, by the number of the update."""

    def __init__(
        self, encoder: SentenceEncoder, arguments: tuple[Any, ...], *, every: int | None, waits: bool, folder: Path | None
    ) -> None:
        """`every` None: the encoder does not change, and one index is used for all updates."""
        self.encoder, self.arguments, self.every, self.waits, self.folder = encoder, arguments, every, waits, folder
        self.index: VectorIndex | None = None
        self.current: int | None = None  # the update from whose weights the index was built
        self.building: tuple[int, Builder] | None = None
        self.copies: dict[int, dict[str, Tensor]] = {}

    def at(self, step: int) -> VectorIndex:
        """The index for a batch after `step` updates; starts a refresh when one is due."""
        if self.every is None:
            if self.index is None:
                self.index, self.current = self._start(copy_of(self.encoder)).result(), 0
            return self.index
        due = step // self.every * self.every
        last = self.current if self.current is not None else due
        required = max(0, due - self.every) if self.waits else last
        if required == due:
            self._begin(step, due)
        if self.current != required or self.index is None:
            self._take(required)
        self._begin(step, due)
        if not self.waits and self.building is not None and not self.building[1].is_alive():
            self._take(self.building[0])
        assert self.index is not None
        return self.index

    def _begin(self, step: int, due: int) -> None:
        """Copy the weights and start a refresh if one is due at this update."""
        if step == due and due not in self.copies:
            self._keep(due)
            self.building = due, self._start(self.copies[due])

    def _start(self, weights: dict[str, Tensor]) -> Builder:
        twin = copy_module(self.encoder, weights)
        builder = Builder(twin, self.arguments)
        builder.start()
        return builder

    def _take(self, step: int) -> None:
        if self.building is not None and self.building[0] == step:
            self.index, self.building = self.building[1].result(), None
        else:
            self.index = self._start(self._copy(step)).result()
        self.current = step
        self.copies = {key: value for key, value in self.copies.items() if key >= step}

    def _keep(self, step: int) -> None:
        self.copies[step] = copy_of(self.encoder)
        if self.folder is not None:
            from safetensors.torch import save_file

            from engine.core.atomic_files import atomic_write

            with atomic_write(self._file(step), "the retriever's weights") as temporary:
                save_file(self.copies[step], temporary)

    def _copy(self, step: int) -> dict[str, Tensor]:
        """The weights at an update, or the current weights if the copy is lost, with which the index is merely newer."""
        if step in self.copies:
            return self.copies[step]
        try:
            return load_file(self._file(step))
        except (OSError, SafetensorError):
            return copy_of(self.encoder)

    def _file(self, step: int) -> Path:
        return (self.folder or Path()) / f"retriever-{step}.safetensors"

    def close(self) -> None:
        """Wait for a running refresh, and remove the copies."""
        if self.building is not None:
            self.building[1].join()
        self.building, self.copies = None, {}
        if self.folder is not None:
            for file in self.folder.glob("retriever-*.safetensors"):
                file.unlink(missing_ok=True)


def copy_of(encoder: SentenceEncoder) -> dict[str, Tensor]:
    return {key: value.detach().cpu().clone() for key, value in encoder.state_dict().items()}


def copy_module(encoder: SentenceEncoder, weights: dict[str, Tensor]) -> SentenceEncoder:
    """A copy of the encoder with these weights that shares its embeddings."""
    inputs, encoder._inputs = encoder._inputs, ()  # type: ignore[assignment]
    try:
        twin = copy.deepcopy(encoder)
    finally:
        encoder._inputs = inputs
    twin._inputs = inputs
    twin.load_state_dict(weights)
    return twin.requires_grad_(False).eval()
