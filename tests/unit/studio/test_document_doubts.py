"""Why a translation is to be checked is data, so that a reader of Chinese gets it in Chinese, also from what is stored."""

from __future__ import annotations

import html
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from engine.core.progress import Progress
from engine.corpora.formats.documents.formats import open_document
from engine.corpora.formats.documents.model import Context, Result, Unit, together
from engine.messages import Message, pack, unpack
from engine.serving.units.translate import TranslationCache, translate_units
from engine.store import JobState, ProjectRow
from engine.workflows.document_segments import doubt_of, write_segments
from studio.components.documents_table import done_table
from studio.i18n.translate import speaking, translate_message
from tests.documents import xliff1
from tests.translators import Words


def doubt(text: str, *dropped: str, placeholders: tuple[str, ...] = ("plain",)) -> str:
    """Of a text whose translation lacks some words."""
    model = Words(lambda words: [(k, word.upper()) for k, word in enumerate(words) if not word.startswith(dropped)], target="zh")
    (result,) = translate_units([Unit([text], placeholders=placeholders)], model, TranslationCache(None, ""), Progress())
    return result.doubt


def test_doubts_are_said_in_the_language_of_the_reader() -> None:
    lost = doubt("Delete %s of 12.50 now", "X", "2", "D", "T", "N", "K", "1")
    assert lost == ("%s was lost in translation and put back: check its place. The number 12.50 is not in the translation.")
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


def test_what_was_left_alone_is_said_in_the_language_of_the_reader(project: ProjectRow, tmp_path: Path) -> None:
    units = [
        '<trans-unit id="1" translate="no"><source>Stay</source></trans-unit>',
        '<trans-unit id="2" approved="yes"><source>Yes</source><target>是</target></trans-unit>',
        '<trans-unit id="3"><source>No</source><target>不</target></trans-unit>',
    ]
    file = tmp_path / "a.xlf"
    file.write_text(xliff1(units), encoding="utf-8")
    skipped = json.loads(json.dumps(open_document(file, Context(file.name, "en", "zh")).skipped))
    job = SimpleNamespace(id=1, active=False, state=JobState.SUCCEEDED, finished=datetime.now(UTC), plugin_id=None)
    document: Any = SimpleNamespace(
        job=job, report={"kept": skipped}, output=file, language="", name=file.name, plugin="", strength=1.0, segments=None
    )
    table = html.unescape(done_table([document], project))
    assert 'Left unchanged: 1 approved before, 1 translate="no" and 1 translated before.' in table
    with speaking("zh"):
        table = html.unescape(done_table([document], project))
    assert '原样保留：1 段此前已批准、1 段标有 translate="no"和 1 段此前已有译文。' in table
