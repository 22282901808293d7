"""Translators' and writers' formats: TMX, XLIFF, PO, DOCX, ODT, SRT, PDF, as programs write them and as they arrive damaged."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora import CorpusOptions, ImportReport, import_corpus
from engine.corpora.clean import clean
from engine.corpora.inline_tags import without_tags
from engine.corpora.mojibake import is_garbled
from engine.errors import CorpusError
from tests.documents import docx, odt, pdf, tmx, word_paragraph, xliff1, xliff2
from tests.properties import few

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
LETTERS = [line.split("\t") for line in (SAMPLES / "letters-de-en" / "letters.tsv").read_text(encoding="utf-8").splitlines()][1:]
EN = (SAMPLES / "it-help-en" / "it-help.txt").read_text(encoding="utf-8").splitlines()
ZH = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()
PLAIN = CorpusOptions(check_language=False, deduplicate=False, min_chars=1)
FORMATS = [".tmx", ".xlf", ".po", ".docx", ".odt", ".srt", ".pdf"]


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def read(path: Path, language: str = "zh", source: str | None = "en", **options: object) -> list[tuple[str, str | None]]:
    chosen = CorpusOptions.from_mapping({"check_language": False, **options})
    return [(s.text, s.source) for s in import_corpus([path], language, source_language=source, options=chosen).segments]


def skips(report: ImportReport) -> dict[str, list[int]]:
    return {reason: [line for line, _ in examples] for reason, examples in report.files[0].examples.items()}


# --- TMX


def test_a_real_memory_both_ways(tmp_path: Path) -> None:
    path = write(tmp_path / "letters.tmx", tmx([(a, b) for a, b in LETTERS], "de-DE", "en-GB"))
    for source, target, order in (("de", "en", 1), ("en", "de", -1)):
        corpus = import_corpus([path], target, source_language=source)
        assert [(s.source, s.text) for s in corpus.segments] == [tuple(pair[::order]) for pair in LETTERS]
        assert corpus.report.files[0].found == {"de": len(LETTERS), "en": len(LETTERS)}
    text = path.read_text(encoding="utf-8").splitlines()
    for segment in corpus.segments[:20]:
        assert escape(segment.text) in text[segment.line - 1], "the line is that of the text in the file"


def test_codes_of_tmx_are_dropped_or_numbered(tmp_path: Path) -> None:
    left = '<bpt i="1" x="1">&lt;b&gt;</bpt>Press<ept i="1">&lt;/b&gt;</ept> the <hi>key</hi> <ph x="2">{\\img}</ph>now.'
    right = '现在<ph x="2">{\\img}</ph>按下<bpt i="1" x="1">&lt;b&gt;<sub>not mine</sub></bpt>那个键<ept i="1">&lt;/b&gt;</ept>。'
    path = write(tmp_path / "a.tmx", tmx([(left, right)], raw=True))
    assert read(path) == [("现在按下那个键。", "Press the key now.")]
    (pair,) = read(path, inline_tags="placeholders")
    assert pair == ("现在{3}按下{1}那个键{/1}。", "{1}Press{/1} the {2}key{/2} {3}now.")


def test_other_languages_of_a_memory_are_counted_and_passed_over(tmp_path: Path) -> None:
    body = tmx([("Good day to you.", "你好，先生。")]).replace(
        "</tu>", '<tuv xml:lang="fr"><seg>Bonjour.</seg></tuv></tu><tu><tuv xml:lang="fr"><seg>Bonsoir.</seg></tuv></tu>'
    )
    corpus = import_corpus([write(tmp_path / "a.tmx", body)], "zh", source_language="en", options=PLAIN)
    assert [(s.text, s.source) for s in corpus.segments] == [("你好，先生。", "Good day to you.")]
    assert corpus.report.skipped == {"in other languages": 1}
    assert corpus.report.files[0].found == {"en": 1, "zh": 1, "fr": 2}
    with pytest.raises(CorpusError, match="the file says that it holds French, English, Chinese, not German"):
        import_corpus([tmp_path / "a.tmx"], "de", source_language="en")


def test_the_very_variant_comes_before_others_of_its_language(tmp_path: Path) -> None:
    text = tmx([("The software is free.", "軟體是免費的。")], target="zh-TW").replace(
        "</tu>", '<tuv xml:lang="zh-CN"><seg>软件是免费的。</seg></tuv></tu>'
    )
    path = write(tmp_path / "a.tmx", text)
    assert read(path, "zh-TW")[0][0] == "軟體是免費的。"
    assert read(path, "zh-CN")[0][0] == "软件是免费的。"


def test_domains_come_from_properties(tmp_path: Path) -> None:
    text = tmx([("A contract is made.", "合同已订立。")]).replace("<note>", '<prop type="x-domain">law</prop><note>')
    corpus = import_corpus([write(tmp_path / "a.tmx", text)], "zh", source_language="en", options=PLAIN)
    assert corpus.report.domains == {"law": 1}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030", "gbk", "big5", "iso-8859-1"])
def test_encodings_that_xml_declares(tmp_path: Path, encoding: str) -> None:
    pair = ("The letter was sent.", "信已寄出。") if encoding != "iso-8859-1" else ("The letter.", "Der schöne Brief.")
    code = "zh" if encoding != "iso-8859-1" else "de"
    text = tmx([pair], target=code).replace('encoding="UTF-8"', f'encoding="{encoding.removesuffix("-sig")}"')
    assert read(write(tmp_path / "a.tmx", text, encoding), code) == [pair[::-1]]


def test_characters_that_xml_forbids_cost_nothing(tmp_path: Path) -> None:
    text = tmx([("One.\x0b Two.", "一句&#x1F;话。二\x02句话。")], raw=True)
    assert read(write(tmp_path / "a.tmx", text)) == [("一句 话。二 句话。", "One. Two.")]


def test_entities_are_refused_and_nothing_is_fetched(tmp_path: Path) -> None:
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "lol"}">' for i in range(10))
    bomb = tmx([("a", "&l9;")], raw=True).replace('SYSTEM "tmx14.dtd"', f"[{lol}]")
    with pytest.raises(CorpusError, match=r"a\.tmx, line 2: it declares an XML entity, which is refused"):
        read(write(tmp_path / "a.tmx", bomb))
    outside = tmx([("a", "&x;")], raw=True).replace('SYSTEM "tmx14.dtd"', '[<!ENTITY x SYSTEM "file:///etc/passwd">]')
    with pytest.raises(CorpusError, match="declares an XML entity"):
        read(write(tmp_path / "b.tmx", outside))
    entities = tmx([("Fish &amp; chips &eacute;t&unknown;", "炸鱼和薯条。")], raw=True)
    assert read(write(tmp_path / "c.tmx", entities)) == [("炸鱼和薯条。", "Fish & chips ét")]


def test_damaged_xml_is_named_with_its_line(tmp_path: Path) -> None:
    good = tmx([(a, b) for a, b in LETTERS[:5]], "de", "en")
    broken = good.replace("</tuv>", "</tu>", 3)
    with pytest.raises(CorpusError, match=r"a\.tmx, line 8: the XML is damaged \(mismatched tag\)"):
        read(write(tmp_path / "a.tmx", broken), "en", "de")
    with pytest.raises(CorpusError, match=r"line \d+: the XML is damaged"):
        read(write(tmp_path / "b.tmx", good[: len(good) // 2]), "en", "de")
    with pytest.raises(CorpusError, match="is not a TMX file: its first element is html"):
        read(write(tmp_path / "c.tmx", "<html><body/></html>"))
    with pytest.raises(CorpusError, match="nested more than 500 deep"):
        read(write(tmp_path / "d.tmx", "<a>" * 2000))


@pytest.mark.slow
def test_a_large_memory_does_not_sit_in_memory(tmp_path: Path) -> None:
    pairs = [(f"Number {i} of the long list is here, and so it goes on.", f"这里是长长的清单里的第{i}号。") for i in range(20_000)]
    path = write(tmp_path / "a.tmx", tmx(pairs))
    size = path.stat().st_size
    from engine.corpora.formats.records import Request
    from engine.corpora.formats.tmx import read_tmx

    tracemalloc.start()
    reading = read_tmx(path, Request("zh", "en"))
    count = sum(1 for _ in reading.items)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_000
    assert reading.position() == size > 4_000_000
    assert peak < 2_000_000


# --- XLIFF

UNIT = '<trans-unit id="{0}"{3}><source>{1}</source><target{4}>{2}</target></trans-unit>'


def unit(number: int, source: str, target: str, attributes: str = "", state: str = "") -> str:
    return UNIT.format(number, source, target, attributes, f' state="{state}"' if state else "")


def test_xliff_1_units_alternatives_states(tmp_path: Path) -> None:
    units = [
        unit(1, 'Press <g id="1">Open</g><x id="2"/>.', '按<x id="2"/><g id="1">打开</g>。'),
        unit(2, "Not yet.", "Not yet.", state="needs-translation"),
        unit(3, "ACME", "ACME 公司", ' translate="no"'),
        '<trans-unit id="4"><source>No translation here.</source></trans-unit>',
        '<trans-unit id="5"><source>Save the file.</source><target>保存文件。</target>'
        "<alt-trans><source>Save file</source><target>不要这一句。</target></alt-trans><note>a note</note></trans-unit>",
    ]
    path = write(tmp_path / "a.xlf", xliff1(units))
    corpus = import_corpus([path], "zh", source_language="en", options=PLAIN)
    assert [(s.text, s.source) for s in corpus.segments] == [("按打开。", "Press Open."), ("保存文件。", "Save the file.")]
    assert skips(corpus.report) == {
        "tags, removed": [4],
        "not translated yet": [5],
        "not to be translated": [6],
        "no translation": [7],
    }
    assert read(path, inline_tags="placeholders")[0] == ("按{2}{1}打开{/1}。", "Press {1}Open{/1}{2}.")


def test_xliff_of_the_other_direction_and_without_target_language(tmp_path: Path) -> None:
    units = [unit(i, en, zh) for i, (en, zh) in enumerate(zip(EN[:3], ZH[:3], strict=True))]
    turned = write(tmp_path / "a.xliff", xliff1(units, "en", "zh"))
    assert read(turned, "en", "zh") == list(zip(EN[:3], ZH[:3], strict=True))
    template = write(tmp_path / "b.xliff", xliff1([f'<trans-unit id="1"><source>{EN[0]}</source></trans-unit>'], "en", ""))
    assert read(template, "en", "zh") == [(EN[0], None)]
    with pytest.raises(CorpusError, match="the file says that it holds English, Chinese, not German"):
        read(turned, "de", "en")


def test_segments_of_sdlxliff_are_pairs_of_their_own(tmp_path: Path) -> None:
    body = (
        '<trans-unit id="1"><source>First one. Second one.</source>'
        '<seg-source><mrk mtype="seg" mid="1">First one.</mrk> '
        '<mrk mtype="seg" mid="2">Second <g id="5">one</g>.</mrk></seg-source>'
        '<target><mrk mtype="seg" mid="1">第一句话。</mrk>'
        '<mrk mtype="seg" mid="2">第二<g id="5">句</g>话。</mrk></target></trans-unit>'
    )
    assert read(write(tmp_path / "a.sdlxliff", xliff1([body]))) == [("第一句话。", "First one."), ("第二句话。", "Second one.")]


def test_xliff_2(tmp_path: Path) -> None:
    units = [
        '<unit id="1"><originalData><data id="d1">&lt;b&gt;</data></originalData><segment state="final">'
        '<source>Press <pc id="1" dataRefStart="d1">Open</pc><ph id="2"/>.</source>'
        '<target>按<sc id="1"/>打开<ec startRef="1"/><ph id="2"/>。</target></segment>'
        "<ignorable><source> </source></ignorable>"
        '<segment><source>Then <mrk id="m" type="term">wait</mrk>.</source><target>然后等待。</target></segment></unit>',
        '<unit id="2"><segment state="initial"><source>Undone.</source><target>Undone.</target></segment>'
        "<mtc:matches><mtc:match><source>Other.</source><target>别的。</target></mtc:match></mtc:matches></unit>",
        '<unit id="3" translate="no"><segment><source>X1</source><target>X1 型</target></segment></unit>',
    ]
    path = write(tmp_path / "a.xlf", xliff2(units))
    assert read(path) == [("按打开。", "Press Open."), ("然后等待。", "Then wait.")]
    assert read(path, inline_tags="placeholders")[0] == ("按{1}打开{/1}{2}。", "Press {1}Open{/1}{2}.")


# --- PO


def test_po_messages_plurals_fuzzy_obsolete(tmp_path: Path) -> None:
    po = polib.POFile()
    po.metadata = {"Language": "zh_CN", "Content-Type": "text/plain; charset=UTF-8", "X-Accelerator-Marker": "&"}
    po.append(polib.POEntry(msgid="&Open the file", msgstr="打开文件(&O)"))
    po.append(polib.POEntry(msgid="%d file was copied", msgid_plural="%d files were copied", msgstr_plural={0: "已复制 %d 个文件"}))
    po.append(polib.POEntry(msgid="Maybe this", msgstr="也许是这个", flags=["fuzzy"]))
    po.append(polib.POEntry(msgid="Not yet", msgstr=""))
    po.append(polib.POEntry(msgid="Gone", msgstr="已经没有了", obsolete=True))
    path = tmp_path / "zh.po"
    po.save(str(path))
    corpus = import_corpus([path], "zh", source_language="en", options=PLAIN)
    assert [(s.text, s.source) for s in corpus.segments] == [
        ("打开文件(O)", "Open the file"),
        ("已复制 %d 个文件", "%d files were copied"),
    ]
    assert set(corpus.report.skipped) == {"fuzzy: not checked by the translator", "no translation", "obsolete"}
    assert corpus.report.noticed == {"tags, links or placeholders": 1}


def test_damaged_po_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"a\.po, line 4: this is not a well-formed PO file"):
        read(write(tmp_path / "a.po", 'msgid ""\nmsgstr ""\n\nthis is no message\n'))
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\nmsgid "a"\nmsgstr "'
    (tmp_path / "b.po").write_bytes(header.encode() + "你好".encode("gb18030") + b'"\n')
    with pytest.raises(CorpusError, match="declares the encoding utf-8 but does not use it"):
        read(tmp_path / "b.po")


# --- DOCX and ODT


def test_word_text_as_the_author_sees_it(tmp_path: Path) -> None:
    body = (
        word_paragraph("Contents", style="TOC1")
        + word_paragraph("The night was ", "cold", " and still.", style="Heading1")
        + '<w:p><w:r><w:t>Kept</w:t></w:r><w:ins><w:r><w:t xml:space="preserve"> and added</w:t></w:r></w:ins>'
        "<w:del><w:r><w:delText> and gone</w:delText></w:r></w:del><w:moveFrom><w:r><w:t> moved</w:t></w:r></w:moveFrom>"
        "<w:r><w:tab/><w:instrText>PAGEREF _Toc1</w:instrText><w:t>here.</w:t><w:br/><w:t>After the break.</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc>" + word_paragraph("A cell of a table.") + "</w:tc></w:tr></w:tbl>"
        "<w:p><mc:AlternateContent><mc:Choice><w:txbxContent>" + word_paragraph("In a text box.") + "</w:txbxContent></mc:Choice>"
        "<mc:Fallback><w:txbxContent>" + word_paragraph("In a text box.") + "</w:txbxContent></mc:Fallback></mc:AlternateContent>"
        "<w:r><w:t>Around the box.</w:t></w:r></w:p>"
    )
    path = docx(body, tmp_path / "a.docx", footnotes=f'<w:footnote w:id="1">{word_paragraph("A note below.")}</w:footnote>')
    corpus = import_corpus([path], "en", options=PLAIN)
    assert corpus.texts() == [
        "The night was cold and still.",
        "Kept and added here. After the break.",
        "A cell of a table.",
        "In a text box.",
        "Around the box.",
        "A note below.",
    ] or corpus.texts()[1:3] == ["Kept and added here.", "After the break."]
    assert corpus.report.skipped == {"table of contents": 1}
    assert corpus.report.files[0].unit == "paragraph"
    assert corpus.segments[0].line == 2


def test_open_document_text(tmp_path: Path) -> None:
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>Deleted.</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        "<text:table-of-content><text:index-body><text:p>The first chapter 3</text:p></text:index-body></text:table-of-content>"
        '<text:h text:outline-level="1">The first chapter</text:h>'
        '<text:p>He said<text:s text:c="2"/>no<text:note><text:note-citation>1</text:note-citation><text:note-body>'
        "<text:p>In a note.</text:p></text:note-body></text:note>, and<text:line-break/><text:span>went</text:span>"
        "<office:annotation><dc:creator>Ann</dc:creator><text:p>A comment.</text:p></office:annotation>.</text:p>"
        "<text:p><draw:frame><svg:title>A picture</svg:title></draw:frame>Under the picture.</text:p>"
    )
    corpus = import_corpus([odt(body, tmp_path / "a.odt")], "en", options=PLAIN)
    assert corpus.texts() == ["The first chapter", "In a note.", "He said no, and went.", "Under the picture."]
    assert corpus.report.skipped == {"table of contents": 1}


@pytest.mark.parametrize(("name", "word"), [("a.docx", "Word document"), ("a.odt", "OpenDocument text")])
def test_documents_that_are_none(tmp_path: Path, name: str, word: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(CorpusError, match="protected by a password, or of an older format"):
        read(path)
    path.write_bytes(b"plain text")
    with pytest.raises(CorpusError, match=f"not a readable {word}: it is damaged, or another kind of file"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.xml", "<a/>")
    with pytest.raises(CorpusError, match=f"is not an? {word}"):
        read(path)


def test_archives_that_would_fill_a_disk_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = docx(word_paragraph("x" * 30_000_000), tmp_path / "bomb.docx")
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    with pytest.raises(CorpusError, match=r"would unpack to 29 MiB, up to 1,0\d\d times its size"):
        read(path, "en")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
    with zipfile.ZipFile(tmp_path / "many.docx", "w") as archive:
        for i in range(10_001):
            archive.writestr(f"{i}", "")
    with pytest.raises(CorpusError, match="10,001 files"):
        read(tmp_path / "many.docx")


def test_entities_in_documents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>')
    with pytest.raises(CorpusError, match=r"a\.docx \(word/document\.xml\), line 1: it declares an XML entity"):
        read(path)


# --- SRT

SRT = """1
00:00:01,000 --> 00:00:02,500
<i>I thought you were</i>

2
00:00:02,600 --> 00:00:04,000
{\\an8}coming home
before the rain.

3
00:00:05,000 --> 00:00:06,000
- Did you see him?
- No. Nobody did.

4
00:00:09,000 --> 00:00:10,000
1984
was a good year.
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_subtitles(tmp_path: Path, end: str) -> None:
    path = write(tmp_path / "a.srt", "\ufeff" + SRT.replace("\n", end))
    corpus = import_corpus([path], "en", options=PLAIN)
    assert corpus.texts() == [
        "I thought you were coming home before the rain.",
        "Did you see him?",
        "No.",
        "Nobody did.",
        "1984 was a good year.",
    ]
    assert [s.line for s in corpus.segments] == [2, 11, 11, 11, 16]
    with pytest.raises(CorpusError, match="contains no subtitles"):
        read(write(tmp_path / "b.srt", "Only text.\n"), "en")


def test_chinese_subtitles_are_not_run_together(tmp_path: Path) -> None:
    cues = "".join(
        f"{i}\n00:00:0{i},000 --> 00:00:0{i},900\n{text}\n\n" for i, text in enumerate(["你去哪儿", "我去北京", "路上小心"], 1)
    )
    assert [t for t, _ in read(write(tmp_path / "a.srt", cues, "gb18030"))] == ["你去哪儿", "我去北京", "路上小心"]


# --- PDF


def test_pdf_paragraphs_without_heads_and_numbers(tmp_path: Path) -> None:
    pages = [
        [
            "The Long Book",
            "The night was cold and the wind was high, and no-",
            "body in the village slept before the morning came",
            "at last over the hills.",
            "1",
        ],
        [
            "The Long Book",
            "Then the bells rang and all the people went out to",
            "see what had come down the river in the dark, and",
            "2",
        ],
        ["The Long Book", "they were glad of it.", "3"],
    ]
    corpus = import_corpus([pdf(pages, tmp_path / "a.pdf")], "en", options=PLAIN)
    assert corpus.texts() == [
        "The night was cold and the wind was high, and nobody in the village slept before the morning came at last over the hills.",
        "Then the bells rang and all the people went out to see what had come down the river in the dark, and they were "
        "glad of it.",
    ]
    assert [s.line for s in corpus.segments] == [1, 2]
    assert corpus.report.files[0].unit == "page"


def test_headings_stand_alone_and_chinese_goes_on_over_the_page() -> None:
    from engine.corpora.formats.pdf import paragraphs

    lines = [
        "秋天的夜",
        "那天夜里下着雨，他坐在窗前，听着雨点打在瓦上的声音，",
        "心里却并不觉得凄凉，反倒有几分安静。",
        "第二天早晨，雨停了，",
    ]
    assert list(paragraphs(lines)) == [lines[0], lines[1] + lines[2], lines[3]]


def test_pdf_without_text_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="contains no text, only pictures of pages"):
        read(pdf([[], []], tmp_path / "a.pdf"), "en")
    content = pdf([["A line of text."]], tmp_path / "b.pdf").read_bytes()
    (tmp_path / "c.pdf").write_bytes(content[:120])
    with pytest.raises(CorpusError, match=r"c\.pdf: the PDF is damaged"):
        read(tmp_path / "c.pdf", "en")


def test_a_pdf_with_a_password(tmp_path: Path) -> None:
    import pypdf

    writer = pypdf.PdfWriter(clone_from=pdf([["A line of text."]], tmp_path / "a.pdf"))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "b.pdf")
    with pytest.raises(CorpusError, match="protected by a password"):
        read(tmp_path / "b.pdf", "en")


# --- all of them

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Co", "Cn"]), max_size=30) | st.sampled_from(
    ["a < b & c", "<b>bold</b> text", "&amp;", "]]>", "&#x41;", "{0} %s", "“他说”", "x\u200by", "<!-- no -->", "<x id='1'/>"]
)
SENTENCE = st.builds("He {} it.".format, WORDS).filter(lambda text: not is_garbled(text))


def expected(text: str) -> str:
    return clean(without_tags(text))


@few
@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=6))
def test_what_is_written_is_read_back(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    expected_pairs = [(expected(right), expected(left)) for left, right in pairs]
    contents = {
        "a.tmx": tmx(pairs, "de", "en"),
        "a.xlf": xliff1([unit(i, escape(a), escape(b)) for i, (a, b) in enumerate(pairs)], "de", "en"),
        "b.xlf": xliff2(
            [f"<unit><segment><source>{escape(a)}</source><target>{escape(b)}</target></segment></unit>" for a, b in pairs],
            "de", "en",
        ),
    }  # fmt: skip
    po = polib.POFile(wrapwidth=0)
    po.metadata = {"Language": "en", "Content-Type": "text/plain; charset=UTF-8"}
    for i, (a, b) in enumerate(pairs):
        po.append(polib.POEntry(msgid=a, msgstr=b, msgctxt=str(i)))
    contents["a.po"] = str(po)
    for name, text in contents.items():
        result = import_corpus([write(tmp_path / name, text)], "en", source_language="de", options=PLAIN)
        assert [(s.text, s.source) for s in result.segments] == expected_pairs, name


@few
@given(st.lists(SENTENCE, min_size=1, max_size=6))
def test_paragraphs_are_read_back(tmp_path: Path, texts: list[str]) -> None:
    expected_texts = [expected(text) for text in texts]
    options = PLAIN.replace(split_sentences=False)
    documents = [
        docx("".join(word_paragraph(text[:4], text[4:]) for text in texts), tmp_path / "a.docx"),
        odt("".join(f"<text:p>{escape(text)}</text:p>" for text in texts), tmp_path / "a.odt"),
    ]
    for path in documents:
        assert import_corpus([path], "en", options=options).texts() == expected_texts


@few
@given(data=st.data(), ending=st.sampled_from(FORMATS))
def test_damage_gives_a_corpus_or_one_sentence(tmp_path: Path, data: st.DataObject, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    pairs = [(a, b) for a, b in LETTERS[:4]]
    if ending == ".tmx":
        write(path, tmx(pairs, "de", "en"))
    elif ending == ".xlf":
        write(path, xliff1([unit(i, a, b) for i, (a, b) in enumerate(pairs)], "de", "en"))
    elif ending == ".po":
        write(path, "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in pairs))
    elif ending == ".docx":
        docx("".join(word_paragraph(b) for _, b in pairs), path)
    elif ending == ".odt":
        odt("".join(f"<text:p>{b}</text:p>" for _, b in pairs), path)
    elif ending == ".srt":
        write(path, SRT)
    else:
        pdf([[b for _, b in pairs]], path)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        position = data.draw(st.integers(0, len(raw) - 1))
        change = data.draw(st.sampled_from(["set", "cut", "drop", "double"]))
        if change == "set":
            raw[position] = data.draw(st.integers(0, 255))
        elif change == "cut":
            del raw[position:]
        elif change == "drop":
            del raw[position : position + data.draw(st.integers(1, 40))]
        else:
            raw[position:position] = raw[position : position + 60]
        if not raw:
            raw = bytearray(b" ")
    path.write_bytes(bytes(raw))
    try:
        corpus = import_corpus([path], "en", source_language="de", options=CorpusOptions(check_language=False))
    except CorpusError as error:
        text = str(error)
    else:
        text = f"{path.name} was read."
        report = corpus.report
        assert report.segments == report.kept + sum(report.skipped.values())
        assert not any(mark in s.text for s in corpus.segments for mark in ("</seg>", "<w:", "<text:"))
    assert path.name in text
    assert str(path.parent) not in text
    assert "\n" not in text
    assert text.endswith(".")


@few
@given(data=st.binary(min_size=1, max_size=400), ending=st.sampled_from(FORMATS))
def test_any_bytes_give_a_corpus_or_one_sentence(tmp_path: Path, data: bytes, ending: str) -> None:
    path = tmp_path / f"any{ending}"
    path.write_bytes(data)
    text = path.name
    try:
        import_corpus([path], "en")
    except CorpusError as error:
        text = str(error)
    assert path.name in text
    assert str(path.parent) not in text
    assert "\n" not in text
