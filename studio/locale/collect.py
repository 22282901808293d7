"""What the studio says, found in its code, and the catalogs kept in step with it.

    python -m studio.locale.collect            add what is new to the catalogs, take out what is gone
    python -m studio.locale.collect --check    say what has no translation; exit code 1 when anything has none

Messages are the texts given to `tr`, `trn` and `mark`; the label, placeholder and info of Gradio's components, the words on
its buttons; HTML given to `view` as it stands; the titles of pages; errors that the studio raises; `tmSay('…')` in scripts.
To these come the engine's words that pages show: methods, settings, steps of jobs, reasons.
"""

from __future__ import annotations

import argparse
import ast
import html
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from studio.i18n import ATTRIBUTE, LANGUAGES, LOCALE, PIECE

__all__ = ["collected", "engine_messages", "script_messages", "update"]

STUDIO = LOCALE.parent
SAY = re.compile(r"""tmSay\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""")
SPOKEN = {"tr": (0,), "trn": (0, 1), "mark": (0,), "heading": (0, 1), "page": (3, 4)}
LABELS = ("label", "placeholder", "info")
WORDED = ("Button", "UploadButton", "DownloadButton", "Accordion", "Tab")
LETTER = re.compile(r"[^\W\d_]")


def collected() -> dict[str, str]:
    """{message: its form for many, or ""} of the whole interface, in the order of the files."""
    found: dict[str, str] = {}
    for file in _files():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for one, many in _Messages(tree).found():
            if one.strip():
                found[one] = many or found.get(one, "")
    for message in [*script_messages(), *engine_messages()]:
        found.setdefault(message, "")
    return found


def _files() -> list[Path]:
    return sorted([*STUDIO.glob("*.py"), *(STUDIO / "door").glob("*.py")])


@cache
def script_messages() -> tuple[str, ...]:
    """The messages of scripts, which are said in the browser."""
    texts = [path.read_text(encoding="utf-8") for path in (*_files(), *sorted((STUDIO / "static").glob("*.js")))]
    found = (single or double for text in texts for single, double in SAY.findall(text))
    return tuple(dict.fromkeys(found))


class _Messages(ast.NodeVisitor):
    """The messages of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self._found: list[tuple[str, str]] = []
        self._constants: dict[str, ast.expr] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._constants[node.targets[0].id] = node.value
        self.visit(tree)

    def found(self) -> list[tuple[str, str]]:
        return self._found

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        owner = getattr(getattr(node.func, "value", None), "id", "")
        if name == "trn" and len(node.args) > 1:
            for one, many in zip(self._texts(node.args[0]), self._texts(node.args[1]), strict=False):
                self._found.append((one, many))
        elif name in SPOKEN and not owner:
            for place in SPOKEN[name]:
                if place < len(node.args):
                    self._add(node.args[place])
        elif name == "view" and not owner and node.args:
            for text in self._texts(node.args[0]):
                self._found += [(one, "") for one in _pieces(text)]
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
                self._found.append((text, ""))

    def _choices(self, node: ast.expr) -> None:
        node = self._constants.get(node.id, node) if isinstance(node, ast.Name) else node
        if isinstance(node, ast.List):
            for one in node.elts:
                if isinstance(one, ast.Tuple) and one.elts:
                    self._add(one.elts[0])

    def _add(self, node: ast.expr) -> None:
        self._found += [(text, "") for text in self._texts(node)]

    def _texts(self, node: ast.expr) -> Iterator[str]:
        """The texts that an expression may be: itself, a constant of the module, either side of a condition."""
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
        elif isinstance(node, ast.JoinedStr):  # HTML with a figure in it: the pieces around it are said
            parts = [part.value if isinstance(part, ast.Constant) else "0" for part in node.values]
            if any("<" in str(part) for part in parts):
                yield "".join(str(part) for part in parts)


def _pieces(text: str) -> Iterator[str]:
    for piece in PIECE.findall(text):
        if piece.startswith("<"):
            yield from (html.unescape(words) for _, words in ATTRIBUTE.findall(piece))
        elif LETTER.search(piece):
            yield html.unescape(piece.strip())


@cache
def engine_messages() -> tuple[str, ...]:
    """The engine's words that pages show."""
    from studio.locale.spoken import engine_words

    return tuple(dict.fromkeys(engine_words()))


def update(code: str) -> tuple[int, int, list[str]]:
    """Bring a catalog into step; returns how many messages came and went, and which have no translation."""
    import polib

    path = LOCALE / f"{code}.po"
    old = {entry.msgid: entry for entry in (polib.pofile(str(path)) if path.is_file() else ())}
    new = polib.POFile(wrapwidth=120)
    new.metadata = {
        "Project-Id-Version": "Tailor MT",
        "Language": code,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": "nplurals=1; plural=0;",
    }
    found = collected()
    for message, many in found.items():
        known = old.get(message)
        said = (known.msgstr or known.msgstr_plural.get(0, "")) if known else ""
        flags = ["python-brace-format"] if re.search(r"\{\w+\}", message) else []
        if many:
            new.append(polib.POEntry(msgid=message, msgid_plural=many, msgstr_plural={0: said}, flags=flags))
        else:
            new.append(polib.POEntry(msgid=message, msgstr=said, flags=flags))
    new.save(str(path))
    missing = [entry.msgid for entry in new if not (entry.msgstr or entry.msgstr_plural.get(0))]
    return len(found.keys() - old.keys()), len(old.keys() - found.keys()), missing


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a translation is missing")
    checking = parser.parse_args().check
    failed = False
    for code in LANGUAGES:
        if code == "en":
            continue
        if checking:
            from studio.i18n import messages

            missing = [message for message in collected() if message not in messages(code)]
        else:
            came, went, missing = update(code)
            print(f"{code}: {came} new, {went} gone")
        for message in missing:
            print(f"{code}: no translation of {message!r}")
        failed = failed or bool(missing)
    return int(failed and checking)


if __name__ == "__main__":
    sys.exit(main())
