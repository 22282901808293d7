"""The commands below `tailormt rating`: rounds of blind ratings, made from files, read as a table, exported."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.errors import InputError, OptionError
from engine.files import replacing
from engine.terminal import table

__all__ = ["RATING_COMMANDS", "add_rating_commands"]

Shown = tuple[Any, str]


def add_rating_commands(ratings: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands and their flags; `command` makes one with the common flags."""
    found = command("list", "rounds of blind ratings", ratings)
    found.add_argument("--project", type=int, metavar="ID", help="the project's number [all]")
    found = command("new", "a round over two systems' translations; prints a link for each rater", ratings)
    found.add_argument(
        "system", nargs=2, metavar="NAME=FILE", help="translations, a line for a line; win is of the first"
    )
    found.add_argument("--input", required=True, metavar="FILE", help="what was translated, a line for a line")
    found.add_argument("--project", type=int, required=True, metavar="ID", help="the project's number")
    found.add_argument("--raters", nargs="+", required=True, metavar="NAME", help="who rates")
    found.add_argument("--sentences", type=int, default=0, metavar="N", help="most sentences, drawn at random [all]")
    found.add_argument("--seed", type=int, help="of what is drawn [drawn itself]")
    found.add_argument("--title", default="", help="the round's name [the systems']")
    found = command("show", "win, tie and lose in percent, Fleiss' kappa and sign test", ratings)
    found.add_argument("id", type=int, help="the round's number, see `tailormt rating list`")
    found = command("export", "a round as a file", ratings)
    found.add_argument("id", type=int, help="the round's number, see `tailormt rating list`")
    found.add_argument("-o", "--output", required=True, metavar="FILE", help="ends in .csv or .json")


def rating_list(args: argparse.Namespace) -> Shown:
    from engine.store import Store

    store = Store(args.settings.store_url)
    rows = []
    for one in store.ratings.list(args.project):
        raters, done = store.ratings.raters(one.id), store.ratings.done(one.id)
        rows.append({
            "id": one.id, "project": one.project_id, "title": one.title, "sentences": one.size, "raters": len(raters),
            "done": sum(done.values()), "closed": one.closed is not None,
        })  # fmt: skip
    text = table(["id", "project", "title", "sentences", "raters", "done"], [list(row.values())[:6] for row in rows])
    return (
        rows,
        text if rows else "There are no rating rounds yet. Start one in the studio, or with `tailormt rating new`.",
    )


def rating_new(args: argparse.Namespace) -> Shown:
    from engine.evaluation.evaluate import read_lines
    from engine.evaluation.rounds import Texts, new_round
    from engine.store import Store

    systems: dict[str, list[str]] = {}
    for text in args.system:
        name, mark, file = text.partition("=")
        systems[name if mark else Path(text).stem] = read_lines(file if mark else text)
    sources = read_lines(args.input)
    for name, lines in systems.items():
        if len(lines) != len(sources):
            raise InputError(f"{name} has {len(lines):,} lines, {args.input} {len(sources):,}. Give a line for a line.")
    if len(systems) < 2:
        raise InputError("Both systems have one name. Name them as NAME=FILE.")
    store = Store(args.settings.store_url)
    one, two = systems
    row = new_round(
        store, args.project, Texts(sources, systems), one, two, title=args.title, raters=args.raters,
        sentences=args.sentences or None, seed=args.seed,
    )  # fmt: skip
    raters = store.ratings.raters(row.id)
    links = {rater.name: f"/rating/{rater.token}" for rater in raters}
    lines = [f"Round {row.id}: {row.size} sentences. Below the studio's address, each rater's link:"]
    lines += [f"{name}  {link}" for name, link in links.items()]
    return {"id": row.id, "sentences": row.size, "same": row.about["same"], "links": links}, "\n".join(lines)


def rating_show(args: argparse.Namespace) -> Shown:
    from engine.evaluation.rounds import summary
    from engine.store import Store

    store = Store(args.settings.store_url)
    row = store.ratings.get(args.id)
    found = summary(store, row)
    head = f"{row.title}: win means that {row.one} is better than {row.two}."
    return {
        "id": row.id,
        **found.to_mapping(),
    }, f"{head}\n\n{found.table()}" if found.raters else f"{head} No answers yet."


def rating_export(args: argparse.Namespace) -> Shown:
    from engine.evaluation.rounds import as_csv, as_mapping
    from engine.store import Store

    store, output = Store(args.settings.store_url), Path(args.output)
    row = store.ratings.get(args.id)
    kind = output.suffix.lower()
    if kind not in (".csv", ".json"):
        raise OptionError(f"{args.output} does not say what to write: end it in .csv or .json.")
    text = (
        as_csv(store, row)
        if kind == ".csv"
        else json.dumps(as_mapping(store, row), ensure_ascii=False, indent=2) + "\n"
    )
    with replacing(output, "the ratings") as temporary:
        temporary.write_text(text, encoding="utf-8")
    return {"output": args.output}, f"Wrote {args.output}."


RATING_COMMANDS = {
    "rating list": rating_list,
    "rating new": rating_new,
    "rating show": rating_show,
    "rating export": rating_export,
}
