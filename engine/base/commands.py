"""The commands `tailormt base …`: what is on the shelf, adding to it, removing from it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from engine.errors import Cancelled, ModelError
from engine.terminal import TerminalProgress, table

__all__ = ["BASE_COMMANDS", "add_base_commands"]

FEW = 6  # languages that a table names; of more it gives the number


def add_base_commands(base: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands under `tailormt base` and their flags; `command` makes one with the common flags."""
    found = command("add", "check a base and put it on the shelf; a hub id is fetched from the network", base)
    found.add_argument("origin", metavar="HUB_ID|FOLDER", help="as Helsinki-NLP/opus-mt-en-de, or a folder")
    found.add_argument("--name", default="", help="its name on the shelf [its own]")
    found.add_argument("--revision", default="", help="branch, tag or commit on the hub [main]")
    found.add_argument(
        "--convert", action="store_true", help="take pickled weights too: read as weights alone, kept as safetensors"
    )
    command("list", "bases on the shelf: languages, family, weights, size, licence, where", base)
    found = command("remove", "remove an added base and its files", base)
    found.add_argument("name", metavar="NAME", help="its name on the shelf, see `tailormt base list`")
    found.add_argument("--force", action="store_true", help="also when a project or plugin uses it")


def base_add(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.fetch import size_text
    from engine.base.shelf import Shelf

    progress = TerminalProgress(quiet=args.quiet)
    try:
        entry = Shelf(args.settings).add(
            args.origin, name=args.name, revision=args.revision, convert=args.convert, progress=progress
        )
    except Cancelled:
        raise Cancelled("Stopped. Nothing was added.") from None
    finally:
        progress.close()
    card = shown(entry.card())
    return card, (
        f"Added {entry.name}: {card['family']}, {languages(card)}, {card['parameters'] / 1e6:.1f} M weights, "
        f"{size_text(card['bytes'])} in {entry.folder}. Licence: {card['license']}. Use it with --base {entry.name}."
    )


def base_list(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.fetch import size_text
    from engine.base.shelf import Shelf

    cards, broken = [], []
    for entry in Shelf(args.settings).entries():
        try:
            cards.append(shown(entry.card()))
        except ModelError as error:
            broken.append(f"{entry.name} cannot be used: {error}")
    rows = [
        [card["name"], languages(card), card["family"], f"{card['parameters'] / 1e6:.1f} M", size_text(card["bytes"]),
         card["license"], "came along" if card["shipped"] else card["path"]]
        for card in cards
    ]  # fmt: skip
    text = table(["name", "languages", "family", "weights", "size", "licence", "where"], rows, columns=130)
    return cards, "\n\n".join([text if rows else "There is no base. Add one with `tailormt base add`.", *broken])


def base_remove(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.fetch import size_text
    from engine.base.shelf import Shelf

    freed = Shelf(args.settings).remove(args.name, force=args.force)
    return {"removed": args.name, "freed_bytes": freed}, f"Removed {args.name}; {size_text(freed)} freed."


def shown(card: dict[str, Any]) -> dict[str, Any]:
    """A card without its prose."""
    return {key: value for key, value in card.items() if key != "card"}


def languages(card: dict[str, Any]) -> str:
    """The languages for a line: a few by their tags, many by their number."""
    tags = card["languages"]
    return f"{len(tags)} languages" if len(tags) > FEW else ", ".join(tags) or "not stated"


BASE_COMMANDS = {"base add": base_add, "base list": base_list, "base remove": base_remove}
