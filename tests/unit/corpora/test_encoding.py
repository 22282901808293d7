"""Files in the encodings and states that people upload them in."""

from __future__ import annotations

import gzip
import os
import random
import zipfile
from pathlib import Path

import pytest

from engine.corpora import import_corpus
from engine.corpora.formats.encoding import detect_encoding
from engine.errors import CorpusError

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
ZH = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()
TRADITIONAL = """我們追悼了過去的人，還要發願。
這是我們的國家，歷史悠久，風景優美。
他說：「你們為什麼不來呢？」
請將檔案儲存為其他格式，再傳送給我。
那時候天已經黑了，街上一個人也沒有。""".splitlines()
GERMAN = """Für die Größe der Äpfel gibt es keine Gewähr.
Müller sagte: „Das ist natürlich schön“ – und ging.
Die Straße führt über den Fluß nach Süden.""".splitlines()
FRENCH = """L'été dernier, j'ai mangé à la plage – « très bon » !
Où êtes-vous allé ? Ça va très bien, merci.
Il a reçu la lettre hier, à côté de la forêt.""".splitlines()
POLISH = """Zażółć gęślą jaźń, rzekł król.
Światło świeciło nad źródłem, a łąka była zielona.
Jeśli chcesz, możesz pójść dziś wcześniej.""".splitlines()
RUSSIAN = """Он был очень рад видеть её вчера вечером.
Вчера шёл дождь, и мы остались дома.
Скажите, пожалуйста, где находится вокзал?""".splitlines()
JAPANESE = """これは私の本です。
「行こう。」と彼は言った。
明日は晴れるでしょうか？""".splitlines()


def write(path: Path, lines: list[str], encoding: str) -> Path:
    path.write_bytes("\n".join(lines).encode(encoding) + "\n".encode(encoding.removesuffix("-sig")))
    return path


@pytest.mark.parametrize(
    ("lines", "language", "encoding"),
    [
        (ZH, "zh", "utf-8"),
        (ZH, "zh", "utf-8-sig"),
        (ZH, "zh", "gb18030"),
        (ZH, "zh", "gbk"),
        (ZH[:1], "zh", "gb18030"),
        (ZH, "zh", "utf-16-le"),
        (ZH, "zh", "utf-16-be"),
        (ZH, "zh", "utf-16"),
        (ZH, "zh", "utf-32"),
        (TRADITIONAL, "zh", "big5"),
        (TRADITIONAL[:1], "zh", "big5"),
        (TRADITIONAL, "zh", "gb18030"),
        (JAPANESE, "ja", "cp932"),
        (JAPANESE, "ja", "euc_jp"),
        (GERMAN, "de", "cp1252"),
        (GERMAN, "de", "utf-16-le"),
        (FRENCH, "fr", "cp1252"),
        (FRENCH[:1], "fr", "cp1252"),
        (POLISH, "pl", "cp1250"),
        (RUSSIAN, "ru", "cp1251"),
        (RUSSIAN, "ru", "koi8_r"),
    ],
)
def test_text_survives_its_encoding(
    tmp_path: Path, lines: list[str], language: str, encoding: str, request: pytest.FixtureRequest
) -> None:
    lines = [line for line in lines if line.strip()]
    # What the encoding cannot write is not in such a file.
    lines = [line.encode(encoding, "ignore").decode(encoding) for line in lines]
    path = tmp_path / "samples.txt"
    bare = encoding.removesuffix("-sig")
    mark = {"utf-8-sig": b"\xef\xbb\xbf"}.get(encoding, b"")
    path.write_bytes(mark + "\n".join([*lines, ""]).encode(bare))
    with path.open(encoding=detect_encoding(path, [language])) as file:
        assert file.read().splitlines() == lines


def test_the_encoding_is_said(tmp_path: Path) -> None:
    report = import_corpus([write(tmp_path / "a.txt", ZH[:40], "gb18030")], "zh").report
    assert report.files[0].encoding == "gb18030"
    report = import_corpus([write(tmp_path / "b.txt", ZH[:40], "utf-8")], "zh").report
    assert report.files[0].encoding == "utf-8"


def test_few_broken_places_cost_only_their_lines(tmp_path: Path) -> None:
    good = [line for line in ZH if line.strip()][:60]
    data = "\n".join(good).encode() + "\n这里坏".encode() + b"\xe4\xbd\n" + "最后一句话好了。".encode() + b"\xe6\x9c"
    path = tmp_path / "cut.txt"
    path.write_bytes(data)
    report = import_corpus([path], "zh").report
    assert report.files[0].encoding == "utf-8"
    assert report.skipped["undecodable characters"] == 2
    assert [line for line, _ in report.files[0].examples["undecodable characters"]] == [61, 62]


def zip_of(name: str) -> bytes:
    import io

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "text")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (zip_of("word/document.xml"), "a Word document (docx)"),
        (zip_of("xl/workbook.xml"), "an Excel workbook (xlsx)"),
        (zip_of("a.txt"), "a zip archive"),
        (b"PK\x03\x04broken", "a zip archive"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3 more", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG image"),
        (gzip.compress(b"text", mtime=0), "a gzip archive"),
        (b"{\\rtf1\\ansi Hello}", "an RTF document"),
        (bytes(1000), "binary data"),
        (random.Random(1).randbytes(5000), "binary data"),
        (b"text with\x00\x00\x01\x02 zeros \x00\x03\x00\x00 in it" * 20, "binary data"),
    ],
)
def test_no_text_is_refused_by_name(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "samples.txt"
    path.write_bytes(data)
    with pytest.raises(CorpusError) as error:
        import_corpus([path], "en")
    assert what in str(error.value)
    assert path.name in str(error.value)
    assert str(path.parent) not in str(error.value)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x7fELF\x02\x01\x01\x00", "a program"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG image"),
        (b"SQLite format 3\x00\x10\x00", "an SQLite database"),
        (b"OggS\x00\x02", "a sound or video file"),
        (b"\x00\x00\x00\x18ftypmp42", "a sound or video file"),
    ],
)
def test_nobody_is_asked_to_save_the_text_of_what_has_none(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "samples.txt"
    path.write_bytes(data)
    with pytest.raises(CorpusError) as error:
        import_corpus([path], "en")
    assert f"samples.txt is {what}, not text. Provide a text file." in str(error.value)


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_empty_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "samples.txt"
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="is empty"):
        import_corpus([path], "en")


def test_blank_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "samples.txt", ["", "  ", "\u3000"], "utf-8")
    with pytest.raises(CorpusError, match=r"no usable sentence.*empty: 3"):
        import_corpus([path], "en")


def test_missing_folder_and_special_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="does not exist"):
        import_corpus([tmp_path / "missing.txt"], "en")
    with pytest.raises(CorpusError, match="is a folder"):
        import_corpus([tmp_path], "en")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorpusError, match="not a regular file"):
        import_corpus([tmp_path / "pipe"], "en")
    with pytest.raises(CorpusError, match="No file was specified"):
        import_corpus([], "en")


@pytest.mark.parametrize("text", ["en,zh\nrain,雨\n", "雨\n", "rain = 雨"])
def test_a_short_file_in_gbk_is_never_utf16(tmp_path: Path, text: str) -> None:
    file = tmp_path / "terms.csv"
    file.write_bytes(text.encode("gb18030"))
    assert file.read_bytes().decode(detect_encoding(file, ["zh"])) == text


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"\xff\xfeA", b"\xff\xfe\x00\xd8"])
def test_a_mark_alone_makes_no_text(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(data)
    with pytest.raises(CorpusError, match="binary data"):
        detect_encoding(file)
