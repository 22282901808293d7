"""How commands are added to the command line, and the flags that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.core.options import add_flags
from engine.core.settings import Settings

if TYPE_CHECKING:
    from engine.base import BaseModel

Shown = tuple[Any, str]  # what --json prints, and what is printed otherwise
SAMPLES = (
    "your sentences: txt, csv, tsv, jsonl, tmx, xliff, po, docx, odt, srt, pdf; sample:NAME for one that came along, see "
    "`tailormt corpus samples`"
)


class Commands:
    """The commands of the program, or those below one of its words; each module of `engine.cli` adds its own in `register`."""

    def __init__(self, parser: argparse.ArgumentParser, dest: str = "action", **shown: Any) -> None:
        self.actions = parser.add_subparsers(dest=dest, required=True, **shown)
        self.listed: dict[str, str] = {}  # {name: help}, in the order in which they were added

    def add(self, name: str, help: str, run: Callable[[argparse.Namespace], Shown]) -> argparse.ArgumentParser:
        """A command with the flags that all have."""
        self.listed[name] = help
        result = self.actions.add_parser(name, help=help, description=help, parents=[common()])
        result.set_defaults(run=run)
        return result

    def group(self, name: str, help: str) -> Commands:
        """A word with commands below it."""
        self.listed[name] = help
        return Commands(self.actions.add_parser(name, help=help))


def common() -> argparse.ArgumentParser:
    """Flags that every command has."""
    result = argparse.ArgumentParser(add_help=False)
    result.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    result.add_argument("--quiet", action="store_true", help="no progress on stderr")
    add_flags(result, Settings, only=("home", "device", "precision", "base_precision", "threads"))
    return result


def add_direction(target: argparse.ArgumentParser) -> None:
    target.add_argument("--source", required=True, metavar="LANG", help="source language, such as en or pt-BR")
    target.add_argument("--target", required=True, metavar="LANG", help="target language, such as zh or zh-Hant")


def add_base(target: argparse.ArgumentParser) -> None:
    target.add_argument(
        "--base", default="", metavar="DIR", help="folder, name or hub id of the base [one that supports the pair]"
    )
    add_direction(target)
    target.add_argument("--download", action="store_true", help="allow a base to be downloaded from the hub")


def base_path(args: argparse.Namespace, languages: Mapping[str, Any] | None = None) -> str:
    """What --base names, else the first base on the shelf between the `source` and `target` of a card, or of the flags."""
    from engine.base.registry import BaseRegistry

    pair = languages or vars(args)
    return args.base or str(BaseRegistry(args.settings).default(pair["source"], pair["target"]))


def load_base(args: argparse.Namespace, languages: Mapping[str, Any] | None = None) -> BaseModel:
    """The base at `base_path`, working with the threads of --threads."""
    from engine.base import BaseModel

    path, pair = base_path(args, languages), languages or vars(args)
    if args.settings.threads:
        import torch

        torch.set_num_threads(args.settings.threads)
    return BaseModel.load(path, pair["source"], pair["target"], download=args.download, settings=args.settings)
