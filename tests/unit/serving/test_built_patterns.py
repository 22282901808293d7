"""Regular expressions that functions build of values take time by the length of the text too, with each of several values.

The functions are called with a stand-in for `re` that keeps what they compile.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from engine.corpora import terminology
from engine.corpora.formats import markup_parser
from engine.corpora.formats.documents import placeholders
from engine.methods import weight_swap
from engine.serving.units import assemble, mask
from studio.api import errors
from studio.i18n import wording
from studio.services import phrase_sentences
from tests.unit.serving.test_patterns import BUILT, PATTERN, WAYS, Found, found_in, module_of, slow, slow_when_pumped

pytestmark = pytest.mark.slow

TERMS = ("a", "a a a a a a", "art.no (1)", "a-b_c", "ab" * 40, "Straße x", "字", "字 字")
WEIGHTS = ("decoder.decoder.layers.0.encoder_attn.k_proj.weight", "encoder.layer_norm.bias")
PATHS = ("/api/v1/projects/{project}/plugins/{plugin}", "/cat/{a}/v2/glossaries/{b}/entries", "/files")


def of_placeholders() -> None:
    for kind in placeholders.KINDS:
        placeholders._pattern.__wrapped__((kind,))
    placeholders._pattern.__wrapped__(tuple(placeholders.KINDS))
    for family in range(len(placeholders.FAMILIES)):
        placeholders.stand_in_pattern.__wrapped__(tuple(placeholders.stand_ins("", 12, family)))


def of_markup() -> None:
    for name in ("script", "STYLE"):
        markup_parser.parsed(f"<{name}>a</{name} >b", "html")


def of_terms() -> None:
    for term in TERMS:
        for language in ("en", "zh", ""):
            pair = terminology.Term(term, language, term, language)
            assert pair.in_target
            assert pair.in_source
            assert pair.inflected


def of_weights() -> None:
    for which in weight_swap.NAMES:
        weight_swap.chosen(WEIGHTS, which)


def of_shortcuts() -> None:
    for letter in ("a", "(", "字"):
        prepared: Any = SimpleNamespace(shortcut=letter, shortcut_line=0, breaks=set(), unit=SimpleNamespace(shortcut="_"))
        assemble._with_shortcut(prepared, ["b"], "en")


def of_marks() -> None:
    for mark in ("_", "&"):
        prepared: Any = SimpleNamespace(unit=SimpleNamespace(shortcut=mark), parts=[f"{mark}a"], breaks=set())
        mask._find_shortcut(prepared)


def of_addresses() -> None:
    app: Any = SimpleNamespace(openapi=lambda: {"paths": {path: {"get": {}} for path in PATHS}})
    errors.allowed(app, "/x")


def of_wording() -> None:
    for code in ("en", "zh"):
        for form in (*TERMS, *(form for entry in wording.entries(code) for form in entry.instead_of)):
            wording._pattern.__wrapped__(code, form)


def of_phrases() -> None:
    for phrase in TERMS:
        for language in ("en", "zh"):
            phrase_sentences.spots(phrase, language)


MAKERS: dict[str, Callable[[], None]] = {
    "engine/corpora/formats/documents/placeholders.py": of_placeholders,
    "engine/corpora/formats/markup_parser.py": of_markup,
    "engine/corpora/terminology.py": of_terms,
    "engine/methods/weight_swap.py": of_weights,
    "engine/serving/units/assemble.py": of_shortcuts,
    "engine/serving/units/mask.py": of_marks,
    "studio/api/errors.py": of_addresses,
    "studio/i18n/wording.py": of_wording,
    "studio/services/phrase_sentences.py": of_phrases,
}


class Kept:
    """`re`, keeping (line, pattern, way) of what is compiled with it."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, Any, str], None] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(re, name)
        if name not in ("compile", *WAYS):
            return real

        def called(pattern: Any, *args: Any, **named: Any) -> Any:
            flags = named.get("flags", args[PATTERN.get(name, 3) - 2] if len(args) >= PATTERN.get(name, 3) - 1 else 0)
            self.found[sys._getframe(1).f_lineno, re.compile(pattern, flags), name] = None
            return real(pattern, *args, **named)

        return called


def made(file: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Found]:
    """The patterns of a file that have values in them, as its functions make them."""
    lines = {entry.line: entry.ways for entry in found_in(file) if entry.pattern is None}
    recorder = Kept()
    monkeypatch.setattr(importlib.import_module(module_of(file)), "re", recorder)
    MAKERS[file]()
    monkeypatch.undo()
    assert lines.keys() <= {line for line, _, _ in recorder.found}, "a pattern that no value was given for"
    for line, pattern, _ in recorder.found:
        if line in lines:
            yield Found(file, line, pattern, lines[line])


@pytest.mark.parametrize("file", BUILT)
def test_a_pattern_of_values_takes_time_by_the_length(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = list(made(file, monkeypatch))
    assert {(entry.line, entry.pattern): times for entry in entries if (times := slow_when_pumped(entry))} == {}
    distinct = {entry.line: entry for entry in entries}.values()  # the general texts take long: one pattern of each line
    assert {(entry.line, entry.pattern): times for entry in distinct if (times := slow(entry))} == {}
