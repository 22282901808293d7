"""Well-known bases by pair, what scores on a card mean in words, and the line that a command says of a shipped base."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.base import recommend
from engine.base.quality import LEVELS, card_scores, direction_scores, quality_words
from engine.base.recommend import recommended
from engine.core.model_card import read_card_file
from tests.bases import EN_ZH
from tests.conftest import Ran

Run = Callable[..., Ran]
HUB_ID = re.compile(r"(Helsinki-NLP/opus-mt-[\w-]+|facebook/(m2m100|nllb-200)[\w.-]+)")


def test_the_table_is_whole() -> None:
    rows = recommend._rows()
    assert len({row.hub_id for row in rows}) == len(rows) > 20
    for row in rows:
        assert HUB_ID.fullmatch(row.hub_id), row.hub_id
        assert row.sources.tags, row.hub_id
        assert row.targets.tags, row.hub_id
        assert row.card.license_name != "not stated", row.hub_id
        # Half or single precision, as they lie on the hub.
        assert 1.8 < row.download_bytes / row.weights < 4.3, row.hub_id
        name = row.name.removeprefix("opus-mt-").removeprefix("tc-big-")
        if row.family == "Marian" and name.islower():  # the name says the direction
            assert row.translates(*name.split("-")), row.hub_id


def test_languages_of_the_table_are_those_of_the_models() -> None:
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES
    from transformers.models.nllb import tokenization_nllb

    lists = recommend._table()["languages"]
    assert set(lists["m2m100"].split()) == set(FAIRSEQ_LANGUAGE_CODES["m2m100"])
    assert set(lists["nllb"].split()) == set(tokenization_nllb.FAIRSEQ_LANGUAGE_CODES)


def test_models_of_a_pair_come_by_kind_and_size() -> None:
    names = [model.name for model in recommended("en", "zh")]
    assert names == ["opus-mt-en-zh", "m2m100_418M", "nllb-200-distilled-600M", "m2m100_1.2B", "nllb-200-distilled-1.3B"]
    assert recommended("en", "zh")[0].reverse == "Helsinki-NLP/opus-mt-zh-en"
    assert recommended("de", "en")[0].hub_id == "Helsinki-NLP/opus-mt-de-en"
    assert {model.family for model in recommended("sw", "zh-Hant")} == {"NLLB"}  # M2M100 writes simplified Chinese
    assert recommended("en", "en") == recommended("en", "tlh") == []


def test_the_command_names_size_memory_and_licence(tailormt: Run) -> None:
    ran = tailormt("base", "recommend", "--source", "en", "--target", "zh")
    assert "Helsinki-NLP/opus-mt-en-zh" in ran.out
    assert "CC BY-NC 4.0" in ran.out
    assert "base add Helsinki-NLP/opus-mt-en-zh --convert" in ran.out
    data = json.loads(tailormt("base", "recommend", "--source", "eng", "--target", "zh-CN", "--json").out)
    first = data["bases"][0]
    assert (data["source"], data["target"], first["license"]) == ("en", "zh", "Apache 2.0")
    assert first["memory_bytes"] > 4 * first["weights"]
    assert [model["hub_id"] for model in data["bases"] if model["restricted"]] == [
        "facebook/nllb-200-distilled-600M", "facebook/nllb-200-distilled-1.3B",
    ]  # fmt: skip
    assert "No well-known model" in tailormt("base", "recommend", "--source", "en", "--target", "tlh").out
    assert "not a language code" in tailormt("base", "recommend", "--source", "??", "--target", "zh").sentence


OPUS = """
## Benchmarks

| testset               | BLEU  | chr-F |
|-----------------------|-------|-------|
| newstest2014-deen.de.en 	| 34.0 	| 0.599 |
| Tatoeba.de.en 	| 55.4 	| 0.707 |
"""
CHALLENGE = """
| langpair | testset | chr-F | BLEU  | #sent | #words |
|----------|---------|-------|-------|-------|--------|
| eng-fra | tatoeba-test-v2021-08-07 | 0.69621 | 53.2 | 12681 | 106378 |
| eng-fra | flores101-devtest | 0.7 | n/a | 1012 | 28343 |
"""


def test_scores_are_read_from_cards_of_several_kinds() -> None:
    ours = card_scores(read_card_file(EN_ZH).body)
    assert {(score.test, score.source, score.target) for score in ours} == {
        (test, *way) for test in ("ntrex", "tatoeba") for way in (("en", "zh"), ("zh", "en"))
    }
    opus = card_scores(OPUS)
    assert [(score.text, score.bleu) for score in opus] == [("news", 34.0), ("short sentences", 55.4)]
    assert direction_scores(opus, "de", "en")
    assert [(score.source, score.target, score.bleu) for score in card_scores(CHALLENGE)] == [("en", "fr", 53.2)]
    assert card_scores("no table\n\n| a | BLEU |\n|---|---|\n| x |\n| y | high |\n") == []


@pytest.mark.parametrize(
    ("bleu", "words"), [(0.0, LEVELS[0][1]), (9.9, LEVELS[0][1]), (10.0, LEVELS[1][1]), (100.0, LEVELS[-1][1])]
)
def test_words_of_a_score(bleu: float, words: str) -> None:
    (score,) = card_scores(f"| file | direction | BLEU |\n|---|---|---|\n| mine | en to zh | {bleu} |\n")
    assert score.words == words
    assert quality_words([score]) == f"mine: {words} (BLEU {bleu:.1f})"


def test_a_command_says_once_what_a_shipped_base_is_worth(tailormt: Run, tmp_path: Path, tiny: Path) -> None:
    text = tmp_path / "in.txt"
    text.write_text("The rain stopped.\n", encoding="utf-8")
    line = ("translate", "--source", "en", "--target", "zh", text)
    message = tailormt(*line).err.splitlines()[0]
    bleu = min(score.bleu for score in direction_scores(card_scores(read_card_file(EN_ZH).body), "en", "zh"))
    assert message.startswith("The base en-zh is a demonstration model. From en to zh, ")
    assert f"(BLEU {bleu:.1f})" in message
    assert "`tailormt base recommend --source en --target zh`" in message
    for quiet in ("--quiet", "--json"):
        assert "demonstration" not in tailormt(*line, quiet).err
    assert "demonstration" not in tailormt(*line, "--base", tiny).err
