"""The commands `tailormt doctor`, `tailormt backup` and `tailormt restore`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.terminal import TerminalProgress

__all__ = ["UPKEEP_COMMANDS", "add_upkeep_commands"]

Shown = tuple[Any, str]


def add_upkeep_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """`command` makes one with the common flags."""
    found = command(
        "doctor", "look over the installation and its data; exit code 1 where something is not as it should be"
    )
    found.add_argument("--repair", action="store_true", help="mend what can be mended without losing anything")
    found = command("backup", "one archive of the store and the data folder, also while the studio runs")
    found.add_argument("file", metavar="FILE.zip", help="the archive to write")
    found.add_argument(
        "--without-samples", action="store_true",
        help="leave out samples, documents and what was made of them, but for plugins and the rows of the store",
    )  # fmt: skip
    found.add_argument("--without-bases", action="store_true", help="leave out bases and parsers that were added")
    found = command("restore", "bring a backup back; all of it is verified first")
    found.add_argument("file", metavar="FILE.zip", help="the archive of `tailormt backup`")
    found.add_argument(
        "--replace",
        action="store_true",
        help="where the data folder is not empty; what lies there is kept under another name",
    )


def doctor(args: argparse.Namespace) -> Shown:
    from engine.upkeep.doctor import examine, to_mapping

    progress = TerminalProgress(quiet=args.quiet)
    try:
        found = examine(args.settings, repair=args.repair, progress=progress)
    finally:
        progress.close()
    value = to_mapping(found)
    args.exit_code = int(not value["ok"])
    lines = [f"- {one.sentence}" + (f"\n  Mended: {one.mended}" if one.mended else "") for one in found]
    left = sum(not one.mended for one in found)
    can = sum(one.mend is not None and not one.mended for one in found)
    end = "All is well." if not found else "All was mended." if not left else f"{left} to look after."
    if can and not args.repair:
        end += f" `tailormt doctor --repair` mends {can} of them."
    return value, "\n".join([*lines, end])


def backup(args: argparse.Namespace) -> Shown:
    from engine.upkeep.backup import make_backup

    progress = TerminalProgress(quiet=args.quiet)
    try:
        found = make_backup(
            args.settings,
            Path(args.file),
            samples=not args.without_samples,
            bases=not args.without_bases,
            progress=progress,
        )
    finally:
        progress.close()
    text = f"{found['file']}: {found['files']:,} files and {found['rows']:,} rows, {found['bytes'] / 1e6:,.1f} MB."
    return found, text + "\nIt holds settings and hashed passwords: keep it where only you can read it."


def restore(args: argparse.Namespace) -> Shown:
    from engine.upkeep.restore import restore_backup

    progress = TerminalProgress(quiet=args.quiet)
    try:
        found = restore_backup(args.settings, Path(args.file), replace=args.replace, progress=progress)
    finally:
        progress.close()
    kept = f"\nWhat lay there before is at {found['kept']}." if found["kept"] else ""
    return found, f"{found['home']} is as it was: {found['files']:,} files and {found['rows']:,} rows.{kept}"


UPKEEP_COMMANDS = {"doctor": doctor, "backup": backup, "restore": restore}
