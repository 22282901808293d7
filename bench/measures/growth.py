"""Time of a memory adapter as its memory grows, and what reading by the likeliest phrases finds of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from measures.decode import translator
from measures.row import Row
from measures.setup import Setup
from measures.timing import interleaved

__all__ = ["memory_growth", "memory_opening"]

SIZES, LARGEST = (1_000, 10_000, 100_000), 1_000_000
QUERIES = 256


def memory_growth(setup: Setup) -> list[Row]:
    """Row 5: one batch of sentences under adapters that differ in the size of their memory alone.

    All readers of an adapter share one memory: 1,000,000 phrases for each of eight would not fit here. What a reading costs does
    not depend on that, but for the processor's caches, which a memory of that size does not fit in either.
    """
    texts = setup.english[: 2 if setup.small else 16]
    systems, value = {}, {}
    # `--scale` is of the largest; the smaller ones stay, since the limit is about them.
    for full in (*SIZES, max(100_000, int(LARGEST * setup.scale))) if setup.scale * LARGEST > 100_000 else SIZES:
        size = full // 100 + 20 if setup.small else full
        plugin = setup.plugin("memory_adapter", setup.memory(100), search="exact")
        readers = [reader for _, _, reader in plugin.module.readers()]
        model = next(reader for layer, position, reader in plugin.module.readers() if (layer, position) == (1, "self_attn"))
        rows = grown(setup, size)
        search = "exact" if full <= 50_000 else "top_k"
        for reader in readers:
            reader.load_state_dict(model.state_dict())
            reader.memory, reader.search = rows, search
        model.project()
        if search == "top_k":
            value[f"{size:,}"] = accuracy(setup, model)
        for reader in readers:
            reader.keys, reader.values, reader.nearest, reader.laid = model.keys, model.values, model.nearest, None
        systems[f"{size:,}"] = translator(setup, texts, plugin)
    clock = interleaved(systems, setup.rounds)
    names = list(systems)
    base = names[1]
    result = []
    for name in names:
        if name == base:
            continue
        ratio, wall = clock.ratio(name, base), clock.ratio(name, base, "wall")
        note = f"{clock.to_mapping()[name]['cpu']:.2f} s against {clock.to_mapping()[base]['cpu']:.2f} s"
        if name in value:
            note += "; recall of the 32 likeliest {recall:.3f}, error {error:.3f}, of the likeliest alone {alone:.3f}".format(
                **value[name]
            )
        result.append(
            Row(
                "memory_growth", f"memory of {name} phrases a layer against {base}, beam 4, batch {len(texts)}", ratio,
                2.0 if name == f"{LARGEST:,}" else None, wall=wall, note=note,
                figures={**clock.to_mapping(), "accuracy": value.get(name)},
            )
        )  # fmt: skip
    return result


def sentence_memory_growth(setup: Setup) -> list[Row]:
    """One batch of sentences under memory adapters by sentence that differ in the number of rows alone."""
    texts = setup.english[: 2 if setup.small else 128]
    small, large = 10_000 // (100 if setup.small else 1), setup.size(LARGEST, 2_000)
    plugins = {
        rows: setup.plugin("memory_adapter", setup.sentence_memory(rows), retrieval="sentence", bottleneck=128)
        for rows in (small, large)
    }
    result = []
    for batch in (len(texts), 1):
        systems = {f"{rows:,}": translator(setup, texts[:batch], plugin) for rows, plugin in plugins.items()}
        clock = interleaved(systems, setup.rounds)
        ratio, wall = (clock.ratio(f"{large:,}", f"{small:,}", kind) for kind in ("cpu", "wall"))
        what = f"memory by sentence of {large:,} rows against {small:,}, beam 4, batch {batch}"
        result.append(Row("sentence_memory_growth", what, ratio, 1.2, wall=wall, figures=clock.to_mapping()))
    return result


def memory_opening(setup: Setup) -> list[Row]:
    """What one reader of a large memory takes until it can be read: graph and clusters made, and read where they were kept."""
    count = setup.size(100_000, 1_000)
    plugin = setup.plugin("memory_adapter", setup.memory(100), search="exact")
    reader = next(candidate for layer, attention, candidate in plugin.module.readers() if (layer, attention) == (1, "self_attn"))
    reader.memory, reader.search = grown(setup, count), "top_k"
    selected = setup.scratch / "graphs" / "1-self_attn"

    def opened(path: Path | None) -> Callable[[], None]:
        def run() -> None:
            reader.graph_path = path
            reader.project()

        return run

    clock = interleaved({"made": opened(None), "read": opened(selected)}, setup.rounds)
    figures = clock.to_mapping()
    return [
        Row(
            "memory_opening", f"a reader of {count:,} phrases opened: graph and clusters read where they were kept, against made",
            clock.ratio("read", "made"), wall=clock.ratio("read", "made", "wall"), figures=figures,
            note=f"{figures['read']['cpu']:.2f} s against {figures['made']['cpu']:.1f} s, both with the keys themselves",
        )
    ]  # fmt: skip


def grown(setup: Setup, count: int) -> Any:
    """Recorded target rows of layer 1, made `count` by noise around them where there are fewer."""
    import torch

    rows = setup.recorded.target(1).float()  # (N, d)
    if count <= len(rows):
        return rows[:count].contiguous()
    draw, parts = torch.Generator().manual_seed(1), [rows]
    spread = 0.3 * rows.std(0)  # (d,)
    for begin in range(len(rows), count, 65_536):
        size = min(65_536, count - begin)
        sampled = rows[torch.randint(len(rows), (size,), generator=draw)]  # (n, d)
        parts.append(sampled + spread * torch.randn(size, rows.shape[1], generator=draw))
    return torch.cat(parts)  # (N, d)


def accuracy(setup: Setup, reader: Any) -> dict[str, float]:
    """Recall of the likeliest rows, and distances from the exact reading as shares of its own from the memory's mean, for queries
    of real translations, the median over queries.
    """
    import torch

    from engine.decoding.translate import translate

    states: list[Any] = []
    handle = setup.base.decoder_layers[1].self_attn.register_forward_hook(lambda _, __, output: states.append(output[0]))
    try:
        translate(setup.base, setup.english[-24:])
    finally:
        handle.remove()
    with torch.inference_mode():
        flat = torch.cat([state.reshape(-1, state.shape[-1]) for state in states])  # (R, d)
        queries = reader.query(flat[torch.randperm(len(flat), generator=torch.Generator().manual_seed(1))[:QUERIES]])  # (R, d)
        scores = (
            torch.cat([queries @ reader.key(part).T for part in reader.memory.split(65_536)], -1) * reader.inverse_temperature
        )  # (R, N)
        best, rows = reader.nearest.best(queries)  # (R, k)
        expected = scores.topk(rows.shape[1]).indices  # (R, k)
        recall = (rows[:, :, None] == expected[:, None, :]).any(1).float().mean()
        exact = torch.softmax(scores, -1) @ reader.memory  # (R, d)
        size = (exact - reader.memory.mean(0)).norm(dim=1)  # (R,)
        alone = (torch.softmax(best, -1)[:, None] @ reader.memory[rows])[:, 0]  # (R, d)
        near = reader.nearest.read(queries, reader.memory)  # (R, d)
        error, of_best = (((output - exact).norm(dim=1) / size).median() for output in (near, alone))
    return {"recall": float(recall), "error": float(error), "alone": float(of_best)}
