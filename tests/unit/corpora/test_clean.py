"""Cleaning, sentence splitting and the language check."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.corpora import CorpusOptions, base_language, identify, language_name, split_sentences
from engine.corpora.clean import LOOKALIKES, clean, reason_to_skip

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("  two   words\t\n here ", "two words here"),
        ("\ufeffmark", "mark"),
        ("zero\u200bwidth and soft\u00adhyphen", "zerowidth and softhyphen"),
        ("bell\x07 and \x00null\x1b", "bell and null"),
        ("right\u200f left\u200e \u202bmarks\u202c", "right left marks"),
        ("cafe\u0301", "café"),
        ("\u3000\u3000他说：“好！”（笑）……", "他说：“好！”（笑）……"),
        ("ＡＢＣ，。！", "ＡＢＣ，。！"),
        ("a\u00a0b\u2028c\x85d", "a b c d"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("wo\u200crd", "word"),
        ("👩\u200d👧 family", "👩\u200d👧 family"),
        ("tag\U000e0041ged", "tagged"),
        ("lone \ud83d half", "lone half"),
    ],
)
def test_clean(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


def test_normalization_is_a_choice() -> None:
    assert clean("ＡＢＣ，", "NFKC") == "ABC,"
    assert clean("cafe\u0301", "none") == "cafe\u0301"


@given(st.text(), st.sampled_from(["NFC", "NFKC", "none"]))
def test_cleaning_twice_changes_nothing(text: str, form: str) -> None:
    once = clean(text, form)
    assert clean(once, form) == once
    assert once == once.strip()
    assert "  " not in once
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in once)
    once.encode("utf-8")


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u115f\u1160\u3164\uffa0")))
@example("⻄")
def test_visible_text_survives(text: str) -> None:
    """But for the look-alikes that PDF readers give, which become the plain characters."""
    text = text.translate(LOOKALIKES)
    assert clean(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("3.14 — 42!", "no letters"),
        ("。", "no letters"),
        ("I", "too short"),
        ("好的", None),
        ("x" * 1001, "too long"),
        ("<br/>", "only markup or a link"),
        ('<p class="a">&nbsp;</p>', "only markup or a link"),
        ("https://example.org/a?b=c", "only markup or a link"),
        ("Press <b>OK</b> to go on.", None),
        ("a < b and c > d", None),
        ("broken \ufffd character", "undecodable characters"),
    ],
)
def test_reasons(text: str, reason: str | None) -> None:
    assert reason_to_skip(text, CorpusOptions()) == reason


def test_limits_are_options() -> None:
    options = CorpusOptions(min_chars=5, max_chars=10)
    assert reason_to_skip("四个汉字", options) == "too short"
    assert reason_to_skip("eleven char", options) == "too long"
    assert reason_to_skip("just right", options) is None


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("zh", "天黑了。人都走了！真的吗？是的。", ["天黑了。", "人都走了！", "真的吗？", "是的。"]),
        ("zh", "他说：“走罢。我们去。”然后走了。", ["他说：“走罢。我们去。”", "然后走了。"]),
        ("zh", "“走罢！”他说。“好。”我答道。", ["“走罢！”他说。", "“好。”我答道。"]),
        ("zh", "『好！』「行。」天亮了。", ["『好！』", "「行。」", "天亮了。"]),
        ("zh", "我走了……他没有说话。", ["我走了……", "他没有说话。"]),
        ("zh", "一二三四……等数目。", ["一二三四……等数目。"]),
        ("zh", "什么？！你再说一遍。", ["什么？！", "你再说一遍。"]),
        ("zh", "《什么是革命？》是一本书。", ["《什么是革命？》是一本书。"]),
        ("zh", "他来了（真的！）我知道。", ["他来了（真的！）我知道。"]),
        ("zh", "版本1.5发布了，见https://a.b/c?d=e。", ["版本1.5发布了，见https://a.b/c?d=e。"]),
        ("zh", '他说"你好。"我走了。', ['他说"你好。"', "我走了。"]),
        ("zh-Hant", "他說：「走吧。」然後走了。", ["他說：「走吧。」", "然後走了。"]),
        ("ja", "「行こう。」と彼は言った。明日は晴れる？", ["「行こう。」と彼は言った。", "明日は晴れる？"]),
        ("en", "Dr. Smith met Mr. Jones at 3.5 p.m. He left.", ["Dr. Smith met Mr. Jones at 3.5 p.m.", "He left."]),
        ("en", '"Go!" he said. And then? Nothing.', ['"Go!" he said.', "And then?", "Nothing."]),
        ("de", "Er kam am 3. Mai. Danach ging er.", ["Er kam am 3. Mai.", "Danach ging er."]),
        ("pt", "Ele chegou às 10h. Depois saiu.", ["Ele chegou às 10h.", "Depois saiu."]),
        ("hi", "वह आया। वह गया।", ["वह आया।", "वह गया।"]),
        ("th", "ฉันไปตลาด", ["ฉันไปตลาด"]),
    ],
)
def test_sentences(language: str, text: str, sentences: list[str]) -> None:
    assert split_sentences(text, language) == sentences


PIECES = st.sampled_from([*"。！？!?….,，：；、“”‘’「」『』（）()\"' ab1天人好Z", "……", "Mr. ", "he said", "他说"])


@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(["zh", "ja", "en", "de", "fr", "pt", "el", "hi", "xx"]))
def test_splitting_loses_nothing(text: str, language: str) -> None:
    text = clean(text)
    pieces = split_sentences(text, language)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece == piece.strip() for piece in pieces)
    if len(pieces) > 1:
        assert all(any(map(str.isalnum, piece)) for piece in pieces)


@given(st.text(max_size=80), st.sampled_from(["en", "zh", "ar", "ru"]))
def test_splitting_any_text_loses_nothing(text: str, language: str) -> None:
    text = clean(text)
    assert "".join("".join(split_sentences(text, language)).split()) == "".join(text.split())


@pytest.mark.skipif(not DATA.is_dir(), reason="the reference data sets are not on this machine")
@pytest.mark.parametrize(("name", "language"), [("train.luxun.random.zh", "zh"), ("train.shake.all.en", "en")])
def test_splitting_a_corpus_of_sentences_leaves_them(name: str, language: str) -> None:
    lines = (DATA / "mtsc" / name).read_text(encoding="utf-8").splitlines()
    pieces = [split_sentences(clean(line), language) for line in lines]
    # These files hold one sentence a line already.
    assert sum(len(piece) == 1 for piece in pieces) > 0.98 * len(lines)


def test_codes() -> None:
    assert [base_language(c) for c in ("zh", "zh-CN", "zh_Hant", "ZH", "zho_Hans", "cmn")] == ["zh"] * 6
    assert [base_language(c) for c in ("eng_Latn", "deu", "pt-BR", "no")] == ["en", "de", "pt", "nb"]
    assert base_language("xxx") == "xxx"
    assert language_name("zh-Hant") == "Chinese"
    assert language_name("qq") == "qq"


def test_identify_real_text() -> None:
    english = [s for s in (SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_text().splitlines() if s.strip()]
    chinese = [s for s in (SAMPLES / "literary-zh" / "literary-zh.txt").read_text().splitlines() if s.strip()]
    shares = identify(english, "en")
    assert shares
    assert shares["en"] > 0.9
    shares = identify(chinese, "zh-TW")
    assert shares
    assert shares["zh"] > 0.95
    mixed = identify(english[:100] + chinese[:100], "zh")
    assert mixed
    assert 0.4 < mixed["zh"] < 0.6
    assert abs(sum(mixed.values()) - 1) < 1e-9
    assert identify(english, "qq") is None
    assert identify([], "en") is None


def test_lookalikes_from_pdf_readers_become_plain_characters() -> None:
    assert clean("那天夜⾥下着⾬，⺟亲骑⻢出⻔。") == "那天夜里下着雨，母亲骑马出门。"
    assert clean("The ﬁrst oﬃce") == "The first office"
    assert clean("⾬", "none") == "⾬"
