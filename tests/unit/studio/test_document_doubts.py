"""Why a translation is to be checked is data, so that a reader of Chinese gets it in Chinese, also from what is stored."""

from __future__ import annotations

import json
from pathlib import Path

from engine.core.progress import Progress
from engine.corpora.formats.documents.model import Result, Unit, together
from engine.messages import Message, pack, unpack
from engine.serving.units.translate import TranslationCache, translate_units
from engine.workflows.document_segments import doubt_of, write_segments
from studio.i18n.translate import speaking, translate_message
from tests.translators import Words


def doubt(text: str, *dropped: str, placeholders: tuple[str, ...] = ("plain",)) -> str:
    """Of a text whose translation lacks some words."""
    said = Words(
        lambda words: [(k, word.upper()) for k, word in enumerate(words) if not word.startswith(dropped)], target="zh"
    )
    (result,) = translate_units([Unit([text], placeholders=placeholders)], said, TranslationCache(None, ""), Progress())
    return result.doubt


def test_doubts_are_said_in_the_language_of_the_reader() -> None:
    lost = doubt("Delete %s of 12.50 now", "X", "2", "D", "T", "N", "K", "1")
    assert lost == (
        "%s was lost in translation and put back: check its place. The number 12.50 is not in the translation."
    )
    with speaking("zh"):
        assert translate_message(lost) == "%s 在翻译时丢失，现已补回，请检查其位置。译文中缺少数字 12.50。"
        assert translate_message(doubt("1,250 metres", "1")) == "译文中缺少数字 1,250。"
        assert translate_message(doubt("Nothing", "N")) == "模型没有给出译文。"


def test_stored_doubts_stay_data(tmp_path: Path) -> None:
    why = together("", Message("It is longer than {limit:,} characters.", limit=5), doubt("In 1907", "1"))
    assert why == "It is longer than 5 characters. The number 1907 is not in the translation."
    file = tmp_path / "segments.jsonl"
    write_segments(file, [(Unit(["a"]), Result(["b"], why)), (Unit(["a"]), Result(["b"]))])
    first, second = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    report = json.loads(json.dumps(pack({"doubts": [{"why": why}]})))
    with speaking("zh"):
        assert translate_message(doubt_of(first)) == "译文超过 5 个字符。译文中缺少数字 1907。"
        assert translate_message(unpack(report)["doubts"][0]["why"]) == translate_message(why)
    assert doubt_of(second) == ""
    assert doubt_of({"doubt": "Odd."}) == "Odd.", "rows of an earlier version"
