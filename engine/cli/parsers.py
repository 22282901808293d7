"""The commands `tailormt parser …`: train a parser, list installed ones, and download those of stanza."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from engine.builders.parsers.options import ParserTraining
from engine.cli.commands import about_text
from engine.core.options import describe, from_flags
from engine.core.text_table import table
from engine.errors import MissingError

KINDS = ("constituency", "dependency")  # in the order preferred by phrase extraction


def parser_train(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.builders.parsers.card import Origins, write_card
    from engine.builders.parsers.measure import measure
    from engine.builders.parsers.train import ParserSources, train_parser
    from engine.builders.parsers.vectors import TextSource

    options = from_flags(ParserTraining, args)
    sources = ParserSources(
        tuple(Path(file) for file in args.treebank),
        tuple(TextSource.parse(text) for text in args.vectors_text),
        Path(args.words) if args.words else None,
    )
    lines = filter(None, map(str.strip, about_text(args).splitlines()))
    notes = tuple(line.removeprefix("- ") for line in lines)  # without list bullets
    origins = Origins(args.license, args.license_note, notes)
    trained, banks = train_parser(args.language, sources, Path(args.output), options=options, progress=args.progress)
    metrics = measure(trained.language, trained.folder, banks, args.progress)
    card = write_card(trained, metrics, origins, command_line(args), versions())
    value = {
        "folder": str(trained.home),
        "processors": list(trained.processors),
        "bytes": trained.bytes,
        "files": trained.files,
        "figures": metrics,
    }
    skipped = [str(file) for file in banks.files if file.skipped]
    return value, "\n".join([*skipped, card.read_text(encoding="utf-8")])


def parser_list(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.builders.parsers.shelf import list_parsers

    entries = list_parsers(args.settings.parser_dirs)
    rows = [
        [
            entry.language,
            entry.kind + (" (taken)" if entry.preferred else ""),
            entry.package,
            f"{entry.bytes / 1e6:.1f} MB",
            entry.license,
            entry.folder,
        ]
        for entry in entries
    ]
    text = table(["language", "kind", "set", "size", "licence", "where"], rows, columns=130)
    none = "There is no parser. Train one with `tailormt parser train`, or fetch one with `tailormt parser download`."
    return [entry.to_mapping() for entry in entries], text if rows else none


def parser_download(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.phrases.languages import stanza_code
    from engine.phrases.stanza_models import download_model

    kinds = (args.kind,) if args.kind else KINDS
    model = download_model(args.language, kinds, args.settings.parser_dirs)
    if model is None:
        parser = f"{args.kind} parser" if args.kind else "parser"
        raise MissingError(
            f"stanza offers no {parser} for {stanza_code(args.language)}: phrases of this language are found by statistics, or "
            "train a parser with `tailormt parser train`."
        )
    value = {"language": model.language, "kind": model.kind, "folder": str(model.folder), "packages": dict(model.packages)}
    return value, f"There is now {model}."


def command_line(args: argparse.Namespace) -> str:
    """The command that reproduces this parser, one flag per line."""
    lines = [f"tailormt parser train {args.language}"]
    lines.append("--treebank " + " ".join(map(shlex.quote, args.treebank)))
    if args.vectors_text:
        lines.append("--vectors-text " + " ".join(map(shlex.quote, args.vectors_text)))
    for name in ("words", "license", "license_note", "about"):
        if value := getattr(args, name):
            lines.append(f"--{name.replace('_', '-')} {shlex.quote(value)}")
    lines += [
        f"{item.flag} {shlex.quote(str(getattr(args, item.name)))}" for item in describe(ParserTraining) if hasattr(args, item.name)
    ]
    lines.append(f"-o {shlex.quote(args.output)}")
    return " \\\n  ".join(lines)


def versions() -> dict[str, str]:
    """Versions of the libraries used for training."""
    from importlib.metadata import PackageNotFoundError, version

    result = {}
    for name in ("stanza", "torch", "gensim"):
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            continue
    return result
