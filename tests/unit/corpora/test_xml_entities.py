"""No reader of XML takes entities, wherever and in whatever form they are declared, and none looks at other files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from engine.corpora import import_corpus
from engine.corpora.formats.documents.files import parse_xml
from engine.corpora.formats.documents.model import DocumentError
from engine.errors import CorpusError

SECRET = "root-of-all-secrets"
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
INSIDE = f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]>'
BEFORE = ["", "<!-- <a> -->", f"<!--{'x' * (1 << 20)}-->", "<?pi <a> ?>", "\n\n"]
PAIR = '<tu><tuv xml:lang="en"><seg>{0}</seg></tuv><tuv xml:lang="zh"><seg>{0}</seg></tuv></tu>'
BODY = f'<tmx version="1.4"><body>{PAIR}</body></tmx>'


@pytest.mark.parametrize("before", BEFORE, ids=["plain", "comment", "long comment", "instruction", "lines"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_documents_take_no_entities(before: str, encoding: str) -> None:
    for used in ("<x>&a9;</x>", '<x y="&a9;"/>', "<x/>"):
        data = f'<?xml version="1.0" encoding="{encoding}"?>{before}{INSIDE}{used}'.encode(encoding)
        with pytest.raises(DocumentError, match=r"entities|damaged"):
            parse_xml(data, "a.docx")
    fine = f'<?xml version="1.0" encoding="{encoding}"?>{before}<x>&lt;!ENTITY</x>'.encode(encoding)
    assert parse_xml(fine, "a.docx").getroot().text == "<!ENTITY"


@pytest.mark.parametrize("what", ["SYSTEM 'file://{path}'", "PUBLIC 'x' 'file://{path}'", "'ha'"])
def test_samples_take_no_entities_and_no_other_file(tmp_path: Path, what: str) -> None:
    other = tmp_path / "secret.txt"
    other.write_text(SECRET, encoding="utf-8")
    declared = f"<!DOCTYPE tmx [<!ENTITY a {what.format(path=other)}>]>"
    texts = {"a.tmx": declared + BODY.format("&a; and more words"), "b.xliff": f"{declared}<xliff version='1.2'>&a;</xliff>"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(CorpusError, match="entit"):
            import_corpus([tmp_path / name], "zh", source_language="en")
    for name, part in (("c.docx", "word/document.xml"), ("d.odt", "content.xml")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(part, f"{declared}<x>&a;</x>")
        with pytest.raises(CorpusError, match="entit"):
            import_corpus([tmp_path / name], "zh")


def test_an_outer_document_type_is_never_fetched(tmp_path: Path) -> None:
    other = tmp_path / "outer.dtd"
    other.write_text(f'<!ENTITY a "{SECRET}">', encoding="utf-8")
    data = f'<!DOCTYPE x SYSTEM "file://{other}"><x>&a;</x>'.encode()
    try:
        result = parse_xml(data, "a.docx").getroot()
    except DocumentError:
        return
    assert SECRET not in "".join(result.itertext())
