#!/usr/bin/env python3
"""Quality of bases: BLEU and chrF2 on held-out pairs, both directions, several bases side by side.

python bench/bases.py --source en --target zh assets/models/en-zh ../shared/models/en-zh
python bench/bases.py --source de --target en assets/models/de-en --lines 200
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
HELD_OUT = ROOT.parent / "shared" / "data" / "heldout"


def main() -> None:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("bases", nargs="+", metavar="DIR")
    top.add_argument("--source", required=True)
    top.add_argument("--target", required=True)
    top.add_argument("--files", nargs="*", type=Path, default=[], help="pairs to score on [those of ../shared/data/heldout]")
    top.add_argument("--lines", type=int, default=0, help="of each file, the first; 0: all [0]")
    top.add_argument("--beam", type=int, default=4)
    args = top.parse_args()
    from engine.builders.bases.heldout import score_base
    from engine.builders.bases.pairs import read_held_out
    from engine.cli.terminal import TerminalProgress

    files = args.files or sorted(HELD_OUT.glob(f"*.{args.source}-{args.target}.tsv"))
    if not files:
        sys.exit(f"No pairs of {args.source} and {args.target} in {HELD_OUT}; name some with --files.")
    pairs = {name: rows[: args.lines or None] for name, rows in read_held_out(files).items()}
    progress = TerminalProgress()
    results = []
    for base in args.bases:
        progress.begin(base)
        results.append(score_base(base, pairs, args.source, args.target, beam=args.beam, progress=progress).rows)
    progress.begin("done")
    print(
        "| file | direction | lines | "
        + " | ".join(f"{Path(b).resolve().parent.parent.name}/{Path(b).name}" for b in args.bases)
        + " |"
    )
    print("|---|---|---:|" + "---:|" * len(args.bases))
    for rows in zip(*results, strict=True):
        cells = " | ".join(f"{row['bleu']:.1f} / {row['chrf']:.1f}" for row in rows)
        print(f"| {rows[0]['file']} | {rows[0]['source']} to {rows[0]['target']} | {rows[0]['lines']:,} | {cells} |")
    signatures = dict.fromkeys(row[key] for rows in results for row in rows for key in ("bleu_signature", "chrf_signature"))
    print(f"\nBLEU / chrF2, beam {args.beam}, default decoding; " + ", ".join(f"`{text}`" for text in signatures))


if __name__ == "__main__":
    main()
