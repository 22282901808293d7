"""Texts made to be slow: what a unit costs, in time and in memory, grows with its length and not with its square."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from collections.abc import Sequence
from functools import partial

import pytest

from engine.core.progress import Progress
from engine.corpora.formats.documents.model import Unit
from engine.corpora.formats.markup import TaggedMarkup
from engine.corpora.sentences import split_sentences
from engine.decoding.word_alignment import Alignment, even_alignment
from engine.errors import TailorError
from engine.serving.units.translate import TranslationCache, Translator, translate_units
from tests.growth import growth

pytestmark = pytest.mark.slow

PLAIN = (
    "a", "7", "a1", "word ", "a. ", "e.g. ", "。「", "「字。」", "...", "!\"a", "{0} ", "%s", "%", "%%", "&", "_a", "\n",
    "${a}", "(", "\U000f0000", "a\U000f0000", "\U000f0000 ", "https://a.b/", "a@b.", "1,1", "a-", "’",
)  # fmt: skip
TAGGED = ("<b>a</b> ", "<b>", "</b>", "<x/>", "<x/> a ", "<b>a. </b>", "<!--", "<", "&lt;", "<b><i>a</i></b>", "a<br/>")
SHORT, LONG = 6_000, 24_000  # characters
MOST = 10.0  # times the time for four times the text; 16 were the square


class Echo(Translator):
    source, target = "en", "de"

    def key(self) -> str:
        return "echo"

    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        return [(list(range(len(sentences))), 1.0)]

    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        return [f"{sentence} x" for sentence in sentences]

    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        return [even_alignment(source, target) for source, target in pairs]


def plain(text: str) -> None:
    unit = Unit([text], placeholders=("printf", "braces"), shortcut="_", keep_lines=True)
    translate_units([unit], Echo(), TranslationCache(None, ""), Progress())


def tagged(text: str) -> None:
    markup = TaggedMarkup([text], "html")
    markup.join(translate_units(markup.units, Echo(), TranslationCache(None, ""), Progress()))


def seconds(run: object, text: str) -> float:
    begin = time.thread_time()
    with contextlib.suppress(TailorError):  # an answer too
        run(text)  # type: ignore[operator]
    return time.thread_time() - begin


@pytest.mark.parametrize("run", [plain, tagged], ids=["plain", "tagged"])
def test_time_grows_with_the_length(run: object) -> None:
    slow = {}
    for unit in PLAIN if run is plain else PLAIN + TAGGED:
        few, much = (partial(seconds, run, (unit * n)[:n]) for n in (SHORT, LONG))
        short, long = few(), much()
        if long > 0.5 and long > MOST * short:
            short, long = growth(few, much, LONG // SHORT)
        if long > 0.5 and long > MOST * short:
            slow[unit] = (round(short, 2), round(long, 2))
    assert slow == {}


def test_memory_grows_with_the_length() -> None:
    tracemalloc.start()
    try:
        tagged("<p>" + "word " * 2_000 + "<b>a</b></p>")
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("language", ["en", "zh", "ja", "cs", "el"])
def test_a_long_line_is_cut_into_sentences_and_nothing_is_lost(language: str) -> None:
    for unit in PLAIN:
        text = (unit * 9_000)[:9_000].strip()
        sentences = split_sentences(text, language)
        assert "".join("".join(sentences).split()) == "".join(text.split())
    story = "The old man waited at the door. Nobody came. " * 200
    assert split_sentences(story.strip(), "en") == ["The old man waited at the door.", "Nobody came."] * 200
