"""`tailormt parser train` from files to phrases, on a small grammar; and what it says when the files are no good."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tiny_stanza import chinese, english, write_conllu

from engine.builders.parsers.options import ParserTraining
from engine.builders.parsers.train import ParserSources, train_parser
from engine.cli.main import main
from engine.core.progress import Progress
from engine.errors import Cancelled
from engine.phrases import PhraseOptions, extract_phrases
from engine.phrases.parser_resources import install, read_resources

FAST = "--tokenize-steps 25 --pos-steps 30 --depparse-steps 40 --constituency-epochs 2 --hidden 32 --held-out 0.1"


@pytest.fixture
def treebank(tmp_path: Path) -> list[str]:
    golds = [english(random.Random(number)) for number in range(120)]
    write_conllu(golds, tmp_path / "grammar.conllu", spaced=True)
    text = (tmp_path / "grammar.conllu").read_text(encoding="utf-8")
    (tmp_path / "grammar.conllu").write_text("1\tbroken\n\n" + text, encoding="utf-8")
    (tmp_path / "grammar.ptb").write_text("".join(gold.tree + "\n" for gold in golds), encoding="utf-8")
    return [str(tmp_path / "grammar.conllu"), str(tmp_path / "grammar.ptb")]


def test_from_treebanks_to_phrases(
    treebank: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "parsers"
    words = ["--license", "cc-by-sa-4.0"]
    assert main(["parser", "train", "en", "--treebank", *treebank, *FAST.split(), *words, "-o", str(folder)]) == 0
    output = capsys.readouterr()
    assert "grammar.conllu: 120 sentences, 1 skipped: 1 with a line without 10 columns (line 1)" in output.out
    assert "Training the constituency parser" in output.err
    assert not (folder / ".training").exists()
    assert {path.parent.name for path in folder.glob("en/*/tailor.pt")} == {
        "tokenize", "pretrain", "pos", "depparse", "constituency",
    }  # fmt: skip

    import stanza

    pipeline = stanza.Pipeline("en", dir=str(folder), download_method=None, verbose=False)
    (sentence,) = pipeline("the old king saw a ship.").sentences
    assert sentence.constituency.label == "ROOT"
    assert sum(word.head == 0 for word in sentence.words) == 1

    result = extract_phrases(["the old king saw a ship."], "en", PhraseOptions(), parser_dirs=[folder])
    assert "constituency parser for en (tailor)" in result.parser

    card = (folder / "en" / "README.md").read_text(encoding="utf-8")
    assert 'license: "cc-by-sa-4.0"' in card
    assert "--constituency-epochs 2" in card
    facts = json.loads((folder / "en" / "figures.json").read_text(encoding="utf-8"))
    assert facts["files"][0]["skipped"] == {"a line without 10 columns": 1}
    # A training of seconds promises nothing for raw text; with the words given, some brackets and heads are right.
    scores = facts["figures"]
    assert scores["constituency"]["phrases"]["all"]["gold"] > 50
    assert 0 < scores["constituency"]["given_words"]["f1"] <= 1
    assert 0 < scores["dependency"]["given_words"]["UAS"] <= 1

    monkeypatch.setenv("TAILORMT_PARSERS", str(folder))
    assert main(["parser", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(row["language"], row["kind"], row["preferred"]) for row in listed] == [
        ("en", "constituency", True),
        ("en", "dependency", False),
    ]
    assert {row["license"] for row in listed} == {"CC BY-SA 4.0"}


def test_a_stopped_training_leaves_no_parser_and_goes_on_where_it_was(tmp_path: Path) -> None:
    class Stop(Progress):
        def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
            steps.append(self.step)
            if "dependency" in self.step and stopping and done:
                raise Cancelled("Stopped.")

    golds = [chinese(random.Random(number)) for number in range(120)]
    write_conllu(golds, tmp_path / "grammar.conllu", spaced=False)
    folder, steps = tmp_path / "parsers", list[str]()
    sources = ParserSources((tmp_path / "grammar.conllu",))
    options = ParserTraining(tokenize_steps=25, pos_steps=10, depparse_steps=10, hidden=32)
    stopping = True
    with pytest.raises(Cancelled):
        train_parser("zh", sources, folder, options=options, progress=Stop())
    assert not (folder / "resources.json").exists()
    assert not (folder / "zh-hans").exists()
    stopping, steps[:] = False, []
    trained, _ = train_parser("zh", sources, folder, options=options, progress=Stop())
    assert trained.processors == ("tokenize", "pretrain", "pos", "depparse")
    assert not any("tokenizer" in step or "tagger" in step for step in steps)
    assert read_resources(folder)["zh"] == {"alias": "zh-hans"}
    result = extract_phrases([golds[0].text], "zh", parser_dirs=[folder])
    assert "dependency parser for zh-hans (tailor)" in result.parser


def test_too_little_to_learn_from_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_conllu([english(random.Random(n)) for n in range(12)], tmp_path / "few.conllu", spaced=True)
    assert main(["parser", "train", "en", "--treebank", str(tmp_path / "few.conllu"), "-o", str(tmp_path / "out")]) == 2
    text = capsys.readouterr().err.strip().splitlines()[-1]
    assert "sentences to learn from" in text
    assert "at least 50" in text
    assert not (tmp_path / "out").exists()


def test_files_that_are_no_treebank_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trees.xml").write_text("<x/>")
    (tmp_path / "only.ptb").write_text("(ROOT (NP (NN cat)))\n" * 60)
    for name, part in (("trees.xml", "known by its name"), ("gone.conllu", "was not found"), ("only.ptb", "needs dependency")):
        assert main(["parser", "train", "en", "--treebank", str(tmp_path / name), "-o", str(tmp_path / "out")]) == 2
        (text,) = capsys.readouterr().err.strip().splitlines()[-1:]
        assert part in text
    (tmp_path / "file").write_text("")
    assert main(["parser", "train", "en", "--treebank", str(tmp_path / "only.ptb"), "-o", str(tmp_path / "file")]) == 2
    assert "is a file, not a folder" in capsys.readouterr().err


def test_other_sets_of_the_folder_stay_listed(tmp_path: Path) -> None:
    source = tmp_path / "tok.pt"
    source.write_bytes(b"weights")
    listed = {
        "fr": {"alias": "fr2"},
        "de": {"tokenize": {"gsd": {"md5": "x"}}, "packages": {"default": {"tokenize": "gsd"}, "old": {}}},
    }
    (tmp_path / "resources.json").write_text(json.dumps(listed), encoding="utf-8")
    install(tmp_path, "de", "mine", {"tokenize": source, "depparse": source})
    result = read_resources(tmp_path)
    assert set(result["de"]["tokenize"]) == {"gsd", "mine"}
    assert result["de"]["packages"]["default"] == {"tokenize": "mine", "depparse": "mine", "lemma": "identity"}
    assert "old" in result["de"]["packages"]
    assert result["fr"] == {"alias": "fr2"}


def test_download_without_a_network_says_what_to_put_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from stanza.resources import common

    monkeypatch.setattr(common, "DEFAULT_RESOURCES_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TAILORMT_PARSERS", str(tmp_path / "parsers"))
    assert main(["parser", "download", "fr"]) == 2
    text = capsys.readouterr().err.strip()
    assert "connect to the network" in text
    assert str(tmp_path / "parsers") in text
    assert len(text.splitlines()) == 1
