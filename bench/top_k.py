#!/usr/bin/env python3
"""BLEU of a trained memory adapter over a large real memory: read exactly, and by the likeliest phrases (`search = top_k`).

    python bench/top_k.py PLUGIN.zip --samples ../shared/data/mtsc/train.luxun.random.zh \
        --sources ../shared/data/mtsc/test.luxun.en --references ../shared/data/mtsc/test.luxun.zh

Phrases are stretches of the samples, translated back by the base's other direction and recorded as for a plugin; the plugin's
trained readers then read them in place of its own. So both ways read the same memory with the same weights.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]


def main() -> int:
    from engine.decoding.translate import translate

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugin", type=Path)
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--references", type=Path, required=True)
    parser.add_argument("--phrases", type=int, default=20_000, help="a layer [20000]")
    parser.add_argument("--longest", type=int, default=6, help="characters or words of a phrase [6]")
    parser.add_argument("--lines", type=int, default=0, help="of the test, the first; 0: all [0]")
    parser.add_argument("--base", default=str(ROOT / "assets" / "models" / "en-zh"))
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    args = parser.parse_args()
    from measures.setup import stretches

    from engine.base import BaseModel
    from engine.core.languages import unspaced
    from engine.decoding.greedy_search import back_translate
    from engine.evaluation.metrics import metrics
    from engine.memory import PhrasePair, assign_layers, record
    from engine.plugins import Plugin

    base = BaseModel.load(args.base, args.source, args.target)
    lines = args.samples.read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(lines)
    spaced = not unspaced(args.target)
    texts = [line.split() if spaced else line for line in lines[: args.phrases // 5]]
    layers = len(base.decoder_layers)
    every = stretches(texts, args.longest, " " if spaced else "")
    targets = sorted(random.Random(2).sample(every, min(len(every), args.phrases * layers)), key=len)
    begin = time.process_time()
    sources = back_translate(base.for_direction(args.target, args.source), targets)
    pairs = [
        PhrasePair(layer, text, source, len(text), 1)
        for text, source, layer in zip(targets, sources, assign_layers(list(map(len, targets)), layers), strict=True)
        if source.strip()
    ]
    with tempfile.TemporaryDirectory() as scratch:
        memory = record(base, pairs, Path(scratch) / "memory.safetensors")
        print(f"{len(pairs):,} phrases recorded in {time.process_time() - begin:.0f} s of processor time", flush=True)
        plugin = Plugin.load(args.plugin, base)
        module: Any = plugin.module
        read = {}
        sentences = args.sources.read_text(encoding="utf-8").splitlines()[: args.lines or None]
        for search in ("exact", "top_k"):
            module.set_memory(memory)
            for _, _, reader in module.readers():
                reader.search = search
            module.project()
            begin = time.process_time()
            read[search] = translate(base, sentences, plugin)
            print(f"{search}: {time.process_time() - begin:.0f} s of processor time", flush=True)
    references = args.references.read_text(encoding="utf-8").splitlines()[: args.lines or None]
    read["vanilla"] = translate(base, sentences)
    bleu = metrics(args.target)["BLEU"]
    for name, result in read.items():
        print(f"{name}: BLEU {bleu.corpus_score(result, [references]).score:.2f}")
    same = sum(a == b for a, b in zip(read["exact"], read["top_k"], strict=True))
    print(f"{same} of {len(sentences)} translations the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
