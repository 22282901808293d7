"""The index of a datastore: choosing its kind, building it, and loading it from untrusted files.

    entries             index    reason
    up to 20,000        flat     exact, and no more expensive than an output layer with as many words
    up to 1,000,000     hnsw     a graph; a search visits some thousands of keys, regardless of their number
    more                ivfpq    keys compressed to 64 bytes; the lists nearest to a query are scanned

A flat index consists of the keys, so it has no file. An hnsw index is saved without the keys, which are in the datastore. An ivfpq
index contains its codes. On a GPU, up to 2,000,000 entries are searched exactly if keys are available, which is faster there.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import torch

from engine.core.atomic_files import atomic_write
from engine.errors import BundleError, CorpusError
from engine.memory.faiss_search import (
    FaissSearch,
    FlatSearch,
    Search,
    add_keys,
    faiss_for,
    has_faiss,
    on_gpu,
    put_behind,
    sound_graph,
)
from engine.methods.knn.options import KnnOptions

FILE = "datastore.faiss"
FLAT, HNSW, FLAT_ON_GPU = 20_000, 1_000_000, 2_000_000  # maximum entries
PER_LIST = 39  # training points per centroid that k-means requires
TRAINING = 262_144  # maximum keys on which lists and codes are trained
HEADS = {"hnsw": b"IHNf", "ivfpq": b"IwPQ"}  # FAISS file signatures


def kind_for(entries: int, options: KnnOptions) -> str:
    """The kind of index for a number of entries; `auto` is flat if faiss is not installed."""
    if options.index != "auto":
        return options.index
    if entries <= FLAT or not has_faiss():
        return "flat"
    return "hnsw" if entries <= HNSW else "ivfpq"


def build_index(keys: torch.Tensor, kind: str, options: KnnOptions) -> Any:
    """A FAISS index of that kind over keys (N, d); None for flat. Raises MissingError if faiss is not installed."""
    if kind == "flat":
        return None
    faiss = faiss_for(f"An index of the kind {kind}")
    count, d = keys.shape
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(d, options.graph_links)
    else:
        index = ivfpq(faiss, count, d, options)
        draw = torch.Generator().manual_seed(1)
        sample = torch.randperm(count, generator=draw)[:TRAINING] if count > TRAINING else torch.arange(count)  # (n,)
        index.train(keys[sample].float().numpy())
    add_keys(index, keys)
    if kind == "hnsw":
        full = index.storage
        give_keys(faiss, index, keys)
        full.this.acquire()  # Python frees it, as the index no longer owns it
    set_breadth(index, kind, options)
    return index


def give_keys(faiss: Any, index: Any, keys: torch.Tensor) -> None:
    """Attach the keys (N, d) to a graph in 16 bits, as in the datastore: half the memory of 32 bits, and faster to search."""
    storage = faiss.IndexScalarQuantizer(keys.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_L2)
    put_behind(index, storage, keys)


def ivfpq(faiss: Any, count: int, d: int, options: KnnOptions) -> Any:
    if count < 16:
        raise CorpusError("An ivfpq index needs 16 entries or more; there are {count}. Use index=flat.", count=count)
    default_lists = max(1, min(4096, count // PER_LIST, 1 << int(4 * count**0.5).bit_length() - 1))
    lists = min(options.lists or default_lists, count)
    parts = max(m for m in range(1, min(options.code_bytes, d) + 1) if d % m == 0)  # must divide d
    bits = min(8, count.bit_length() - 1)
    index = faiss.IndexIVFPQ(faiss.IndexFlatL2(d), d, lists, parts, bits)
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1  # no warning about few points
    return index


def set_breadth(index: Any, kind: str, options: KnnOptions) -> None:
    if kind == "hnsw":
        index.hnsw.efSearch = options.graph_breadth
    else:
        index.nprobe = min(options.probe, index.nlist)


def save_index(index: Any, kind: str, path: Path) -> None:
    """Write the index; an hnsw index without the keys."""
    faiss = faiss_for("Writing an index")
    with atomic_write(path, "the index") as temporary:
        faiss.write_index(index, str(temporary), faiss.IO_FLAG_SKIP_STORAGE if kind == "hnsw" else 0)


def open_index(path: Path, kind: str, keys: torch.Tensor | None, entries: int, d: int, options: KnnOptions) -> Any:
    """Load the index from a file; None for flat. Raises BundleError unless it is of that kind and over exactly these entries.

    The file is not trusted: its signature, sizes and ids are checked against the datastore, so that a search cannot follow a link
    or an id outside of it.
    """
    if kind == "flat":
        return None
    faiss = faiss_for(f"This datastore's index of the kind {kind}")
    if not path.exists():
        raise BundleError("it has no {file}, which its decoding needs. Get a new copy of the bundle.", file=FILE)
    with path.open("rb") as file:
        head = file.read(16)
    if len(head) < 16 or head[:4] != HEADS[kind] or struct.unpack("<iq", head[4:16]) != (d, entries):
        raise misfit(kind)
    if hasattr(faiss, "set_deserialization_vector_byte_limit"):  # limits allocations to the size of the file
        faiss.set_deserialization_vector_byte_limit(max(1 << 20, 4 * path.stat().st_size))
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_STORAGE if kind == "hnsw" else 0)
    except (RuntimeError, MemoryError, AssertionError, ValueError):
        raise BundleError("{file} is damaged. Get a new copy of the bundle.", file=FILE) from None
    check = sound_graph if kind == "hnsw" else sound_lists
    if not check(faiss, index, entries, d):
        raise misfit(kind)
    if kind == "hnsw":
        if keys is None:
            raise BundleError("its datastore has no keys, which an hnsw index needs. Get a new copy of the bundle.")
        give_keys(faiss, index, keys)
    set_breadth(index, kind, options)
    return index


def misfit(kind: str) -> BundleError:
    return BundleError(
        "{file} is not the {kind} index of this bundle's datastore. Get a new copy of the bundle.", file=FILE, kind=kind
    )


def sound_lists(faiss: Any, index: Any, entries: int, d: int) -> bool:
    """Whether the sizes of an ivfpq index fit and every id in its lists is an entry."""
    if not isinstance(index, faiss.IndexIVFPQ) or (index.ntotal, index.d) != (entries, d) or not index.is_trained:
        return False
    quantizer, codes, lists = (faiss.downcast_index(index.quantizer), index.pq, faiss.downcast_InvertedLists(index.invlists))
    if index.metric_type != faiss.METRIC_L2 or not isinstance(quantizer, faiss.IndexFlat):
        return False
    if (quantizer.ntotal, quantizer.d, lists.nlist) != (index.nlist, d, index.nlist) or index.nlist < 1:
        return False
    if codes.d != d or not 1 <= codes.nbits <= 8 or codes.M * codes.dsub != d or index.code_size != codes.code_size:
        return False
    if codes.centroids.size() != codes.d * codes.ksub or lists.code_size != codes.code_size:
        return False
    total = 0
    for i in range(index.nlist):
        size = lists.list_size(i)
        total += size
        if size:
            ids = faiss.rev_swig_ptr(lists.get_ids(i), size)
            if ids.min() < 0 or ids.max() >= entries:
                return False
    return total == entries


def make_search(kind: str, index: Any, keys: torch.Tensor | None, device: Any, options: KnnOptions) -> Search:
    """The search for neighbours on a device. Raises BundleError if the datastore has neither keys nor an index."""
    gpu = torch.device(device).type == "cuda"
    if keys is not None and (kind == "flat" or (gpu and len(keys) <= FLAT_ON_GPU)):
        if kind == "flat" and not gpu and has_faiss():
            faiss = faiss_for("A flat index")
            index = faiss.IndexFlatL2(keys.shape[1])
            add_keys(index, keys)
            return FaissSearch(index, kind)
        return FlatSearch(keys, device)
    if index is None:
        raise BundleError("its datastore has no keys and no index. Get a new copy of the bundle.")
    again = keys if kind == "ivfpq" and options.exact_distances else None
    if gpu and (moved := on_gpu(index, kind, faiss_for(f"An index of the kind {kind}"))) is not None:
        return FaissSearch(moved[0], kind, again, resources=moved[1])
    return FaissSearch(index, kind, again)
