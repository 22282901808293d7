"""How large the house is: lines, files, long functions, untyped mappings, markup and scripts in Python.

python bench/house.py              # a table of sums; `make lint` prints it
python bench/house.py --list       # and what lies over the limits
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "studio")
FILE, FUNCTION, PARAMETERS = 400, 80, 8  # lines, lines, count
SCRIPT = re.compile(r"=>|document\.|window\.|addEventListener")
MARKUP = re.compile(r"</?[a-z][a-z0-9]*[\s>]")


@dataclass
class House:
    """Sums over the Python files of the packages, and what is over a limit."""

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
        """What is counted, and how often it is there."""
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


def measure(root: Path) -> House:
    """The sums of the packages below `root`."""
    house = House()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            add_file(house, path, path.relative_to(root).as_posix())
            house.loose += path.parent == root / package and path.name != "__init__.py"
    return house


def add_file(house: House, path: Path, name: str) -> None:
    """Count one file."""
    text = path.read_text(encoding="utf-8")
    count = text.count("\n")
    house.lines += count
    house.files += 1
    house.code += code_lines(text)
    house.untyped += text.count("dict[str, Any]")
    if count > FILE:
        house.long_files.append(f"{name}: {count}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            add_function(house, node, f"{name}:{node.lineno} {node.name}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and SCRIPT.search(node.value):
            house.scripts += node.value.count("\n") + 1 if "=>" in node.value or "\n" in node.value else 0


def code_lines(text: str) -> int:
    """How many lines of a module do something."""
    lines = text.splitlines()
    idle = {number for number, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            idle.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            idle.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines) - len(idle)


def add_function(house: House, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> None:
    """Count one function."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    given = node.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    width = len(parameters) - (bool(parameters) and parameters[0].arg in ("self", "cls"))
    if lines > FUNCTION:
        house.long_functions.append(f"{name}: {lines}")
    if width > PARAMETERS:
        house.wide_functions.append(f"{name}: {width}")
    house.markup += any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) and MARKUP.search(one.value)
        for one in ast.walk(node)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--list", action="store_true", help="name what is over the limits")
    given = parser.parse_args()
    house = measure(given.root)
    for name, count in house.rows():
        print(f"{count:8,}  {name}")
    if given.list:
        for names in (house.long_files, house.long_functions, house.wide_functions):
            print("\n".join(["", *names]))


if __name__ == "__main__":
    main()
