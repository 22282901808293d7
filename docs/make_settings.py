"""Write the pages that come from the code: every setting, every command, and the settings in each method's card.

    python docs/make_settings.py           write them
    python docs/make_settings.py --check   say which of them are out of date; exit code 1 when any is

The tests run the check, so a setting or command that is not documented is a failing test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.base.decoding_options import Decoding
from engine.builders.parsers.options import ParserTraining
from engine.cli.commands import common
from engine.cli.main import parser
from engine.core.options import Option, describe
from engine.core.settings import Settings
from engine.corpora import CorpusOptions
from engine.corpora.formats.documents.model import DocumentOptions
from engine.methods import get_method, method_names
from engine.methods.knn.options import KnnOptions
from engine.phrases import PhraseOptions
from engine.training import BUDGETS, TrainingOptions
from engine.workflows.customize.request import CustomizeRequest

DOCS = Path(__file__).resolve().parent
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"
MADE = "<!-- Written by docs/make_settings.py. Change the help in the code, not this page. -->"

SECTIONS = (
    (Settings, "The program", "Environment `TAILORMT_<NAME>`, or `settings.toml` in the data folder; see below."),
    (CustomizeRequest, "A customization", "Fields of one job. On the command line these are flags of `customize`."),
    (CorpusOptions, "Reading samples", "`--corpus-option NAME=VALUE`, flags of `corpus import`, a fold on the page Samples."),
    (PhraseOptions, "Phrases", "`--phrase-option NAME=VALUE`."),
    (TrainingOptions, "Training", "`--training-option NAME=VALUE`. The defaults are the budget `best`."),
    (Decoding, "Decoding", "Flags of `translate` and `compare`."),
    (DocumentOptions, "Documents", "Flags of `translate` for documents; see [documents](documents.md)."),
    (KnnOptions, "kNN decoding", "`--knn-option NAME=VALUE` of `customize`, flags of `knn add`; see [kNN](methods/knn.md)."),
    (ParserTraining, "Training a parser", "Flags of `parser train`; see [parsers](parsers.md)."),
)


def cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def code(value: Any) -> str:
    return f"`{cell(str(value))}`"


def shown(value: Any) -> str:
    """A default as a user would write it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(code, value)) or "empty"
    return "empty" if value in ("", {}) else code(value)


def allowed(item: Option) -> str:
    """The type and range of a setting in words."""
    if item.choices:
        text = ", ".join(map(code, item.choices))
        return f"some of {text}" if item.many else text
    kinds = {"int": "integer", "float": "number", "bool": "true, false", "dict": "mapping"}
    kind = kinds.get(item.type.__name__, "text")
    if item.low is not None and item.high is not None:
        kind += f", {item.low:g} to {item.high:g}"
    elif item.low is not None:
        kind += f", {item.low:g} or more"
    return f"{kind}; several" if item.many else kind


def settings_table(cls: type) -> str:
    rows = ["| name | values | default | what it does |", "|---|---|---|---|"]
    for item in describe(cls):
        rows.append(f"| `{item.name}` | {allowed(item)} | {shown(item.default)} | {cell(item.help)} |")
    return "\n".join(rows)


def budget_table() -> str:
    names = list(BUDGETS)
    base = {item.name: item.default for item in describe(TrainingOptions)}
    changed = list(dict.fromkeys(key for name in names for key in BUDGETS[name]))
    rows = [f"| setting | {' | '.join(f'`{name}`' for name in names)} |", "|---|" + "---|" * len(names)]
    for key in changed:
        rows.append(f"| `{key}` | " + " | ".join(shown(BUDGETS[n].get(key, base[key])) for n in names) + " |")
    for method in method_names():
        of_method = get_method(method)
        for part, defaults in (("method", of_method.config_class()), ("training", TrainingOptions())):
            presets = {n: of_method.budgets.get(n, {}).get(part, {}) for n in names}
            for key in dict.fromkeys(key for n in names for key in presets[n]):
                cells = [shown(presets[n].get(key, getattr(defaults, key))) for n in names]
                rows.append(f"| {method}: `{key}` | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def settings_page() -> str:
    parts = [
        MADE,
        "# Settings",
        "Every setting of Tailor MT. Unknown names in flags and files are refused, with the nearest known one in the message.",
        "Where a setting may be `none`, the text `none` or an empty text says so.",
    ]
    for cls, title, text in SECTIONS:
        parts += [f"## {title}", text, settings_table(cls)]
        if cls is Settings:
            parts += [
                "In ascending order of precedence: the defaults, then `settings.toml`, then the environment, then flags. "
                "For example `TAILORMT_HOME=/data/tailor`, `port = 7861` in the file, `--device cpu`. "
                "The file has lower-case names. It is looked for in the data folder that the environment names, "
                "else in the user's own."
            ]
        if cls is TrainingOptions:
            parts += ["### Budgets", "What `--budget` sets. Settings you give yourself win.", budget_table()]
    for name in method_names():
        method = get_method(name)
        parts += [f"## Method: {name}", f"`--method-option NAME=VALUE` with `--method {name}`."]
        parts += [settings_table(method.config_class)]
    return "\n\n".join(parts) + "\n"


def commands(top: argparse.ArgumentParser, prefix: str = "") -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """(name, help, parser) of every command that does something, groups opened."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            help_texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, result in action.choices.items():
                deeper = list(commands(result, f"{prefix}{name} "))
                yield from deeper or [(prefix + name, help_texts.get(name, ""), result)]


def flag_rows(parser: argparse.ArgumentParser, *, skip: frozenset[str] = frozenset()) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or action.dest in skip:
            continue
        value = action.metavar if isinstance(action.metavar, str) else "|".join(map(str, action.choices or ()))
        if not value and action.nargs != 0:
            value = action.dest.upper()
        names = ", ".join(map(code, action.option_strings))
        name = f"{names} {code(value)}" if names and action.nargs != 0 else names or code(value)
        text = (action.help or "").replace("%%", "%").replace("[]", "[empty]")
        needed = "Required." if action.required and names else ""
        yield f"| {name} | {cell(f'{text}. {needed}' if text and needed else text or needed)} |"


def commands_page() -> str:
    parts = [
        MADE,
        "# The command line",
        "`tailormt COMMAND --help` says the same in a terminal. Results go to standard output, progress and errors to "
        "standard error. The exit code is 0 when the work is done, 2 for errors you can fix (one sentence says what), "
        "1 for a fault of the program (the details are in `errors.log` in the data folder).",
        "The flags of `customize`, `translate` and `methods` do not change between versions.",
        "The first Ctrl-C stops long work at the next safe point and keeps what is finished. Run the same command again "
        "to go on. A second Ctrl-C ends at once.",
    ]
    head = ["| argument | what it does |", "|---|---|"]
    parts += ["## Every command", "\n".join([*head, *flag_rows(common())])]
    everywhere = frozenset(action.dest for action in common()._actions)
    for name, help, result in commands(parser()):
        rows = [*flag_rows(result, skip=everywhere)]
        parts += [f"## tailormt {name}", f"{help[:1].upper()}{help[1:]}."]
        parts += ["\n".join([*head, *rows])] if rows else []
    return "\n\n".join(parts) + "\n"


def card_page(name: str) -> str | None:
    """A method's card with its table of settings brought up to date; None where there is no card."""
    path = DOCS / "methods" / f"{name}.md"
    if not path.exists():
        return None
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{settings_table(get_method(name).config_class)}\n{END}{after}"


def pages() -> dict[Path, str]:
    """Every page that comes from the code, with the text it should have."""
    result = {DOCS / "settings.md": settings_page(), DOCS / "command-line.md": commands_page()}
    for name in method_names():
        text = card_page(name)
        if text is not None:
            result[DOCS / "methods" / f"{name}.md"] = text
    return result


def main(check: bool) -> int:
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(DOCS.parent)} {'is out of date' if check else 'written'}")
        if not check:
            path.write_text(pages()[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
