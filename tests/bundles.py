"""What is in a plugin's bundle."""

from __future__ import annotations

import zipfile
from pathlib import Path

__all__ = ["weights"]


def weights(plugin: Path) -> dict[str, bytes]:
    """The bytes of every tensor in the bundle, by file, name, type and shape; the order in which a file's header names its
    metadata is chance.
    """
    from safetensors.numpy import load

    with zipfile.ZipFile(plugin) as bundle:
        files = {name: load(bundle.read(name)) for name in bundle.namelist() if name.endswith(".safetensors")}
    return {
        f"{file}/{key} {tensor.dtype} {tensor.shape}": tensor.tobytes()
        for file, tensors in files.items()
        for key, tensor in tensors.items()
    }
