"""Each format of documents: real markup of its kind through translators whose words are known."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora.formats.documents.html import Html
from engine.corpora.formats.documents.model import Context, DocumentError, DocumentOptions
from engine.corpora.formats.documents.po import Po
from engine.corpora.formats.documents.srt import Subtitles
from engine.corpora.formats.documents.text import columns
from tests.documents import W, docx, odt, xliff1, xliff2
from tests.translators import Words, identity, reverse, shout
from tests.unit.workflows.test_documents import through

# -- text


def test_text_is_a_line_for_a_line(tmp_path: Path) -> None:
    text = "\ufeffFirst line. Still first.\r\n\r\n   Second, indented\r\nno end"
    out, _ = through(tmp_path, "a.txt", text, identity())
    assert out.decode() == text
    out, _ = through(tmp_path, "a.txt", text, shout())
    assert out.decode() == "\ufeffFIRST LINE. STILL FIRST.\r\n\r\n   SECOND, INDENTED\r\nNO END"


def test_wrapped_text_is_translated_by_paragraphs_and_wrapped_again(tmp_path: Path) -> None:
    lines = [
        "It was the best of times, it was the worst of times, it was the",
        "age of wisdom, it was the age of foolishness, it was the epoch",
        "of belief, it was the epoch of incredulity, it was the season of",
        "Light, it was the season of Darkness.",
        "",
        "There were a king with a large jaw and a queen with a plain face,",
        "on the throne of England.",
    ]
    text = shout()
    out, _ = through(tmp_path, "a.txt", "\n".join(lines), text)
    assert len([s for batch in text.asked for s in batch]) == 2
    out_lines = out.decode().splitlines()
    assert out_lines.index("") == 4
    assert " ".join(out_lines).split() == " ".join(lines).upper().split()
    assert max(map(len, out_lines)) == max(map(len, lines))
    out, _ = through(tmp_path, "b.txt", "\n".join(lines), shout(), wrapped="no")
    assert out.decode().splitlines() == [line.upper() for line in lines]


def test_other_encodings_stay_unless_they_lack_a_letter(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.txt", "Où est le café près de là ?\n".encode("cp1252"), shout(source="fr", target="en"))
    assert out.decode("cp1252") == "OÙ EST LE CAFÉ PRÈS DE LÀ ?\n"
    chinese = Words(lambda words: [(0, "雨停了。")], source="fr", target="zh", joint="")
    out, _ = through(tmp_path, "b.txt", "Où est le café près de là ?\n".encode("cp1252"), chinese)
    assert out.decode() == "雨停了。\n"


# -- subtitles

SRT = """1
00:00:01,000 --> 00:00:02,500 X1:10
<i>He had not spoken</i>
since the morning,

2
00:00:03,000 --> 00:00:04,000
and it rained.

3
00:00:05,000 --> 00:00:06,000
- Hello!
- {\\an8}<font color="#fff">Who is there?</font>
"""


def test_subtitles_keep_numbers_and_times(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.srt", SRT, identity())
    assert out.decode() == SRT
    out, _ = through(tmp_path, "a.srt", SRT.replace("\n", "\r\n"), shout())
    assert out.decode() == (
        "1\n00:00:01,000 --> 00:00:02,500 X1:10\n<i>HE HAD NOT SPOKEN</i> SINCE THE MORNING,\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nAND IT RAINED.\n\n"
        '3\n00:00:05,000 --> 00:00:06,000\n- HELLO!\n- {\\an8}<font color="#fff">WHO IS THERE?</font>\n'
    ).replace("\n", "\r\n")


def test_a_sentence_over_captions_is_translated_whole(tmp_path: Path) -> None:
    text = reverse()
    out, _ = through(tmp_path, "a.srt", SRT, text)
    sentences = [sentence for batch in text.asked for sentence in batch]
    assert "He had not spoken since the morning, and it rained." in sentences
    captions = [re.sub(r"<[^>]*>", "", block).split("\n", 2)[2] for block in out.decode().strip().split("\n\n")]
    assert all(caption.strip() for caption in captions)
    assert " ".join(" ".join(captions[:2]).split()) == "RAINED. IT AND MORNING, THE SINCE SPOKEN NOT HAD HE"


def test_long_captions_are_wrapped(tmp_path: Path) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,500\n" + "word " * 12 + "\n"
    out, _ = through(tmp_path, "a.srt", text, shout(), subtitle_width=30)
    assert out.decode().splitlines()[2:] == ["WORD WORD WORD WORD WORD WORD"[:29]] * 2
    chinese = Words(lambda words: [(0, "他终于开口说话的时候，雨还没有停下来。")], target="zh", joint="")
    out, _ = through(tmp_path, "b.srt", text, chinese, subtitle_width=24)
    lines = out.decode().splitlines()[2:]
    assert "".join(lines) == "他终于开口说话的时候，雨还没有停下来。"
    assert all(columns(line) <= 24 for line in lines)
    assert not any(line[0] in "，。" for line in lines)


VTT = "WEBVTT - x\n\nNOTE a note\n\nSTYLE\n::cue {}\n\nid-1\n00:01.000 --> 00:02.000 line:0\n<v Fred>Hi there</v>\n"


def test_webvtt(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.vtt", VTT, shout())
    assert out.decode() == VTT.replace("Hi there", "HI THERE")


LINES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=30)


@given(st.lists(st.lists(LINES.filter(str.strip), min_size=1, max_size=3), min_size=1, max_size=4))
def test_any_subtitles_come_back_unchanged(captions: list[list[str]]) -> None:
    from engine.corpora.formats.documents.files import TextFile

    text = "".join(f"{k}\n00:00:0{k},000 --> 00:00:0{k},500\n" + "\n".join(c) + "\n\n" for k, c in enumerate(captions))
    context = Context("a.srt", "en", "de")
    read = Subtitles(TextFile(text, "utf-8"), context)
    assert read.build([None] * len(read.units)).decode() == text
    from engine.core.progress import Progress
    from engine.serving.units.translate import TranslationCache, translate_units

    assert read.build(translate_units(read.units, identity(), TranslationCache(None, ""), Progress())).decode() == text


# -- HTML

HTML = """<!DOCTYPE html>
<html lang="en-US"><head><meta charset=utf-8><title>My page</title>
<meta name="description" content='A &quot;nice&quot; page'><style>p { color: red }</style></head>
<body class=x>
<p>This is <b>bold <i>and slanted</i></b> text, see <a href="?a=1&amp;b=2" title="Go on">this link</a>.<br>A new line
   that goes on &amp; on.
<p>Unclosed <em>paragraph with <code>x = y</code> in it.
<script>if (a < b) { alert("no & no") }</script>
<div translate="no">Stay <b>as it is</b></div><p class="notranslate">Me too</p>
<ul><li>One<li>Two <span translate="no">Tailor MT</span> here</ul>
<img src="a.png" alt="A picture"><input type=submit value=Send><input type=text value=mine>
{{ template }} &copy; 2024 <!-- a note --> end
<pre>code   here</pre></body></html>
"""


def test_html_is_untouched_but_for_its_texts(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.html", HTML, identity())
    assert out.decode() == HTML
    out, report = through(tmp_path, "a.html", HTML, shout())
    page = out.decode()
    assert report.kept == {'translate="no"': 3}
    assert '<p>THIS IS <b>BOLD <i>AND SLANTED</i></b> TEXT, SEE <a href="?a=1&amp;b=2" title="GO ON">THIS LINK</a>.<br>' in page
    assert "A NEW LINE THAT GOES ON &amp; ON.\n<p>UNCLOSED <em>PARAGRAPH WITH <code>x = y</code> IN IT.\n" in page
    assert '<ul><li>ONE<li>TWO <span translate="no">Tailor MT</span> HERE</ul>' in page
    assert '<img src="a.png" alt="A PICTURE"><input type=submit value="SEND"><input type=text value=mine>' in page
    assert "{{ template }} © 2024 <!-- a note --> END\n<pre>code   here</pre>" in page
    assert "<title>MY PAGE</title>\n<meta name=\"description\" content='A &quot;NICE&quot; PAGE'>" in page
    assert '<html lang="de">' in page
    for selected in ("<style>p { color: red }</style>", 'alert("no & no")', "Stay <b>as it is</b>", ">Me too<"):
        assert selected in page


def test_the_number_of_a_note_stays_with_its_word(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.html", "<p>We went home<sup>1</sup> in the dark.</p>", reverse())
    assert out.decode() == "<p>DARK. THE IN HOME<sup>1</sup> WENT WE</p>"


def test_html_attributes_can_be_left(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.html", HTML, shout(), attributes=False)
    assert 'alt="A picture"' in out.decode()
    assert 'title="Go on">THIS LINK' in out.decode()


def test_html_in_a_narrow_encoding_gets_references(tmp_path: Path) -> None:
    page = '<meta charset="iso-8859-1"><p>Caf\xe9 is open'.encode("latin-1")
    chinese = Words(lambda words: [(0, "开门")], target="zh", joint="")
    out, _ = through(tmp_path, "a.html", page, chinese)
    assert out.decode("ascii") == '<meta charset="iso-8859-1"><p>&#24320;&#38376;'


PIECES = st.sampled_from(
    ["<p>", "</p>", "<b>", "</b>", "<i class='x'>", "</i>", "<br>", "text ", "more. ", "&amp;", "&nbsp;", "<",
     "<!-- c -->", "<script>a<b</script>", "<a title='t' href=x>", "</a>", "<div translate=no>",
     "</div>", "\n", "<img alt=\"q\">", "{% x %}", "é"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_html_comes_back_and_keeps_its_tags(page: str) -> None:
    from engine.core.progress import Progress
    from engine.corpora.formats.documents.files import TextFile
    from engine.serving.units.translate import TranslationCache, translate_units

    def built(translator: Words) -> str:
        read = Html(TextFile(page, "utf-8"), Context("a.html", "en", "de", DocumentOptions(attributes=False)))
        return read.build(translate_units(read.units, translator, TranslationCache(None, ""), Progress())).decode()

    assert built(identity()) == page
    pattern = r"<!--.*?-->|<script>.*?</script>|</?[a-z][^>]*>"
    assert sorted(re.findall(pattern, built(reverse()))) == sorted(re.findall(pattern, page))


# -- Markdown

MARKDOWN = """---
title: not this
---
# A *big* heading

Some **bold text** and `code` and [a link](http://a.b/c "tip").
It goes on in \\*this\\* line.\\
A hard break <https://x.y> ![a picture](p.png)

> A quote
> of two lines

1. first _item_
2. second

| Head | Other |
|:-----|-------|
| one \\| x | two |

```
code stays
```

    so does this

[ref]: http://a.b
"""


def test_markdown(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.md", MARKDOWN, identity())
    assert out.decode() == MARKDOWN
    out, _ = through(tmp_path, "a.md", MARKDOWN, shout())
    text = out.decode()
    assert text.startswith("---\ntitle: not this\n---\n# A *BIG* HEADING\n")
    assert 'SOME **BOLD TEXT** AND `code` AND [A LINK](http://a.b/c "TIP"). IT GOES ON IN \\*THIS\\* LINE.\\\n' in text
    assert "A HARD BREAK <https://x.y> ![A PICTURE](p.png)\n" in text
    assert "> A QUOTE OF TWO LINES\n\n1. FIRST _ITEM_\n2. SECOND\n" in text
    assert "| HEAD | OTHER |\n|:-----|-------|\n| ONE \\| X | TWO |\n" in text
    assert text.endswith("```\ncode stays\n```\n\n    so does this\n\n[ref]: http://a.b\n")


# -- PO

PO = r"""# A comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: de\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. told by a programmer
#: main.c:10
#, c-format
msgid "Hello %s, <b>you have</b> %d%% of it.\n"
msgstr ""

#, fuzzy, c-format
#| msgid "Open %d thing"
msgid "_Open %d file"
msgid_plural "_Open %d files"
msgstr[0] "old"
msgstr[1] ""

msgctxt "menu"
msgid "kept"
msgstr "behalten"
msgid "no empty line before, \"quoted\"\ttab"
msgstr ""

#~ msgid "gone"
#~ msgstr "weg"
"""


def entries(data: bytes) -> dict[str, str]:
    """{first line of msgid: everything of its msgstr} with polib, which other programs read PO by."""
    import polib

    result = polib.pofile(data.decode())
    return {entry.msgid: entry.msgstr or dict(entry.msgstr_plural) for entry in result}


def test_po(tmp_path: Path) -> None:
    out, report = through(tmp_path, "a.po", PO, shout())
    assert report.kept == {"translated before": 1}
    read = entries(out)
    assert read["Hello %s, <b>you have</b> %d%% of it.\n"] == "HELLO %s, <b>YOU HAVE</b> %d%% OF IT.\n"
    assert read["_Open %d file"] == {0: "_OPEN %d FILE", 1: "_OPEN %d FILES"}
    assert read["kept"] == "behalten"
    assert read['no empty line before, "quoted"\ttab'] == 'NO EMPTY LINE BEFORE, "QUOTED"\tTAB'
    text = out.decode()
    assert '#, c-format\nmsgid "_Open %d file"' in text, "no longer fuzzy, and without the old msgid"
    untouched = [line for line in PO.splitlines() if not line.startswith(("msgstr", "#,", "#|"))]
    assert [line for line in text.splitlines() if line in untouched] == untouched


def test_po_whose_placeholders_change_places(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.po", PO, reverse())
    assert entries(out)["Hello %s, <b>you have</b> %d%% of it.\n"] == "IT. OF %2$d%% <b>HAVE YOU</b> %1$s, HELLO\n"
    python = PO.replace("c-format", "python-format")
    out, report = through(tmp_path, "b.po", python, reverse())
    message = entries(out)["Hello %s, <b>you have</b> %d%% of it.\n"]
    assert message.index("%s") < message.index("%d")
    assert "order" in report.doubts[0]["why"]
    assert '#, fuzzy, python-format\nmsgid "Hello' in out.decode(), "a person should look at it"


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
@pytest.mark.parametrize("target", ["de", "zh", "ru"])
def test_po_passes_the_check_of_gettext(tmp_path: Path, target: str) -> None:
    template = PO.replace("Language: de", "Language: ").replace(
        "nplurals=2; plural=(n != 1);", "nplurals=INTEGER; plural=EXPRESSION;"
    )
    out, _ = through(tmp_path, "a.pot", template, reverse(target=target))
    (tmp_path / "out.po").write_bytes(out)
    subprocess.run(["msgfmt", "-c", "-o", "/dev/null", tmp_path / "out.po"], check=True)
    assert f"Language: {target}\\n" in out.decode()


def test_a_shortcut_goes_behind_a_text_in_another_script(tmp_path: Path) -> None:
    chinese = Words(lambda words: [(0, "打开文件")], target="zh", joint="")
    out, _ = through(tmp_path, "a.po", PO.replace("Language: de", "Language: zh").replace("_Open %d file", "_Open file…"), chinese)
    assert entries(out)["_Open file…"] == {0: "打开文件(_O)", 1: "打开文件(_O)"}


def test_translated_po_is_translated_again_when_asked(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.po", PO, shout(), retranslate=True, review=True)
    assert entries(out)["kept"] == "KEPT"
    assert out.decode().count("fuzzy") == 4


def test_po_for_another_language_and_damaged_po_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="translated into German, not into French"):
        through(tmp_path, "a.po", PO, shout(target="fr"))
    with pytest.raises(DocumentError, match="line 11: a quotation mark"):
        through(tmp_path, "a.po", PO.replace('of it.\\n"', 'of "it.\\n"'), shout())
    with pytest.raises(DocumentError, match="not a PO file"):
        through(tmp_path, "a.po", "# nothing\n", shout())


STRINGS = st.text(st.sampled_from('ab %s"\\\n\t雨é{}x'), max_size=120)


@given(st.lists(STRINGS, min_size=1, max_size=4, unique=True))
def test_any_text_survives_being_written_to_po(texts: list[str]) -> None:
    import polib

    from engine.corpora.formats.documents.files import TextFile
    from engine.corpora.formats.documents.model import Result

    file = polib.POFile()
    file.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for k, _ in enumerate(texts):
        file.append(polib.POEntry(msgid=f"entry {k}"))
    read = Po(TextFile(str(file), "utf-8"), Context("a.po", "en", "zh"))
    written = read.build([Result([text]) for text in texts]).decode()
    again = polib.pofile(written)
    assert [entry.msgstr for entry in again] == texts
    assert Po(TextFile(written, "utf-8"), Context("a.po", "en", "zh")).build([None] * 9) == written.encode()


# -- XLIFF

ONE = [
    '<trans-unit id="1"><source>The <g id="1">red <x id="2"/>house</g> is open.</source></trans-unit>',
    '<trans-unit id="2" approved="yes"><source>Kept</source><target state="final">Behalten</target></trans-unit>',
    '<trans-unit id="3" translate="no"><source>Not this</source></trans-unit>',
    '<trans-unit id="4"><source>Press <bpt id="1">&lt;b&gt;</bpt>Enter<ept id="1">&lt;/b&gt;</ept> to delete '
    '<ph id="3">%s</ph>.</source><target state="new"/><note>a note</note></trans-unit>',
    '<trans-unit id="5"><source>Same</source><target>Same</target>'
    "<alt-trans><source>x</source><target>y</target></alt-trans></trans-unit>",
    '<trans-unit id="6" size-unit="char" maxwidth="4"><source>Too long</source></trans-unit>',
    '<group translate="no"><trans-unit id="7" translate="yes"><source>'
    'After all<x id="9" ctype="lb"/>a line</source></trans-unit></group>',
]


def units_of(data: bytes) -> dict[str, Any]:
    from lxml import etree

    root = etree.fromstring(data)
    return {node.get("id"): node for node in root.iter() if str(node.tag).endswith(("}trans-unit", "}unit"))}


def target_of(unit: Any) -> str:
    """The content of the target as XML, without its own tag."""
    from lxml import etree

    target = unit.find("{*}target")
    if target is None:
        target = unit.find("{*}segment/{*}target")
    text = etree.tostring(target, encoding="unicode", with_tail=False)
    return re.sub(r' xmlns(:\w+)?="[^"]*"', "", re.sub(r"^<target[^>]*>|</target>$|^<target[^>]*/>$", "", text))


def test_xliff_1(tmp_path: Path) -> None:
    out, report = through(tmp_path, "a.xlf", xliff1(ONE, target="de"), reverse())
    result = units_of(out)
    assert target_of(result["1"]) == 'OPEN. IS <g id="1"><x id="2"/>HOUSE RED</g> THE'
    assert target_of(result["2"]) == "Behalten"
    assert result["3"].find("{*}target") is None
    assert target_of(result["4"]) == (
        '<ph id="3">%s</ph>. DELETE TO <bpt id="1">&lt;b&gt;</bpt>ENTER<ept id="1">&lt;/b&gt;</ept> PRESS'
    )
    assert target_of(result["5"]) == "SAME"
    assert result["5"].find("{*}alt-trans/{*}target").text == "y"
    assert target_of(result["7"]) == 'ALL AFTER<x id="9" ctype="lb"/>LINE A'
    states = {number: unit.find("{*}target").get("state") for number, unit in result.items() if number != "3"}
    assert states == {"2": "final"} | dict.fromkeys("14567", "needs-review-translation")
    assert [child.tag.split("}")[1] for child in result["4"]] == ["source", "target", "note"]
    assert report.kept == {"approved before": 1, 'translate="no"': 1}
    again, _ = through(tmp_path, "b.xlf", out, shout())
    assert again == out, "all is translated, so nothing is changed"


def test_xliff_segments_of_trados(tmp_path: Path) -> None:
    unit = (
        '<trans-unit id="u" xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0">'
        '<source>One. Two <g id="5">words</g>.</source><seg-source><mrk mtype="seg" mid="1">One.</mrk> '
        '<mrk mtype="seg" mid="2">Two <g id="5">words</g>.</mrk></seg-source><target><mrk mtype="seg" mid="1">Eins.</mrk> '
        '<mrk mtype="seg" mid="2"/></target><sdl:seg-defs><sdl:seg id="1" conf="Translated"/><sdl:seg id="2"/></sdl:seg-defs>'
        "</trans-unit>"
    )
    out, report = through(tmp_path, "a.sdlxliff", xliff1([unit], target="de"), shout())
    assert target_of(units_of(out)["u"]) == (
        '<mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">TWO <g id="5">WORDS</g>.</mrk>'
    )
    states = [(segment.get("conf"), segment.get("origin")) for segment in units_of(out)["u"].iter("{*}seg")]
    assert states == [("Translated", None), ("Draft", "mt")], "only the new translation waits for its review"
    assert report.kept == {"translated before": 1}


TWO = [
    '<unit id="1"><originalData><data id="d1">{0}</data><data id="d2">&lt;br/&gt;</data></originalData><segment><source>You have '
    '<ph id="1" dataRef="d1"/> <pc id="2">new files</pc>.<ph id="3" dataRef="d2"/>Go on</source></segment></unit>',
    '<unit id="2"><segment state="final"><source>Kept</source><target>Behalten</target></segment></unit>',
    '<unit id="3" translate="no"><segment><source>Not this</source></segment></unit>',
    '<unit id="4"><segment><source>A <sc id="1"/>crossing <pc id="2">pair<ec startRef="1"/> of</pc> tags '
    '<mrk id="m1" translate="no">Tailor MT</mrk></source></segment><ignorable><source> </source></ignorable></unit>',
]


def test_xliff_2(tmp_path: Path) -> None:
    out, report = through(tmp_path, "a.xlf", xliff2(TWO, target="de"), shout())
    result = units_of(out)
    assert target_of(result["1"]) == 'YOU HAVE <ph id="1" dataRef="d1"/> <pc id="2">NEW FILES</pc>.<ph id="3" dataRef="d2"/>GO ON'
    first = result["1"].find("{*}segment")
    assert (first.get("state"), first.get("subState")) == ("translated", "tailormt:needs-review")
    assert target_of(result["2"]) == "Behalten"
    assert target_of(result["4"]).startswith('A <sc id="1"/>CROSSING <pc id="2">PAIR<ec startRef="1"/> OF</pc> TAGS <mrk')
    assert "Tailor MT</mrk>" in target_of(result["4"])
    assert report.kept == {"approved before": 1, 'translate="no"': 1}


def test_sizes_of_xliff_2_count_the_whole_unit(tmp_path: Path) -> None:
    space = 'xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0"'

    def unit(number: int, limit: str = "", *, kept: str = "") -> str:
        attribute = f'slr:sizeRestriction="{limit}"' if limit else ""
        before = f'<segment state="final"><source>x</source><target>{kept}</target></segment>' if kept else ""
        return f'<unit id="{number}" {space} {attribute}>{before}<segment><source>Eight ch</source></segment></unit>'

    for profile, doubts in (("xliff:codepoints", {"unit 1": 7, "unit 3": 7, "unit 6": 5, "unit 7": 10}), ("acme:pixels", {})):
        units = [
            f'<slr:profiles {space} generalProfile="{profile}"/>',
            unit(1, "7"), unit(2, "8"), unit(3, "2,7"), unit(4, "9,*"), unit(5, "much"),
            f'<group id="g" {space} slr:sizeRestriction="5">', unit(6),
            unit(7, "10", kept="abc"), unit(8, "11", kept="abc"), "</group>",
        ]  # fmt: skip
        _, report = through(tmp_path, "a.xlf", xliff2(units, target="de"), shout())
        assert {doubt["place"]: doubt["why"] for doubt in report.doubts} == {
            place: f"It is longer than {limit} characters." for place, limit in doubts.items()
        }


def test_xliff_for_other_languages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="translation into Chinese, not into German"):
        through(tmp_path, "a.xlf", xliff1(ONE), shout())
    with pytest.raises(DocumentError, match="translation from French, not from English"):
        through(tmp_path, "a.xlf", xliff2(TWO, source="fr", target="de"), shout())
    out, _ = through(tmp_path, "a.xlf", xliff1(ONE, target=""), shout())
    assert b'target-language="de"' in out


@given(st.recursive(
    st.sampled_from(["red ", "house ", "&amp; ", '<x id="0"/>', '<ph id="0">{a}</ph>', "now. ", "\n"]),
    lambda inner: st.lists(inner, max_size=4).map(lambda parts: '<g id="0">' + "".join(parts) + "</g>"), max_leaves=12,
))  # fmt: skip
def test_any_xliff_unit_keeps_its_elements(source: str) -> None:
    import itertools
    import tempfile

    number = itertools.count(1)
    source = re.sub('id="0"', lambda _: f'id="{next(number)}"', f"Say {source}")
    with tempfile.TemporaryDirectory() as folder:
        out, _ = through(
            Path(folder), "a.xlf", xliff1([f'<trans-unit id="1"><source>{source}</source></trans-unit>'], target="de"), reverse()
        )
    unit = units_of(out)["1"]
    before, after = ([(e.tag, e.get("id")) for e in unit.find(f"{{*}}{name}").iterdescendants()] for name in ("source", "target"))
    assert sorted(before) == sorted(after)


# -- Word

BOLD = "<w:rPr><w:b/></w:rPr>"
BODY = f"""
<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>A big </w:t></w:r>
<w:r w:rsidR="1"><w:rPr><w:lang w:val="en-US"/></w:rPr>
<w:t>heading</w:t></w:r></w:p>
<w:p><w:bookmarkStart w:id="0" w:name="a"/><w:r><w:t xml:space="preserve">The </w:t></w:r>
<w:r>{BOLD}<w:t>red house</w:t></w:r>
<w:bookmarkEnd w:id="0"/><w:r><w:t xml:space="preserve"> is open</w:t></w:r>
<w:r><w:footnoteReference w:id="2"/></w:r>
<w:r><w:t>.</w:t></w:r>
<w:r><w:br/></w:r>
<w:hyperlink w:anchor="x"><w:r><w:rPr><w:rStyle w:val="Hyperlink"/></w:rPr><w:t>Read on</w:t></w:r></w:hyperlink></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>A cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:p><w:r><w:t xml:space="preserve">Page </w:t></w:r>
<w:r><w:fldChar w:fldCharType="begin"/></w:r>
<w:r><w:instrText> PAGE </w:instrText></w:r>
<w:r><w:fldChar w:fldCharType="separate"/></w:r>
<w:r><w:t>12</w:t></w:r>
<w:r><w:fldChar w:fldCharType="end"/></w:r>
<w:r><w:t xml:space="preserve"> is last</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r>
<w:r><w:fldChar w:fldCharType="begin"/></w:r>
<w:r><w:instrText> HYPERLINK "http://a" </w:instrText></w:r>
<w:r><w:fldChar w:fldCharType="separate"/></w:r>
<w:r><w:t>the site</w:t></w:r>
<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>
<w:p><w:ins w:id="5" w:author="a"><w:r><w:t>New words</w:t></w:r></w:ins>
<w:del w:id="6" w:author="a"><w:r><w:delText>old words</w:delText></w:r></w:del></w:p>
<w:p><w:r><mc:AlternateContent>
<mc:Choice Requires="wps"><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Choice>
<mc:Fallback><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>
<w:r><w:t>beside it</w:t></w:r></w:p>"""


def word_text(data: bytes, member: str = "word/document.xml") -> list[list[tuple[str, str]]]:
    """Paragraphs as lists of (what, text): t for a text, b for a bold one, else the element's name."""
    from lxml import etree

    root = etree.fromstring(zipfile.ZipFile(io.BytesIO(data)).read(member))
    w = f"{{{W}}}"
    results = []
    for paragraph in root.iter(f"{w}p"):
        row = []
        for element in paragraph.iter():
            name = etree.QName(element).localname
            if next(element.iterancestors(f"{w}p"), paragraph) is not paragraph or name in ("r", "pPr", "pStyle", "rPr", "b", "p"):
                continue
            if name in ("t", "delText"):
                bold = element.getparent().find(f"{w}rPr/{w}b") is not None
                row.append(("b" if bold else name, element.text))
            else:
                row.append((name, ""))
        results.append(row)
    return results


def test_word(tmp_path: Path) -> None:
    notes = '<w:footnote w:id="2"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t>A note</w:t></w:r></w:p></w:footnote>'
    header = "<w:p><w:r><w:t>The header</w:t></w:r></w:p>"
    file = docx(BODY, tmp_path / "x.docx", footnotes=notes, header1=header)
    same, report = through(tmp_path, "a.docx", file.read_bytes(), identity())
    assert same == file.read_bytes()
    assert report.units == 11
    out, _ = through(tmp_path, "a.docx", file.read_bytes(), reverse())
    result = word_text(out)
    assert result[0] == [("t", "HEADING BIG A")]
    assert result[1] == [
        ("t", "OPEN"), ("footnoteReference", ""), ("t", ". IS "), ("bookmarkStart", ""), ("b", "HOUSE RED"), ("bookmarkEnd", ""),
        ("t", " THE"), ("br", ""), ("hyperlink", ""), ("rStyle", ""), ("t", "ON READ"),
    ] or result[1][-5:] == [("t", " THE"), ("br", ""), ("hyperlink", ""), ("rStyle", ""), ("t", "ON READ")]  # fmt: skip
    assert ("b", "HOUSE RED") in result[1]
    assert [name for name, _ in result[1]].count("footnoteReference") == 1
    assert result[2] == [("t", "CELL A")]
    assert [text for _, text in result[3] if text] == ["LAST IS ", "12", " PAGE"]
    assert [text for _, text in result[4] if text and "LINK" not in text] == ["SITE THE", " SEE"]
    assert [item for item in result[5] if item[1]] == [("t", "WORDS NEW"), ("delText", "old words")]
    assert [row for row in result[6:] if ("t", "BOX A IN") in row] == [[("t", "BOX A IN")]] * 2
    assert word_text(out, "word/footnotes.xml") == [[("footnoteRef", ""), ("t", "NOTE A")]]
    assert word_text(out, "word/header1.xml") == [[("t", "HEADER THE")]]


def test_word_opens_in_another_library(tmp_path: Path) -> None:
    library = pytest.importorskip("docx")
    document = library.Document()
    document.add_heading("My report", 1)
    paragraph = document.add_paragraph("This is ")
    paragraph.add_run("very bold").bold = True
    paragraph.add_run(" and ")
    paragraph.add_run("slanted").italic = True
    document.add_paragraph("First point", style="List Bullet")
    table = document.add_table(rows=1, cols=2, style="Table Grid")
    table.cell(0, 0).text, table.cell(0, 1).text = "Name", "Size of it"
    document.sections[0].header.paragraphs[0].text = "Secret paper"
    document.save(tmp_path / "made.docx")
    out, _ = through(tmp_path, "a.docx", (tmp_path / "made.docx").read_bytes(), reverse())
    read = library.Document(io.BytesIO(out))
    assert [(p.text, p.style.name) for p in read.paragraphs] == [
        ("REPORT MY", "Heading 1"), ("SLANTED AND BOLD VERY IS THIS", "Normal"), ("POINT FIRST", "List Bullet"),
    ]  # fmt: skip
    runs = read.paragraphs[1].runs
    assert [(run.text, bool(run.bold), bool(run.italic)) for run in runs] == [
        ("SLANTED", False, True), (" AND ", False, False), ("BOLD VERY", True, False), (" IS THIS", False, False),
    ]  # fmt: skip
    assert [cell.text for cell in read.tables[0].rows[0].cells] == ["NAME", "IT OF SIZE"]
    assert read.sections[0].header.paragraphs[0].text == "PAPER SECRET"


RUNS = st.lists(
    st.tuples(st.sampled_from(["red ", "house", " is", " ", "open. ", "{x}"]),
              st.sampled_from(["", "b", "i", "tab", "note", "link"])),
    min_size=1, max_size=8,
)  # fmt: skip


@given(RUNS)
def test_any_paragraph_of_runs_keeps_what_is_no_text(runs: list[tuple[str, str]]) -> None:
    import tempfile

    def run(text: str, kind: str) -> str:
        if kind == "tab":
            return "<w:r><w:tab/></w:r>"
        if kind == "note":
            return '<w:r><w:footnoteReference w:id="1"/></w:r>'
        inner = f'<w:r><w:rPr>{f"<w:{kind}/>" if kind in ("b", "i") else ""}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'
        return f'<w:hyperlink w:anchor="a">{inner}</w:hyperlink>' if kind == "link" else inner

    body = "<w:p>" + "".join(run(*item) for item in runs) + "</w:p><w:p><w:r><w:t>Last words</w:t></w:r></w:p>"
    with tempfile.TemporaryDirectory() as folder:
        file = docx(body, Path(folder) / "x.docx")
        out, _ = through(Path(folder), "a.docx", file.read_bytes(), reverse())
    pattern = r"<w:(tab|footnoteReference|hyperlink)\b"
    before, after = (
        re.findall(pattern, zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml").decode()) for data in (_bytes(body), out)
    )
    assert sorted(before) == sorted(after)
    result = "".join(text for _, text in word_text(out)[0])
    # A word that touches a placeholder is one with it, and stays: "%dpx".
    message = "".join(text for text, kind in runs if kind not in ("tab", "note"))
    assert sorted(result.replace(" ", "").lower()) == sorted(message.replace(" ", "").lower())


def _bytes(body: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return docx(body, Path(folder) / "x.docx").read_bytes()


# -- OpenDocument

ODT = (
    '<text:h text:outline-level="1">A big heading</text:h>'
    '<text:p text:style-name="P1">The <text:span text:style-name="T1">red house</text:span> is open<text:note text:id="n1" '
    'text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>A note</text:p></text:note-body>'
    '</text:note>.<text:line-break/>A<text:s text:c="2"/>line on page <text:page-number>3</text:page-number></text:p>'
    "<text:p><office:annotation><text:p>a comment</text:p></office:annotation>Said</text:p>"
)


def test_open_document(tmp_path: Path) -> None:
    from lxml import etree

    file = odt(ODT, tmp_path / "x.odt")
    same, _ = through(tmp_path, "a.odt", file.read_bytes(), identity())
    assert same == file.read_bytes()
    out, report = through(tmp_path, "a.odt", file.read_bytes(), reverse())
    assert report.units == 4
    result = zipfile.ZipFile(io.BytesIO(out))
    assert result.namelist()[0] == "mimetype"
    text = result.read("content.xml").decode()
    assert '<text:h text:outline-level="1">HEADING BIG A</text:h>' in text
    assert '<text:span text:style-name="T1">HOUSE RED</text:span> THE<text:line-break/>' in text
    assert "<text:note-body><text:p>NOTE A</text:p></text:note-body>" in text
    assert "<text:page-number>3</text:page-number> PAGE ON LINE A</text:p>" in text
    assert "<text:p>a comment</text:p></office:annotation>SAID</text:p>" in text
    etree.fromstring(text.encode())
