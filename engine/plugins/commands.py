"""The command `tailormt plugin swap`: other samples for a plugin, without training."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.files import check_writable
from engine.samples import named_files
from engine.terminal import TerminalProgress

__all__ = ["SWAP_COMMANDS", "add_swap_command"]


def add_swap_command(plugins: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """The command below `tailormt plugin` and its flags; `command` makes one with the common flags."""
    found = command("swap", "give a plugin other samples without training, where its method looks them up", plugins)
    found.add_argument("bundle", metavar="PLUGIN.zip", help="the plugin")
    found.add_argument(
        "--samples", nargs="+", required=True, metavar="FILE", help="the sentences that take the place of its own"
    )
    found.add_argument("-o", "--output", required=True, metavar="NEW.zip", help="the bundle to write")
    found.add_argument(
        "--base", default="", metavar="DIR", help="folder, short name or hub id of its base [one that knows the pair]"
    )
    found.add_argument(
        "--backward", default="", metavar="DIR", help="base of the other direction, where sources must be written"
    )
    found.add_argument("--download", action="store_true", help="allow a base to be fetched from the hub")


def plugin_swap(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.shelf import Shelf
    from engine.methods import get_method
    from engine.plugins.bundle import read_bundle_card
    from engine.plugins.swap import check_swap, swap_bundle

    card = read_bundle_card(args.bundle)
    check_swap(get_method(card["method"]))
    check_writable(Path(args.output), "the plugin")
    progress = TerminalProgress(quiet=args.quiet)
    try:
        done = swap_bundle(
            Path(args.bundle),
            Path(args.output),
            named_files(args.samples, args.settings.assets_dir),
            base=args.base or str(Shelf(args.settings).default(card["source"], card["target"])),
            backward=args.backward,
            download=args.download,
            settings=args.settings,
            progress=progress,
        )
    finally:
        progress.close()
    return done, f"Wrote {done['output']}: {done['sentences']:,} sentences to look up, the weights as they were."


SWAP_COMMANDS = {"plugin swap": plugin_swap}
