"""`tailormt base train`: its flags and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.builders.bases.options import BaseTrainingOptions
from engine.cli.commands import about_text, use_threads
from engine.core.options import from_flags


def train(args: argparse.Namespace) -> tuple[Any, str]:
    """Train a base; returns its metrics and the text of its card."""
    from engine.builders.bases.pairs import parse_back_translated, parse_weight
    from engine.builders.bases.run import BaseRun, train_base

    use_threads(args)
    pair_files = [parse_weight(text) for text in args.pairs]
    pair_files += [parse_back_translated(text, (args.source, args.target)) for text in args.back_translated]
    run = BaseRun(
        pair_files, [Path(file) for file in args.held_out], args.source, args.target, Path(args.output),
        from_flags(BaseTrainingOptions, args), Path(args.init) if args.init else None, about_text(args), args.settings.device,
        args.settings.precision,
    )  # fmt: skip
    metrics = train_base(run, args.progress)
    return metrics, (Path(args.output) / "README.md").read_text(encoding="utf-8")


def score(args: argparse.Namespace) -> tuple[Any, str]:
    """Score the pairs of a training run; returns a summary."""
    import numpy as np

    from engine.builders.bases.filtering import score_pairs

    use_threads(args)
    scores = score_pairs(
        Path(args.base), args.source, args.target, device=args.settings.device, precision=args.settings.precision,
        progress=args.progress,
    ).astype(np.float32)  # fmt: skip
    shares = {f"{share:.0%}": round(float(np.quantile(scores, share)), 3) for share in (0.1, 0.5, 0.9)}
    text = ", ".join(f"{share} of the pairs score below {score:.2f}" for share, score in shares.items())
    return {"pairs": len(scores), "quantiles": shares}, f"{len(scores):,} pairs scored: {text}. Start the training again."
