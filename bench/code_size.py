"""The size of the code: lines, files, long functions, untyped mappings, markup and scripts in Python.

python bench/code_size.py          # a table of sums; `make lint` prints it, and fails if a limit is exceeded
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "studio")
FILE, FUNCTION, PARAMETERS = 400, 80, 8  # lines, lines, count
SCRIPT = re.compile(r"=>|document\.|window\.|addEventListener")
MARKUP = re.compile(r"</?[a-z][a-z0-9]*[\s>]")


@dataclass
class CodeSize:
    """Sums over the Python files of the packages, and what exceeds a limit."""

    lines: int = 0
    code: int = 0
    files: int = 0
    loose: int = 0
    untyped: int = 0
    scripts: int = 0
    markup: int = 0
    long_files: list[str] = field(default_factory=list)
    long_functions: list[str] = field(default_factory=list)
    wide_functions: list[str] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[str, int]]:
        """The names and values of the sums."""
        yield "lines of Python", self.lines
        yield "of them neither blank, comment, docstring nor import", self.code
        yield "files", self.files
        yield "modules in the roots of the packages", self.loose
        yield f"files over {FILE} lines", len(self.long_files)
        yield f"functions over {FUNCTION} lines", len(self.long_functions)
        yield f"functions with more than {PARAMETERS} parameters", len(self.wide_functions)
        yield "dict[str, Any]", self.untyped
        yield "lines of JavaScript in Python", self.scripts
        yield "functions with markup in Python", self.markup


def measure(root: Path) -> CodeSize:
    """The sums of the packages below `root`."""
    size = CodeSize()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            add_file(size, path, path.relative_to(root).as_posix())
            size.loose += path.parent == root / package and path.name != "__init__.py"
    return size


def add_file(size: CodeSize, path: Path, name: str) -> None:
    """Count one file."""
    source = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(source), source.splitlines()
    count = source.count("\n")
    size.lines += count
    size.files += 1
    size.untyped += source.count("dict[str, Any]")
    if count > FILE:
        size.long_files.append(f"{name}: {count}")
    idle = {number for number, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        idle.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    size.code += len(lines) - len(idle)
    texts = {
        id(node): node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    }
    size.scripts += sum(text.count("\n") + 1 for text in texts.values() if SCRIPT.search(text) and ("=>" in text or "\n" in text))
    markup = {key for key, text in texts.items() if MARKUP.search(text)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            add_function(size, node, f"{name}:{node.lineno} {node.name}")
            size.markup += any(id(child) in markup for child in ast.walk(node))


def add_function(size: CodeSize, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> None:
    """Count one function."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    width = len(parameters) - (bool(parameters) and parameters[0].arg in ("self", "cls"))
    if lines > FUNCTION:
        size.long_functions.append(f"{name}: {lines}")
    if width > PARAMETERS:
        size.wide_functions.append(f"{name}: {width}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    size = measure(parser.parse_args().root)
    for name, count in size.rows():
        print(f"{count:8,}  {name}")
    over = [*size.long_files, *size.long_functions, *size.wide_functions]
    for name in over:
        print(f"over a limit: {name}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
