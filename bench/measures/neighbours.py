"""kNN decoding: against the base alone, and against the way it is usually written."""

from __future__ import annotations

from typing import Any

from measures.decode import translator
from measures.row import Row
from measures.setup import Setup
from measures.timing import interleaved

__all__ = ["knn"]


def knn(setup: Setup) -> list[Row]:
    """Row 7: one batch of 128 sentences over a datastore of 100,000 entries. A million take a quarter of an hour, most
    of it for the graph; retrieval by sentence, which the budgets set, is measured over a million.

    The straightforward way copies states and logits into NumPy at each step, searches, adds up a whole distribution over the
    vocabulary for the neighbours, mixes, and takes the logarithm; with all entries searched, and with the same graph as ours.
    """
    from engine.methods import get_method
    from engine.methods.knn.decoder import Knn
    from engine.methods.knn.index import make_search
    from engine.methods.knn.module import KnnModule
    from engine.plugins import Plugin

    count = setup.size(100_000, 3_000)
    ours = datastore(setup, count)

    class Plain(Knn):
        def interpolate(self, states: Any, logits: Any, bias: Any, strength: float) -> Any:
            return straightforward(self, states, logits)

    plain = Plain.__new__(Plain)
    plain.__dict__.update(ours.__dict__)
    exhaustive = Plain.__new__(Plain)
    exhaustive.__dict__.update(
        {**ours.__dict__, "search": make_search("flat", None, ours.datastore.vectors(), "cpu", ours.options)}
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
    for name, how in (("all entries, NumPy", "a search in all entries"), ("same graph, NumPy", "a search in the same graph")):
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

    from engine.decoding.translate import translate
    from engine.methods.batches import Pairs
    from engine.methods.knn.datastore import Datastore
    from engine.methods.knn.decoder import Knn
    from engine.methods.knn.index import build_index, kind_for
    from engine.methods.knn.options import KnnOptions

    texts = setup.english[: setup.size(300, 20)]
    real = Datastore.build(setup.base, Pairs.encode(setup.base, list(zip(texts, translate(setup.base, texts), strict=True))))
    own_keys = real.vectors()  # (n, d)
    draw = torch.Generator().manual_seed(1)
    rows = torch.randint(len(real), (count,), generator=draw)  # (N,)
    rows[: len(real)] = torch.arange(len(real))[:count]
    spread = 0.3 * own_keys.float().std(0)  # (d,)
    keys = torch.empty(count, own_keys.shape[1], dtype=torch.float16)  # (N, d)
    for begin in range(0, count, 65_536):
        part = rows[begin : begin + 65_536]
        noise = torch.randn(len(part), keys.shape[1], generator=draw)
        keys[begin : begin + 65_536] = (own_keys[part].float() + spread * noise).half()
    options = KnnOptions(k=16, temperature=30.0, weight=0.2)
    options = options.replace(index=kind_for(count, options))
    entries = Datastore(keys, real.tokens[rows], real.sentences[rows], real.positions[rows], [])
    return Knn(entries, build_index(keys, options.index, options), options, "cpu")


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


def knn_by_sentence(setup: Setup) -> list[Row]:
    """Retrieval by sentence over a million rows, in batches of 128 and of 1; its size on disk, and opening 100,000 rows."""
    from engine.methods import get_method
    from engine.methods.knn.module import KnnModule
    from engine.plugins import Plugin

    count = setup.size(1_000_000, 3_000)
    knn = by_sentence(setup, count)
    plugin = Plugin(get_method("knn"), KnnModule(knn), {})
    rows = []
    for batch in (128, 1):
        texts = setup.english[: 4 if setup.small else 128]
        batches = [texts] if batch > 1 else [[text] for text in texts[:16]]
        systems = {"vanilla": in_batches(setup, batches, None), "knn": in_batches(setup, batches, plugin)}
        clock = interleaved(systems, setup.rounds)
        rows.append(
            Row(
                "knn_by_sentence",
                f"kNN decoding by sentence with its learned gate over {count:,} rows against vanilla, beam 4, "
                f"batch {len(batches[0])}",
                clock.ratio("knn", "vanilla"), 1.3, wall=clock.ratio("knn", "vanilla", "wall"), figures=clock.to_mapping(),
                note=f"{knn.options.shortlist} samples, "
                f"{lengths(clock.results['knn']) / lengths(clock.results['vanilla']):.2f} of vanilla's length",
            )
        )  # fmt: skip
    return [*rows, *sizes(setup, knn)]


def in_batches(setup: Setup, batches: list[list[str]], plugin: Any) -> Any:
    """What translates these batches, one after the other."""
    calls = [translator(setup, texts, plugin) for texts in batches]
    return lambda: [text for call in calls for text in call()]


def by_sentence(setup: Setup, count: int) -> Any:
    """Real states of translations that the base is forced to, made `count` rows by noise around them. A sentence's source is that
    of one that was translated, with half of its pieces from all over the corpus, so that lists of words are as long as real ones.
    """
    import numpy as np
    import torch

    from engine.decoding.translate import translate
    from engine.memory.source_index import Sources
    from engine.methods.batches import Pairs
    from engine.methods.knn.datastore import Datastore
    from engine.methods.knn.decoder import Knn
    from engine.methods.knn.gate import NeighbourGate
    from engine.methods.knn.options import KnnOptions

    sentences = setup.english[: setup.size(300, 20)]
    pairs = Pairs.encode(setup.base, list(zip(sentences, translate(setup.base, sentences), strict=True)))
    real = Datastore.build(setup.base, pairs)
    own_keys = real.vectors()  # (n, d)
    assert real.sources is not None
    draw, random = torch.Generator().manual_seed(1), np.random.default_rng(1)
    starts, pieces = real.sources.starts, np.concatenate([np.array(row) for row in pairs.sources])
    chosen: list[int] = []
    rows: list[int] = []
    while len(rows) < count:
        chosen.append(int(random.integers(len(pairs))))
        rows += range(int(starts[chosen[-1]]), int(starts[chosen[-1] + 1]))
    copied = [pairs.sources[i] for i in chosen]
    lines = [np.where(random.random(len(row)) < 0.5, row, random.choice(pieces, len(row))).tolist() for row in copied]
    where = torch.tensor(rows)  # (R,)
    spread = 0.3 * own_keys.float().std(0)  # (d,)
    keys = torch.empty(len(rows), own_keys.shape[1], dtype=torch.float16)  # (R, d)
    for begin in range(0, len(rows), 65_536):
        part = where[begin : begin + 65_536]
        noise = torch.randn(len(part), keys.shape[1], generator=draw)
        keys[begin : begin + 65_536] = (own_keys[part].float() + spread * noise).half()
    begins = np.concatenate([[0], np.cumsum(np.diff(starts)[chosen])])  # (N + 1,)
    owners = torch.from_numpy(np.repeat(np.arange(len(chosen), dtype=np.int32), np.diff(begins)))  # (R,)
    names = torch.zeros(len(rows), dtype=torch.int32)  # (R,) nothing is a number, so that all may be copied
    sources = Sources.build(lines, begins, names, real.sources.mean)
    options = KnnOptions(retrieval="sentence", k=16, shortlist=32, temperature=0.05, threshold=0.8, weight=0.2, index="flat")
    texts = [real.texts[i] for i in chosen]
    return Knn(
        Datastore(keys, real.tokens[where], owners, real.positions[where], texts, sources).in_eight_bits(),
        None,
        options,
        "cpu",
        gate=NeighbourGate.prior(),
    )


def sizes(setup: Setup, knn: Any) -> list[Row]:
    """Bytes a row on disk, and milliseconds to open 100,000 rows."""
    import dataclasses
    import time

    from engine.core.eight_bits import EightBits
    from engine.memory.source_index import Sources
    from engine.methods.knn.decoder import Knn

    folder = setup.scratch / "knn-by-sentence"
    files = knn.save(folder)
    bytes_a_row = sum(file.stat().st_size for file in files.values()) / len(knn.datastore)
    most = setup.size(100_000, 1_000)
    entries = knn.datastore
    count = int((entries.sources.starts <= most).sum()) - 1
    end = int(entries.sources.starts[count])
    rows = [setup.base.encode([source])[0] for source, _ in entries.texts[:count]]
    keys = EightBits(entries.keys.values[:end], entries.keys.exponents[:end])
    part = dataclasses.replace(
        entries, keys=keys, tokens=entries.tokens[:end], sentences=entries.sentences[:end],
        positions=entries.positions[:end], texts=entries.texts[:count],
        sources=Sources.build(rows, entries.sources.starts[: count + 1], entries.sources.names[:end], entries.sources.mean),
    )  # fmt: skip
    small = folder / "part"
    Knn(part, None, knn.options, "cpu").save(small)
    spent = []
    for _ in range(5):
        begin = time.process_time()
        Knn.open(small, setup.base, knn.options)
        spent.append(1000 * (time.process_time() - begin))
    return [
        Row(
            "knn_by_sentence",
            f"kNN decoding by sentence: bytes a row on disk, of {len(entries):,} rows with d = {setup.base.d_model}",
            bytes_a_row,
            350,
            unit="bytes",
        ),
        Row(
            "knn_by_sentence",
            f"kNN decoding by sentence: milliseconds of processor time to open {end:,} rows",
            sorted(spent)[2],
            300,
            unit="ms",
        ),
    ]
