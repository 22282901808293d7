"""Excel workbooks through translators whose words are known."""

from __future__ import annotations

import io
import re
import tempfile
import time
import zipfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

from engine.corpora.formats.documents.formats import open_document
from engine.corpora.formats.documents.model import Context, DocumentError
from engine.corpora.formats.documents.sheets import texts_in
from tests.documents import A, drawn_run, links, package, xlsx
from tests.translators import Words, identity, reverse, shout
from tests.unit.corpora.test_presentations import members
from tests.unit.workflows.test_documents import damaged_member, packed_bytes, through

KEPT = "named by a formula, a filter, a table or a pivot table"


def saved(book: Workbook) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def cells(data: bytes, sheet: str) -> dict[str, object]:
    rows = load_workbook(io.BytesIO(data))[sheet].iter_rows()
    return {cell.coordinate: cell.value for row in rows for cell in row if cell.value is not None}


def shared(*numbers: int) -> str:
    """A row of cells that show shared texts."""
    return "<row>" + "".join(f'<c t="s"><v>{number}</v></c>' for number in numbers) + "</row>"


def test_a_workbook_of_another_library(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    sheet.title = "Red words"
    bold = TextBlock(InlineFont(b=True), "red house")
    rows = [
        ["The door", 12, date(2026, 1, 2), True, "=B1*2"],
        ["Two lines\nin one", '=A1&" more"', "='Red words'!A1", 3.5, "The door"],
        [CellRichText("The ", bold, " is open"), "  spaced out "],
    ]
    for row in rows:
        sheet.append(row)
    sheet["A1"].comment = Comment("Look at this", "Ann")
    sheet["A1"].hyperlink = "https://example.org/a"
    book.create_sheet("Second").append(["The door", "Other words"])
    file = saved(book)
    same, report = through(tmp_path, "a.xlsx", file, identity())
    assert same == file
    assert (report.title, report.units, report.kept) == ("Excel workbook", 6, {})
    words = shout()
    out, _ = through(tmp_path, "a.xlsx", file, words)
    assert sorted(sentence for batch in words.asked for sentence in batch).count("The door") == 1
    assert cells(out, "Red words") == {
        "A1": "THE DOOR", "B1": 12, "C1": load_workbook(io.BytesIO(file))["Red words"]["C1"].value, "D1": True,
        "E1": "=B1*2", "A2": "TWO LINES\nIN ONE", "B2": '=A1&" more"', "C2": "='Red words'!A1", "D2": 3.5, "E2": "THE DOOR",
        "A3": "THE RED HOUSE IS OPEN", "B3": "  SPACED OUT ",
    }  # fmt: skip
    assert cells(out, "Second") == {"A1": "THE DOOR", "B1": "OTHER WORDS"}
    result = load_workbook(io.BytesIO(out), rich_text=True)["Red words"]
    assert result["A1"].comment.text == "LOOK AT THIS"
    assert [str(part) for part in result["A3"].value] == ["THE ", "RED HOUSE", " IS OPEN"]
    assert result["A3"].value[1].font.b
    changed = {name for name, data in members(out).items() if members(file)[name] != data}
    assert changed <= {"xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml", "xl/comments/comment1.xml"}


RICH = (
    '<r><t>The </t></r><r><rPr><b/><sz val="11"/><rFont val="X"/><family val="2"/></rPr><t>red house</t></r>'
    '<r><rPr><vertAlign val="superscript"/></rPr><t>2</t></r><rPh sb="0" eb="1"><t>a reading</t></rPh><phoneticPr fontId="1"/>'
)


def test_shared_texts_keep_looks_and_lose_reading_aids(tmp_path: Path) -> None:
    texts = ["Plain words", RICH, "42", "Not shown", "<t>With aid</t><rPh sb='0' eb='4'><t>aid</t></rPh>", "a_x000D_b c"]
    rows = shared(1, 0, 2, 0) + shared(4, 5) + '<row><c t="str"><f>A1</f><v>Plain words</v></c><c><v>7</v></c></row>'
    file = xlsx({"One": rows}, tmp_path / "x.xlsx", texts).read_bytes()
    same, _ = through(tmp_path, "a.xlsx", file, identity())
    assert same == file
    document = open_document(tmp_path / "x.xlsx", Context("a.xlsx", "en", "de"))
    assert [(unit.location, unit.text) for unit in document.units] == [
        ("One!A1", "The red house"), ("One!B1", "Plain words"), ("One!C1", "42"), ("One!A2", "With aid"), ("One!B2", "ab c")
    ]  # fmt: skip
    out, _ = through(tmp_path, "a.xlsx", file, reverse())
    before, after = members(file), members(out)
    assert {name for name in before if before[name] != after[name]} == {"xl/sharedStrings.xml", "xl/workbook.xml"}
    result = after["xl/sharedStrings.xml"].decode().replace(' xml:space="preserve"', "")
    assert "<si><t>WORDS PLAIN</t></si>" in result
    assert "<si><t>42</t></si><si><t>Not shown</t></si><si><t>AID WITH</t></si><si><t>A_x000D_C B</t></si>" in result
    first = re.findall(r"<si>.*?</si>", result)[1]
    assert "a reading" not in first
    assert re.search(r"<r><rPr><b/>.{0,60}</rPr><t>HOUSE RED ?</t></r>", first)
    assert first.count("superscript") == 1
    assert "ns0" not in result
    assert b'</sheets><calcPr fullCalcOnLoad="1"/></workbook>' in after["xl/workbook.xml"]


def test_texts_that_are_called_by_their_words_stay(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    sheet.append(["Open", "open", "Shut", "High", "Low", "Free words", "Medium"])
    sheet.append(['=IF(A1="Open",1,0)', '=COUNTIF(A1:G1,"shut")'])
    validation = DataValidation(type="list", formula1='"High,Low"')
    validation.add("A4")
    sheet.add_data_validation(validation)
    sheet.auto_filter.ref = "A1:G1"
    sheet.auto_filter.add_filter_column(0, ["Medium"])
    out, report = through(tmp_path, "a.xlsx", saved(book), shout())
    result = cells(out, "Sheet")
    assert [result[f"{letter}1"] for letter in "ABCDEFG"] == ["Open", "open", "Shut", "High", "Low", "FREE WORDS", "Medium"]
    assert report.kept == {KEPT: 6}


def table_book(*formulas: str, rows: int = 2) -> Workbook:
    book = Workbook()
    sheet = book.active
    sheet.append(["Old name", "Next name", "Third\nline"])
    for number in range(rows):
        sheet.append([f"Cell {number}", number, "words"])
    sheet.add_table(Table(displayName="Prices", ref=f"A1:C{rows + 1}"))
    for number, formula in enumerate(formulas, 10):
        sheet[f"A{number}"] = formula
    return book


def headers(data: bytes) -> tuple[list[object], list[str]]:
    """The header cells, and the columns' names as Excel reads them."""
    sheet = load_workbook(io.BytesIO(data)).active
    table = sheet.tables["Prices"]
    return [cell.value for cell in sheet[1][:3]], [column.name.replace("_x000a_", "\n") for column in table.tableColumns]


def test_columns_of_tables_are_called_as_their_header_cells(tmp_path: Path) -> None:
    file = saved(table_book())
    assert through(tmp_path, "a.xlsx", file, identity())[0] == file
    out, _ = through(tmp_path, "a.xlsx", file, shout())
    assert headers(out) == (["OLD NAME", "NEXT NAME", "THIRD\nLINE"],) * 2
    out, report = through(
        tmp_path, "b.xlsx", saved(table_book("=SUM(Prices[Next name])", "=Prices[[#This Row],[Old name]]")), shout()
    )
    assert headers(out) == (["Old name", "Next name", "THIRD\nLINE"],) * 2
    assert report.kept == {KEPT: 2}


def test_columns_whose_new_names_would_clash_stay(tmp_path: Path) -> None:
    translator = Words(lambda words: [(0, "Name")])
    out, _ = through(tmp_path, "a.xlsx", saved(table_book()), translator)
    assert headers(out) == (["Old name", "Next name", "Third\nline"],) * 2
    assert cells(out, "Sheet")["A2"] != "Cell 0"


def test_a_table_that_does_not_fit_its_cells_stays(tmp_path: Path) -> None:
    names = '<tableColumn id="1" name="Other"/><tableColumn id="2" name="Same"/><tableColumn id="3" name="2020"/>'
    parts: dict[str, str | bytes] = {
        "xl/worksheets/_rels/sheet1.xml.rels": links(("table", "../tables/t.xml")),
        "xl/tables/t.xml": f'<table ref="B2:D4"><tableColumns>{names}</tableColumns></table>',
    }
    rows = '<row r="2"><c r="B2" t="s"><v>0</v></c><c t="s"><v>1</v></c><c><v>2020</v></c></row>' + shared(2)
    file = xlsx({"One": rows}, tmp_path / "x.xlsx", ["Name", "Same", "Words"], parts).read_bytes()
    out, _ = through(tmp_path, "a.xlsx", file, shout())
    result = members(out)
    assert re.findall('name="(.*?)"', result["xl/tables/t.xml"].decode()) == ["Other", "SAME", "2020"]
    assert re.findall("<t[^>]*>(.*?)</t>", result["xl/sharedStrings.xml"].decode()) == ["Name", "SAME", "WORDS"]


def test_names_of_pivot_tables_and_queries_stay(tmp_path: Path) -> None:
    parts: dict[str, str | bytes] = {
        "xl/cache.xml": '<pivotCacheDefinition><cacheFields><cacheField name="Region"/></cacheFields></pivotCacheDefinition>',
        "xl/slicer.xml": '<slicerCacheDefinition sourceName="Town"/>',
        "xl/worksheets/_rels/sheet1.xml.rels": links(("table", "/xl/t.xml")),
        "xl/t.xml": '<table ref="C1" tableType="queryTable"><tableColumns><tableColumn name="Asked"/></tableColumns></table>',
    }
    file = xlsx(
        {"One": shared(0, 1, 2, 3)}, tmp_path / "x.xlsx", ["Region", "Town", "Asked", "Free"], parts,
        more=[("pivotCacheDefinition", "cache.xml"), ("slicerCache", "slicer.xml"), ("slicerCache", "missing.xml")],
        names='<definedNames><definedName name="x">"Never",1</definedName></definedNames>',
    )  # fmt: skip
    out, report = through(tmp_path, "a.xlsx", file.read_bytes(), shout())
    assert re.findall("<t[^>]*>(.*?)</t>", members(out)["xl/sharedStrings.xml"].decode()) == ["Region", "Town", "Asked", "FREE"]
    assert report.kept == {KEPT: 3}


def test_comments_drawings_and_charts(tmp_path: Path) -> None:
    drawn = f'<x xmlns:a="{A}"><a:p>{{}}</a:p></x>'
    runs = '<r><rPr><b/></rPr><t>Ann:</t></r><r><t xml:space="preserve">\nSee {}</t></r>'
    note = f'<comment ref="B2" authorId="{{}}"><text>{runs}</text></comment>'
    parts: dict[str, str | bytes] = {
        "xl/worksheets/_rels/sheet1.xml.rels": links(
            ("drawing", "../drawings/d.xml"), ("comments", "../c.xml"), ("threadedComment", "../th.xml"), ("vmlDrawing", "../v")
        ),
        "xl/drawings/d.xml": drawn.format(drawn_run("In a box")),
        "xl/drawings/_rels/d.xml.rels": links(("chart", "../charts/c.xml")),
        "xl/charts/c.xml": drawn.format(drawn_run("Chart title")),
        "xl/c.xml": "<comments><authors><author>Ann</author><author>tc={1}</author></authors>"
        f"<commentList>{note.format(0, 'this')}{note.format(1, 'that')}</commentList></comments>",
        "xl/th.xml": '<ThreadedComments><threadedComment ref="B3"><text>Is it true?</text></threadedComment><threadedComment '
        'ref="B4"><text>@Ann yes</text><mentions/></threadedComment></ThreadedComments>',
    }
    file = xlsx({"One": ""}, tmp_path / "a.xlsx", None, parts)
    document = open_document(file, Context("a.xlsx", "en", "de"))
    assert [(unit.location, unit.text) for unit in document.units] == [
        ("One!B2, comment", "Ann:\nSee this"), ("One!B3, comment", "Is it true?"), ("One, drawing, paragraph 1", "In a box"),
        ("One, drawing, chart, paragraph 1", "Chart title"),
    ]  # fmt: skip
    out, _ = through(tmp_path, "a.xlsx", file.read_bytes(), shout())
    result = {name: data.decode() for name, data in members(out).items()}
    assert "<text>IS IT TRUE?</text>" in result["xl/th.xml"]
    assert "<text>@Ann yes</text>" in result["xl/th.xml"]
    assert re.findall("(?s)<t[ >].*?</t>", result["xl/c.xml"])[-1].endswith("\nSee that</t>")
    assert "SEE THIS" in result["xl/c.xml"]
    assert "CHART TITLE" in result["xl/charts/c.xml"]


def test_what_is_no_workbook_is_refused_in_a_sentence(tmp_path: Path) -> None:
    def refused(file: Path, words: str) -> None:
        with pytest.raises(DocumentError, match=words) as error:
            open_document(file, Context(file.name, "en", "de"))
        assert str(error.value).endswith(".")

    refused(
        package(tmp_path / "a.xlsx", "ppt/presentation.xml", {"ppt/presentation.xml": "<presentation/>"}), "not an Excel workbook"
    )
    refused(xlsx({"One": "<row>"}, tmp_path / "b.xlsx"), r"sheet1\.xml: the XML is damaged")
    refused(xlsx({"One": "<row><c><v>1</v></c></row>"}, tmp_path / "c.xlsx"), "no text to translate")
    for number in ("7", "-1", "²", "9" * 5000, ""):
        row = f'<row r="²"><c t="s"><v>{number}</v></c></row>'
        refused(xlsx({"One": row}, tmp_path / "d.xlsx", ["Words"]), "the text of One!A1 is missing")
    with zipfile.ZipFile(tmp_path / "e.xlsx", "w") as cut, zipfile.ZipFile(xlsx({"One": ""}, tmp_path / "x.xlsx")) as archive:
        for name in archive.namelist():
            if "sheet1" not in name:
                cut.writestr(name, archive.read(name))
    refused(tmp_path / "e.xlsx", "the sheet “One” is missing")
    (tmp_path / "f.xlsx").write_bytes(b"no zip")
    refused(tmp_path / "f.xlsx", "cannot be opened")
    refused(xlsx({"One": " " * (64 << 20)}, tmp_path / "g.xlsx"), "not opened")


def test_a_damaged_part_that_is_no_text_is_copied_byte_for_byte(tmp_path: Path) -> None:
    extra = {"xl/media/image1.png": bytes(range(256)) * 20, "last.bin": b"whole" * 100}
    file = damaged_member(xlsx({"One": shared(0)}, tmp_path / "x.xlsx", ["The red house"], extra), "xl/media/image1.png")
    out, _ = through(tmp_path, "a.xlsx", file.read_bytes(), shout())
    with zipfile.ZipFile(io.BytesIO(out)) as result:
        assert b"THE RED HOUSE" in result.read("xl/sharedStrings.xml")
        assert result.read("last.bin") == b"whole" * 100
    assert packed_bytes(out, "xl/media/image1.png") == packed_bytes(file.read_bytes(), "xl/media/image1.png")


@pytest.mark.parametrize(
    ("formula", "texts"),
    [
        ('IF(A1="Open",1,0)', ["Open"]),
        ('"say ""hi"""', ['say "hi"']),
        ('"Yes,No"', ["Yes,No", "Yes", "No"]),
        ("SUM(T[Old one])", ["Old one"]),
        ("T[[#This Row],[A ']b'[]]", ["#This Row", ",", "A ]b["]),
        ("T[@Col]&'It''s [x]'!A1", ["@Col", "Col"]),
        ("'Sheet \"1\"'!A1", []),
        ('"open', []),
        ("[[[", []),
    ],
)
def test_texts_in_formulas(formula: str, texts: list[str]) -> None:
    assert sorted(texts_in(formula)) == sorted(texts)


@pytest.mark.parametrize("piece", ['"', "'", "[", "]", "'[", '"a', '""', "['", "'\"", ","])
def test_a_long_formula_is_read_at_once(piece: str) -> None:
    begin = time.process_time()
    list(texts_in(piece * 500_000))
    assert time.process_time() - begin < 2


CELLS = st.lists(
    st.one_of(
        st.integers(-9, 9),
        st.sampled_from(["red house", "It rained. We slept.", " a ", "x\ny z", "=A1", "{x} of", "a\tb", "", "_x0041_ b"]),
        st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Co", "Cn")), max_size=12),
    ),
    min_size=1,
    max_size=8,
)


@given(CELLS)
def test_any_cells_come_back(values: list[object]) -> None:
    book = Workbook()
    book.active.append(["Last words", *values])
    file = saved(book)
    with tempfile.TemporaryDirectory() as folder:
        same, _ = through(Path(folder), "a.xlsx", file, identity())
        out, _ = through(Path(folder), "a.xlsx", file, shout())
    assert same == file
    before, after = cells(file, "Sheet"), cells(out, "Sheet")
    assert before.keys() == after.keys()
    for cell, value in before.items():
        if isinstance(value, str) and not value.startswith("="):
            assert "".join(str(after[cell]).split()).lower() == "".join(value.upper().split()).lower()
        else:
            assert after[cell] == value
