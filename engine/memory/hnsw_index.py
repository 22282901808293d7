"""The graph over the keys of a large memory, and their clusters: built when a plugin is first opened and cached beside its files.

Building both takes about a tenth of a millisecond per key, minutes for a plugin with a million phrases; reading takes seconds. Of
the graph only the links are stored, since the keys are in the memory. A digest of the keys identifies them, and the files are
checked before use: a damaged file is rebuilt.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.core.atomic_files import atomic_write
from engine.core.tensor_files import save_tensors
from engine.errors import StorageError
from engine.memory.faiss_search import add_keys, faiss_for, put_behind, sound_graph

CLUSTERS = 512  # at most; fewer if there are few rows for each
PER_CLUSTER = 16
TRAINING = 64  # rows per cluster for k-means training
ROUNDS = 6
LINKS, CONSTRUCTION = 32, 40
BLOCK = 65_536


def graph_and_clusters(keys: Tensor, path: Path | None = None) -> tuple[Any, Tensor]:
    """A FAISS graph over keys (N, d) in float32, by inner products, and the cluster (N,) of each.

    `path`, without its suffix, is the cache: it is read if made from the same keys, otherwise written. Raises MissingError
    without faiss.
    """
    faiss = faiss_for("Reading a memory by its likeliest phrases")
    checksum = digest(keys) if path else ""
    if path is not None and (result := read(faiss, path, checksum, keys)) is not None:
        return result
    index = make_graph(faiss, keys)
    cluster = make_clusters(faiss, keys)  # (N,)
    if path is not None:
        with contextlib.suppress(StorageError):  # with a full disk, only the next start takes longer
            write(faiss, path, checksum, index, cluster)
    return index, cluster


def make_graph(faiss: Any, keys: Tensor) -> Any:
    index = faiss.IndexHNSWFlat(keys.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = CONSTRUCTION
    add_keys(index, keys)
    return index


def make_clusters(faiss: Any, keys: Tensor) -> Tensor:
    count, d = keys.shape
    clusters = max(1, min(CLUSTERS, count // PER_CLUSTER))
    draw = torch.Generator().manual_seed(1)
    sample = keys[torch.randperm(count, generator=draw)[: TRAINING * clusters]]  # (n, d)
    means = faiss.Kmeans(d, clusters, niter=ROUNDS, seed=1, min_points_per_centroid=1)
    means.train(sample.numpy())
    centres = torch.from_numpy(means.centroids)  # (C, d)
    half = 0.5 * centres.square().sum(1)  # (C,)
    parts = [(keys[b : b + BLOCK] @ centres.T - half).argmax(1) for b in range(0, count, BLOCK)]
    return torch.cat(parts)  # (N,)


def digest(keys: Tensor) -> str:
    """A digest of the keys and of the build parameters."""
    hasher = hashlib.sha256(f"{LINKS} {CONSTRUCTION} {CLUSTERS} {PER_CLUSTER} {TRAINING} {ROUNDS}".encode())
    for begin in range(0, len(keys), BLOCK):
        hasher.update(keys[begin : begin + BLOCK].numpy().tobytes())
    return hasher.hexdigest()


def write(faiss: Any, path: Path, checksum: str, index: Any, cluster: Tensor) -> None:
    with atomic_write(path.with_suffix(".faiss"), "the memory's graph") as temporary:
        faiss.write_index(index, str(temporary), faiss.IO_FLAG_SKIP_STORAGE)
    save_tensors(path.with_suffix(".safetensors"), {"cluster": cluster.to(torch.int16)}, "the memory's clusters", keys=checksum)


def read(faiss: Any, path: Path, checksum: str, keys: Tensor) -> tuple[Any, Tensor] | None:
    """The cached graph and clusters of exactly these keys; None if missing or damaged."""
    count, d = keys.shape
    try:
        with safe_open(path.with_suffix(".safetensors"), "pt") as file:
            if (file.metadata() or {}).get("keys") != checksum:
                return None
            cluster = file.get_tensor("cluster").long()  # (N,)
        index = faiss.read_index(str(path.with_suffix(".faiss")), faiss.IO_FLAG_SKIP_STORAGE)
        if not sound_graph(faiss, index, count, d, faiss.METRIC_INNER_PRODUCT):
            return None
    except (OSError, SafetensorError, RuntimeError, MemoryError, AssertionError, ValueError):
        return None
    if cluster.shape != (count,) or not 0 <= int(cluster.min()) <= int(cluster.max()) < CLUSTERS:
        return None
    put_behind(index, faiss.IndexFlatIP(d), keys)
    return index, cluster
