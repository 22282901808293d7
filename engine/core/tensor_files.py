"""Tensors in safetensors files, written atomically and read with one-sentence error messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.atomic_files import atomic_write
from engine.errors import BundleError

if TYPE_CHECKING:
    from torch import Tensor


def save_tensors(path: Path, tensors: Mapping[str, Tensor], what: str, **metadata: str) -> Path:
    """Write tensors, with `metadata` in the file; `what` names them in a StorageError."""
    from safetensors.torch import save_file

    plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    with atomic_write(path, what) as temporary:
        save_file(plain, temporary, metadata=metadata or None)
    return path


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file. Raises BundleError if it is missing or damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise BundleError("{path} is damaged ({error}). Get a new copy of the bundle.", path=path.name, error=error) from None


def check_keys(path: Path, present: Collection[str], expected: Collection[str]) -> None:
    """Raise BundleError if a file lacks one of the keys or has an unknown one."""
    for key in sorted({*expected} ^ {*present}):
        if key in expected:
            raise BundleError("{tensors} lacks the key {key}. Get a new copy of the bundle.", tensors=path.name, key=key)
        raise BundleError("{tensors} has an unknown key {key}. Get a new copy of the bundle.", tensors=path.name, key=key)
