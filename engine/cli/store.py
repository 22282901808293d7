"""The commands `tailormt store …`: status, migration and copy of the store."""

from __future__ import annotations

import argparse

from engine.cli.commands import Shown
from engine.core.text_table import table


def store_status(args: argparse.Namespace) -> Shown:
    from engine.store.status import status

    result = status(args.settings.store_url)
    lines = [
        f"Store: {result['store']}",
        f"Schema: {result['schema'] or 'none yet'}; this program makes {result['newest']}",
        *(f"To come: {migration['revision']}  {migration['about']}" for migration in result["pending"]),
        f"Size: {result['bytes'] / 2**20:.1f} MiB",
        *(f"Kept before an upgrade: {copy}" for copy in result["copies"]),
    ]
    rows = table(["table", "rows"], [[name, f"{count:,}"] for name, count in result["rows"].items()])
    return result, "\n".join(lines) + (f"\n\n{rows}" if result["rows"] else "")


def store_upgrade(args: argparse.Namespace) -> Shown:
    from engine.store.status import bring_up

    before, after, selected = bring_up(args.settings.store_url)
    if before == after:
        words = f"The store is up to date: schema {after}."
    elif before == 0:
        words = f"The store was made: schema {after}."
    else:
        words = f"The store was brought up to date: from schema {before} to {after}."
    text = words + (f"\nA copy of what it was is at {selected}." if selected else "")
    return {"before": before, "schema": after, "copy": str(selected) if selected else None}, text


def store_copy(args: argparse.Namespace) -> Shown:
    from engine.store.copy import copy_store
    from engine.store.database import parse, redacted_url

    counts = copy_store(args.settings.store_url, args.to, progress=args.progress)
    target = redacted_url(parse(args.to))
    text = (
        f"{sum(counts.values()):,} rows were copied to {target}.\n"
        "The program uses it once TAILORMT_DATABASE_URL, or database_url in settings.toml, says so. The data folder stays "
        "where it is."
    )
    return {"to": target, "rows": counts}, text
