"""The commands `tailormt artefacts …`: list shared files, verify them, and remove unreferenced ones."""

from __future__ import annotations

import argparse

from engine.cli.commands import Shown, store_of
from engine.core.text_table import table


def artefacts_list(args: argparse.Namespace) -> Shown:
    from engine.store.sharing.garbage_collection import listing

    result = listing(args.settings, store_of(args))
    rows = [
        [row["workspace"], f"{row['files']:,}", f"{row['bytes'] / 1e6:.1f} MB", f"{row['version']}", row["changed"]]
        for row in result["workspaces"]
    ]
    lines = [f"Artefacts: {result['store']}"]
    if "blobs" in result:
        lines.append(f"{result['blobs']:,} of {result['bytes'] / 1e6:.1f} MB, {result['unnamed']:,} of them named by nothing")
    text = table(["workspace", "files", "size", "version", "changed"], rows) if rows else "Nothing was published yet."
    return result, "\n".join([*lines, "", text])


def artefacts_verify(args: argparse.Namespace) -> Shown:
    from engine.store.sharing.garbage_collection import verify

    wrong = verify(args.settings, store_of(args), args.progress)
    args.exit_code = int(bool(wrong))
    lines = [f"{finding['where']} ({finding['artefact'][:12]}) is {finding['problem']}." for finding in wrong]
    end = "Run `tailormt doctor --repair`; what no copy is left of has to be made again." if wrong else "All is whole."
    return wrong, "\n".join([*lines, end])


def artefacts_collect(args: argparse.Namespace) -> Shown:
    from engine.store.sharing.garbage_collection import collect

    result = collect(args.settings, store_of(args), dry_run=args.dry_run, hours=args.older_than)
    if not args.settings.artefacts:
        return result.to_mapping(), "Artefacts lie in place, in the data folder: there is nothing to collect."
    does = "would be" if args.dry_run else "were"
    text = f"{result.blobs:,} artefacts of {result.bytes / 1e6:.1f} MB and {result.leftovers} leftovers {does} removed."
    young = f"\n{result.young:,} more that nothing names are younger, and may be on their way." if result.young else ""
    return result.to_mapping(), text + young
