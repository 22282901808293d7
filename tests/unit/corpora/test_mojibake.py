"""Lines that were read in a wrong encoding are found, and no real text is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora import import_corpus
from engine.corpora.formats.encoding import detect_encoding
from engine.corpora.mojibake import is_garbled

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
REAL = {
    "zh": (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines(),
    "de": [line.split("\t")[0] for line in (SAMPLES / "letters-de-en" / "letters.tsv").read_text("utf-8").splitlines()],
    "en": (SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_text(encoding="utf-8").splitlines(),
}
RUSSIAN = ["Привет, мир", "Ещё раз: спасибо вам", "«Да», — сказал он"]


@pytest.mark.parametrize("language", REAL)
def test_real_text_is_not_garbled(language: str) -> None:
    assert [line for line in REAL[language] if is_garbled(line)] == []


@pytest.mark.parametrize(
    "text",
    ["CAFÉ\u00a0»", "« À\u00a0bientôt »", "SÃO PAULO", "20°–30°, 10€–20€", "«Ñoño»", "„Ä“ – Ö", "1²³ ½", "x × y ÷ z",
     "Øystein Ærø", "Ça va… « très » bien", "冷静点。", "一小时之前", "日本語の文章です。", *RUSSIAN],
)  # fmt: skip
def test_odd_but_real_text_is_not_garbled(text: str) -> None:
    assert not is_garbled(text)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("text", ["Straße", "l’été", "naïve", "Größe – ändern", "下次还会买", *RUSSIAN])
def test_utf8_read_as_a_western_encoding(text: str, encoding: str) -> None:
    assert is_garbled(text.encode().decode(encoding, errors="ignore"))


def test_utf8_read_as_gbk() -> None:
    results = [is_garbled(line.encode().decode("gbk", errors="ignore")) for line in REAL["zh"]]
    assert sum(results) >= 0.99 * len(results)  # a few lose too much on the way


@given(st.sampled_from(REAL["zh"]), st.sampled_from(REAL["zh"]))
def test_a_garbled_part_is_enough(text: str, part: str) -> None:
    assert is_garbled(text + part.encode().decode("latin-1"))


@given(st.text(max_size=80))
def test_any_text_can_be_asked(text: str) -> None:
    assert is_garbled(text) in (True, False)


@pytest.mark.parametrize(("name", "language"), [("gb18030", "zh"), ("big5", "zh")])
def test_a_few_lines_pasted_from_another_encoding_do_not_spoil_a_file(tmp_path: Path, name: str, language: str) -> None:
    traditional = "這是舊時的街道，雨下了整整一夜，茶館早已關門了。"
    lines = (
        REAL["zh"][:40]
        if name == "gb18030"
        else [traditional.replace("，", f"{position}，", 1) for position in "甲乙丙丁戊己庚辛壬癸子丑寅卯辰"]
    )
    encoded = [line.encode(name) for line in lines]
    encoded.insert(7, "老客户的留言：今年的茶比去年香。".encode())
    file = tmp_path / "notes.txt"
    file.write_bytes(b"\r\n".join(encoded) + b"\r\n")
    assert detect_encoding(file, [language]) == name
    report = import_corpus([file], "zh").report
    assert report.kept >= len(set(lines)) - 1
    assert sum(report.skipped.values()) >= 1


def test_binary_data_is_still_refused(tmp_path: Path) -> None:
    import random

    file = tmp_path / "x.txt"
    file.write_bytes(random.Random(1).randbytes(20_000))
    from engine.errors import CorpusError

    with pytest.raises(CorpusError, match=r"binary data|cannot be detected"):
        detect_encoding(file, ["zh"])
