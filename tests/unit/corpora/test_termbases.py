"""Termbases as files: TBX of both versions, CSV and lines, as translation tools export them."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora.terminology import Term, lines_of, parse_terms, read_terms
from engine.errors import CorpusError, InputError
from tests.properties import few

V3 = """<?xml version="1.0" encoding="UTF-8"?>
<?xml-model href="https://raw.githubusercontent.com/LTAC-Global/TBX-Basic_dialect/master/DCA/TBXcoreStructV03_TBX-Basic.sch"?>
<tbx type="TBX-Basic" style="dca" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2">
  <tbxHeader><fileDesc><sourceDesc><p>Terms of a weather service</p></sourceDesc></fileDesc></tbxHeader>
  <text><body>
    <conceptEntry id="c1">
      <descrip type="subjectField">meteorology</descrip>
      <langSec xml:lang="en-GB">
        <termSec><term>rainfall</term><termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></termSec>
        <termSec><term>amount of <hi>rain</hi></term><termNote type="partOfSpeech">noun</termNote></termSec>
      </langSec>
      <langSec xml:lang="zh-TW"><termSec><term>雨量</term></termSec></langSec>
      <langSec xml:lang="zh-CN">
        <termSec><term>降雨</term><termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termSec>
        <termSec><term>雨水量</term><termNote type="administrativeStatus">admittedTerm-admn-sts</termNote></termSec>
        <termSec><term>降雨量</term><termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></termSec>
      </langSec>
    </conceptEntry>
    <conceptEntry id="c2">
      <langSec xml:lang="en"><termSec><term>#1 storm &amp; gale</term></termSec></langSec>
      <langSec xml:lang="zh"><termSec><term>一号风暴</term></termSec></langSec>
    </conceptEntry>
    <conceptEntry id="c3"><langSec xml:lang="en"><termSec><term>fog</term></termSec></langSec></conceptEntry>
  </body></text>
</tbx>
"""
DCT = """<tbx type="TBX-Basic" style="dct" xml:lang="de" xmlns="urn:iso:std:iso:30042:ed-2"
     xmlns:basic="http://www.tbxinfo.net/ns/basic" xmlns:min="http://www.tbxinfo.net/ns/min"><text><body>
  <conceptEntry><min:subjectField>law</min:subjectField>
    <langSec xml:lang="de"><termSec><term>Vertrag</term><min:partOfSpeech>noun</min:partOfSpeech></termSec></langSec>
    <langSec xml:lang="en">
      <termSec><term>agreement</term><min:administrativeStatus>supersededTerm-admn-sts</min:administrativeStatus></termSec>
      <termSec><term>contract</term></termSec>
    </langSec>
  </conceptEntry></body></text></tbx>
"""
V2 = """<?xml version="1.0"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX" xml:lang="en-US"><martifHeader><fileDesc><sourceDesc><p>Microsoft terminology</p></sourceDesc></fileDesc>
</martifHeader><text><body>
  <termEntry id="1">
    <langSet xml:lang="en-US"><ntig><termGrp><term id="1_en">folder</term><termNote type="partOfSpeech">Noun</termNote></termGrp>
      </ntig>
      <descripGrp><descrip type="definition">A container for files.</descrip></descripGrp></langSet>
    <langSet xml:lang="de-de">
      <ntig><termGrp><term>Verzeichnis</term><termNote type="normativeAuthorization">deprecatedTerm</termNote></termGrp></ntig>
      <ntig><termGrp><term>Ordner</term></termGrp></ntig></langSet>
  </termEntry>
  <termEntry id="2">
    <langSet xml:lang="en"><tig><term>file</term></tig><tig><term>folder</term></tig></langSet>
    <langSet xml:lang="de"><tig><term>Datei</term></tig></langSet>
  </termEntry>
</body></text></martif>
"""


def pairs(terms: list[Term]) -> list[tuple[str, str]]:
    return [(term.source, term.target) for term in terms]


def file_of(folder: Path, text: str, name: str = "terms.tbx", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_text(text, encoding=encoding)
    return path


def test_tbx_basic_gives_every_source_term_with_the_preferred_target_term(tmp_path: Path) -> None:
    terms = read_terms(file_of(tmp_path, V3), "zh-CN", "en-US")
    assert pairs(terms) == [("rainfall", "降雨量"), ("amount of rain", "降雨量"), ("#1 storm & gale", "一号风暴")]
    assert {(term.language, term.source_language) for term in terms} == {("zh-CN", "en-US")}
    assert pairs(read_terms(file_of(tmp_path, V3), "zh-TW", "en"))[0] == ("rainfall", "雨量"), "its own section first"
    assert pairs(read_terms(file_of(tmp_path, V3), "en", "zh"))[:2] == [("雨量", "rainfall"), ("降雨", "rainfall")]
    assert pairs(read_terms(file_of(tmp_path, V3), "zh"))[0] == ("", "降雨量"), "without a source language"


def test_data_categories_as_elements(tmp_path: Path) -> None:
    assert pairs(read_terms(file_of(tmp_path, DCT, "terms.xml"), "en", "de")) == [("Vertrag", "contract")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_martif_of_version_2_and_one_target_for_each_source_term(tmp_path: Path, encoding: str) -> None:
    text = V2.replace('<?xml version="1.0"?>\n', "") if encoding == "utf-16" else V2
    terms = pairs(read_terms(file_of(tmp_path, text, encoding=encoding), "de", "en"))
    assert terms == [("folder", "Ordner"), ("file", "Datei")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html><body/></html>", "terms.tbx is not a TBX file: its first element is html, not tbx or martif."),
        (V3[:900], "terms.tbx, line 1[0-9]: the XML is damaged"),
        ('<!DOCTYPE tbx [<!ENTITY a "b">]><tbx>&a;</tbx>', "terms.tbx, line 1: it declares an XML entity"),
        ("<tbx><text/></tbx>", "terms.tbx contains no terms."),
        (
            "<tbx><conceptEntry><langSec xml:lang='en'><term>fog</term></langSec></conceptEntry></tbx>",
            "terms.tbx has no terms in German; most of its terms are in English.",
        ),
        (V2.replace('"en', '"fr').replace("xml:lang", "lang", 1), "no concept with a term in English and one in German"),
        ("<tbx>" * 600, "nested more than 500 deep"),
    ],
)
def test_what_is_no_termbase_is_refused_in_a_sentence(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(CorpusError, match=why) as caught:
        read_terms(file_of(tmp_path, text), "de", "en")
    assert str(tmp_path) not in str(caught.value)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = V2.replace("Ordner", "O" * 501)
    assert pairs(read_terms(file_of(tmp_path, long), "de", "en")) == [("file", "Datei"), ("folder", "Datei")]
    monkeypatch.setattr("engine.corpora.terminology.MOST_TERMS", 1)
    for name, text in (("terms.tbx", V2), ("terms.csv", "a,b\nc,d\n"), ("terms.tsv", "a\tb\nc\td\n")):
        with pytest.raises(InputError, match=f"{name} has more than 1 terms"):
            read_terms(file_of(tmp_path, text, name), "de", "en")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('rain,"雨，大"\nsnow,雪\n', [("rain", "雨，大"), ("snow", "雪")]),
        ("Chinese;Note;English\n雨;weather;rain\n\n雪;;snow\n", [("rain", "雨"), ("snow", "雪")]),
        ('"rain, heavy",大雨,en,zh\n', [("rain, heavy", "大雨")]),
        ("雨\n雪\n", [("", "雨"), ("", "雪")]),
    ],
)
def test_csv_with_and_without_a_header(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    assert pairs(read_terms(file_of(tmp_path, text, "terms.csv"), "zh", "en")) == expected


@pytest.mark.parametrize("text", ["rain,雨\nsnow,\n", "rain,雨\nsnow\n"])
def test_a_row_without_a_term_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"terms.csv, line 2: a source term and a target term are needed\."):
        read_terms(file_of(tmp_path, text, "terms.csv"), "zh", "en")


words = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Cn", "Z"), max_codepoint=0xFFFD), min_size=1, max_size=12)


@given(entries=st.dictionaries(words, words, min_size=1, max_size=8))
@few
def test_what_a_termbase_holds_is_what_a_projects_lines_hold(
    entries: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    concepts = "".join(
        f'<conceptEntry><langSec xml:lang="en"><termSec><term>{escape(source)}</term></termSec></langSec>'
        f'<langSec xml:lang="de"><termSec><term>{escape(target)}</term></termSec></langSec></conceptEntry>'
        for source, target in entries.items()
    )
    text = f"<tbx><text><body>{concepts}</body></text></tbx>"
    terms = read_terms(file_of(tmp_path_factory.mktemp("tbx"), text), "de", "en")
    assert pairs(terms) == list(entries.items())
    assert parse_terms(lines_of(pairs(terms)).split("\n"), "here", "de", "en") == terms
