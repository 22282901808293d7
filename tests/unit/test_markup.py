"""Tags through a translation: well-formed whatever happens, and where they belong when the words are known."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.align import Alignment, even_alignment, word_spans
from engine.errors import InputError
from engine.markup import Markup


def known(source: str, target: str, *origins: int | None) -> Alignment:
    """An alignment in which each target word comes from one source word, by number."""
    a, b = word_spans(source), word_spans(target)
    assert len(origins) == len(b), [target[x:y] for x, y in b]
    return Alignment(a, b, [{origin: 1.0} if origin is not None else {} for origin in origins])


def through(
    text: str,
    translations: Sequence[str],
    *alignments: Alignment,
    kind: str = "xml",
    target: str = "de",
    **more: object,
) -> str:
    markup = Markup([text], kind, "en", target, **more)  # type: ignore[arg-type]
    found = list(alignments) or [even_alignment(*pair) for pair in markup.to_align(translations)]
    return markup.join(translations, found)[0]


def test_tags_go_around_the_words_that_came_from_theirs() -> None:
    text = 'Press <b id="1">Continue</b> to advance.'
    german = "Zum Fortfahren auf Weiter drücken."
    found = through(text, [german], known("Press Continue to advance.", german, 2, 3, 0, 1, 0, 4))
    assert found == 'Zum Fortfahren auf <b id="1">Weiter</b> drücken.'
    chinese = "请点击继续前进。"
    found = through(text, [chinese], known("Press Continue to advance.", chinese, 0, 0, 0, 1, 1, 3, 3, 4), target="zh")
    assert found == '请点击<b id="1">继续</b>前进。'


def test_nested_neighbouring_and_single_tags() -> None:
    text = "The <a href='x'><i>old</i> house</a><x id=\"1\"/> is <b>red</b>."
    german = "Rot ist das alte Haus."
    found = through(text, [german], known("The old house is red.", german, 4, 3, 0, 1, 2, 5))
    assert found == "<b>Rot</b> ist das <a href='x'><i>alte</i> Haus</a><x id=\"1\"/>."


def test_single_tags_at_the_ends_stay_there_and_inside_cling_to_their_word() -> None:
    text = '<x id="1"/>One <x id="2"/>two three<x id="3"/>'
    german = "Zwei drei eins"
    found = through(text, [german], known("One two three", german, 1, 2, 0))
    assert found == '<x id="1"/><x id="2"/>Zwei drei eins<x id="3"/>'


def test_a_document_is_cut_where_its_elements_hold_texts() -> None:
    text = (
        '<?xml version="1.0"?>\n<document>\n  <meta><title>A document\'s title</title></meta>\n  <content>\n'
        "    <par>This is the first. Followed by a second.</par>\n    <par>The third, <b>bold</b> one.</par>\n"
        "  </content>\n</document>\n"
    )
    markup = Markup([text], "xml", "en", "de")
    assert markup.pieces == [
        "A document's title",
        "This is the first.",
        "Followed by a second.",
        "The third, bold one.",
    ]
    german = ["Titel", "Das ist der erste.", "Gefolgt vom zweiten.", "Der dritte, fette."]
    pairs = markup.to_align(german)
    assert pairs == [("The third, bold one.", "Der dritte, fette.")]
    found = markup.join(german, [known(*pairs[0], 0, 1, 2, 3, 5)])[0]
    assert "<title>Titel</title>" in found
    assert "    <par>Das ist der erste. Gefolgt vom zweiten.</par>\n" in found
    assert "<par>Der dritte, <b>fette</b>.</par>" in found
    assert found.startswith('<?xml version="1.0"?>\n<document>\n  <meta>')


def test_what_splits_can_be_told() -> None:
    text = "<a><c>One is here.</c><d>Two is there.</d></a>"
    assert Markup([text], "xml", "en", "de").pieces == ["One is here.", "Two is there."]
    assert Markup([text], "xml", "en", "de", non_splitting_tags=["c", "d"]).pieces == ["One is here.Two is there."]
    assert Markup([text], "xml", "en", "de", outline=False, splitting_tags=["d"]).pieces == [
        "One is here.",
        "Two is there.",
    ]
    assert Markup(["One <b>two</b> three"], "xml", "en", "de", splitting_tags=["b"]).pieces == ["One", "two", "three"]


def test_what_is_not_to_be_translated_comes_back_as_it_was() -> None:
    text = "Open the page <m>My &amp; Settings</m> now."
    found = through(
        text, ["Öffne jetzt die Seite Meine Sachen."],
        known("Open the page My & Settings now.", "Öffne jetzt die Seite Meine Sachen.", 0, 6, 1, 2, 3, 5, 7),
        ignore_tags=["m"],
    )  # fmt: skip
    assert found == "Öffne jetzt die Seite <m>My &amp; Settings</m>."
    code = through('Press <ph id="1">{key}</ph> twice', ["Drücke zweimal"])
    assert '<ph id="1">{key}</ph>' in code
    page = Markup(['<p>Hi <span translate="no">Acme Ltd</span></p><script>if (a < b) {}</script>'], "html", "en", "de")
    assert page.pieces == ["Hi Acme Ltd"]


def test_text_is_escaped_and_entities_are_read() -> None:
    markup = Markup(["Fish &amp; chips &lt; 5&#x20AC;"], "xml", "en", "de")
    assert markup.pieces == ["Fish & chips < 5€"]
    assert markup.join(["Fisch & Pommes < 5 €"], []) == ["Fisch &amp; Pommes &lt; 5 €"]


@pytest.mark.parametrize(
    "text", ["<b>One", "One</b>", "<a><b>One</a></b>", "a < b", "<b x=1>One</b>", "<b x='<'>One</b>"]
)
def test_xml_must_be_well_formed(text: str) -> None:
    with pytest.raises(InputError, match="not well-formed"):
        Markup([text], "xml", "en", "de")


def test_html_is_taken_as_browsers_do() -> None:
    text = "<ul><li>One <li>Two<br>three</ul> a < b </i><IMG src='x'><p>Four"
    markup = Markup([text], "html", "en", "de")
    assert markup.pieces == ["One", "Two", "three", "a < b", "Four"]
    found = markup.join(["Eins", "Zwei", "drei", "a < b", "Vier"], [even_alignment("a < b", "a < b")])[0]
    assert found == "<ul><li>Eins <li>Zwei<br>drei</ul> a &lt; b</i><IMG src='x'><p>Vier"


def test_short_tags_of_cat_tools_in_plain_text() -> None:
    text = "Press <g1>Fish & Chips</g1> < 5<x2/>"
    found = through(
        text, ["Fisch & Pommes drücken < 5"],
        known("Press Fish & Chips < 5", "Fisch & Pommes drücken < 5", 1, 2, 3, 0, 4, 5), kind="short",
    )  # fmt: skip
    assert found == "<g1>Fisch & Pommes</g1> drücken < 5<x2/>"
    assert through("</a1>One<b2>", ["Eins"], kind="short") == "</a1>Eins<b2>"


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


@settings(deadline=None)
@given(
    texts=st.lists(trees, max_size=5),
    made=st.data(),
    ignored=st.lists(names, max_size=1),
    target=st.sampled_from(["de", "zh"]),
)
def test_whatever_the_translation_all_tags_are_there_and_well_nested(
    texts: list[str], made: st.DataObject, ignored: list[str], target: str
) -> None:
    text = "".join(texts)
    markup = Markup([text], "xml", "en", target, ignore_tags=ignored)
    translations = [made.draw(words) for _ in markup.pieces]
    alignments = []
    for source, translation in markup.to_align(translations):
        a, b = word_spans(source), word_spans(translation)
        rows = [{i: made.draw(st.floats(0, 1)) for i in range(len(a))} for _ in b]
        alignments.append(Alignment(a, b, rows))
    found = markup.join(translations, alignments)[0]
    assert tags_of(found) == tags_of(text)
    assert found.count("<!-- c -->") == text.count("<!-- c -->")


@given(st.text(alphabet=st.sampled_from("<>/b! -='\"&ap雨\n"), max_size=40))
def test_any_text_is_taken_as_html(text: str) -> None:
    markup = Markup([text], "html", "en", "de")
    markup.join(markup.pieces, [even_alignment(*pair) for pair in markup.to_align(markup.pieces)])
