"""The commands `tailormt store …`: where the store stands, bringing it up to date, copying it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from engine.terminal import TerminalProgress, table

__all__ = ["STORE_COMMANDS", "add_store_commands"]

Shown = tuple[Any, str]


def add_store_commands(actions: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """`tailormt store …`; `command` makes one with the common flags."""
    command("status", "where the store is, its schema, how many rows it holds; changes nothing", actions)
    command("upgrade", "bring the store up to date, as opening it does too", actions)
    found = command("copy", "copy the whole store into an empty one, as from SQLite to PostgreSQL", actions)
    found.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help="its address, as postgresql://user@host/tailor or sqlite:////data/new.db",
    )


def store_status(args: argparse.Namespace) -> Shown:
    from engine.store.status import status

    found = status(args.settings.store_url)
    lines = [
        f"Store: {found['store']}",
        f"Schema: {found['schema'] or 'none yet'}; this program makes {found['newest']}",
        *(f"To come: {one['revision']}  {one['about']}" for one in found["pending"]),
        f"Size: {found['bytes'] / 2**20:.1f} MiB",
        *(f"Kept before an upgrade: {copy}" for copy in found["copies"]),
    ]
    rows = table(["table", "rows"], [[name, f"{count:,}"] for name, count in found["rows"].items()])
    return found, "\n".join(lines) + (f"\n\n{rows}" if found["rows"] else "")


def store_upgrade(args: argparse.Namespace) -> Shown:
    from engine.store.status import bring_up

    before, after, kept = bring_up(args.settings.store_url)
    if before == after:
        words = f"The store is up to date: schema {after}."
    elif before == 0:
        words = f"The store was made: schema {after}."
    else:
        words = f"The store was brought up to date: from schema {before} to {after}."
    text = words + (f"\nA copy of what it was is at {kept}." if kept else "")
    return {"before": before, "schema": after, "copy": str(kept) if kept else None}, text


def store_copy(args: argparse.Namespace) -> Shown:
    from engine.store.copying import copy_store
    from engine.store.database import parse, shown

    progress = TerminalProgress(quiet=args.quiet)
    try:
        counts = copy_store(args.settings.store_url, args.to, progress=progress)
    finally:
        progress.close()
    place = shown(parse(args.to))
    text = (
        f"{sum(counts.values()):,} rows were copied to {place}.\n"
        "The program uses it once TAILORMT_DATABASE_URL, or database_url in settings.toml, says so. The data folder stays "
        "where it is."
    )
    return {"to": place, "rows": counts}, text


STORE_COMMANDS = {"store status": store_status, "store upgrade": store_upgrade, "store copy": store_copy}
