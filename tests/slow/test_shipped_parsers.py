"""The parsers in assets/parsers: they load as stanza's own do, stay small, tell where they are from, and give phrases."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from engine.core.model_card import read_card_file
from engine.core.settings import ROOT, Settings
from engine.errors import OptionError
from engine.phrases import PhraseOptions, extract_phrases, parse_tree, stanza_models
from engine.phrases.stanza_models import find_models

ASSETS = ROOT / "assets"
PARSERS = ASSETS / "parsers"
SETS = {"en": {"constituency", "dependency"}, "zh-hans": {"dependency"}, "de": {"dependency"}}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_sets_are_whole_and_small() -> None:
    for language, kinds in SETS.items():
        results = {kind for kind in ("constituency", "dependency") if list(find_models(language, kind, [PARSERS]))}
        assert results == kinds, language
        assert sum(file.stat().st_size for file in (PARSERS / language).rglob("*")) <= 15_000_000
    assert sum(file.stat().st_size for file in ASSETS.rglob("*") if file.is_file()) <= 150_000_000


def test_nothing_of_the_machine_that_made_them_is_inside() -> None:
    for file in PARSERS.rglob("*.pt"):
        data = file.read_bytes()
        for trace in (b"/work/", b"/root/", b"/home/", b"/tmp/"):
            assert trace not in data, f"{file} holds {trace!r}"


@pytest.mark.parametrize("language", SETS)
def test_each_set_has_a_card_with_licence_command_and_figures(language: str) -> None:
    card = read_card_file(PARSERS / language / "README.md")
    assert card.license_name != "not stated"
    assert card.license_note
    assert language.split("-", maxsplit=1)[0] in card.languages
    for part in ("Data and licences", "universaldependencies.org", "tailormt parser train", "Figures", "Limits"):
        assert part in card.body, part
    facts = json.loads((PARSERS / language / "figures.json").read_text(encoding="utf-8"))
    assert facts["figures"]["dependency"]["raw"]["UAS"] > 0.4
    assert "/work/" not in card.body


@pytest.mark.parametrize("language", ["en", "zh-hans", "zh", "de"])
def test_stanza_loads_the_default_set_without_a_network(language: str) -> None:
    """The default package, as anyone who knows stanza would load it."""
    import stanza

    text = {"en": "The old king saw a ship in the harbour.", "de": "Der alte König sah ein Schiff im Hafen."}
    pipeline = stanza.Pipeline(language, dir=str(PARSERS), download_method=None, verbose=False)
    (sentence,) = pipeline(text.get(language, "老国王在港口看见了一条大船。")).sentences
    assert sum(word.head == 0 for word in sentence.words) == 1
    assert 5 <= len(sentence.words) <= 12
    assert (sentence.constituency is not None) == (language == "en")
    assert {word.upos for word in sentence.words} >= {"NOUN", "VERB"}


def texts_of(language: str, *sentences: str, parser: str = "auto") -> set[str]:
    result = extract_phrases(sentences, language, PhraseOptions(parser=parser), parser_dirs=Settings().parser_dirs)
    assert "(tailor)" in result.parser
    return {phrase.text for phrase in result}


def test_english_phrases_are_constituents_of_all_sizes() -> None:
    result = texts_of("en", "The old king of the island saw a small ship, and he didn't wait for the morning.")
    assert {"The old king", "The old king of the island", "the island", "a small ship", "the morning"} <= result
    assert "saw a small ship" in result
    assert "didn't" in result or "didn't wait for the morning" in result
    assert "king of" not in result


def test_english_dependencies_are_there_too() -> None:
    result = texts_of("en", "The old king of the island saw a small ship.", parser="dependency")
    assert {"The old king of the island", "a small ship"} <= result


def test_chinese_phrases_are_words_and_what_hangs_on_them() -> None:
    result = texts_of("zh", "我的朋友在花园里看一本旧书。")
    assert {"朋友", "我的朋友", "一本旧书"} <= result
    assert not any("。" in phrase for phrase in result)


def test_german_phrases_keep_contractions_whole() -> None:
    result = texts_of("de", "Der alte Mann ging am Morgen zum Hafen.")
    assert {"Der alte Mann", "zum Hafen", "am Morgen"} <= result
    assert not {"zu dem", "dem Hafen"} & result


def test_a_tree_can_be_drawn() -> None:
    tree = parse_tree("The king saw a ship.", "en", parser_dirs=Settings().parser_dirs)
    assert tree.label == "ROOT"
    assert [leaf.text for leaf in tree.leaves()] == ["The", "king", "saw", "a", "ship", "."]


def test_parsers_run_on_the_device_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    devices = []
    original = stanza_models.local_pipeline
    monkeypatch.setattr(
        stanza_models, "local_pipeline", lambda *args, **settings: devices.append(settings["device"]) or original(*args, **settings)
    )
    stanza_models.cached_pipeline.cache_clear()
    options = PhraseOptions(parser="dependency")
    for device in ("cpu", "auto"):
        extract_phrases(["The king saw a ship."], "en", options, parser_dirs=[PARSERS], device=device)
    assert devices == ["cpu"], "auto is the same parser where there is no GPU"
    with pytest.raises(OptionError, match="There is no device cuda here"):
        extract_phrases(["The king saw a ship."], "en", options, parser_dirs=[PARSERS], device="cuda")
