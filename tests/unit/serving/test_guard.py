"""Translations that repeat themselves or run on are seen, searched for again and flagged; all others stay to the letter."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.base.defaults import read_defaults, write_defaults
from engine.builders.bases import decoding_choice
from engine.builders.bases.decoding_choice import choose_decoding, choose_defaults
from engine.core.flagged import FLAGS, Flagged, flag_of, flagged, packed, unpacked
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.formats.documents.model import Unit
from engine.corpora.formats.markup import TaggedMarkup
from engine.corpora.formats.plain_layout import PlainTextLayout
from engine.decoding.guard import longest_allowed, problem
from engine.decoding.translate import translate
from engine.errors import ModelError
from engine.serving.batcher import Batcher, TranslationSpec
from engine.serving.model_cache import ModelCache
from engine.serving.units.translate import BaseTranslator, TranslationCache, translate_units
from tests.bases import SAMPLES, SENTENCES, copy_base

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "format-1" / "base"

# What the shipped English-Chinese base of 0.1.0 said, and the sources.
LOOPS = [
    ("Tom's ordeal was far from over.", "汤姆的性能远远远远。"),
    ("Isn't he the graduate student of the University of Rome?", "他没有大学大学大学毕业了吗？"),
    ("你应该认真考虑吓做盖图纹身师傅。", "You should always think about tattoo tattoo tattoo."),
    ("他迫不及待地想试一下他的新冲浪板。", "He suffered to try to try to try his new waves."),
    ("凯特受所有人欣赏。", "Matttts all of the hurry."),
    ("Hurricane Rosa Threatening Phoenix", "克利夫斯（Gogle）（Gogle）（Gogle）（Gogle）"),
    ("See the table.", "见表格(2)(2)(2)。"),
    (
        "利文斯顿队凭借进球以 1-0 战胜了流浪者队",
        "The story of the history of the war, a part of the history of the war and of the history of the war.",
    ),
]
SOUND = [
    ("No, no, no, no!", "不，不，不，不！"),
    ("Ha ha ha ha!", "哈哈哈哈！"),
    ("哈哈哈哈！", "Hahahaha!"),
    ("It cost a million: one, two, three.", "它花了1000000元：一、二、三。"),
    ("Wait…", "等等......"),
    ("He was a very, very, very old man.", "他是个非常非常非常老的人。"),
    (
        "The United Arab Emirates said the United Arab Emirates and only the United Arab Emirates would pay.",
        "阿拉伯联合酋长国表示，阿拉伯联合酋长国，而且只有阿拉伯联合酋长国会付款。",
    ),
]


@pytest.fixture(scope="module")
def base() -> BaseModel:
    """Trained on a handful of sentences: on others it babbles, now and then in circles."""
    return BaseModel.load(GOLDEN, "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    lines = (SAMPLES / "elizabethan-en/elizabethan-en.txt").read_text(encoding="utf-8").split("\n")
    return [en for en, _ in SENTENCES[:8]] + [line for line in lines if line.strip()][:8]


@pytest.mark.parametrize(("source", "translation"), LOOPS)
def test_loops_are_seen(source: str, translation: str) -> None:
    result = problem(source, translation)
    assert result is not None
    assert result.kind == "repetition"
    assert 0 < result.share < 1


@pytest.mark.parametrize(("source", "translation"), SOUND)
def test_what_the_source_repeats_and_what_people_write_is_no_loop(source: str, translation: str) -> None:
    assert problem(source, translation) is None


def test_texts_of_people_are_no_loops() -> None:
    for folder in ("elizabethan-en", "literary-zh"):
        for file in (SAMPLES / folder).glob("*.txt"):
            for line in file.read_text(encoding="utf-8").splitlines():
                assert problem("", line) is None, line


def test_what_is_far_longer_than_its_source_has_run_on() -> None:
    assert longest_allowed(10) == 28
    assert longest_allowed(10, 4.0) == 48, "who asks for long translations gets them"
    result = problem("The rain stopped.", "雨停了，他走了。", tokens=28, allowed=28)
    assert result is not None
    assert result.kind == "length"
    assert problem("The rain stopped.", "雨停了。", tokens=27, allowed=28) is None


def test_a_flag_goes_where_the_text_goes() -> None:
    text = Flagged("雨停了。", "repetition-repaired")
    assert text == "雨停了。"
    for other in (copy.deepcopy(text), unpacked(json.loads(json.dumps(packed(text))))):
        assert (other, flag_of(other)) == ("雨停了。", "repetition-repaired")
    assert json.dumps([text], ensure_ascii=False) == '["雨停了。"]'
    assert flag_of(flagged("a", ["", "length-repaired", "repetition"])) == "repetition", "the worst of them"
    assert unpacked(["a", "of a later version"]) == "a"


def test_only_flagged_translations_differ_from_a_search_without_the_guard(base: BaseModel, texts: list[str]) -> None:
    for settings in ({}, {"beam": 1}, {"beam": 2, "batch_tokens": 60}):
        plain = translate(base, texts, decoding=Decoding.from_mapping({**settings, "guard": False}))
        watched = translate(base, texts, decoding=Decoding.from_mapping(settings))
        assert not any(map(flag_of, plain))
        flags = [flag_of(text) for text in watched]
        assert 0 < sum(map(bool, flags)) < len(texts)
        assert set(flags) <= {"", *FLAGS}
        for source, before, after, flag in zip(texts, plain, watched, flags, strict=True):
            if not flag:
                assert after == before
            elif flag == "repetition-repaired":
                assert problem(source, after) is None


def test_the_queue_documents_and_layouts_pass_flags_on(base: BaseModel, texts: list[str]) -> None:
    translations = {text: translate(base, [text])[0] for text in texts}
    looped = next(text for text in texts if flag_of(translations[text]) and text[-1] == "." and text.count(".") == 1)
    batcher = Batcher(ModelCache(load_settings()))
    (queued,) = batcher.submit(TranslationSpec.of(base.path, "en", "zh"), [looped]).result(300)
    assert (queued, flag_of(queued)) == (translations[looped], flag_of(translations[looped]))
    results = translate_units([Unit([looped], whole=True)], BaseTranslator(base), TranslationCache(None, ""), Progress())
    assert results[0].flag == flag_of(queued)
    assert FLAGS[results[0].flag] in results[0].doubt
    for cut in (PlainTextLayout([looped, "\n"], "0"), TaggedMarkup([f"<p>{looped}</p>", "<p/>"], "xml", "0")):
        assert [flag_of(text) for text in cut.join(results)] == [flag_of(queued), ""]


def test_what_was_finished_keeps_its_flags(tmp_path: Path) -> None:
    file = tmp_path / "partial.jsonl"
    TranslationCache(file, "k").add([("a", Flagged("b", "length")), ("c", "d")])
    again = TranslationCache(file, "k").translations
    assert again == {"a": "b", "c": "d"}
    assert [flag_of(again[text]) for text in "ac"] == ["length", ""]


def test_a_base_has_decoding_defaults_of_its_own(base: BaseModel, tmp_path: Path) -> None:
    folder = copy_base(GOLDEN, tmp_path / "base")
    write_defaults(folder, {"en-zh": {"beam": 2, "length_penalty": 0.6}})
    write_defaults(folder, {"zh-en": {"beam": 6}})
    model = BaseModel.load(folder, "en", "zh", device="cpu")
    assert model.fingerprint() == base.fingerprint(), "plugins still fit"
    assert model.decoding() == Decoding(beam=2, length_penalty=0.6)
    assert model.decoding({"beam": 3}) == Decoding(beam=3, length_penalty=0.6), "what is asked for comes first"
    assert model.for_direction("zh", "en").decoding() == Decoding(beam=6)
    assert base.decoding() == Decoding()
    texts = [en for en, _ in SENTENCES[:6]]
    assert translate(model, texts) == translate(base, texts, decoding=Decoding(beam=2, length_penalty=0.6))
    write_defaults(folder, {"en-zh": {"beam": 1000}})
    with pytest.raises(ModelError, match="beam"):
        read_defaults(folder, "en", "zh")


def test_decoding_is_chosen_by_bleu_on_held_out_pairs(base: BaseModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding_choice, "PENALTIES", (1.0, 0.6))
    monkeypatch.setattr(decoding_choice, "FEWEST", 8)
    pairs = list(SENTENCES[:8])
    choice = choose_decoding(base, pairs)
    best = max(row["bleu"] for row in choice.rows)
    row = next(row for row in choice.rows if all(row[name] == value for name, value in choice.settings.items()))
    assert row["bleu"] == pytest.approx(best, abs=0.11)
    assert choose_defaults(GOLDEN, pairs[:7], "en", "zh") == {}, "too few to choose on"
    folder = copy_base(GOLDEN, tmp_path / "base")
    chosen = choose_defaults(folder, pairs, "en", "zh", device="cpu")
    assert BaseModel.load(folder, "en", "zh", device="cpu").decoding().beam == chosen["en-zh"].settings["beam"]
