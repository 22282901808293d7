"""The whole way through stanza with real, if tiny, models, trained here on a small grammar (see tiny_stanza)."""

from __future__ import annotations

import functools
import http.server
import json
import logging
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from tiny_stanza import ADJECTIVES, NOUNS, PREPOSITIONS, Gold, chinese, english, resources, train, train_constituency

from engine.core.progress import Progress
from engine.errors import Cancelled, MissingError
from engine.phrases import PhraseOptions, extract_phrases, parse_tree
from engine.phrases.stanza_models import find_models, load_pipeline


@pytest.fixture(scope="module")
def golds() -> dict[str, list[Gold]]:
    rng = random.Random(5)
    return {"en": [english(rng) for _ in range(80)], "zh": [chinese(rng) for _ in range(60)]}


@pytest.fixture(scope="module")
def parsers(golds: dict[str, list[Gold]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import stanza  # noqa: F401 - sets up its loggers, which are then silenced
    import torch

    logging.getLogger("stanza").setLevel("ERROR")
    work = tmp_path_factory.mktemp("stanza")
    models = work / "models"
    threads = torch.get_num_threads()  # models this small only lose by more than one, and stall on a busy machine
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train(golds["en"], "en", work / "en", models, spaced=True)
    train_constituency(golds["en"], models)
    train(golds["zh"], "zh-hans", work / "zh", models, spaced=False)
    (models / "resources.json").write_text(json.dumps(resources(models)), encoding="utf-8")
    logging.getLogger("stanza").setLevel("ERROR")  # the trainers make it talkative
    yield models
    torch.set_num_threads(threads)


def found_share(expected: list[tuple[str, set[str]]], phrases: dict[str, int], longest: int, length) -> float:
    all_expected = {phrase for _, group in expected for phrase in group if length(phrase) <= longest}
    return len(all_expected & set(phrases)) / len(all_expected)


def test_constituents_of_a_real_pipeline(golds: dict[str, list[Gold]], parsers: Path) -> None:
    texts = [gold.text for gold in golds["en"]]
    result = extract_phrases(texts, "en", parser_dirs=[parsers])
    assert "constituency parser for en (tiny)" in result.parser
    assert str(parsers) not in result.parser, "a path is nobody's business"
    phrases = {phrase.text: phrase.count for phrase in result}
    expected = [(gold.text, gold.constituents) for gold in golds["en"]]
    assert found_share(expected, phrases, 8, lambda phrase: len(phrase.split())) > 0.9
    assert all(phrase.text in texts[phrase.example] for phrase in result)
    assert all(phrase.length == len(phrase.text.split()) <= 8 for phrase in result)
    labels = {phrase.text: phrase.label for phrase in result}
    places = [position for gold in golds["en"] for position in gold.constituents if position.split()[0] in PREPOSITIONS]
    assert sum(labels.get(position) == "PP" for position in places) > 0.8 * len(places)
    assert not any("." in phrase.text for phrase in result)


def test_dependency_subtrees_of_a_real_pipeline(golds: dict[str, list[Gold]], parsers: Path) -> None:
    texts = [gold.text for gold in golds["en"]]
    result = extract_phrases(texts, "en", PhraseOptions(parser="dependency"), parser_dirs=[parsers])
    assert "dependency" in result.parser
    phrases = {phrase.text: phrase.count for phrase in result}
    assert found_share([(g.text, g.subtrees) for g in golds["en"]], phrases, 8, lambda p: len(p.split())) > 0.9


def test_chinese_has_no_spaces_and_its_own_punctuation(golds: dict[str, list[Gold]], parsers: Path) -> None:
    """No constituency model is there for Chinese: the dependency parser is taken, by the alias zh."""
    texts = [gold.text for gold in golds["zh"]]
    result = extract_phrases(texts, "zh_CN", parser_dirs=[parsers])
    assert "dependency parser for zh-hans" in result.parser
    assert all(" " not in phrase.text and "。" not in phrase.text for phrase in result)
    assert all(phrase.text in texts[phrase.example] for phrase in result)
    expected = set().union(*(gold.subtrees for gold in golds["zh"]))
    assert len(expected & {phrase.text for phrase in result}) / len(expected) > 0.85


def test_odd_sentences_pass_through(parsers: Path) -> None:
    odd = [
        "  the  old king — (yes)!  ",
        "…",
        "",
        " \u0085\x80 ",
        "the king\nsaw\u2028a ship.",
        "x" * 1500 + " " + "word " * 200,
        "the old king saw the ship." * 90,
        "国王 saw １２ 🙂 ships.\n\n",
    ]
    for parser in ("constituency", "dependency"):
        result = extract_phrases(odd, "en", PhraseOptions(parser=parser), parser_dirs=[parsers])
        assert {phrase.example for phrase in result} >= {0, 4, 5, 7}
        assert {phrase.text: phrase.count for phrase in result}["old"] > 80  # in all parts of the long sentence
        assert all(phrase.text in odd[phrase.example] for phrase in result)
        assert all(phrase.text.strip() == phrase.text for phrase in result)


def test_each_sentence_is_parsed_once_and_counted_as_often_as_it_occurs(parsers: Path) -> None:
    pipeline = load_pipeline(next(find_models("en", "constituency", [parsers])))
    seen: list[str] = []
    original = pipeline.bulk_process
    pipeline.bulk_process = lambda documents: seen.extend(d.text for d in documents) or original(documents)
    try:
        result = extract_phrases(["the king saw a ship."] * 7 + ["the queen saw a ship."], "en", parser_dirs=[parsers])
    finally:
        del pipeline.bulk_process
    assert seen == ["the king saw a ship.", "the queen saw a ship."]
    assert {phrase.text: phrase.count for phrase in result}["ship"] == 8


def test_one_failing_sentence_does_not_stop_the_others(parsers: Path) -> None:
    pipeline = load_pipeline(next(find_models("en", "constituency", [parsers])))
    original = pipeline.bulk_process

    def stumble(documents):
        if any("sword" in document.text for document in documents):
            raise RuntimeError("index out of range")
        return original(documents)

    pipeline.bulk_process = stumble
    try:
        texts = [f"the {noun} saw a ship." for noun in NOUNS]
        result = extract_phrases(texts, "en", parser_dirs=[parsers])
    finally:
        del pipeline.bulk_process
    words = {phrase.text for phrase in result if phrase.length == 1}
    assert words >= set(NOUNS) - {"sword"}
    assert "sword" not in words


def test_progress_and_cancel(parsers: Path) -> None:
    class Stop(Progress):
        shown: ClassVar[list[float]] = []

        def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
            self.shown.append(done)

        def check(self) -> None:
            if self.shown and self.shown[-1] > 0:
                raise Cancelled("stopped")

    texts = [f"the {noun} saw a {adjective} ship {number}." for noun in NOUNS for adjective in ADJECTIVES for number in "123"]
    with pytest.raises(Cancelled):
        extract_phrases(texts, "en", parser_dirs=[parsers], progress=Stop())
    assert 0 < Stop.shown[-1] < len(texts)


@pytest.mark.parametrize("parser", ["constituency", "dependency"])
def test_tree_for_drawing(parser: str, golds: dict[str, list[Gold]], parsers: Path) -> None:
    sentence = golds["en"][0].text
    tree = parse_tree(sentence, "en", PhraseOptions(parser=parser), parser_dirs=[parsers])
    assert tree.text == sentence
    assert [leaf.text for leaf in tree.leaves()] == [row[0] for row in golds["en"][0].rows]
    assert tree.label == ("ROOT" if parser == "constituency" else "root")


def test_a_damaged_model_says_so_or_gives_way(parsers: Path, tmp_path: Path) -> None:
    for file in parsers.glob("en/*/tiny.pt"):
        copy = tmp_path / file.relative_to(parsers)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(b"not a model" if "constituency" in str(file) else file.read_bytes())
    (tmp_path / "resources.json").write_text((parsers / "resources.json").read_text())
    with pytest.raises(MissingError, match="cannot be loaded"):
        extract_phrases(["the king saw a ship."], "en", PhraseOptions(parser="constituency"), parser_dirs=[tmp_path])
    result = extract_phrases(["the king saw a ship."], "en", parser_dirs=[tmp_path])
    assert "dependency parser" in result.parser


def test_download_from_a_server(parsers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """stanza's own download against a server of ours that has its layout."""
    from stanza.resources import common

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(parsers))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(common, "DEFAULT_RESOURCES_URL", address)
    listing = parsers / f"resources_{common.DEFAULT_RESOURCES_VERSION}.json"
    listing.write_text(json.dumps({**resources(parsers), "url": address + "/{lang}/{filename}"}), encoding="utf-8")
    options, folder = PhraseOptions(download=True), tmp_path / "new"
    try:
        result = extract_phrases(["the king saw a ship."], "en", options, parser_dirs=[tmp_path / "none", folder])
        assert "constituency" in result.parser
        assert sorted(path.parent.name for path in folder.glob("en/*/tiny.pt")) == ["constituency", "pos", "pretrain", "tokenize"]
        none = extract_phrases(["le roi vit un navire."], "fr", options, parser_dirs=[folder])
        assert "stanza offers no parser for French" in none.parser
        with pytest.raises(MissingError, match="no dependency parser for fr"):
            extract_phrases(["le roi"], "fr", options.replace(parser="dependency"), parser_dirs=[folder])
    finally:
        server.shutdown()
        server.server_close()
        listing.unlink()
    offline = extract_phrases(["the king saw a ship."], "en", options, parser_dirs=[folder])
    assert "constituency" in offline.parser  # what is there needs no network


def test_download_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stanza.resources import common

    monkeypatch.setattr(common, "DEFAULT_RESOURCES_URL", "http://127.0.0.1:9")
    folder = tmp_path / "parsers"
    with pytest.raises(MissingError) as caught:
        extract_phrases(["the king saw a ship."], "en", PhraseOptions(download=True), parser_dirs=[folder])
    assert "connect to the network" in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "resources.json" in str(caught.value)
    assert list(folder.iterdir()) == []
