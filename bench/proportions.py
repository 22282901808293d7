#!/usr/bin/env python3
r"""Time and quality of domain proportions fitted on a frozen base, without sources, as after an upload.

python bench/proportions.py --source zh --target en \
    it=assets/samples/it-help-en/it-help.txt medical=assets/samples/patient-info-en/patient-info.txt
python bench/proportions.py --source zh --target en --lines 556 law=law.train.tsv.gz:2 medical=medical.train.tsv.gz:2
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def lines_of(text: str, most: int) -> list[str]:
    """The sentences of FILE or FILE:COLUMN (a table with tabs, columns from 1), plain or .gz."""
    path, _, column = text.partition(":")
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n") for line in file]
    result = [row.split("\t")[int(column) - 1] for row in rows] if column else rows
    return [line for line in result if line.strip()][: most or None]


def naive_bayes(base: Any, train: dict[str, list[str]], test: dict[str, list[str]]) -> tuple[float, float]:
    """Shares of test pieces and sentences that counts of pieces in the training sentences give to their own domain: what
    can be had of words without their context.
    """
    counts = {name: Counter(i for row in base.encode_target(texts) for i in row) for name, texts in train.items()}
    sums = {name: sum(count.values()) for name, count in counts.items()}
    pieces: list[bool] = []
    sentences: list[bool] = []
    for domain, texts in test.items():
        for row in base.encode_target(texts):
            totals = Counter[str]()
            for i in row:
                scores = {name: math.log((counts[name][i] + 0.5) / sums[name]) for name in counts}
                totals.update(scores)
                if i not in base.special_ids:
                    pieces.append(max(scores, key=scores.__getitem__) == domain)
            sentences.append(max(totals, key=totals.__getitem__) == domain)
    return sum(pieces) / len(pieces), sum(sentences) / len(sentences)


def main() -> None:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("domains", nargs="+", metavar="NAME=FILE[:COLUMN]")
    top.add_argument("--base", default=str(ROOT / "assets" / "models" / "en-zh"))
    top.add_argument("--source", required=True)
    top.add_argument("--target", required=True)
    top.add_argument("--lines", type=int, default=0, help="of each domain, the first; 0: all [0]")
    top.add_argument("--threads", type=int, default=2)
    args = top.parse_args()
    import torch

    from engine.base import BaseModel
    from engine.methods.domain_mixing.proportions import fit_proportions, proportions_of

    torch.set_num_threads(args.threads)
    domains = {}
    for item in args.domains:
        name, _, file = item.partition("=")
        domains[name] = lines_of(file, args.lines)
    test = {name: texts[::10] for name, texts in domains.items()}
    train = {name: [text for i, text in enumerate(texts) if i % 10] for name, texts in domains.items()}
    base = BaseModel.load(args.base, args.source, args.target)
    wall, cpu = time.monotonic(), time.process_time()
    model = fit_proportions(base, train)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    count = sum(map(len, train.values()))
    print(
        f"{count} sentences of {len(train)} domains: fitted in {wall:.1f} s, {cpu:.1f} s of processor time; "
        f"{args.threads} threads of {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; ridge {model.ridge}\n"
    )
    begin = time.process_time()
    rows = []
    for side in model.layers:
        words, sentences, shares = [], [], []
        for j, texts in enumerate(test.values()):
            for result in proportions_of(base, model, texts, side):
                words += [max(word["proportions"]) == word["proportions"][j] for word in result["words"]]
                shares += [word["proportions"][j] for word in result["words"]]
                mean = result["mean"] or [0.0]
                sentences.append(max(mean) == mean[j])
        rows.append((side, sum(shares) / len(shares), sum(words) / len(words), sum(sentences) / len(sentences)))
    spent = time.process_time() - begin
    print("| side | own proportion of a word | words that lean right | sentences that lean right |\n|---|---:|---:|---:|")
    for side, share, right, right_sentences in rows:
        print(f"| {side} | {share:.3f} | {right:.1%} | {right_sentences:.1%} |")
    right, right_sentences = naive_bayes(base, train, test)
    print(f"| counts of pieces (naive Bayes) | | {right:.1%} of pieces | {right_sentences:.1%} |")
    number = sum(map(len, test.values()))
    print(f"\n{number} sentences that were not fitted on, read in {spent:.1f} s of processor time, all sides together.")
    for side, summary in model.corpus.items():
        for name, listed in summary["words"]["of"].items():
            print(f"{side}, {name}: " + ", ".join(row["text"] for row in listed[:12]))
        print(f"{side}, shared: " + ", ".join(row["text"] for row in summary["words"]["shared"][:12]))


if __name__ == "__main__":
    main()
