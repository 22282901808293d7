"""The whole way through stanza with real, if tiny, models: trained here on a small grammar, since none can be fetched.

The grammar gives each sentence with its tokens, its constituents and its dependencies, so what the pipeline finds can be
compared with what is right. Training takes about half a minute on one core.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import logging
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from engine.errors import Cancelled, MissingError
from engine.phrases import PhraseOptions, extract_phrases, parse_tree
from engine.phrases.stanza_models import find_models, load_pipeline
from engine.progress import Progress

pytestmark = pytest.mark.slow

NOUNS = ["king", "ship", "letter", "child", "garden", "sword", "queen", "window"]
ADJECTIVES = ["old", "small", "golden", "broken"]
VERBS = ["saw", "found", "painted", "wanted"]
PREPOSITIONS = ["near", "behind", "under"]
ZH_SUBJECTS = ["国王", "老人", "孩子", "先生"]
ZH_VERBS = ["看见", "喜欢", "画了", "想要"]
ZH_ADJECTIVES = ["大", "小", "新", "旧"]
ZH_OBJECTS = ["船", "书", "花", "房子"]


@dataclass
class Gold:
    """A sentence of the grammar: rows of (form, tag, head, relation), its bracketed tree, and its phrases."""

    rows: list[tuple[str, str, int, str]]
    tree: str
    text: str
    constituents: set[str]
    subtrees: set[str]


def english(rng: random.Random) -> Gold:
    rows: list[tuple[str, str, int, str]] = []

    def noun_phrase(head: int, relation: str, preposition: str = "") -> tuple[str, str]:
        words = [(preposition, "ADP", "case")] if preposition else []
        words.append((rng.choice(["the", "a"]), "DET", "det"))
        if rng.random() < 0.5:
            words.append((rng.choice(ADJECTIVES), "ADJ", "amod"))
        noun = len(rows) + len(words) + 1
        rows.extend((form, tag, noun, role) for form, tag, role in words)
        rows.append((rng.choice(NOUNS), "NOUN", head, relation))
        used = [*words, (rows[-1][0], "NOUN", "")]
        inner = " ".join(f"({tag} {form})" for form, tag, _ in used[bool(preposition) :])
        brackets = f"(NP {inner})"
        text = " ".join(form for form, _, _ in used)
        return (f"(PP (ADP {preposition}) {brackets})" if preposition else brackets), text

    begin, subject = noun_phrase(0, "nsubj")
    verb = len(rows) + 1
    rows[verb - 2] = (*rows[verb - 2][:2], verb, "nsubj")
    rows.append((rng.choice(VERBS), "VERB", 0, "root"))
    tree, thing = noun_phrase(verb, "obj")
    inside = f"(VERB {rows[verb - 1][0]}) {tree}"
    said = f"{rows[verb - 1][0]} {thing}"
    constituents, subtrees = {subject, thing}, {subject, thing}
    if rng.random() < 0.6:
        tree, place = noun_phrase(verb, "obl", rng.choice(PREPOSITIONS))
        inside, said = f"{inside} {tree}", f"{said} {place}"
        constituents |= {place, place.split(" ", 1)[1]}
        subtrees.add(place)
    rows.append((".", "PUNCT", verb, "punct"))
    whole = f"{subject} {said}"
    return Gold(
        rows,
        f"(ROOT (S {begin} (VP {inside}) (PUNCT .)))",
        f"{whole}.",
        constituents | {said, whole},
        subtrees | {whole},
    )


def chinese(rng: random.Random) -> Gold:
    subject, verb, thing = rng.choice(ZH_SUBJECTS), rng.choice(ZH_VERBS), rng.choice(ZH_OBJECTS)
    rows = [(subject, "NOUN", 2, "nsubj"), (verb, "VERB", 0, "root")]
    adjective = rng.choice(ZH_ADJECTIVES) if rng.random() < 0.7 else ""
    if adjective:
        rows.append((adjective, "ADJ", 4, "amod"))
    rows += [(thing, "NOUN", 2, "obj"), ("。", "PUNCT", 2, "punct")]
    text = "".join(row[0] for row in rows)
    return Gold(rows, "", text, set(), {subject, adjective + thing, text[:-1]})


def write_conllu(golds: list[Gold], path: Path, spaced: bool) -> None:
    blocks = []
    for gold in golds:
        lines = [f"# text = {gold.text}"]
        for index, (form, tag, head, relation) in enumerate(gold.rows, 1):
            glued = not spaced or index >= len(gold.rows) - 1
            misc = "SpaceAfter=No" if glued else "_"
            lines.append("\t".join([str(index), form, form, tag, tag, "_", str(head), relation, "_", misc]))
        blocks.append("\n".join(lines))
    path.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")


def write_characters(golds: list[Gold], folder: Path) -> None:
    """Text and one digit a character: 1 ends a word, 2 a sentence."""
    labels = []
    for gold in golds:
        marks, place = ["0"] * len(gold.text), 0
        for form, *_ in gold.rows:
            place = gold.text.index(form, place) + len(form)
            marks[place - 1] = "1"
        marks[-1] = "2"
        labels.append("".join(marks))
    (folder / "text.txt").write_text("\n\n".join(gold.text for gold in golds) + "\n\n", encoding="utf-8")
    (folder / "text.labels").write_text("\n\n".join(labels) + "\n\n", encoding="utf-8")
    (folder / "mwt.json").write_text("[]", encoding="utf-8")


def train(golds: list[Gold], language: str, work: Path, models: Path, spaced: bool) -> None:
    """Tokenizer, tagger and dependency parser by stanza's own trainers, a few dozen updates each."""
    import torch
    from stanza.models import parser, tagger, tokenizer
    from stanza.models.common.pretrain import Pretrain

    work.mkdir()
    write_conllu(golds, work / "train.conllu", spaced)
    write_conllu(golds[:5], work / "dev.conllu", spaced)
    write_characters(golds, work)
    target = models / language
    shared = [
        "--mode",
        "train",
        "--lang",
        language,
        "--shorthand",
        f"{language}_tiny",
        "--cpu",
        "--save_name",
        "tiny.pt",
    ]
    text = ["--txt_file", str(work / "text.txt"), "--label_file", str(work / "text.labels")]
    text += ["--dev_txt_file", str(work / "text.txt"), "--dev_label_file", str(work / "text.labels")]
    text += ["--dev_conll_gold", str(work / "dev.conllu"), "--mwt_json_file", str(work / "mwt.json"), "--no_use_mwt"]
    sizes = ["--emb_dim", "16", "--hidden_dim", "32", "--batch_size", "16", "--dropout", "0", "--unit_dropout", "0"]
    steps = ["--steps", "120", "--eval_steps", "1000", "--lr0", "0.01"]
    tokenizer.main([*shared, *text, *sizes, *steps, "--save_dir", str(target / "tokenize")])
    words = sorted({row[0] for gold in golds for row in gold.rows})
    generator = torch.Generator().manual_seed(1)
    rows = [" ".join([word, *(f"{x:.3f}" for x in torch.randn(8, generator=generator).tolist())]) for word in words]
    (work / "vectors.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    vectors = target / "pretrain" / "tiny.pt"
    Pretrain(str(vectors), str(work / "vectors.txt")).load()
    trees = ["--train_file", str(work / "train.conllu"), "--eval_file", str(work / "dev.conllu")]
    trees += [
        "--wordvec_pretrain_file",
        str(vectors),
        "--max_steps",
        "60",
        "--eval_interval",
        "60",
        "--log_step",
        "1000",
    ]
    trees += [
        "--batch_size",
        "300",
        "--no_char",
        "--hidden_dim",
        "32",
        "--deep_biaff_hidden_dim",
        "24",
        "--num_layers",
        "1",
    ]
    trees += [
        "--transformed_dim",
        "16",
        "--word_emb_dim",
        "16",
        "--tag_emb_dim",
        "8",
        "--lr",
        "0.01",
        "--dropout",
        "0",
        "--word_dropout",
        "0",
    ]
    tagger.main([*shared, *trees, "--composite_deep_biaff_hidden_dim", "16", "--save_dir", str(target / "pos")])
    parser.main(
        [
            *shared,
            *trees,
            "--optim",
            "adam",
            "--no_second_optim",
            "--no_checkpoint",
            "--save_dir",
            str(target / "depparse"),
        ]
    )


def train_constituency(golds: list[Gold], models: Path) -> None:
    """stanza's constituency trainer without its scorer, which needs Java."""
    import torch
    from stanza.models import constituency_parser
    from stanza.models.common.foundation_cache import FoundationCache
    from stanza.models.constituency import parser_training, tree_reader

    folder = models / "en" / "constituency"
    folder.mkdir(parents=True)
    sizes = ["--hidden_size", "32", "--delta_embedding_dim", "16", "--tag_embedding_dim", "8", "--num_lstm_layers", "1"]
    sizes += ["--transition_embedding_dim", "8", "--transition_hidden_size", "8", "--lattn_d_proj", "0"]
    args = ["--wordvec_pretrain_file", str(models / "en" / "pretrain" / "tiny.pt"), "--shorthand", "en_tiny", "--cpu"]
    options = constituency_parser.parse_args([*args, *sizes, "--save_dir", str(folder), "--no_checkpoint"])
    options["wandb"] = None
    trees = tree_reader.read_trees("\n".join(gold.tree for gold in golds))
    trainer, sequences, _, _ = parser_training.build_trainer(options, trees, trees[:5], [], FoundationCache(), None)
    trainer.train()
    loss = torch.nn.CrossEntropyLoss(reduction="sum")
    tensors = {name: torch.tensor(place).unsqueeze(0) for place, name in enumerate(trainer.transitions)}
    data = parser_training.compose_train_data(trees, sequences)
    for epoch in range(1, 20):
        parser_training.train_model_one_epoch(epoch, trainer, tensors, lambda x: x, loss, data, None, options)
    trainer.save(str(folder / "tiny.pt"), save_optimizer=False)


def resources(models: Path) -> dict[str, object]:
    """stanza's list of what is in the folder, with checksums, as its server would give it."""
    listed: dict[str, object] = {"zh": {"alias": "zh-hans"}}
    for folder in sorted(path for path in models.iterdir() if path.is_dir()):
        entry: dict[str, object] = {"lang_name": folder.name}
        for file in sorted(folder.glob("*/tiny.pt")):
            needs = [{"model": "pretrain", "package": "tiny"}]
            details: dict[str, object] = {"md5": hashlib.md5(file.read_bytes()).hexdigest()}
            if file.parent.name in ("pos", "depparse", "constituency"):
                details["dependencies"] = needs
            entry[file.parent.name] = {"tiny": details}
        entry["packages"] = {"default": {name: "tiny" for name in ("tokenize", "pos", "depparse") if name in entry}}
        listed[folder.name] = entry
    return listed


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


def found_share(wanted: list[tuple[str, set[str]]], phrases: dict[str, int], longest: int, length) -> float:
    all_wanted = {phrase for _, group in wanted for phrase in group if length(phrase) <= longest}
    return len(all_wanted & set(phrases)) / len(all_wanted)


def test_constituents_of_a_real_pipeline(golds: dict[str, list[Gold]], parsers: Path) -> None:
    texts = [gold.text for gold in golds["en"]]
    found = extract_phrases(texts, "en", parser_dirs=[parsers])
    assert "constituency parser for en (tiny)" in found.parser
    assert str(parsers) in found.parser
    phrases = {phrase.text: phrase.count for phrase in found}
    wanted = [(gold.text, gold.constituents) for gold in golds["en"]]
    assert found_share(wanted, phrases, 8, lambda phrase: len(phrase.split())) > 0.9
    assert all(phrase.text in texts[phrase.example] for phrase in found)
    assert all(phrase.length == len(phrase.text.split()) <= 8 for phrase in found)
    labels = {phrase.text: phrase.label for phrase in found}
    places = [place for gold in golds["en"] for place in gold.constituents if place.split()[0] in PREPOSITIONS]
    assert sum(labels.get(place) == "PP" for place in places) > 0.8 * len(places)
    assert not any("." in phrase.text for phrase in found)


def test_dependency_subtrees_of_a_real_pipeline(golds: dict[str, list[Gold]], parsers: Path) -> None:
    texts = [gold.text for gold in golds["en"]]
    found = extract_phrases(texts, "en", PhraseOptions(parser="dependency"), parser_dirs=[parsers])
    assert "dependency" in found.parser
    phrases = {phrase.text: phrase.count for phrase in found}
    assert found_share([(g.text, g.subtrees) for g in golds["en"]], phrases, 8, lambda p: len(p.split())) > 0.9


def test_chinese_has_no_spaces_and_its_own_punctuation(golds: dict[str, list[Gold]], parsers: Path) -> None:
    """No constituency model is there for Chinese: the dependency parser is taken, by the alias zh."""
    texts = [gold.text for gold in golds["zh"]]
    found = extract_phrases(texts, "zh_CN", parser_dirs=[parsers])
    assert "dependency parser for zh-hans" in found.parser
    assert all(" " not in phrase.text and "。" not in phrase.text for phrase in found)
    assert all(phrase.text in texts[phrase.example] for phrase in found)
    wanted = set().union(*(gold.subtrees for gold in golds["zh"]))
    assert len(wanted & {phrase.text for phrase in found}) / len(wanted) > 0.85


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
        found = extract_phrases(odd, "en", PhraseOptions(parser=parser), parser_dirs=[parsers])
        assert {phrase.example for phrase in found} >= {0, 4, 5, 7}
        assert {phrase.text: phrase.count for phrase in found}["old"] > 80  # in all parts of the long sentence
        assert all(phrase.text in odd[phrase.example] for phrase in found)
        assert all(phrase.text.strip() == phrase.text for phrase in found)


def test_each_sentence_is_parsed_once_and_counted_as_often_as_it_occurs(parsers: Path) -> None:
    pipeline = load_pipeline(next(find_models("en", "constituency", [parsers])))
    seen: list[str] = []
    original = pipeline.bulk_process
    pipeline.bulk_process = lambda documents: seen.extend(d.text for d in documents) or original(documents)
    try:
        found = extract_phrases(["the king saw a ship."] * 7 + ["the queen saw a ship."], "en", parser_dirs=[parsers])
    finally:
        del pipeline.bulk_process
    assert seen == ["the king saw a ship.", "the queen saw a ship."]
    assert {phrase.text: phrase.count for phrase in found}["ship"] == 8


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
        found = extract_phrases(texts, "en", parser_dirs=[parsers])
    finally:
        del pipeline.bulk_process
    words = {phrase.text for phrase in found if phrase.length == 1}
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

    texts = [
        f"the {noun} saw a {adjective} ship {number}." for noun in NOUNS for adjective in ADJECTIVES for number in "123"
    ]
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
    found = extract_phrases(["the king saw a ship."], "en", parser_dirs=[tmp_path])
    assert "dependency parser" in found.parser


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
        found = extract_phrases(["the king saw a ship."], "en", options, parser_dirs=[tmp_path / "none", folder])
        assert "constituency" in found.parser
        assert sorted(path.parent.name for path in folder.glob("en/*/tiny.pt")) == [
            "constituency",
            "pos",
            "pretrain",
            "tokenize",
        ]
        none = extract_phrases(["le roi vit un navire."], "fr", options, parser_dirs=[folder])
        assert "stanza offers no parser for fr" in none.parser
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
