"""kNN decoding: against the base alone, and against the way it is usually written."""

from __future__ import annotations

from typing import Any

from measures.decode import translator
from measures.row import Row
from measures.setup import Setup
from measures.timing import interleaved

__all__ = ["knn"]


def knn(setup: Setup) -> list[Row]:
    """Row 7: one batch of 128 sentences over a datastore of a million entries.

    The straightforward way copies states and logits into NumPy at each step, searches, adds up a whole distribution over the
    vocabulary for the neighbours, mixes, and takes the logarithm; with all entries searched, and with the same graph as ours.
    """
    from engine.decoding.knn.decoder import Knn
    from engine.decoding.knn.index import make_search
    from engine.methods import get_method
    from engine.methods.knn.module import KnnModule
    from engine.plugins import Plugin

    count = setup.size(1_000_000, 3_000)
    ours = datastore(setup, count)

    class Plain(Knn):
        def interpolate(self, states: Any, logits: Any, bias: Any, strength: float) -> Any:
            return straightforward(self, states, logits)

    plain = Plain.__new__(Plain)
    plain.__dict__.update(ours.__dict__)
    exhaustive = Plain.__new__(Plain)
    exhaustive.__dict__.update(
        {**ours.__dict__, "search": make_search("flat", None, ours.datastore.keys, "cpu", ours.options)}
    )
    texts = setup.english[: 4 if setup.small else 128]
    method = get_method("knn")
    systems = {
        "vanilla": translator(setup, texts, None),
        "knn": translator(setup, texts, Plugin(method, KnnModule(ours), {})),
        "same graph, NumPy": translator(setup, texts, Plugin(method, KnnModule(plain), {})),
        "all entries, NumPy": translator(setup, texts, Plugin(method, KnnModule(exhaustive), {})),
    }
    clock = interleaved(systems, setup.rounds)
    options = ours.options
    rows = [
        Row(
            "knn", f"kNN decoding over {count:,} entries against vanilla, beam 4, batch {len(texts)}",
            clock.ratio("knn", "vanilla"), 1.3, wall=clock.ratio("knn", "vanilla", "wall"), figures=clock.to_mapping(),
            note=f"{options.index}, breadth {options.graph_breadth}, k {options.k}; "
            f"{lengths(clock.results['knn']) / lengths(clock.results['vanilla']):.2f} of vanilla's length",
        )
    ]  # fmt: skip
    for name, how in (
        ("all entries, NumPy", "a search in all entries"),
        ("same graph, NumPy", "a search in the same graph"),
    ):
        same = sum(a == b for a, b in zip(clock.results["knn"], clock.results[name], strict=True))
        rows.append(
            Row(
                "knn", f"kNN decoding against {how} and a whole distribution at each step, in NumPy", clock.ratio(name, "knn"), 2.0,
                at_least=True, wall=clock.ratio(name, "knn", "wall"), figures=clock.to_mapping(),
                note=f"{same} of {len(texts)} outputs the same",
            )
        )  # fmt: skip
    return rows


def lengths(texts: list[str]) -> int:
    return max(1, sum(map(len, texts)))


def datastore(setup: Setup, count: int) -> Any:
    """Real states of translations that the base is forced to, made `count` by noise around them; weight and T are as tuned on
    IT texts (bench/README.md), but a small weight, so that translations stay as long as vanilla's.
    """
    import torch

    from engine.decoding.knn.datastore import Datastore
    from engine.decoding.knn.decoder import Knn
    from engine.decoding.knn.index import build_index, kind_for
    from engine.decoding.knn.options import KnnOptions
    from engine.training.data import Pairs

    some = setup.english[: setup.size(300, 20)]
    real = Datastore.build(
        setup.base, Pairs.encode(setup.base, list(zip(some, setup.base.translate(some), strict=True)))
    )
    assert real.keys is not None
    draw = torch.Generator().manual_seed(1)
    rows = torch.randint(len(real), (count,), generator=draw)  # (N,)
    rows[: len(real)] = torch.arange(len(real))[:count]
    spread = 0.3 * real.keys.float().std(0)  # (d,)
    keys = torch.empty(count, real.keys.shape[1], dtype=torch.float16)  # (N, d)
    for begin in range(0, count, 65_536):
        part = rows[begin : begin + 65_536]
        noise = torch.randn(len(part), keys.shape[1], generator=draw)
        keys[begin : begin + 65_536] = (real.keys[part].float() + spread * noise).half()
    options = KnnOptions(k=16, temperature=30.0, weight=0.2)
    options = options.replace(index=kind_for(count, options))
    whole = Datastore(keys, real.tokens[rows], real.sentences[rows], real.positions[rows], [])
    return Knn(whole, build_index(keys, options.index, options), options, "cpu")


def straightforward(knn: Any, states: Any, logits: Any) -> Any:
    """log((1 - λ) p_MT + λ p_kNN) by NumPy."""
    import numpy as np
    import torch

    flat = logits.reshape(-1, logits.shape[-1]).float().cpu().numpy()  # (R, V)
    queries = states.reshape(-1, states.shape[-1]).float()  # (R, d)
    distances, rows = (part.cpu().numpy() for part in knn.search(queries, knn.options.k))  # (R, k), (R, k)
    shifted = np.exp(flat - flat.max(-1, keepdims=True))  # (R, V)
    p = shifted / shifted.sum(-1, keepdims=True)  # (R, V)
    near = np.exp(-(distances - distances.min(-1, keepdims=True)) / knn.options.temperature)  # (R, k)
    near /= near.sum(-1, keepdims=True)
    q = np.zeros_like(p)  # (R, V)
    np.add.at(q, (np.arange(len(q))[:, None], knn.tokens.numpy()[rows]), near)
    mixed = np.log((1 - knn.options.weight) * p + knn.options.weight * q + 1e-30)  # (R, V)
    return torch.from_numpy(mixed.astype(np.float32)).view_as(logits)
