"""Tags through a translation: well-formed whatever happens, and where they belong when the words are known."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.corpora.formats.markup import TaggedMarkup
from engine.corpora.formats.markup_parser import Kind
from engine.corpora.words import word_spans
from engine.decoding.word_alignment import Alignment, even_alignment
from engine.errors import InputError
from engine.serving.units.translate import TranslationCache, Translator, translate_units


class Known(Translator):
    """Says what it is told to, in the order of the sentences, and knows or makes up where each word comes from."""

    source, target = "en", "de"

    def __init__(self, *answers: tuple[str, Sequence[int | None]] | str, target: str = "de") -> None:
        self.said = [(answer, None) if isinstance(answer, str) else answer for answer in answers]
        self.target = target
        self.asked: list[str] = []
        self.origins: dict[str, Sequence[int | None] | None] = {}

    def key(self) -> str:
        return "known"

    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        return [(list(range(len(sentences))), 1.0)]

    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        results = []
        for sentence in sentences:
            text, origins = self.said[len(self.asked)] if len(self.asked) < len(self.said) else (sentence, None)
            self.asked.append(sentence)
            self.origins[text] = origins
            results.append(text)
        return results

    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        return [self._align(source, target) for source, target in pairs]

    def _align(self, source: str, target: str) -> Alignment:
        origins = self.origins.get(target)
        if origins is None:
            return even_alignment(source, target)
        a, b = word_spans(source), word_spans(target)
        assert len(origins) == len(b), [target[x:y] for x, y in b]
        return Alignment(a, b, [{} if origin is None else {origin: 1.0} for origin in origins])


def through(text: str, translator: Translator, kind: Kind = "xml", **more: Any) -> str:
    markup = TaggedMarkup([text], kind, **more)
    results = translate_units(markup.units, translator, TranslationCache(None, ""), Progress())
    return markup.join(results)[0]


def pieces(text: str, kind: Kind = "xml", **more: Any) -> list[str]:
    return [unit.text for unit in TaggedMarkup([text], kind, **more).units]


def test_tags_go_around_the_words_that_came_from_theirs() -> None:
    text = 'Press <b id="1">Continue</b> to advance.'
    german = Known(("Zum Fortfahren auf Weiter drücken.", (2, 3, 0, 1, 0, 4)))
    assert through(text, german) == 'Zum Fortfahren auf <b id="1">Weiter</b> drücken.'
    assert german.asked == ["Press Continue to advance."]
    chinese = Known(("请点击继续前进。", (0, 0, 0, 1, 1, 3, 3, 4)), target="zh")
    assert through(text, chinese) == '请点击<b id="1">继续</b>前进。'


def test_nested_neighbouring_and_single_tags() -> None:
    text = "The <a href='x'><i>old</i> house</a><x id=\"1\"/> is <b>red</b>."
    result = through(text, Known(("Rot ist das alte Haus.", (4, 3, 0, 1, 2, 5))))
    assert result == "<b>Rot</b> ist das <a href='x'><i>alte</i> Haus</a><x id=\"1\"/>."


def test_a_document_is_cut_where_its_elements_hold_texts() -> None:
    text = (
        '<?xml version="1.0"?>\n<document>\n  <meta><title>A document\'s title</title></meta>\n  <content>\n'
        "    <par>This is the first. Followed by a second.</par>\n    <par>The third, <b>bold</b> one.</par>\n"
        "  </content>\n</document>\n"
    )
    assert pieces(text) == ["A document's title", "This is the first. Followed by a second.", "The third, bold one."]
    third = ("Der dritte, fette.", (0, 1, 2, 3, 5))
    german = Known("Titel", "Das ist der erste.", "Gefolgt vom zweiten.", third)
    result = through(text, german)
    assert german.asked[1:3] == ["This is the first.", "Followed by a second."]
    assert "<title>Titel</title>" in result
    assert "    <par>Das ist der erste. Gefolgt vom zweiten.</par>\n" in result
    assert "<par>Der dritte, <b>fette</b>.</par>" in result
    assert result.startswith('<?xml version="1.0"?>\n<document>\n  <meta>')


def test_what_splits_can_be_told() -> None:
    text = "<a><c>One is here.</c><d>Two is there.</d></a>"
    assert pieces(text) == ["One is here.", "Two is there."]
    assert pieces(text, non_splitting_tags=["c", "d"]) == ["One is here.Two is there."]
    assert pieces(text, outline=False, splitting_tags=["d"]) == ["One is here.", "Two is there."]
    assert pieces("One <b>two</b> three", splitting_tags=["b"]) == ["One", "two", "three"]
    translator = Known("Eins. Zwei.")
    assert through("<p>One is. Two is.</p>", translator, split="0") == "<p>Eins. Zwei.</p>"
    assert translator.asked == ["One is. Two is."]


def test_what_is_not_to_be_translated_comes_back_as_it_was() -> None:
    text = "Open the page <m>My &amp; Settings</m> now, %s."
    selected = Known()
    selected.translate = lambda sentences, progress: [sentence.replace("Open", "Öffne") for sentence in sentences]  # type: ignore[method-assign]
    assert through(text, selected, ignore_tags=["m"]) == "Öffne the page <m>My &amp; Settings</m> now, %s."
    code = through('Press <ph id="1">{key}</ph> twice', Known("Drücke zweimal"))
    assert '<ph id="1">{key}</ph>' in code
    lost = through("Press <m>Go</m> twice", Known("Drücke", "Drücke", "Drücke"), ignore_tags=["m"])
    assert lost.count("<m>Go</m>") == 1, "what the model loses is put back"
    page = '<p>Hi <span translate="no">Acme Ltd</span></p><script>if (a < b) {}</script>'
    assert pieces(page, "html") == ["Hi "]
    assert through(page, Known(), "html") == page


def test_text_is_escaped_and_entities_are_read() -> None:
    assert pieces("Fish &amp; chips &lt; 5&#x20AC;") == ["Fish & chips < 5€"]
    assert through("Fish &amp; chips &lt; 5&#x20AC;", Known("Fisch & Pommes < 5 €")) == "Fisch &amp; Pommes &lt; 5 €"


@pytest.mark.parametrize("text", ["<b>One", "One</b>", "<a><b>One</a></b>", "a < b", "<b x=1>One</b>", "<b x='<'>One</b>"])
def test_xml_must_be_well_formed(text: str) -> None:
    with pytest.raises(InputError, match="not well-formed"):
        TaggedMarkup([text], "xml")


def test_html_is_taken_as_browsers_do() -> None:
    text = "<ul><li>One <li>Two<br>three</ul> a < b </i><IMG src='x'><p>Four"
    assert pieces(text, "html") == ["One", "Two", "three", "a < b", "Four"]
    result = through(text, Known("Eins", "Zwei", "drei", "a < b", "Vier"), "html")
    assert result == "<ul><li>Eins <li>Zwei<br>drei</ul> a &lt; b</i><IMG src='x'><p>Vier"


def test_short_tags_of_cat_tools_in_plain_text() -> None:
    text = "Press <g1>Fish & Chips</g1> < 5<x2/>"
    result = through(text, Known(("Fisch & Pommes drücken < 5", (1, 2, 3, 0, 4, 5))), "short")
    assert result == "<g1>Fisch & Pommes</g1> drücken < 5<x2/>"
    assert through("</a1>One<b2>", Known("Eins"), "short") == "</a1>Eins<b2>"


names = st.sampled_from(["b", "par", "x", "g", "m", "ns:t"])
leaves = st.text(alphabet=st.sampled_from("ab cD.&雨 é<\n"), max_size=12).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;")
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(names, st.lists(inner, max_size=4)).map(lambda t: f'<{t[0]} id="1">{"".join(t[1])}</{t[0]}>'),
        names.map(lambda name: f"<{name}/>"),
        st.just("<!-- c -->"),
    ),
    max_leaves=14,
)
words = st.text(alphabet=st.sampled_from("ab <&。雨 "), max_size=16)


def tags_of(text: str) -> list[str]:
    root = ET.fromstring(f'<root xmlns:ns="urn:x">{text}</root>')
    return sorted(element.tag for element in root.iter())


@given(texts=st.lists(trees, max_size=5), made=st.data(), ignored=st.lists(names, max_size=1), target=st.sampled_from(["de", "zh"]))
def test_whatever_the_translation_all_tags_are_there_and_well_nested(
    texts: list[str], made: st.DataObject, ignored: list[str], target: str
) -> None:
    text = "".join(texts)

    class Whatever(Known):
        def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
            return [made.draw(words) for _ in sentences]

        def _align(self, source: str, target: str) -> Alignment:
            a, b = word_spans(source), word_spans(target)
            return Alignment(a, b, [{i: made.draw(st.floats(0, 1)) for i in range(len(a))} for _ in b])

    result = through(text, Whatever(target=target), ignore_tags=ignored)
    assert tags_of(result) == tags_of(text)
    assert result.count("<!-- c -->") == text.count("<!-- c -->")


@given(st.text(alphabet=st.sampled_from("<>/b! -='\"&ap雨\n"), max_size=40))
def test_any_text_is_taken_as_html(text: str) -> None:
    through(text, Known(), "html")
