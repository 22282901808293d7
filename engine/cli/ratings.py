"""The commands `tailormt rating …`: blind rating rounds, created from files, shown as a table, exported."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from engine.cli.commands import Shown, store_of
from engine.core.atomic_files import atomic_write
from engine.core.text_table import table
from engine.errors import InputError, OptionError


def rating_list(args: argparse.Namespace) -> Shown:
    store = store_of(args)
    rows = []
    for rating_round in store.ratings.list(args.project):
        raters, done = store.ratings.raters(rating_round.id), store.ratings.done(rating_round.id)
        rows.append({
            "id": rating_round.id, "project": rating_round.project_id, "title": rating_round.title,
            "sentences": rating_round.size, "raters": len(raters), "done": sum(done.values()),
            "closed": rating_round.closed is not None,
        })  # fmt: skip
    text = table(["id", "project", "title", "sentences", "raters", "done"], [list(row.values())[:6] for row in rows])
    return (rows, text if rows else "There are no rating rounds yet. Start one in the studio, or with `tailormt rating new`.")


def rating_new(args: argparse.Namespace) -> Shown:
    from engine.evaluation.evaluate import read_lines
    from engine.workflows.human_rating import RoundPlan, Texts, new_round

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
    store = store_of(args)
    one, two = systems
    row = new_round(
        store, args.project, Texts(sources, systems),
        RoundPlan(one, two, args.title, args.raters, args.sentences or None, args.seed),
    )  # fmt: skip
    raters = store.ratings.raters(row.id)
    links = {rater.name: f"/rating/{rater.token}" for rater in raters}
    lines = [f"Round {row.id}: {row.size} sentences. Below the studio's address, each rater's link:"]
    lines += [f"{name}  {link}" for name, link in links.items()]
    return {"id": row.id, "sentences": row.size, "same": row.about["same"], "links": links}, "\n".join(lines)


def rating_show(args: argparse.Namespace) -> Shown:
    from engine.workflows.human_rating import summary

    store = store_of(args)
    row = store.ratings.get(args.id)
    result = summary(store, row)
    head = f"{row.title}: win means that {row.one} is better than {row.two}."
    return {"id": row.id, **result.to_mapping()}, f"{head}\n\n{result.table()}" if result.raters else f"{head} No answers yet."


def rating_export(args: argparse.Namespace) -> Shown:
    from engine.workflows.human_rating import as_csv, as_mapping

    store, output = store_of(args), Path(args.output)
    row = store.ratings.get(args.id)
    kind = output.suffix.lower()
    if kind not in (".csv", ".json"):
        raise OptionError(f"{args.output} does not say what to write: end it in .csv or .json.")
    text = as_csv(store, row) if kind == ".csv" else json.dumps(as_mapping(store, row), ensure_ascii=False, indent=2) + "\n"
    with atomic_write(output, "the ratings") as temporary:
        temporary.write_text(text, encoding="utf-8")
    return {"output": args.output}, f"Wrote {args.output}."
