"""The commands `tailormt artefacts …`: what is shared, whether it is whole, and removing what nothing names."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from engine.terminal import TerminalProgress, table

__all__ = ["ARTEFACT_COMMANDS", "add_artefact_commands"]

Shown = tuple[Any, str]


def add_artefact_commands(commands: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """`tailormt artefacts …`; `command` makes one with the common flags."""
    actions = commands.add_parser("artefacts", help="files of projects, by content").add_subparsers(
        dest="action", required=True
    )
    command("list", "files that each workspace has published, and where they are kept", actions)
    command("verify", "read every artefact and compare it with its checksum; exit code 1 where one is damaged", actions)
    found = command("collect", "remove artefacts that nothing names any more", actions)
    found.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    found.add_argument(
        "--older-than", type=float, default=None, metavar="HOURS", help="spare younger ones [artefacts_keep_hours]"
    )


def artefacts_list(args: argparse.Namespace) -> Shown:
    from engine.artefacts.collect import listing
    from engine.store import Store

    found = listing(args.settings, Store(args.settings.store_url))
    rows = [
        [one["workspace"], f"{one['files']:,}", f"{one['bytes'] / 1e6:.1f} MB", f"{one['version']}", one["changed"]]
        for one in found["workspaces"]
    ]
    lines = [f"Artefacts: {found['store']}"]
    if "blobs" in found:
        lines.append(
            f"{found['blobs']:,} of {found['bytes'] / 1e6:.1f} MB, {found['unnamed']:,} of them named by nothing"
        )
    text = table(["workspace", "files", "size", "version", "changed"], rows) if rows else "Nothing was published yet."
    return found, "\n".join([*lines, "", text])


def artefacts_verify(args: argparse.Namespace) -> Shown:
    from engine.artefacts.collect import verify
    from engine.store import Store

    progress = TerminalProgress(quiet=args.quiet)
    try:
        wrong = verify(args.settings, Store(args.settings.store_url), progress)
    finally:
        progress.close()
    args.exit_code = int(bool(wrong))
    lines = [f"{one['where']} ({one['artefact'][:12]}) is {one['problem']}." for one in wrong]
    end = "Run `tailormt doctor --repair`; what no copy is left of has to be made again." if wrong else "All is whole."
    return wrong, "\n".join([*lines, end])


def artefacts_collect(args: argparse.Namespace) -> Shown:
    from engine.artefacts.collect import collect
    from engine.store import Store

    found = collect(args.settings, Store(args.settings.store_url), dry_run=args.dry_run, hours=args.older_than)
    if not args.settings.artefacts:
        return found.to_mapping(), "Artefacts lie in place, in the data folder: there is nothing to collect."
    does = "would be" if args.dry_run else "were"
    text = f"{found.blobs:,} artefacts of {found.bytes / 1e6:.1f} MB and {found.leftovers} leftovers {does} removed."
    young = f"\n{found.young:,} more that nothing names are younger, and may be on their way." if found.young else ""
    return found.to_mapping(), text + young


ARTEFACT_COMMANDS = {
    "artefacts list": artefacts_list,
    "artefacts verify": artefacts_verify,
    "artefacts collect": artefacts_collect,
}
