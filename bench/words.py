"""Words a second and core-hours per million words: the base alone, and with plugins of yours.

    python bench/words.py --texts ../shared/data/heldout/ntrex.en-zh.tsv --plugin mine.zip --plugin other.zip

CPU seconds of one thread, medians of the rounds, the systems in turns; beam 4, default decoding. Words are those of the source,
by spaces.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=str(ROOT / "assets/models/en-zh"))
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    parser.add_argument("--texts", type=Path, default=ROOT / "assets/samples/demo.en.txt", help="sentences, or pairs by tabs")
    parser.add_argument("--lines", type=int, default=96)
    parser.add_argument("--plugin", action="append", default=[], help="a bundle; may be given several times")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    import torch
    from measures.timing import interleaved

    from engine.base import BaseModel
    from engine.decoding.translate import translate
    from engine.plugins import Plugin

    torch.set_num_threads(1)
    base = BaseModel.load(args.base, args.source, args.target, device="cpu")
    lines = [line.split("\t")[0] for line in args.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = lines[: args.lines]
    words = sum(len(line.split()) for line in lines)
    plugins = {"base alone": None, **{Path(path).stem: Plugin.load(path, base) for path in args.plugin}}
    clock = interleaved({name: partial(translate, base, lines, plugin) for name, plugin in plugins.items()}, args.rounds)
    print(f"{platform.machine()}, {len(lines)} sentences, {words:,} words, medians of {args.rounds}\n")
    print("| | CPU s | words a second | core-hours per million words |\n|---|---:|---:|---:|")
    for name, times in clock.systems.items():
        middle = statistics.median(times.cpu)
        print(f"| {name} | {middle:.2f} | {words / middle:.0f} | {1e6 / words * middle / 3600:.2f} |")


if __name__ == "__main__":
    main()
