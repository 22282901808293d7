"""PowerPoint presentations through translators whose words are known."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from engine.corpora.formats.documents.formats import open_document
from engine.corpora.formats.documents.model import Context, DocumentError
from tests.documents import A, drawn_run, links, package, pptx, shape, slide
from tests.translators import identity, reverse, shout
from tests.unit.workflows.test_documents import through

BOLD = '<a:rPr lang="en-US" b="1" err="1"/>'
LINK = '<a:rPr lang="en-US"><a:hlinkClick r:id="r7"/></a:rPr>'
FIELD = '<a:fld id="{1}" type="slidenum"><a:rPr lang="en-US"/><a:t>12</a:t></a:fld>'
END = '<a:endParaRPr lang="en-US"/>'


def texts(data: bytes, part: str) -> list[str]:
    """The texts of a part's paragraphs; <b> is bold, | a break, [] what is no run."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        root = etree.fromstring(archive.read(part))
    results = []
    for paragraph in root.iter(f"{{{A}}}p"):
        line = ""
        for child in paragraph:
            name = etree.QName(child).localname
            text = child.findtext(f"{{{A}}}t") or ""
            if name == "r":
                bold = child.find(f"{{{A}}}rPr") is not None and child.find(f"{{{A}}}rPr").get("b") == "1"
                line += f"<{text}>" if bold else text
            elif name == "br":
                line += "|"
            elif name == "fld":
                line += f"[{text}]"
        results.append(line)
    return results


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_slide_keeps_looks_breaks_fields_and_order(tmp_path: Path) -> None:
    body = shape(
        f'<a:pPr lvl="1"/>{drawn_run("The ")}{drawn_run("red house", BOLD)}{drawn_run(" is ")}{drawn_run("open.")}'
        f"<a:br><a:rPr/></a:br>{drawn_run('Read ')}{drawn_run('this page', LINK)}{END}",
        drawn_run("Area in m", "") + drawn_run("2", '<a:rPr baseline="30000"/>') + drawn_run(" is small", ""),
        drawn_run("Slide number ") + FIELD + END,
        FIELD,
        END,
    )
    file = pptx([body], tmp_path / "x.pptx").read_bytes()
    same, report = through(tmp_path, "a.pptx", file, identity())
    assert same == file
    assert (report.title, report.units) == ("PowerPoint presentation", 3)
    out, _ = through(tmp_path, "a.pptx", file, reverse())
    part = "ppt/slides/slide1.xml"
    assert texts(out, part) == ["OPEN. IS <HOUSE RED> THE|PAGE THIS READ", "SMALL IS M2 IN AREA", "[12] NUMBER SLIDE", "[12]", ""]
    result = members(out)[part].decode()
    first = etree.fromstring(result.encode()).find(f".//{{{A}}}p")
    assert [etree.QName(child).localname for child in (first[0], first[-1])] == ["pPr", "endParaRPr"]
    assert re.search(r"<a:hlinkClick r:id=\"r7\"/></a:rPr><a:t>PAGE THIS</a:t>", result)
    assert result.count("hlinkClick") == 1
    assert '<a:rPr lang="de" b="1"/><a:t>HOUSE RED' in result
    assert "xml:space" not in result
    assert "ns0" not in result
    assert {name for name, data in members(out).items() if members(file)[name] != data} == {part}


GROUP = (
    f"<p:grpSp><p:grpSpPr/><p:grpSp>{shape(drawn_run('In a group'))}</p:grpSp></p:grpSp>"
    "<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr><a:tc><a:txBody><a:p>"
    f"{drawn_run('A cell')}</a:p></a:txBody></a:tc></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
)
DRAWN = f'<x xmlns:a="{A}"><y><a:p>{{}}</a:p></y><v>Series name</v></x>'


def test_groups_tables_notes_charts_diagrams_and_layouts(tmp_path: Path) -> None:
    parts: dict[str, str | bytes] = {
        "ppt/slides/_rels/slide1.xml.rels": links(
            ("slideLayout", "../slideLayouts/slideLayout1.xml"),
            ("notesSlide", "../notesSlides/notesSlide1.xml"),
            ("chart", "/ppt/charts/chart1.xml"),
            ("diagramData", "../diagrams/data1.xml"),
            ("image", "../media/missing.png"),
            ("chart", "../charts/missing.xml"),
        ),
        "ppt/notesSlides/notesSlide1.xml": slide(shape(drawn_run("Say this")), "notes"),
        "ppt/notesSlides/_rels/notesSlide1.xml.rels": links(("slide", "../slides/slide2.xml")),
        "ppt/charts/chart1.xml": DRAWN.format(drawn_run("Chart title")),
        "ppt/diagrams/data1.xml": DRAWN.format(drawn_run("A step")),
        "ppt/slideLayouts/slideLayout1.xml": slide(
            shape(drawn_run("Click to edit"), placeholder="title") + shape(drawn_run("Our company")), "sldLayout"
        ),
        "ppt/slideLayouts/_rels/slideLayout1.xml.rels": links(("slideMaster", "../slideMasters/slideMaster1.xml")),
        "ppt/slideMasters/slideMaster1.xml": slide(shape(drawn_run("Secret paper")), "sldMaster"),
        "ppt/slideLayouts/slideLayout2.xml": slide(shape(drawn_run("Unused")), "sldLayout"),
        "ppt/media/image1.png": bytes(range(256)),
    }
    file = pptx([GROUP, shape(drawn_run("The first"))], tmp_path / "a.pptx", parts, order=[2, 1])
    document = open_document(file, Context("a.pptx", "en", "de"))
    assert [(unit.location, unit.text) for unit in document.units] == [
        ("slide 1, paragraph 1", "The first"),
        ("slide 2, paragraph 1", "In a group"),
        ("slide 2, paragraph 2", "A cell"),
        ("slide 2, notes, paragraph 1", "Say this"),
        ("slide 2, chart, paragraph 1", "Chart title"),
        ("slide 2, diagram, paragraph 1", "A step"),
        ("layout, paragraph 2", "Our company"),
        ("master, paragraph 1", "Secret paper"),
    ]
    out, _ = through(tmp_path, "a.pptx", file.read_bytes(), shout())
    before, after = members(file.read_bytes()), members(out)
    assert list(before) == list(after)
    assert texts(out, "ppt/slideLayouts/slideLayout1.xml") == ["Click to edit", "OUR COMPANY"]
    assert b"CHART TITLE" in after["ppt/charts/chart1.xml"]
    assert b"<v>Series name</v>" in after["ppt/charts/chart1.xml"]
    for name in ("ppt/presentation.xml", "ppt/media/image1.png", "ppt/slideLayouts/slideLayout2.xml", "_rels/.rels"):
        assert before[name] == after[name]


def test_tabs_and_line_ends_stand_between_sentences(tmp_path: Path) -> None:
    words = shout()
    file = pptx([shape(drawn_run("Name\tAge_x000B_Total sum"))], tmp_path / "x.pptx").read_bytes()
    out, _ = through(tmp_path, "a.pptx", file, words)
    assert sorted(sentence for batch in words.asked for sentence in batch) == ["Age", "Name", "Total sum"]
    text = "".join(etree.fromstring(members(out)["ppt/slides/slide1.xml"]).itertext())
    assert text == "NAME\tAGE_x000B_TOTAL SUM"


def test_what_is_no_presentation_is_refused_in_a_sentence(tmp_path: Path) -> None:
    def refused(file: Path, words: str) -> None:
        with pytest.raises(DocumentError, match=words) as error:
            open_document(file, Context(file.name, "en", "de"))
        assert str(error.value).endswith(".")

    good = pptx([shape(drawn_run("Words"))], tmp_path / "good.pptx").read_bytes()
    refused(package(tmp_path / "a.pptx", "xl/workbook.xml", {"xl/workbook.xml": "<workbook/>"}), "not a PowerPoint")
    refused(package(tmp_path / "b.pptx", "ppt/presentation.xml", {}), "not a PowerPoint presentation")
    refused(pptx([], tmp_path / "c.pptx"), "no text to translate")
    refused(pptx(["<p:sp>"], tmp_path / "d.pptx"), r"slide1\.xml: the XML is damaged")
    refused(pptx([""], tmp_path / "e.pptx", order=[2, 1]), "slide 1 is missing")
    deep = "<p:grpSp>" * 300 + "</p:grpSp>" * 300
    refused(pptx([deep], tmp_path / "f.pptx"), "damaged|too deep")
    (tmp_path / "g.pptx").write_bytes(good[: len(good) // 2])
    refused(tmp_path / "g.pptx", "cannot be opened")
    (tmp_path / "h.pptx").write_bytes(b"\xd0\xcf\x11\xe0 old")
    refused(tmp_path / "h.pptx", "has a password, or an older format")
    refused(pptx([" " * (64 << 20)], tmp_path / "i.pptx"), "not opened")
    with zipfile.ZipFile(tmp_path / "j.pptx", "w") as archive:
        archive.writestr("ppt/presentation.xml", "<a/>")
    refused(tmp_path / "j.pptx", "not a PowerPoint presentation")
    entity = {"ppt/slides/slide1.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}
    refused(pptx([""], tmp_path / "k.pptx", entity), "declares XML entities")


def test_parts_that_lead_to_each_other_are_read_once(tmp_path: Path) -> None:
    ring = {f"ppt/charts/_rels/chart{number}.xml.rels": links(("chart", f"chart{number % 50 + 1}.xml")) for number in range(1, 51)}
    charts = {f"ppt/charts/chart{number}.xml": DRAWN.format(drawn_run("Title")) for number in range(1, 51)}
    first = {"ppt/slides/_rels/slide1.xml.rels": links(("chart", "../charts/chart1.xml"))}
    document = open_document(pptx([""], tmp_path / "a.pptx", ring | charts | first), Context("a.pptx", "en", "de"))
    assert 1 <= len(document.units) <= 50


def test_many_runs_and_paragraphs_take_time_in_proportion(tmp_path: Path) -> None:
    import time

    def seconds(count: int) -> float:
        runs = "".join(drawn_run("word ", BOLD if number % 2 else "") for number in range(count))
        layout = {
            "ppt/slides/_rels/slide1.xml.rels": links(("slideLayout", "../l.xml")),
            "ppt/l.xml": slide(shape(*[drawn_run("x y")] * count), "sldLayout"),
        }
        file = pptx([shape(runs) + shape(*["<a:br/>"] * count, drawn_run("End"))], tmp_path / "a.pptx", layout)
        begin = time.process_time()
        open_document(file, Context("a.pptx", "en", "de"))
        return time.process_time() - begin

    few = min(seconds(500) for _ in range(3))
    assert min(seconds(4_000) for _ in range(2)) < 40 * max(few, 0.01)


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["red ", "house", " is", " ", "open. ", "{x}", "a\tb"]),
        st.sampled_from(["", "b", "i", "br", "field", "link", "raised"]),
    ),
    min_size=1,
    max_size=8,
)
KINDS = {"": '<a:rPr lang="en-US"/>', "b": BOLD, "i": '<a:rPr i="1"/>', "link": LINK, "raised": '<a:rPr baseline="30000"/>'}


@given(RUNS)
def test_any_paragraph_keeps_what_is_no_text(runs: list[tuple[str, str]]) -> None:
    other = {"br": "<a:br/>", "field": FIELD}
    body = shape("".join(other.get(kind) or drawn_run(text, KINDS[kind]) for text, kind in runs) + END)
    with tempfile.TemporaryDirectory() as folder:
        file = pptx([body, shape(drawn_run("Last words"))], Path(folder) / "x.pptx").read_bytes()
        same, _ = through(Path(folder), "a.pptx", file, identity())
        out, _ = through(Path(folder), "a.pptx", file, reverse())
    assert same == file
    part = "ppt/slides/slide1.xml"
    before, after = (sorted(re.findall(r"<a:(?:br|fld|endParaRPr)\b", members(data)[part].decode())) for data in (file, out))
    assert before == after
    source = "".join(text for text, kind in runs if kind not in other)
    result = "".join(texts(out, part)[0].replace("[12]", "").replace("|", "").translate({60: None, 62: None}))
    assert sorted("".join(result.lower().split())) == sorted("".join(source.lower().split()))
