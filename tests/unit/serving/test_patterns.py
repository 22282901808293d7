"""The regular expressions that meet text of users: the time of each grows with the text, not with its square."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator

import pytest

import engine.base.quality
import engine.core.logging_setup
import engine.corpora
import engine.serving

UNITS = (
    *(
        "a",
        "1",
        "-",
        "_",
        " ",
        "\n",
        "\t",
        '"',
        "'",
        "\\",
        "<",
        ">",
        "&",
        "&#",
        "{",
        "{0",
        "%",
        "%(",
        "$",
        "[",
        "(",
        "@",
        ",",
        "#",
        "*",
        "|",
    ),
    *(
        "`",
        "é",
        "。",
        "「",
        "<!--",
        "<?",
        "<?xml ",
        "<meta ",
        "<a ",
        "</",
        "1:",
        "00:00 ",
        "a.",
        "a-",
        "a_",
        "a=",
        "a='",
        "http://",
    ),
)
SHORT, LONG = 2_000, 8_000  # characters
MOST = 10.0  # times the time for four times the text; 16 were the square
PACKAGES = (engine.corpora, engine.serving)


def patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    modules = [engine.base.quality, engine.core.logging_setup]
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            modules.append(importlib.import_module(found.name))
    for module in modules:
        for name, value in vars(module).items():
            for pattern in value if isinstance(value, tuple) else (value,):
                if isinstance(pattern, re.Pattern):
                    yield f"{module.__name__}.{name}", pattern


def seconds(pattern: re.Pattern[str] | re.Pattern[bytes], unit: str, length: int) -> float:
    text = (unit * length)[:length]
    best = 9.0
    for _ in range(2):
        begin = time.process_time()
        for _ in pattern.finditer(text if isinstance(pattern.pattern, str) else text.encode()):  # type: ignore[arg-type]
            pass
        best = min(best, time.process_time() - begin)
    return best


@pytest.mark.parametrize("name", sorted({name for name, _ in patterns()}))
def test_a_pattern_takes_time_by_the_length(name: str) -> None:
    slow = {}
    for found, pattern in patterns():
        if found != name:
            continue
        for unit in UNITS:
            long = seconds(pattern, unit, LONG)
            if long > 0.02 and long > MOST * (short := seconds(pattern, unit, SHORT)):
                slow[unit] = (round(short, 3), round(long, 3))
    assert slow == {}
