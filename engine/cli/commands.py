"""The commands defined in commands.toml, their flags, and functions shared by several commands."""

from __future__ import annotations

import argparse
import importlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.options import add_flags, describe
from engine.core.settings import Settings
from engine.errors import InputError

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.store import Store

Shown = tuple[Any, str]  # the result for --json, and the text printed otherwise
ABOUT = Path(__file__).with_suffix(".toml")
TYPES = {"int": int, "float": float}


def add_commands(top: argparse.ArgumentParser) -> str:
    """Add all commands to the program's parser; returns their list by heading, as text."""
    definitions = tomllib.loads(ABOUT.read_text(encoding="utf-8"))
    words = {"": top.add_subparsers(dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS, prog="tailormt")}
    lines: list[str] = []
    for name, command in definitions["commands"].items():
        above, _, word = name.rpartition(" ")
        if "heading" in command:
            lines += ["", f"{command['heading']}:"]
        if not above:
            lines.append(f"  {name:<13}{command['help']}")
        if "run" not in command:
            parser = words[above].add_parser(word, help=command["help"])
            words[name] = parser.add_subparsers(dest="action", required=True)
            continue
        parser = words[above].add_parser(word, help=command["help"], description=command["help"], parents=[common()])
        parser.set_defaults(run=command["run"])
        for argument in arguments_of(command.get("arguments", ()), definitions):
            add_argument(parser, argument)
    return "\n".join(lines[1:])


def arguments_of(named: Sequence[Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The arguments of a command, including shared ones, in order."""
    for argument in named:
        if not isinstance(argument, str):
            yield argument
        elif argument in definitions["sets"]:
            yield from arguments_of(definitions["sets"][argument], definitions)
        else:
            yield definitions["arguments"][argument]


def add_argument(parser: argparse.ArgumentParser, definition: Mapping[str, Any]) -> None:
    """Add an argument defined in commands.toml."""
    if "settings" in definition:
        add_flags(parser, named(definition["settings"]), only=definition.get("only", ()), skip=definition.get("skip", ()))
        return
    options = dict(definition)
    flags = options.pop("flags", None) or [options.pop("name")]
    if setting := options.pop("setting", None):
        item = next(item for item in describe(Settings) if item.name == setting)
        defaults = {"dest": setting, "default": argparse.SUPPRESS, "help": f"{item.help} [{item.default}]"}
        options = {"metavar": "|".join(map(str, item.choices or ())), **defaults, **options}
    if "listed" in options:
        options["help"] = ", ".join(named(options.pop("listed")))
    if "type" in options:
        options["type"] = TYPES[options["type"]]
    if isinstance(options.get("choices"), str):
        options["choices"] = named(options["choices"])
    if options.get("default") == argparse.SUPPRESS:  # argparse compares it by identity
        options["default"] = argparse.SUPPRESS
    if options.get("action") == "boolean":
        options["action"] = argparse.BooleanOptionalAction
    parser.add_argument(*flags, **options)


def named(reference: str) -> Any:
    """The object `module:NAME` in the package `engine`."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(f"engine.{module}"), name)


def common() -> argparse.ArgumentParser:
    """A parser with the flags of all commands."""
    result = argparse.ArgumentParser(add_help=False)
    result.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    result.add_argument("--quiet", action="store_true", help="no progress on stderr")
    add_flags(result, Settings, only=("home", "device", "precision", "base_precision", "threads"))
    return result


def base_path(args: argparse.Namespace, languages: Mapping[str, Any] | None = None) -> str:
    """The value of --base, else the default base for the `source` and `target` of a card or of the flags."""
    from engine.base.registry import BaseRegistry

    pair = languages or vars(args)
    return args.base or str(BaseRegistry(args.settings).default(pair["source"], pair["target"]))


def load_base(args: argparse.Namespace, languages: Mapping[str, Any] | None = None) -> BaseModel:
    """Load the base at `base_path`, and set torch to the threads of --threads."""
    from engine.base import BaseModel

    path, pair = base_path(args, languages), languages or vars(args)
    use_threads(args)
    return BaseModel.load(path, pair["source"], pair["target"], download=args.download, settings=args.settings)


def store_of(args: argparse.Namespace) -> Store:
    """The store of this installation."""
    from engine.store import Store

    return Store(args.settings.store_url)


def use_threads(args: argparse.Namespace) -> None:
    """Set torch to the number of threads of --threads, if given."""
    if args.settings.threads:
        import torch

        from engine.core.cores import model_threads

        torch.set_num_threads(model_threads(args.settings.threads))


def about_text(args: argparse.Namespace) -> str:
    """The text of the file given with --about; empty without one. Raises InputError."""
    try:
        return Path(args.about).read_text(encoding="utf-8") if args.about else ""
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{args.about} cannot be read as UTF-8 text. Check --about.") from None
