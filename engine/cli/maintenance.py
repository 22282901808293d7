"""The commands `tailormt doctor`, `tailormt backup` and `tailormt restore`."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.cli.commands import Shown


def doctor(args: argparse.Namespace) -> Shown:
    from engine.workflows.maintenance.doctor import examine, to_mapping

    result = examine(args.settings, repair=args.repair, progress=args.progress)
    value = to_mapping(result)
    args.exit_code = int(not value["ok"])
    lines = [f"- {finding.sentence}" + (f"\n  Mended: {finding.mended}" if finding.mended else "") for finding in result]
    unrepaired = sum(not finding.mended for finding in result)
    can = sum(finding.mend is not None and not finding.mended for finding in result)
    end = (
        "No problems found." if not result else "All problems were repaired." if not unrepaired else f"{unrepaired} to look after."
    )
    if can and not args.repair:
        end += f" `tailormt doctor --repair` mends {can} of them."
    return value, "\n".join([*lines, end])


def backup(args: argparse.Namespace) -> Shown:
    from engine.workflows.maintenance.backup import make_backup

    result = make_backup(
        args.settings, Path(args.file), samples=not args.without_samples, bases=not args.without_bases, progress=args.progress
    )
    text = f"{result['file']}: {result['files']:,} files and {result['rows']:,} rows, {result['bytes'] / 1e6:,.1f} MB."
    return result, text + "\nIt holds settings and hashed passwords: keep it where only you can read it."


def restore(args: argparse.Namespace) -> Shown:
    from engine.workflows.maintenance.restore import restore_backup

    result = restore_backup(args.settings, Path(args.file), replace=args.replace, progress=args.progress)
    selected = f"\nWhat lay there before is at {result['kept']}." if result["kept"] else ""
    return result, f"{result['home']} is as it was: {result['files']:,} files and {result['rows']:,} rows.{selected}"
