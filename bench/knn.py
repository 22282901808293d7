#!/usr/bin/env python3
"""kNN decoding: recall and time of its indexes, what it gains on a domain, and what a search costs in translation.

python bench/knn.py                                       # ../shared/data/domains/en-zh/it_python, small
python bench/knn.py --sentences 40000 --sizes 20000 1000000 --test 1000 --valid 500

Times are CPU seconds of this process; with one thread (OMP_NUM_THREADS=1) they are what an idle machine needs.
Sizes beyond the datastore's own are made of its keys with noise, for times alone; their recall is against exact search over
the same keys.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DATA = ROOT.parent / "shared" / "data" / "domains" / "en-zh"
BEAMS = 4


def read_pairs(path: Path, most: int) -> list[Any]:
    from engine.corpora.types import SentencePair

    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return [SentencePair(a, b, synthetic=False) for a, b in (row for row in rows if len(row) == 2)][:most]


def measure_indexes(keys: Any, queries: Any, sizes: list[int], kinds: list[str], breadths: list[int], k: int) -> list[list[str]]:
    """Rows of the table: entries, kind, seconds to build, file, recall of the k nearest, milliseconds a search."""
    import torch

    from engine.memory.faiss_search import FlatSearch
    from engine.methods.knn.index import FILE, build_index, make_search, save_index
    from engine.methods.knn.options import KnnOptions

    results = []
    for size in sizes:
        torch.manual_seed(0)
        entries = keys[:size]
        if size > len(keys):
            extra = keys[torch.randint(len(keys), (size - len(keys),))].float()
            extra += extra.std(0) * 0.5 * torch.randn_like(extra)
            entries = torch.cat([keys, extra.half()])
        expected = FlatSearch(entries, "cpu")(queries, k)[1].tolist()
        for kind in kinds:
            options = KnnOptions(index=kind)
            begin = time.process_time()
            index = build_index(entries, kind, options)
            build = time.process_time() - begin
            with tempfile.TemporaryDirectory() as folder:
                size_of = 0
                if index is not None:
                    save_index(index, kind, Path(folder) / FILE)
                    size_of = (Path(folder) / FILE).stat().st_size
            for breadth in breadths if kind == "hnsw" else [0]:
                if breadth:
                    index.hnsw.efSearch = breadth
                search = make_search(kind, index, entries, "cpu", options)
                search(queries[:16], k)
                spent = min(timed(lambda: search(queries, k)) for _ in range(3))  # noqa: B023 - called at once
                rows = search(queries, k)[1].tolist()
                recall = sum(len(set(a) & set(b)) for a, b in zip(rows, expected, strict=True)) / (len(rows) * k)
                name = f"{kind}, breadth {breadth}" if breadth else kind
                results.append(
                    [f"{size:,}", name, f"{build:.1f}", f"{size_of / 2**20:.1f}", f"{recall:.3f}", f"{1000 * spent:.0f}"]
                )
                print("  ".join(results[-1]), file=sys.stderr)
    return results


def timed(work: Any) -> float:
    """CPU seconds, of all threads: what else the machine does is not in them."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    from engine.decoding.translate import translate

    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--base", default=str(ROOT / "assets" / "models" / "en-zh"))
    top.add_argument("--source", default="en")
    top.add_argument("--target", default="zh")
    top.add_argument("--train", type=Path, default=DATA / "it_python.train.tsv.gz")
    top.add_argument("--held-out", type=Path, default=DATA / "it_python.valid.tsv")
    top.add_argument("--tests", type=Path, default=DATA / "it_python.test.tsv")
    top.add_argument("--sentences", type=int, default=1200, help="in the datastore")
    top.add_argument("--valid", type=int, default=100)
    top.add_argument("--test", type=int, default=128)
    top.add_argument("--longest", type=int, default=24, help="source tokens of a test sentence, at most")
    top.add_argument("--batch", type=int, default=128, help="sentences translated at once")
    top.add_argument("--keep", type=Path, help="folder that the datastore stays in, used again where it has one")
    top.add_argument("--sizes", type=int, nargs="*", default=[20_000, 100_000])
    top.add_argument("--kinds", nargs="*", default=["flat", "hnsw", "ivfpq"])
    top.add_argument("--breadths", type=int, nargs="*", default=[16, 32, 64], help="of hnsw searches")
    top.add_argument("-k", type=int, default=16)
    top.add_argument("--skip-above", type=float, default=0.9, help="also with this share of sure tokens not looked up")
    args = top.parse_args()
    import torch

    from engine.base import BaseModel
    from engine.base.decoding_options import Decoding
    from engine.cli.terminal import TerminalProgress
    from engine.evaluation import evaluate
    from engine.methods import get_method
    from engine.methods.batches import Pairs
    from engine.methods.knn.build import make_knn
    from engine.methods.knn.forced_decoding import forced
    from engine.methods.knn.module import KnnModule
    from engine.methods.knn.options import KnnOptions
    from engine.plugins import Plugin

    base = BaseModel.load(args.base, args.source, args.target, device="cpu")
    train, valid, test = (
        read_pairs(path, most) for path, most in ((args.train, args.sentences), (args.held_out, args.valid), (args.tests, 10**9))
    )
    lengths = map(len, base.encode([pair.source for pair in test]))
    test = [pair for pair, length in zip(test, lengths, strict=True) if length <= args.longest][: args.test]
    progress = TerminalProgress()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        knn, files, stats = make_knn(base, train, valid, KnnOptions(retrieval="global"), folder, progress=progress)
        size = sum(file.stat().st_size for file in files.values())
    options = knn.options
    print(f"\nDatastore of {len(train):,} sentences: {stats['entries']:,} tokens, {stats['index']}, {size / 2**20:.1f} MiB, "
          f"{stats['seconds']:.0f} s; k {options.k}, T {options.temperature:g}, λ {options.weight}; held-out loss "
          f"{stats['loss_base']} -> {stats['loss']} nats a token")  # fmt: skip

    systems: dict[str, list[str]] = {}
    seconds: dict[str, float] = {}
    texts = [pair.source for pair in test]
    settings = Decoding(guard=False, beam=BEAMS, batch_tokens=args.batch * args.longest, max_length_ratio=1.5)
    plugins: dict[str, Plugin | None] = {"vanilla": None}
    for name, chosen in (("knn", options), ("knn, sure tokens skipped", options.replace(skip_above=args.skip_above))):
        plugins[name] = Plugin(get_method("knn"), KnnModule(knn.with_settings(chosen, knn.adaptive)), {})
    translate(base, texts[:4], decoding=settings)
    for name, plugin in plugins.items():
        begin = time.process_time()
        systems[name] = translate(base, texts, plugin, decoding=settings)
        seconds[name] = time.process_time() - begin
    report = evaluate(systems, [pair.target for pair in test], language=args.target, baseline="vanilla", samples=500)
    print("\n| system | BLEU | p | chrF2 | CPU s | of vanilla |\n|---|---:|---:|---:|---:|---:|")
    for name, value in seconds.items():
        row = report[name]
        assert row.bleu is not None
        assert row.chrf is not None
        p = "" if row.bleu.p is None else f"{row.bleu.p:.3f}"
        print(f"| {name} | {row.bleu.score:.2f} | {p} | {row.chrf.score:.2f} | {value:.1f} | {value / seconds['vanilla']:.2f} |")
    print(f"\n{len(texts)} sentences, beam {BEAMS}, batches of up to {args.batch}; {', '.join(report.signatures.values())}")

    states = [part.states for part in forced(base, Pairs.encode(base, valid), None, "output")]
    queries = torch.cat(states)[: args.batch * BEAMS]
    measured = measure_indexes(knn.datastore.vectors(), queries, args.sizes, args.kinds, args.breadths, args.k)
    print(f"\n| entries | index | build, CPU s | file, MiB | recall of {args.k} | search of {len(queries)}, CPU ms |")
    print("|---:|---|---:|---:|---:|---:|")
    for cells in measured:
        print("| " + " | ".join(cells) + " |")
    print(f"\nd = {base.d_model}, {torch.get_num_threads()} thread(s)")


if __name__ == "__main__":
    main()
