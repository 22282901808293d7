"""All regular expressions of the engine and the studio: the time of each grows with the text, not with its square.

They are found in the source, wherever they stand, and evaluated with the names of their module. One that is used by `match`
or `fullmatch` only is measured so, all others by all their matches in a text.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.growth import growth
from tests.unit.serving.pumped import Pump, pumps

pytestmark = pytest.mark.slow

UNITS = (
    *"a1-_ \n\t\"'\\<>&{%$[(@,#*|`é。「",
    *("&#", "{0", "%(", "<!--", "<?", "<?xml ", "<meta ", "<a ", "<a", "</", "</a", "1:", "00:00 ", "a.", "a-", "a_", "a="),
    *("a='", "http://", "a ", "a,", "1,", "1.", "( ", "  \n", "a\n", "[](", "--", "]]"),
)
AROUND = (("", ""), ('"', ""), ("<", ""), ("(", "\x01"), ("# a", "b"))
TIMES = 8
SHORT, LONG = 500, TIMES * 500  # characters
MOST = 20.0  # times the time for eight times the text; 64 were the square, and 41 to 107 are measured of it
LITTLE = 0.0015  # seconds for LONG that need no second look
PUMPED = 8_000  # characters of the texts made for one pattern; an eighth of it is measured too if this takes long
SOON = 0.002  # seconds for PUMPED that need no second look
FIRST_LOOKS = [int(20 * 1.2**k) for k in range(20)]  # each at most some 25 times as slow as the one before
STUCK = 0.2  # seconds for one of those
PATTERN = {"compile": 2, "sub": 4, "subn": 4}  # the number of arguments with flags
WAYS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
# Patterns with values of a function in them, by file: test_built_patterns.py has each of them made.
BUILT = {
    "engine/corpora/formats/documents/placeholders.py": 2,
    "engine/corpora/formats/markup_parser.py": 1,
    "engine/corpora/terminology.py": 2,
    "engine/methods/weight_swap.py": 2,
    "engine/serving/units/assemble.py": 2,
    "engine/serving/units/mask.py": 1,
    "studio/api/errors.py": 1,
    "studio/i18n/wording.py": 2,
    "studio/services/phrase_sentences.py": 1,
}


@dataclass(frozen=True)
class Found:
    """A pattern of one line of a file, or None where it is built of values that only a function knows."""

    file: str
    line: int
    pattern: re.Pattern[Any] | None
    ways: frozenset[str]  # how it is used; empty if that cannot be told


def modules() -> list[str]:
    """All files of the program. Their trees are a million objects, so none is kept: each would be looked at by every collection
    of garbage.
    """
    return [str(file.relative_to(ROOT)) for folder in ("engine", "studio") for file in sorted((ROOT / folder).rglob("*.py"))]


def tree_of(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def module_of(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def uses() -> dict[tuple[str, str], set[str]]:
    """{(module, name): methods that are called on it}, by the modules that import the name too."""
    result: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file in modules():
        module, tree = module_of(file), tree_of(file)
        origin = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                result[origin.get(node.value.id, (module, node.value.id))].add(node.attr)
    return result


def found_in(file: str) -> Iterator[Found]:
    tree = tree_of(file)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    values: dict[str, Any] | None = None
    for node in ast.walk(tree):
        call = node.func if isinstance(node, ast.Call) else None
        if not (isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id == "re"):
            continue
        assert isinstance(node, ast.Call)
        if call.attr not in ("compile", *WAYS):
            continue
        if values is None:
            values = vars(importlib.import_module(module_of(file)))
        index = PATTERN.get(call.attr, 3) - 1
        flags = [*node.args[index : index + 1], *(keyword.value for keyword in node.keywords if keyword.arg == "flags")]
        try:
            parts = [eval(compile(ast.Expression(expression), file, "eval"), dict(values)) for expression in (node.args[0], *flags)]
            pattern: re.Pattern[Any] | None = re.compile(*parts)
        except (NameError, TypeError, AttributeError):
            pattern = of_function(node, above, values)
        yield Found(file, node.lineno, pattern, frozenset(ways_of(file, node, call.attr, above)))


def of_function(node: ast.AST, above: dict[ast.AST, ast.AST], values: dict[str, Any]) -> re.Pattern[Any] | None:
    """What the function around it returns, if that is a pattern and needs no arguments."""
    while not isinstance(node, ast.FunctionDef | ast.Module):
        node = above[node]
    if isinstance(node, ast.FunctionDef) and not node.args.args and "Pattern" in ast.dump(node.returns or node):
        result = values[node.name]()
        return result if isinstance(result, re.Pattern) else None
    return None


def ways_of(file: str, node: ast.Call, way: str, above: dict[ast.AST, ast.AST]) -> set[str]:
    if way != "compile":
        return {way}
    parent = above[node]
    if isinstance(parent, ast.Attribute):
        return {parent.attr}
    assigned = above.get(parent) if isinstance(parent, ast.Tuple) else parent
    if not isinstance(assigned, ast.Assign):
        return set()
    target = assigned.targets[0]
    if isinstance(parent, ast.Tuple) and isinstance(target, ast.Tuple):
        target = target.elts[parent.elts.index(node)]
    return uses()[module_of(file), target.id] if isinstance(target, ast.Name) else set()


def matcher(entry: Found) -> Callable[[Any], object]:
    pattern = entry.pattern
    assert pattern is not None
    if entry.ways and entry.ways <= {"match", "fullmatch"}:
        return pattern.match if "match" in entry.ways else pattern.fullmatch
    return lambda text: sum(1 for _ in pattern.finditer(text))


def seconds(entry: Found, text: str, looks: int = 1) -> float:
    """Seconds of the processor for this thread: the least of some measurements, since the processor is others' too."""
    assert entry.pattern is not None
    data: Any = text if isinstance(entry.pattern.pattern, str) else text.encode()
    work = matcher(entry)

    def measured() -> float:
        begin = time.thread_time()
        work(data)
        return time.thread_time() - begin

    return min(measured() for _ in range(looks))


def square(entry: Found, long: str, short: str, little: float) -> tuple[float, float] | None:
    """Seconds for the short and the long text, if that one takes more than `little`, and more than its length would explain.

    What seems to take the square at a first look is measured with more care.
    """
    taken = seconds(entry, long)
    if taken < little or taken <= MOST * seconds(entry, short, 5):
        return None
    few, many = growth(lambda: seconds(entry, short), lambda: seconds(entry, long), TIMES)
    return (round(few, 4), round(many, 4)) if many > MOST * few else None


def units_of(entry: Found) -> set[str]:
    """The general ones, the pattern's own words and marks, and pairs of those."""
    assert entry.pattern is not None
    source = entry.pattern.pattern
    words = re.findall(r"[A-Za-z0-9]{1,8}|[^\w\s\\]", source if isinstance(source, str) else source.decode("latin-1"))
    first = list(dict.fromkeys(words))[:6]
    return {*UNITS, *words, *(word + other for word in first for other in first)}


def slow(entry: Found, units: Iterable[str] = ()) -> dict[str, tuple[float, float]]:
    """{beginning of a text: (seconds for SHORT, for LONG)} of those that take the square, of `units` or of all that fit it."""
    result = {}
    for unit in sorted(units or units_of(entry)):
        for before, after in AROUND:
            long, short = (before + (unit * length)[:length] + after for length in (LONG, SHORT))
            if times := square(entry, long, short, LITTLE):
                result[before + unit] = times
    return result


def slow_when_pumped(entry: Found) -> dict[Pump, tuple[float, float]]:
    """The first text made for this pattern that takes the square, with the seconds for it and for an eighth of it."""
    assert entry.pattern is not None
    for pump in pumps(entry.pattern):
        for length in FIRST_LOOKS:  # a pattern that takes powers of two, or the cube, would not end with more
            text = pump.text(length)
            if seconds(entry, text) > STUCK and (taken := seconds(entry, text)) > STUCK:
                return {pump: (0.0, taken)}
        if times := square(entry, pump.text(PUMPED), pump.text(PUMPED // TIMES), SOON):
            return {pump: times}
    return {}


FILES = [file for file in modules() if re.search(r"^\s*import re$", (ROOT / file).read_text(encoding="utf-8"), re.M)]


@pytest.mark.parametrize("file", FILES)
def test_a_pattern_takes_time_by_the_length(file: str) -> None:
    entries = list(found_in(file))
    assert {entry.line: times for entry in entries if entry.pattern is not None and (times := slow(entry))} == {}
    assert sum(entry.pattern is None for entry in entries) == BUILT.get(file, 0), "a pattern that is not measured"


@pytest.mark.parametrize("file", FILES)
def test_a_text_made_for_a_pattern_takes_time_by_its_length(file: str) -> None:
    entries = [entry for entry in found_in(file) if entry.pattern is not None]
    assert {entry.line: times for entry in entries if (times := slow_when_pumped(entry))} == {}


@pytest.mark.parametrize(
    ("source", "way"),
    [
        (r"\A\s*#\s+.*\n", "sub"),
        (r"\{(\w+)[^{}]*\}", "sub"),
        (r"CPU, (\d+) cores? · (.+)\u00a0of\u00a0(.+)", "fullmatch"),
        (r"required_chars\D*(\d+) vs (\d+)", "search"),
        (rb"<\?xml[^>]*+>", "search"),
        (r"(?:a+)+b", "match"),
        (r"(?:x|xx)*y", "match"),
        (r"[ \t]+$", "sub"),
    ],
)
def test_a_text_is_made_for_a_pattern_that_takes_the_square(source: str | bytes, way: str) -> None:
    assert slow_when_pumped(Found("", 1, re.compile(source), frozenset({way})))


@pytest.mark.parametrize(
    ("source", "slowest"), [(r"\(\s*(ROOT)?\s*\(", "( "), (r"<\w+[^<>]*?>", "<a"), (r"\w+-", "a"), (r"</[^>]*>", "</")]
)
def test_a_pattern_that_takes_the_square_is_found(source: str, slowest: str) -> None:
    entry = Found("", 1, re.compile(source), frozenset({"match" if slowest == "( " else "search"}))
    units = {unit for unit in units_of(entry) if any(before + unit == slowest for before, _ in AROUND)}
    assert units
    assert slowest in slow(entry, units)


def test_all_patterns_are_looked_at() -> None:
    count = Counter(entry.pattern is not None for file in FILES for entry in found_in(file))
    assert count[True] > 200
    assert set(BUILT) <= set(FILES)
