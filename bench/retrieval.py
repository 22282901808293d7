#!/usr/bin/env python3
"""Time of retrieval over a million n-grams: building the index, and looking up a sentence with all of its n-grams.

python bench/retrieval.py                                   sentences made from the word frequencies of the samples
python bench/retrieval.py --text FILE [FILE ...]            sentences of files, one a line, repeated until there are enough
python bench/retrieval.py --ngrams 100000 --queries 50
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def made_sentences(grams: int, seed: int, vocabulary: int) -> list[list[str]]:
    """Sentences of 4 to 45 words whose frequencies follow Zipf's law, enough for that many n-grams of widths 6, 10, 18.

    A real text repeats phrases; this one does not, so that a query has no easy answer that ends the search.
    """
    draw = np.random.default_rng(seed)
    lengths: list[int] = []
    count = 0
    while count < grams:
        lengths.append(int(draw.integers(4, 46)))
        count += sum(-(-lengths[-1] // (width // 2)) for width in (6, 10, 18))
    shares = 1 / np.arange(1, vocabulary + 1)
    numbers = draw.choice(vocabulary, size=sum(lengths), p=shares / shares.sum())
    words = [f"w{i}" for i in range(vocabulary)]
    ends = np.cumsum(lengths)
    return [[words[i] for i in numbers[end - length : end]] for end, length in zip(ends, lengths, strict=True)]


def main() -> None:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--ngrams", type=int, default=1_000_000)
    top.add_argument("--queries", type=int, default=200)
    top.add_argument("--vocabulary", type=int, default=50_000)
    top.add_argument("--text", nargs="*", type=Path, default=[])
    args = top.parse_args()
    from engine.corpora.tokenize import words
    from engine.memory.neighbours import IdfNgrams, IdfSentences

    queries = made_sentences(args.queries * 60, 2, args.vocabulary)[: args.queries]
    if args.text:
        lines = [line for file in args.text for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        cut = [words(line) for line in lines]
        queries = cut[:: max(1, len(cut) // args.queries)][: args.queries]
        grams = sum(-(-len(s) // (width // 2)) for s in cut for width in (6, 10, 18))
        sentences = cut * max(1, -(-args.ngrams // grams))
    else:
        sentences = made_sentences(args.ngrams, 1, args.vocabulary)
    rows = []
    for name, kind in (("n-grams, IDF", IdfNgrams), ("sentences, IDF", IdfSentences)):
        begin, cpu = time.perf_counter(), time.process_time()
        engine = kind(sentences)
        built, built_cpu = time.perf_counter() - begin, time.process_time() - cpu
        times, worked = [], []
        for query in queries:
            begin, cpu = time.perf_counter(), time.process_time()
            engine.neighbours(query, 10)
            times.append(1000 * (time.perf_counter() - begin))
            worked.append(1000 * (time.process_time() - cpu))
        size = len(engine) if isinstance(engine, IdfNgrams) else len(sentences)
        rows.append((name, size, built, built_cpu, np.median(times), np.quantile(times, 0.95), np.mean(worked)))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{len(sentences):,} sentences, {len(queries)} queries, {os.cpu_count()} cores, load {load:.1f}\n")
    print("| index of | entries | built in | of it processor | a sentence, median | 95 % | processor, mean |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, size, built, cpu, median, late, work in rows:
        print(f"| {name} | {size:,} | {built:.1f} s | {cpu:.1f} s | {median:.1f} ms | {late:.1f} ms | {work:.1f} ms |")


if __name__ == "__main__":
    main()
