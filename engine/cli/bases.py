"""The commands `tailormt base …`: list and recommend bases, add and remove them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.core.json_object import Json
from engine.core.text_table import table
from engine.errors import Cancelled, CorpusError, ModelError

FEW = 6  # languages listed in a table; above that, only their number is shown


def base_add(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.download import size_text
    from engine.base.registry import BaseRegistry

    try:
        entry = BaseRegistry(args.settings).add(
            args.origin, name=args.name, revision=args.revision, convert=args.convert, progress=args.progress
        )
    except Cancelled:
        raise Cancelled("Stopped. Nothing was added.") from None
    card = without_text(entry.card())
    return card, (
        f"Added {entry.name}: {card['family']}, {languages(card)}, {card['parameters'] / 1e6:.1f} M parameters, "
        f"{size_text(card['bytes'])} in {entry.folder}. Licence: {card['license']}. Use it with --base {entry.name}."
    )


def base_list(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.download import size_text
    from engine.base.registry import BaseRegistry

    cards, broken = [], []
    for entry in BaseRegistry(args.settings).entries():
        try:
            cards.append(without_text(entry.card()))
        except ModelError as error:
            broken.append(f"{entry.name} cannot be used: {error}")
    rows = [
        [card["name"], languages(card), card["family"], f"{card['parameters'] / 1e6:.1f} M", size_text(card["bytes"]),
         card["license"], "bundled" if card["shipped"] else card["path"]]
        for card in cards
    ]  # fmt: skip
    text = table(["name", "languages", "family", "weights", "size", "licence", "where"], rows, columns=130)
    return cards, "\n\n".join([text if rows else "There is no base. Add one with `tailormt base add`.", *broken])


def base_decoding(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.registry import BaseRegistry
    from engine.builders.bases.decoding_choice import FEWEST, choose_defaults, decoding_table
    from engine.builders.bases.pairs import read_held_out

    pairs = []
    for rows in read_held_out([Path(file) for file in args.held_out]).values():
        pairs += rows[:: max(1, len(rows) // max(1, args.lines))][: args.lines]
    if len(pairs) < FEWEST:
        raise CorpusError(f"{len(pairs)} held-out pairs are too few to choose decoding on. Give at least {FEWEST}.")
    folder = BaseRegistry(args.settings).find(args.name)
    args.progress.begin("Choosing decoding")
    chosen = choose_defaults(folder, pairs, args.source, args.target, device=args.settings.device, progress=args.progress)
    result = {direction: asdict(choice) for direction, choice in chosen.items()}
    return result, f"{decoding_table(result)}\n\nThe ones in bold are the defaults of {folder.name} from now on."


def base_recommend(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.download import size_text
    from engine.base.recommend import memory_needed, recommended, table_date
    from engine.base.registry import BaseRegistry

    origins = {entry.origin.get("origin"): entry.name for entry in BaseRegistry(args.settings).entries()}
    models = recommended(args.source, args.target)
    value = {
        "date": table_date().isoformat(),
        "source": args.source,
        "target": args.target,
        "bases": [model.to_mapping() | {"added_as": origins.get(model.hub_id, "")} for model in models],
    }
    if not models:
        return value, (
            f"No well-known model of the table of {table_date()} translates from {args.source} to {args.target}. Any Marian, "
            "M2M100, NLLB or mBART-50 model of the hub can be added with `tailormt base add HUB_ID`."
        )
    rows = []
    for model in models:
        ways = "both, among its languages" if model.multilingual else "one; back: " + (model.reverse or "none known")
        note = f" (here as {origins[model.hub_id]})" if model.hub_id in origins else ""
        rows.append([
            model.hub_id + note, ways, model.card.license_name, f"{model.weights / 1e6:.0f} M", size_text(model.download_bytes),
            size_text(memory_needed(model.weights)),
        ])  # fmt: skip
    first = models[0].command()
    return value, "\n".join([
        table(["hub id", "directions", "licence", "weights", "download", "memory"], rows, columns=150),
        "",
        f"As of {table_date()}. Memory: to translate on a CPU in float32; half of the weights' part in bfloat16. A licence with NC "
        "rules out",
        f"commercial use. Add one with `{first}`; it is the only step that uses the network.",
    ])  # fmt: skip


def demonstration_note(args: argparse.Namespace) -> str:
    """A line on the quality of a bundled base and how to find better ones, for commands that translate with it.

    Empty for other bases, and for commands without a direction.
    """
    from engine.base.metadata import knows
    from engine.base.quality import direction_scores, quality_words
    from engine.base.registry import BaseRegistry

    source, target = getattr(args, "source", None), getattr(args, "target", None)
    if not (source and target and hasattr(args, "base")):
        return ""
    entries = BaseRegistry(args.settings).entries()
    if args.base:
        named = Path(args.base).expanduser()
        entry = next(
            (candidate for candidate in entries if args.base == candidate.name or named.absolute() == candidate.folder.absolute()),
            None,
        )
    else:
        entry = next((candidate for candidate in entries if knows(candidate.folder, source, target)), None)
    if entry is None or not entry.shipped:
        return ""
    quality = quality_words(direction_scores(entry.scores, source, target)) or "its card states no scores"
    return (
        f"The base {entry.name} is a demonstration model. From {source} to {target}, {quality}. Better ones: "
        f"`tailormt base recommend --source {source} --target {target}`."
    )


def base_remove(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.base.download import size_text
    from engine.base.registry import BaseRegistry

    freed = BaseRegistry(args.settings).remove(args.name, force=args.force)
    return {"removed": args.name, "freed_bytes": freed}, f"Removed {args.name}; {size_text(freed)} freed."


def without_text(card: Json) -> Json:
    """A card without its text."""
    return {key: value for key, value in card.items() if key != "card"}


def languages(card: Json) -> str:
    """The languages as text: their tags if there are few, else their number."""
    tags = card["languages"]
    return f"{len(tags)} languages" if len(tags) > FEW else ", ".join(tags) or "not stated"
