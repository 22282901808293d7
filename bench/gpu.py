"""Translating on a GPU and on the processor: sentences a second by precision and batch size, and how much of the output is equal.

    python bench/gpu.py --texts ../shared/data/heldout/ntrex.en-zh.tsv --lines 500
    python bench/gpu.py --plugin mine.zip --batch-tokens 8192 --precisions float32,int8

Each row translates the same lines with the default search, after a warm-up on a few of them. The row of the processor, in float32,
is what the others' outputs are compared with.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WARM_UP = 64  # lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=str(ROOT / "assets/models/en-zh"))
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    parser.add_argument("--texts", type=Path, required=True, help="sources and references by tabs")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precisions", default="float32,bfloat16,float16,int8")
    parser.add_argument("--batch-tokens", default="2048,8192,32768", help="source tokens in a batch, by comma")
    parser.add_argument("--plugin", type=Path, help="a bundle")
    args = parser.parse_args()

    sys.path.insert(0, str(ROOT))
    rows = [line.split("\t") for line in args.texts.read_text(encoding="utf-8").splitlines()[: args.lines]]
    texts, references = [row[0] for row in rows], [row[1] for row in rows]
    print(f"{len(texts)} lines; device, precision, batch tokens, seconds, sentences/s, same as the processor's, BLEU")
    plain: list[str] = []
    cases = [("cpu", "float32", "2048")]
    cases += [(args.device, p, b) for p in args.precisions.split(",") for b in args.batch_tokens.split(",")]
    for device, precision, batch in cases:
        seconds, translations = measured(args, device, precision, int(batch), texts)
        plain = plain or translations
        same = sum(a == b for a, b in zip(plain, translations, strict=True))
        score = bleu(translations, references, args.target)
        speed = f"{seconds:8.2f} s {len(texts) / seconds:8.1f}/s"
        print(f"{device:6} {precision:9} {batch:>6} {speed} {same:4}/{len(texts)} {score:5.2f}", flush=True)


def measured(args: argparse.Namespace, device: str, precision: str, batch: int, texts: list[str]) -> tuple[float, list[str]]:
    """Seconds and translations of one row."""
    from engine.base import BaseModel
    from engine.decoding.translate import translate
    from engine.plugins import Plugin

    base = BaseModel.load(args.base, args.source, args.target, device=device, precision=precision)
    plugin = Plugin.load(args.plugin, base) if args.plugin else None
    decoding = base.decoding({"batch_tokens": batch})
    translate(base, texts[:WARM_UP], plugin, decoding=decoding)
    begin = time.perf_counter()
    translations = translate(base, texts, plugin, decoding=decoding)
    return time.perf_counter() - begin, list(translations)


def bleu(translations: list[str], references: list[str], language: str) -> float:
    from engine.evaluation.metrics import metrics

    return float(metrics(language)["BLEU"].corpus_score(translations, [references]).score)


if __name__ == "__main__":
    main()
