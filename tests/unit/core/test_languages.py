"""Language tags: any shape gives one canonical form, and every family's own codes are found from it and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.directions import coded, marian
from engine.core.languages import (
    Codes,
    canonical,
    is_collection,
    language_message,
    primary_language,
    read_tag,
    same_language,
    unspaced,
)
from engine.errors import ModelError, OptionError
from engine.messages import Message


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("zh", "zh"), ("ZH-cn", "zh"), ("zh_Hans", "zh"), ("zho_Hans", "zh"), ("cmn", "zh"), ("zh-SG", "zh"),
        ("zh_hant", "zh-Hant"), ("zh-TW", "zh-Hant"), ("zho_Hant", "zh-Hant"), ("zh-HK", "zh-Hant-HK"),
        ("pt-BR", "pt-BR"), ("pob", "pt-BR"), ("por", "pt"), ("en_XX", "en"), ("eng_Latn", "en"), ("en-us", "en-US"),
        ("sr-Latn", "sr-Latn"), ("srp_Cyrl", "sr"), ("no", "nb"), ("nob_Latn", "nb"), ("nn", "nn"), ("iw", "he"),
        ("fil", "tl"), ("tgl_Latn", "tl"), ("jpn_Jpan", "ja"), ("kor_Hang", "ko"), ("ns", "nso"), (" de-AT ", "de-AT"),
    ],
)  # fmt: skip
def test_any_shape_has_one_form(given: str, wanted: str) -> None:
    assert canonical(given) == wanted
    assert canonical(wanted) == wanted


@pytest.mark.parametrize("text", ["", "english", "1234", "x", "en--", "zz", "mul", "日本語", "a" * 3000])
def test_what_is_no_tag(text: str) -> None:
    assert read_tag(text) is None
    with pytest.raises(OptionError, match="not a language code"):
        canonical(text)


@given(st.text(max_size=20))
def test_no_text_is_a_fault(text: str) -> None:
    tag = read_tag(text)
    assert tag is None or canonical(str(tag)) == str(tag)
    assert isinstance(primary_language(text), str)


def test_all_codes_of_the_families_are_known() -> None:
    """Each of the 202, 52 and 100 codes is found again by itself and by its canonical tag."""
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M100
    from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART50
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB

    for family, words, count in (
        ("nllb", NLLB, 202),
        ("mbart", MBART50, 52),
        ("m2m_100", [f"__{code}__" for code in M2M100["m2m100"]], 100),
    ):
        codes = coded("base", family, words).targets
        assert codes is not None
        assert len(codes.items()) == count
        for word in words:
            assert (codes.find(word.strip("_")) or ("", ""))[1] == word
        for tag in codes.tags:
            assert (codes.find(tag) or ("", ""))[0] == tag


@pytest.mark.parametrize(
    ("tag", "nllb"),
    [
        ("zh", "zho_Hans"), ("zh-TW", "zho_Hant"), ("no", "nob_Latn"), ("fa", "pes_Arab"), ("fa-AF", "prs_Arab"),
        ("qu", "quy_Latn"), ("ps", "pbt_Arab"), ("ku", "kmr_Latn"), ("ckb", "ckb_Arab"), ("ar", "arb_Arab"),
        ("ary", "ary_Arab"), ("tw", "twi_Latn"), ("ms", "zsm_Latn"), ("id", "ind_Latn"), ("sq", "als_Latn"),
        ("ks", "kas_Arab"), ("ks-Deva", "kas_Deva"), ("pt-BR", "por_Latn"), ("yue", "yue_Hant"), ("sat", "sat_Beng"),
    ],
)  # fmt: skip
def test_nllb(tag: str, nllb: str) -> None:
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    codes = Codes({code: code for code in FAIRSEQ_LANGUAGE_CODES})
    assert (codes.find(tag) or ("", ""))[1] == nllb


def test_a_script_that_the_model_does_not_write_is_refused_with_the_nearest() -> None:
    directions = coded("nllb", "nllb", ["srp_Cyrl", "hrv_Latn", "eng_Latn", "zho_Hans", "deu_Latn"])
    with pytest.raises(ModelError, match=r"The base nllb does not support the language sr-Latn\. Nearest: sr, hr\."):
        directions.resolve("en", "sr-Latn")
    with pytest.raises(ModelError, match=r"Nearest: zh\."):
        directions.resolve("en", "zh-TW")
    with pytest.raises(ModelError, match=r"Nearest: de\."):
        directions.resolve("en", "gsw")
    with pytest.raises(ModelError, match=r"It supports de, en, hr, sr, zh\."):
        directions.resolve("en", "tlh")


def test_marian_of_one_direction() -> None:
    directions = marian("opus", [], "eng", "deu")
    assert directions.resolve("en-US", "de-AT") == ("en", "de")
    assert not directions.knows("de", "en")
    assert directions.languages == ["de", "en"]


def test_marian_with_a_group_of_languages() -> None:
    """The named source of a multilingual model is a group: any language is taken, none refused on its account."""
    many = marian("opus", [">>deu<<", ">>nld<<", ">>afr<<"], "ROMANCE", "gmw")
    assert many.resolve("pt-BR", "nl") == ("pt", "nl")
    assert not many.knows("pt", "en")
    to_one = marian("opus", [], "mul", "eng")
    assert to_one.resolve("sw", "en") == ("sw", "en")
    one_source = marian("opus", [">>pt<<", ">>pt_br<<", ">>es<<"], "en", "roa")
    assert one_source.resolve("en", "pt-BR") == ("en", "pt-BR")
    assert not one_source.knows("es", "pt")
    among = marian("ours", [">>de<<", ">>en<<", ">>zh<<"], "en", "zh")
    assert among.knows("zh", "de")
    assert all(map(is_collection, ("mul", "roa", "ROMANCE", "en+de", "celtic")))
    assert not is_collection("eng")


def test_a_tokenizer_without_codes() -> None:
    with pytest.raises(ModelError, match="has no language codes"):
        coded("base", "nllb", ["▁the", "rain"])


def test_what_languages_are_alike() -> None:
    assert same_language("zh-CN", "zho_Hans")
    assert same_language("pt-BR", "pt")
    assert not same_language("zh-TW", "zh")
    assert unspaced("zh-Hant")
    assert unspaced("jpn")
    assert not unspaced("ko")


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("zh", "Chinese"),
        ("zho_Hans", "Chinese"),
        ("zh-TW", "Chinese (zh-Hant)"),
        ("pt_BR", "Portuguese (pt-BR)"),
        ("el", "Modern Greek"),
        ("no language", "no language"),
    ],
)
def test_a_sentence_names_a_language_by_its_name(tag: str, name: str) -> None:
    assert language_message(tag) == name


def test_the_name_is_in_the_readers_language() -> None:
    from studio.i18n.translate import speaking, translate_message

    sentence = Message("From {source} to {target}, like this project.",
                       source=language_message("en"), target=language_message("zh-Hant"))  # fmt: skip
    with speaking("zh"):
        assert translate_message(sentence) == "从英语到中文（zh-Hant），与本项目一致。"
