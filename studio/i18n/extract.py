"""Extract the messages of studio and engine from their code and update the catalogs.

    python -m studio.i18n.extract            add new messages to the catalogs, remove obsolete ones
    python -m studio.i18n.extract --check    report missing translations and banned forms; exit code 1 if there are any

Messages are literal arguments, as with gettext. In the studio: of `tr`, `trn` and `mark`; label, placeholder and info of Gradio
components and the captions of its buttons; literal HTML given to `html_block`; page titles; errors that are raised; `tmSay('…')`
in scripts; `tr`, `trn` and `trc` in templates; the guides to CAT tools; licences and summaries on the cards of bundled bases and
samples. In the engine: of errors, `Message` and `mark`; job steps and notes; names of files in storage errors; titles and summaries
of methods; names and help texts of settings.
"""

from __future__ import annotations

import argparse
import ast
import html
import re
import sys
import tomllib
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

from studio.i18n.labels import label
from studio.i18n.translate import ATTRIBUTE, CONTEXT, LANGUAGES, LOCALE, PIECE, messages
from studio.i18n.wording import findings

STUDIO = LOCALE.parents[1]
# The REST interface answers in English, except for these modules, which serve people.
SERVED = ("account_routes.py", "downloads.py", "health.py", "rater_page.py")
ENGINE = STUDIO.parent / "engine"
# Parts of the engine whose messages appear only on the command line.
COMMANDS = ("builders", "cli", "core/settings.py", "workflows/benchmark", "workflows/maintenance")
# Parts of the engine whose settings appear on pages.
SETTINGS = ("methods", "training", "corpora/types.py")
# Functions of the engine and the position of the message among their arguments.
ENGINE_SPOKEN = {
    "Message": 0, "mark": 0, "capitalised": 0, "storage_errors": 0, "make_parent": 1, "check_writable": 1,
    "atomic_write": 1, "atomic_folder": 1, "write_json": 2, "write_jsonl": 2, "save_tensors": 2,
}  # fmt: skip
PROGRESS = {"begin": 0, "advance": 2}  # methods of a progress object
SAY = re.compile(r"""tmSay\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""")
SPOKEN = {
    **dict.fromkeys(("tr", "mark", "drop_field", "card_title", "quiet_line"), (0,)),
    "trn": (0, 1), "heading": (0, 1), "page": (3, 4),
}  # fmt: skip
LABELS = ("label", "placeholder", "info")
WORDED = ("Button", "UploadButton", "DownloadButton", "Accordion", "Tab")
LETTER = re.compile(r"[^\W\d_]")


@cache
def collected() -> dict[str, str]:
    """{message: its plural form, or ""} of the whole interface, in the order of the files."""
    result: dict[str, str] = {}
    for file in _files():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for text, plural in _Messages(tree).entries():
            if text.strip():
                result[text] = plural or result.get(text, "")
    for text, plural in template_messages():
        result[text] = plural or result.get(text, "")
    for message in [*script_messages(), *guide_messages(), *card_messages(), *engine_messages()]:
        if message.strip():
            result.setdefault(message, "")
    return result


def _files() -> list[Path]:
    api = STUDIO / "api"
    return sorted(
        file for file in STUDIO.rglob("*.py") if file.name in SERVED or (api not in file.parents and file != Path(__file__))
    )


@cache
def script_messages() -> tuple[str, ...]:
    """The messages of scripts, which run in the browser."""
    texts = [path.read_text(encoding="utf-8") for path in (*_files(), *sorted((STUDIO / "static").glob("*.js")))]
    result = (single or double for text in texts for single, double in SAY.findall(text))
    return tuple(dict.fromkeys(result))


def guide_messages() -> Iterator[str]:
    """The messages in the guides on the page CAT tools."""
    text = (STUDIO / "components" / "cat_tool_guides.toml").read_text(encoding="utf-8")
    for guide in tomllib.loads(text)["guides"]:
        yield from (guide["name"], guide["summary"], *guide["notes"])
        for step in guide["steps"]:
            yield from (step["text"], step.get("link", ""), *(field["label"] for field in step.get("fields", ())))


def card_messages() -> Iterator[str]:
    """Messages from the cards of bundled bases and samples that pages show: restrictive licences, and summaries of samples."""
    from engine.core.model_card import read_card_file

    assets = STUDIO.parent / "assets"
    for kind in ("models", "samples"):
        for folder in sorted((assets / kind).glob("*/")):
            card = read_card_file(folder)
            if card.restricted:
                yield card.license_line.removeprefix("Licence: ")
            if kind == "samples" and card.metadata.get("kind") != "general":
                yield card.summary


def template_messages() -> Iterator[tuple[str, str]]:
    """(message, its plural form or "") of the templates."""
    from jinja2 import Environment, nodes

    for path in sorted((STUDIO / "templates").glob("*.html")):
        for call in Environment(autoescape=True).parse(path.read_text(encoding="utf-8")).find_all(nodes.Call):
            name = call.node.name if isinstance(call.node, nodes.Name) else ""
            texts = [arg.value for arg in call.args if isinstance(arg, nodes.Const) and isinstance(arg.value, str)]
            if name == "tr" and texts:
                yield texts[0], ""
            elif name == "trc" and len(texts) > 1:
                yield CONTEXT.join(texts), ""
            elif name == "trn" and len(texts) > 1:
                yield texts[0], texts[1]


class _Messages(ast.NodeVisitor):
    """The messages of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self._entries: list[tuple[str, str]] = []
        self._constants: dict[str, ast.expr] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._constants[node.targets[0].id] = node.value
        self.visit(tree)

    def entries(self) -> list[tuple[str, str]]:
        return self._entries

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        owner = getattr(getattr(node.func, "value", None), "id", "")
        if name == "trn" and len(node.args) > 1:
            for singular, plural in zip(self._texts(node.args[0]), self._texts(node.args[1]), strict=False):
                self._entries.append((singular, plural))
        elif name in SPOKEN and not owner:
            for position in SPOKEN[name]:
                if position < len(node.args):
                    self._add(node.args[position])
        elif name == "html_block" and not owner and node.args:
            for text in self._texts(node.args[0]):
                self._entries += [(piece, "") for piece in _pieces(text)]
        elif owner == "gr":
            for word in node.keywords:
                if word.arg in LABELS or (word.arg == "value" and name in WORDED):
                    self._add(word.value)
            if name in WORDED and node.args:
                self._add(node.args[0])
            for choices in [word.value for word in node.keywords if word.arg == "choices"] + node.args[:1]:
                self._choices(choices)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.generic_visit(node)
        if isinstance(node.exc, ast.Call) and node.exc.args:
            for text in self._texts(node.exc.args[0]):
                self._entries.append((text, ""))

    def _choices(self, node: ast.expr) -> None:
        node = self._constants.get(node.id, node) if isinstance(node, ast.Name) else node
        if isinstance(node, ast.List):
            for choice in node.elts:
                if isinstance(choice, ast.Tuple) and choice.elts:
                    self._add(choice.elts[0])

    def _add(self, node: ast.expr) -> None:
        self._entries += [(text, "") for text in self._texts(node)]

    def _texts(self, node: ast.expr) -> Iterator[str]:
        """The texts an expression may evaluate to: a literal, a constant of the module, either side of a condition."""
        if isinstance(node, ast.Name):
            node = self._constants.get(node.id, node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.IfExp):
            yield from self._texts(node.body)
            yield from self._texts(node.orelse)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self._texts(value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "mark" and node.args:
            yield from self._texts(node.args[0])
        elif isinstance(node, ast.JoinedStr):  # HTML with values in it: the texts around them are messages
            parts = [part.value if isinstance(part, ast.Constant) else "0" for part in node.values]
            if any("<" in str(part) for part in parts):
                yield "".join(str(part) for part in parts)


def _pieces(text: str) -> Iterator[str]:
    for piece in PIECE.findall(text):
        if piece.startswith("<"):
            yield from (html.unescape(words) for _, words in ATTRIBUTE.findall(piece))
        elif LETTER.search(piece):
            yield html.unescape(piece.strip())


class _EngineMessages(_Messages):
    """The messages of one engine module; `errors`: names of exception classes, `settings`: whether pages show its settings."""

    def __init__(self, tree: ast.Module, errors: Container[str], settings: bool) -> None:
        self._errors, self._settings = errors, settings
        super().__init__(tree)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        location = 0 if name in self._errors else ENGINE_SPOKEN.get(name)
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            owner_name = getattr(owner, "id", "") or getattr(owner, "attr", "")
            location = PROGRESS.get(name) if owner_name.endswith("progress") or name == "advance" else location
        if location is not None and location < len(node.args):
            self._add(node.args[location])
        if name == "Capabilities":
            for word in node.keywords:
                if word.arg in ("title", "summary"):
                    self._add(word.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.generic_visit(node)

    def _texts(self, node: ast.expr) -> Iterator[str]:
        if not isinstance(node, ast.JoinedStr):  # built at run time, so it cannot be looked up
            yield from super()._texts(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The label and help of a setting, or the name of a method."""
        self.generic_visit(node)
        name, value = getattr(node.target, "id", ""), node.value
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "option" and self._settings:
            self._entries.append((label(name), ""))
            self._add(value.args[1])
        elif name == "name" and isinstance(value, ast.Constant) and "ClassVar" in ast.unparse(node.annotation):
            self._entries.append((str(value.value).replace("_", " "), ""))


@cache
def engine_messages() -> tuple[str, ...]:
    """The messages of the engine that a page may show."""
    files = {file.relative_to(ENGINE).as_posix(): file for file in sorted(ENGINE.rglob("*.py"))}
    trees = {path: ast.parse(file.read_text(encoding="utf-8")) for path, file in files.items() if not path.startswith(COMMANDS)}
    errors = {"TailorError"}
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while result := {node.name for node in classes if any(getattr(base, "id", "") in errors for base in node.bases)} - errors:
        errors |= result
    return tuple(
        dict.fromkeys(
            message
            for path, tree in trees.items()
            for message, _ in _EngineMessages(tree, errors, path.startswith(SETTINGS)).entries()
        )
    )


def update(code: str) -> tuple[int, int, list[str]]:
    """Update a catalog; returns the numbers of added and removed messages, and the untranslated messages."""
    import polib

    path = LOCALE / f"{code}.po"
    old = {
        CONTEXT.join(filter(None, (entry.msgctxt, entry.msgid))): entry
        for entry in (polib.pofile(str(path)) if path.is_file() else ())
    }
    new = polib.POFile(wrapwidth=120)
    new.metadata = {
        "Project-Id-Version": "Tailor MT",
        "Language": code,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": "nplurals=1; plural=0;",
    }
    result = collected()
    for message, many in result.items():
        previous = old.get(message)
        text = (previous.msgstr or previous.msgstr_plural.get(0, "")) if previous else ""
        flags = ["python-brace-format"] if re.search(r"\{\w+\}", message) else []
        if many:
            new.append(polib.POEntry(msgid=message, msgid_plural=many, msgstr_plural={0: text}, flags=flags))
        else:
            context, _, msgid = message.rpartition(CONTEXT)
            new.append(polib.POEntry(msgid=msgid, msgctxt=context or None, msgstr=text, flags=flags))
    new.save(str(path))
    missing = [entry.msgid for entry in new if not (entry.msgstr or entry.msgstr_plural.get(0))]
    return len(result.keys() - old.keys()), len(old.keys() - result.keys()), missing


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a translation is missing or a form is banned"
    )
    checking = parser.parse_args().check
    failed = False
    for code in LANGUAGES:
        if code == "en":
            continue
        if checking:
            missing = [message for message in collected() if message not in messages(code)]
        else:
            came, went, missing = update(code)
            print(f"{code}: {came} new, {went} gone")
        for message in missing:
            print(f"{code}: no translation of {message!r}")
        banned = [finding for message in collected() for finding in findings("en", message)]
        banned += [finding for text in messages(code).values() for finding in findings(code, text)]
        for finding in banned:
            print(f"{code}: {finding}")
        failed = failed or bool(missing or banned)
    return int(failed and checking)


if __name__ == "__main__":
    sys.exit(main())
