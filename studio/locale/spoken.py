"""The engine's words that pages show: they are written in the engine, which knows of no interface, and said by pages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from studio.i18n import LOCALE

__all__ = ["engine_words"]

ENGINE = LOCALE.parents[1] / "engine"
# Rooms whose steps no page shows: they are commands.
ELSEWHERE = ("base", "parsers", "benching")


@cache
def engine_words() -> tuple[str, ...]:
    """Titles, summaries and settings of methods, steps and notes of jobs, reasons of the import, checks of a bundle."""
    return tuple(dict.fromkeys(word for word in (*_methods(), *_steps(), *_reasons()) if word))


def _methods() -> Iterator[str]:
    from engine.corpora import CorpusOptions
    from engine.decoding.knn.options import KnnOptions
    from engine.methods import get_method, method_names
    from engine.options import describe
    from engine.training import TrainingOptions
    from studio.forms import label

    methods = [get_method(name) for name in method_names()]
    for one in methods:
        yield one.capabilities.title
        yield one.capabilities.summary
    for name in method_names():
        yield name.replace("_", " ")
    for cls in (*(one.config_class for one in methods), TrainingOptions, KnnOptions, CorpusOptions):
        for item in describe(cls):
            yield label(item.name)
            yield item.help


def _steps() -> Iterator[str]:
    """What `progress.begin` and `progress.advance` are given as it stands."""
    for file in sorted(ENGINE.rglob("*.py")):
        if file.relative_to(ENGINE).parts[0] in ELSEWHERE or "commands" in file.name:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            place = {"begin": 0, "advance": 2}.get(node.func.attr)
            if place is None or len(node.args) <= place or getattr(node.func.value, "id", "") == "stamps":
                continue
            given = node.args[place]
            for one in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.value


def _reasons() -> Iterator[str]:
    from engine import estimate
    from engine.comparison import figures
    from engine.comparison.export import FORMATS
    from engine.corpora import clean, garbled, notice, report, sieve
    from engine.evaluation import rating
    from engine.plugins.checks import TITLES
    from engine.store import JobState
    from engine.training import BUDGETS

    yield from TITLES.values()
    for module in (clean, garbled, notice, report, sieve):
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, str) and value.isascii() and len(value) < 60:
                yield value
    yield from (state.value for state in JobState)
    yield from estimate.WORDS.values()
    yield from (
        "start",
        "phrases",
        "sources",
        "weighing",
        "method",
        "translations",
        "training",
        "datastore",
        "evaluation",
    )
    yield "Training may stop earlier, when nothing gets better any more."
    yield from rating.QUESTIONS
    yield from (word for _, word in rating.WORDS)
    yield from BUDGETS
    yield from (*figures.TITLES.values(), *figures.SHARES.values())
    yield "general text"
    yield from (one.title for one in FORMATS.values())
    yield from ("word", "character")
