"""How much a token of each kind of work costs beside a plain forward pass: the factors in engine/workflows/estimate.py.

    OMP_NUM_THREADS=1 python bench/paces.py                                 # every method that trains, twelve updates each
    OMP_NUM_THREADS=1 python bench/paces.py --methods lhuc,knn --home FOLDER  # figures gather in FOLDER/paces.json

On a machine with other work the figures of single methods differ by half; what counts is their order of size.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from engine.core.settings import Settings
from engine.methods import get_method, method_names
from engine.workflows.customize.pipeline import customize
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.estimate import CorpusStats, estimate

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="")
    parser.add_argument("--home", default="")
    parser.add_argument("--sentences", type=int, default=160)
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--base", default=str(ROOT / "assets" / "models" / "en-zh"))
    args = parser.parse_args()
    home = Path(args.home or tempfile.mkdtemp(prefix="paces-"))
    home.mkdir(parents=True, exist_ok=True)
    settings = Settings(home=str(home), device="cpu")
    available = [name for name in method_names() if not get_method(name).capabilities.needs_endpoint]
    sample = home / f"sample-{args.sentences}.txt"
    lines = (ROOT / "assets/samples/literary-zh/literary-zh.txt").read_text(encoding="utf-8").splitlines()
    sample.write_text("\n".join(lines[: args.sentences]) + "\n", encoding="utf-8")
    counts = CorpusStats(args.sentences, sum(map(len, lines[: args.sentences])), language="zh")
    methods = args.methods.split(",") if args.methods else available
    for name in methods:
        training = {"max_updates": args.updates, "validate_every": 50, "checkpoint_every": 500}
        request = CustomizeRequest(
            base=args.base, source="en", target="zh", samples=(str(sample),), method=name, budget="quick",
            output=str(home / f"{name}.zip"), training_options=training,
        )  # fmt: skip
        text = estimate(request, counts, settings)
        begin = time.monotonic()
        summary = customize(request, home / "workspace", settings=settings, run=home / "runs" / name)
        took = time.monotonic() - begin
        told_parts = {key: round(value) for key, value in text.parts.items()}
        bundle = (home / f"{name}.zip").stat().st_size
        print(
            f"{name}: took {took:.0f} s, told {text.seconds:.0f} s ({text.sure}) {told_parts}; bundle {bundle / 2**20:.1f} MiB, "
            f"told {text.bundle / 2**20:.1f}; weights {summary.get('parameters')}, told {text.weights}; memory told "
            f"{text.memory / 2**20:.0f} MiB; {summary['seconds']}",
            flush=True,
        )
    paces = json.loads((home / "paces.json").read_text(encoding="utf-8"))
    print(json.dumps(paces, indent=1))
    for shapes in paces.values():
        for result in shapes.values():
            forward = 2 * result["weighing"]["value"] * result["tokens a character zh"]["value"]
            print(f"forward {forward:.0f} tokens/s")
            for key, pace in result.items():
                if key.startswith(("training", "evaluation")):
                    print(f"{key}: {forward / pace['value']:.2f}")
                elif key in ("sources", "datastore"):
                    print(f"{key}: {forward / (pace['value'] * result['tokens a character zh']['value']):.2f}")
                elif key.startswith("method"):
                    print(f"{key}: {1000 / pace['value'] * forward / 2000:.2f} s for 1,000 characters at 2,000 tokens/s")


if __name__ == "__main__":
    main()
