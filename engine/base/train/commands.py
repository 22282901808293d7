"""`tailormt base train`: its flags and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.base.train.options import BaseTrainingOptions
from engine.options import add_flags, from_flags

__all__ = ["add_train_flags", "train"]


def add_train_flags(found: argparse.ArgumentParser) -> None:
    """Flags of `tailormt base train`."""
    found.add_argument("--source", required=True, metavar="LANG", help="language of the files' first column, as de")
    found.add_argument("--target", required=True, metavar="LANG", help="language of the files' second column, as en")
    found.add_argument(
        "--pairs", nargs="+", required=True, metavar="FILE[=WEIGHT]",
        help="sentence pairs: TSV, also .gz; a weight of 2 brings a file's pairs twice in a pass, 0.5 every second time",
    )  # fmt: skip
    found.add_argument(
        "--held-out", nargs="+", default=[], metavar="FILE", help="pairs kept out of training, to score the base on"
    )
    found.add_argument("--init", default="", metavar="DIR", help="a base trained here before, to go on from")
    found.add_argument(
        "--about", default="", metavar="FILE.md", help="where the data is from and under which terms, for the card"
    )
    found.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="DIR",
        help="folder for the base; a second run goes on where it stopped",
    )
    add_flags(found, BaseTrainingOptions)


def train(args: argparse.Namespace) -> tuple[Any, str]:
    """Train a base; returns its figures and the card's text."""
    from engine.base.train.pairs import parse_weight
    from engine.base.train.run import train_base
    from engine.errors import InputError
    from engine.terminal import TerminalProgress

    if args.settings.threads:
        import torch

        torch.set_num_threads(args.settings.threads)
    about = ""
    if args.about:
        try:
            about = Path(args.about).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{args.about} cannot be read as UTF-8 text. Check --about.") from None
    figures = train_base(
        [parse_weight(text) for text in args.pairs],
        [Path(file) for file in args.held_out],
        args.source,
        args.target,
        Path(args.output),
        from_flags(BaseTrainingOptions, args),
        start=Path(args.init) if args.init else None,
        about=about,
        device=args.settings.device,
        precision=args.settings.precision,
        progress=TerminalProgress(quiet=args.quiet),
    )
    return figures, (Path(args.output) / "README.md").read_text(encoding="utf-8")
