"""`memory.safetensors`: two half-precision tensors per decoder layer i, memory-mapped when read.

    layer.{i}.target   (N_i, d)   self-attention outputs of layer i
    layer.{i}.source   (N_i, d)   encoder outputs
Row n of both belongs to the n-th phrase pair of that layer. Keys and values are these rows (equations 6 and 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.core.tensor_files import check_keys, save_tensors
from engine.errors import BundleError

if TYPE_CHECKING:
    import torch


def save_memory(
    path: Path, layers: Mapping[int, tuple[torch.Tensor, torch.Tensor]], *, base_fingerprint: str, pooling: str
) -> None:
    """Write {layer: (target (N, d), source (N, d))} in half precision."""
    import torch

    tensors = {}
    for layer, (target, source) in layers.items():
        tensors[f"layer.{layer}.target"] = target.to(torch.float16)  # (N, d)
        tensors[f"layer.{layer}.source"] = source.to(torch.float16)  # (N, d)
    save_tensors(path, tensors, "the memory", base_fingerprint=base_fingerprint, pooling=pooling)


class Memory:
    """A recorded memory on disk; tensors are memory-mapped, so nothing is read before it is used."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    @cached_property
    def _file(self) -> Any:
        from safetensors import SafetensorError, safe_open

        try:
            return safe_open(self.path, framework="pt")
        except (OSError, SafetensorError) as error:
            raise BundleError(
                "{path} is not a readable memory ({error}). Create it again or import the plugin again.",
                path=self.path,
                error=error,
            ) from None

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self._file.metadata() or {})

    @cached_property
    def layers(self) -> int:
        return len({key.split(".")[1] for key in self._file.keys()})  # noqa: SIM118 - no dict

    @cached_property
    def sizes(self) -> list[int]:
        """The number of phrases stored for each layer."""
        return [self._file.get_slice(f"layer.{i}.target").get_shape()[0] for i in range(self.layers)]

    def target(self, layer: int) -> torch.Tensor:
        """(N, d) half precision."""
        return self._get(f"layer.{layer}.target")

    def source(self, layer: int) -> torch.Tensor:
        """(N, d) half precision."""
        return self._get(f"layer.{layer}.source")

    def _get(self, key: str) -> torch.Tensor:
        from safetensors import SafetensorError

        try:
            return self._file.get_tensor(key)
        except SafetensorError:
            raise BundleError(
                "{path} lacks {key}. Rebuild the memory or import the plugin again.", path=self.path, key=key
            ) from None


def open_memory(folder: Path, base: BaseModel) -> Memory:
    """The memory in an unpacked bundle. Raises BundleError unless each decoder layer of the base has rows of the base's size."""
    from safetensors import SafetensorError, safe_open

    file = folder / "memory.safetensors"
    if not file.exists():
        raise BundleError("it has no memory.safetensors, which the method reads. Get a new copy of the bundle.")
    try:
        with safe_open(file, framework="pt") as tensors:
            shapes = {key: tuple(tensors.get_slice(key).get_shape()) for key in tensors.keys()}  # noqa: SIM118 - no dict
    except SafetensorError as error:
        raise BundleError("memory.safetensors is damaged ({error}). Get a new copy of the bundle.", error=error) from None
    sides = ("target", "source")
    check_keys(file, shapes, {f"layer.{i}.{side}" for i in range(len(base.decoder_layers)) for side in sides})
    for key, shape in shapes.items():
        rows = shapes[f"{key.rpartition('.')[0]}.target"][:1]
        if shape != (*rows, base.d_model):
            raise BundleError(
                "{key} in memory.safetensors has the shape {shape}. Get a new copy of the bundle.", key=key, shape=shape
            )
    return Memory(file)
