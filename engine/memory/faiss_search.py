"""Nearest-neighbour search: squared L2 distances and rows for a batch of queries, on any device.

FlatSearch    exact, by torch; for all devices, and the best choice on a GPU as long as the keys fit in its memory
FaissSearch   a FAISS index on the CPU, or on the GPU if `faiss-gpu` is installed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import MissingError

if TYPE_CHECKING:
    import torch

CHUNK = 65_536  # keys that FlatSearch compares at a time
GATHERED = 1 << 24  # numbers of gathered keys held at once when distances are recomputed


class Search(Protocol):
    """Looks up the nearest keys."""

    kind: str

    def __call__(self, queries: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared distances (R, k) in float32, nearest first, and rows (R, k) for queries (R, d), on their device.

        If fewer are found, the row is 0 and the distance infinite.
        """


def has_faiss() -> bool:
    from importlib.util import find_spec

    return find_spec("faiss") is not None


def faiss_for(feature: str) -> Any:
    """The faiss module, set to torch's number of threads. Raises MissingError with installation instructions."""
    import torch

    try:
        import faiss
    except ImportError:
        raise MissingError(
            "{what} needs faiss, which is not installed. Install it with `pip install faiss-cpu` (faiss-gpu with "
            "CUDA), or use index=flat.",
            what=feature,
        ) from None
    faiss.omp_set_num_threads(torch.get_num_threads())
    return faiss


def gather_distances(queries: torch.Tensor, keys: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Squared distances (R, k) of queries (R, d) from the keys (N, d) in rows (R, k), computed from the differences."""
    import torch

    step = max(1, GATHERED // (rows.shape[1] * queries.shape[1]))
    parts = []
    for begin in range(0, len(queries), step):
        block = rows[begin : begin + step]  # (r, k)
        near = keys[block.flatten()].to(queries.dtype).view(*block.shape, -1)  # (r, k, d)
        parts.append((near - queries[begin : begin + step, None]).square().sum(-1))  # (r, k)
    return torch.cat(parts)  # (R, k)


def nearest_first(distances: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    order = distances.argsort(dim=1, stable=True)  # (R, k)
    return distances.gather(1, order), rows.gather(1, order)


class FlatSearch:
    """Exact search by matrix products, in chunks, so that memory does not grow with datastore size times batch size."""

    kind = "flat"

    def __init__(self, keys: torch.Tensor, device: Any) -> None:
        import torch

        # A GPU holds the keys in half precision; products use float32, since those of long keys overflow half precision.
        self.keys = keys.to(device, torch.float32 if torch.device(device).type == "cpu" else torch.float16)  # (N, d)
        self.norms = torch.cat([part.float().square().sum(1) for part in self.keys.split(CHUNK)])  # (N,)

    def __call__(self, queries: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        k = min(k, len(self.keys))
        queries = queries.float()  # (R, d)
        best = rows = None
        for begin in range(0, len(self.keys), CHUNK):
            part = self.keys[begin : begin + CHUNK]  # (C, d)
            # The term ‖q‖² is the same for all keys of a query and does not affect the order.
            far = self.norms[begin : begin + CHUNK] - 2 * (queries @ part.float().T)  # (R, C)
            values, result = far.topk(min(k, len(part)), dim=1, largest=False)  # (R, k')
            result = result + begin  # (R, k')
            if best is not None and rows is not None:
                values, result = torch.cat([best, values], 1), torch.cat([rows, result], 1)  # (R, k + k')
                values, selected = values.topk(k, dim=1, largest=False)  # (R, k)
                result = result.gather(1, selected)  # (R, k)
            best, rows = values, result
        assert rows is not None
        return nearest_first(gather_distances(queries, self.keys, rows), rows)


class FaissSearch:
    """Search in a FAISS index; with `keys`, distances are recomputed from them."""

    def __init__(self, index: Any, kind: str, keys: torch.Tensor | None = None, *, resources: Any = None) -> None:
        self.index, self.kind, self.keys = index, kind, keys
        self.resources = resources  # of the GPU that the index is on; they must live as long as the index
        self.entries = int(index.ntotal)

    def __call__(self, queries: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        k = min(k, self.entries)
        if self.resources is not None:  # faiss.contrib.torch_utils lets the index use tensors where they are
            distances, rows = self.index.search(queries.contiguous(), k)  # (R, k), (R, k)
        else:
            value = self.index.search(queries.detach().cpu().contiguous().numpy(), k)
            distances, rows = (torch.from_numpy(part).to(queries.device) for part in value)  # (R, k), (R, k)
        missing = rows < 0  # (R, k)
        rows = rows.masked_fill(missing, 0)  # (R, k)
        if self.keys is not None:
            exact = gather_distances(queries.to(self.keys.device), self.keys, rows.to(self.keys.device))  # (R, k)
            distances = exact.to(queries.device)
        distances = distances.clamp(min=0).masked_fill(missing, float("inf"))  # (R, k)
        return nearest_first(distances, rows) if self.keys is not None else (distances, rows)


def on_gpu(index: Any, kind: str, faiss: Any) -> Any:
    """The index on the GPU and its resources, or None if this build of faiss has no GPU support or the kind does not run there."""
    if kind == "hnsw" or not hasattr(faiss, "StandardGpuResources") or not faiss.get_num_gpus():
        return None
    import faiss.contrib.torch_utils

    resources = faiss.StandardGpuResources()
    options = faiss.GpuClonerOptions()
    options.useFloat16 = True  # codes of 64 bytes need half-precision tables to fit in shared memory
    return faiss.index_cpu_to_gpu(resources, 0, index, options), resources


BLOCK = 65_536


def add_keys(index: Any, keys: torch.Tensor) -> None:
    """Add keys (N, d) to a FAISS index in blocks."""
    for begin in range(0, len(keys), BLOCK):
        index.add(keys[begin : begin + BLOCK].float().numpy())


def put_behind(graph: Any, storage: Any, keys: torch.Tensor) -> None:
    """Fill an empty storage with the graph's keys (N, d), and pass its ownership to the graph."""
    add_keys(storage, keys)
    storage.this.disown()
    graph.storage, graph.own_fields = storage, True


def sound_graph(faiss: Any, index: Any, entries: int, d: int, metric: int | None = None) -> bool:
    """Whether sizes and metric (default L2) match and every link of the graph leads to an entry."""
    import numpy as np

    metric = faiss.METRIC_L2 if metric is None else metric

    if not isinstance(index, faiss.IndexHNSWFlat) or (index.ntotal, index.d) != (entries, d):
        return False
    graph = index.hnsw
    links, offsets, levels, sums = (
        faiss.vector_to_array(part) for part in (graph.neighbors, graph.offsets, graph.levels, graph.cum_nneighbor_per_level)
    )
    if index.metric_type != metric or len(levels) != entries or len(offsets) != entries + 1:
        return False
    if not len(links) or not len(sums) or levels.min() < 1 or levels.max() >= len(sums) or (np.diff(sums) < 0).any():
        return False
    if offsets[0] != 0 or offsets[-1] != len(links) or (np.diff(offsets.astype(np.int64)) != sums[levels]).any():
        return False
    top = 0 <= graph.max_level < levels.max() and 0 <= graph.entry_point < entries
    if not top or levels[graph.entry_point] <= graph.max_level or links.min() < -1 or links.max() >= entries:
        return False
    for layer in range(1, int(levels.max())):  # a link on a layer leads to an entry on that layer
        starts = offsets[:-1][levels > layer].astype(np.int64)
        slots = starts[:, None] + np.arange(sums[layer], sums[layer + 1])
        ends = links[slots.ravel()]
        if (levels[ends[ends >= 0]] <= layer).any():
            return False
    return True
