"""Proportions by themselves: words from pieces, fits on real corpora, and the data that plots are made of."""

import json
import math

import numpy as np
import pytest
import torch

from engine.base import BaseModel
from engine.cli.main import main
from engine.corpora import import_corpus
from engine.corpora.general_text import general_sentences
from engine.corpora.types import Segment, SentencePair
from engine.errors import CorpusError, InputError
from engine.methods import get_method
from engine.methods.domain_mixing.config import DomainMixingConfig
from engine.methods.domain_mixing.proportions import fit_proportions, held_out, proportions, proportions_of, source_and_target
from engine.methods.domain_mixing.report import shared, summary
from engine.methods.domain_mixing.words import words_of
from engine.plugins import Plugin
from engine.workflows.explore.domain_proportions import explore_samples, model_of
from tests.bases import EN_ZH, ROOT, SAMPLES, tiny_base, tiny_pair

# -- words


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["▁The", "▁rain", "▁stop", "ped", "."], ["The", "rain", "stopped", "."]),
        (["▁don", "'", "t", "▁well", "-", "known", "▁3", ".", "5", "▁!"], ["don't", "well-known", "3.5", "!"]),
        (["▁", "Hello", ",", "▁(", "world", ")"], ["Hello", ",", "(", "world", ")"]),
        (["▁“", "Go", "!", "”", "▁he", "▁said"], ["“", "Go", "!", "”", "he", "said"]),
        (["▁na", "<0xC3>", "<0xAF>", "ve"], ["naïve"]),
        (["▁", "▁a"], ["", "a"]),
        ([], []),
    ],
)
def test_words_between_spaces(tokens, words):
    result = words_of(tokens, unspaced=False)
    assert [text for text, _ in result] == words or [text for text, _ in result if text] == [w for w in words if w]
    assert [i for _, members in result for i in members] == list(range(len(tokens)))


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["▁", "雨", "停了", "。"], ["雨", "停了", "。"]),
        (["▁我", "用", "P", "ython", "3", ".", "1", "写", "程序"], ["我", "用", "Python3.1", "写", "程序"]),
        (["▁", "<0xE9>", "<0xBE>", "<0x98>", "<0xE9>", "<0xBE>", "<0x98>", "了"], ["龘", "龘", "了"]),
    ],
)
def test_words_of_languages_without_spaces(tokens, words):
    result = words_of(tokens, unspaced=True)
    assert [text for text, _ in result] == words
    assert [i for _, members in result for i in members] == list(range(len(tokens)))


def test_real_sentences_are_spelled_by_their_words():
    base = tiny_base()
    for file, unspaced in (("it-help-en/it-help.txt", False), ("general-zh/general-zh.txt", True)):
        for line in (SAMPLES / file).read_text(encoding="utf-8").splitlines()[:60]:
            pieces = base.subwords(line)
            result = words_of(pieces, unspaced=unspaced)
            spelled = "".join(text for text, _ in result)
            assert spelled == "".join(pieces).replace("▁", "")
            assert [i for _, members in result for i in members] == list(range(len(pieces)))
            if not unspaced:
                plain = [word.strip(".,;:!?\"()'") for word in line.split()]
                assert {word for word in plain if word.isalpha()} <= {text for text, _ in result}


# -- fits on real sentences


def sentences_of(name, language):
    return [segment.text for segment in import_corpus([next((SAMPLES / name).glob("*.t*"))], language).segments]


@pytest.fixture(scope="module")
def real():
    return BaseModel.load(EN_ZH, "zh", "en")


@pytest.fixture(scope="module")
def two(real):
    """Two domains of raw uploads, some sentences of each kept aside."""
    domains = {name: sentences_of(name, "en") for name in ("it-help-en", "patient-info-en")}
    selected = {name: texts[::8] for name, texts in domains.items()}
    model = fit_proportions(real, {name: [s for s in texts if s not in selected[name]] for name, texts in domains.items()})
    return model, selected


@pytest.mark.parametrize("side", ["decoder", "encoder"])
@pytest.mark.slow
def test_held_out_words_lean_to_their_domain(real, two, side):
    """Chance is a half. Most words of a sentence (the, of, and) are anybody's: guessing by how often a piece occurred in each
    domain gets 57 % of these held-out pieces right, and 78 % of sentences by naive Bayes.
    """
    model, selected = two
    sentences, right, words, leaning = 0, 0, 0, 0
    for j, texts in enumerate(selected.values()):
        for result in proportions_of(real, model, texts, side):
            sentences += 1
            right += result["mean"][j] > 0.5
            words += len(result["words"])
            leaning += sum(word["proportions"][j] > 0.5 for word in result["words"])
    assert sentences > 80
    assert right / sentences > 0.72
    assert leaning / words > 0.57
    held = model.held_out[side]
    assert held["sentences_leaning_right"] > 0.65
    assert max(held["words_leaning_right"]) > 0.6
    assert max(held["own_proportion"]) > 0.53


def test_the_words_of_a_domain_are_its_own(two):
    model, _ = two
    lists = model.corpus["decoder"]["words"]
    technical = {row["text"] for row in lists["of"]["it-help-en"]}
    medical = {row["text"] for row in lists["of"]["patient-info-en"]}
    assert technical & {"file", "files", "password", "server", "account", "folder", "click", "database", "code", "page"}
    assert medical & {"doctor", "tablet", "tablets", "nurse", "blood", "dose", "medicine", "pain", "skin", "pharmacist"}
    assert not technical & medical
    assert max(row["count"] for row in lists["shared"]) > 20, "words that occur everywhere are among the shared ones"


def test_what_a_corpus_says_is_whole(two):
    model, _ = two
    names_of = {"encoder": [*map(str, range(1, 13)), "output"], "decoder": ["1", "2", "3", "4"]}
    for side, names in names_of.items():
        result = model.corpus[side]
        assert result["layers"] == names
        counts = np.array(result["histogram"]["counts"])
        assert counts.shape == (len(names), 2, 10)
        assert (counts.sum(-1) == result["word_count"]).all()
        assert sum(summary["words"] for summary in result["by_domain"].values()) == result["word_count"]
        for j, name in enumerate(result["domains"]):
            assert result["by_domain"][name]["mean"][j] > 0.5
            assert len(result["by_domain"][name]["layers"]) == len(names)
    json.dumps(model.corpus)
    assert "words" not in json.dumps(model.to_mapping()["domains"])
    assert "password" not in json.dumps(model.to_mapping()), "no text of the user is written"


def test_a_sentence_of_both_domains(real, two):
    model, _ = two
    result = proportions(real, model, "Restart the server and wash your skin with water.")
    assert result["domains"] == ["it-help-en", "patient-info-en"]
    json.dumps(result)
    assert [word["text"] for word in result["words"]] == [
        "Restart", "the", "server", "and", "wash", "your", "skin", "with", "water", ".",
    ]  # fmt: skip
    words = {word["text"]: word for word in result["words"]}
    assert words["server"]["proportions"][0] > 0.55
    assert words["skin"]["proportions"][1] > 0.55
    for word in result["words"]:
        assert sum(word["proportions"]) == pytest.approx(1, abs=1e-3)
        assert len(word["layers"]) == 4
        assert 0 <= word["shared"] <= 1
    assert np.allclose(np.mean([word["proportions"] for word in result["words"]], 0), result["mean"], atol=1e-3)
    assert proportions_of(real, model, ["", "  "])[0]["words"] == []
    long = proportions(real, model, "Restart the server. " * 400)
    assert 100 < len(long["words"]) < 1600, "what the base cannot read is cut"


def test_batches_do_not_change_a_sentence(real, two):
    model, selected = two
    texts = selected["it-help-en"][:5]
    together = proportions_of(real, model, texts)
    for result, text in zip(together, texts, strict=True):
        alone = proportions(real, model, text)
        assert [word["text"] for word in alone["words"]] == [word["text"] for word in result["words"]]
        assert np.allclose(alone["layer_means"], result["layer_means"], atol=2e-3)


@pytest.mark.slow
def test_one_domain_against_the_general_sample(real):
    medical = sentences_of("patient-info-en", "en")
    general = general_sentences(ROOT / "assets", "en")
    model = fit_proportions(real, {"samples": medical[::2], "general": general[::2]}, DomainMixingConfig(words=1500, ridge=0.01))
    right = [result["mean"][0] > 0.5 for result in proportions_of(real, model, medical[1:60:2])]
    plain = [result["mean"][1] > 0.5 for result in proportions_of(real, model, general[1:60:2])]
    assert sum(right + plain) / len(right + plain) > 0.7


def test_sentences_with_sources_are_read_with_them():
    base = tiny_base()
    lines = sentences_of("literary-zh", "zh")[:24]
    english = sentences_of("it-help-en", "en")[:24]
    domains = {
        name: [SentencePair(a, b) for a, b in zip(english, lines, strict=True)][half]
        for name, half in (("a", slice(0, 12)), ("b", slice(12, 24)))
    }
    model = fit_proportions(base, domains, DomainMixingConfig(ridge=0.1))
    assert (model.encoder_reads, model.sources) == ("source", True)
    texts = [word["text"] for word in proportions(base, model, english[0], "encoder")["words"]]
    assert "".join(texts) == english[0].replace(" ", "")
    without = proportions(base, model, lines[0])
    assert without["mean"] != proportions(base, model, lines[0], source=english[0])["mean"]
    with pytest.raises(InputError, match="1 sentences but 2 sources"):
        proportions_of(base, model, lines[:1], sources=english[:2])
    del model.layers["encoder"]
    with pytest.raises(InputError, match="have no side encoder"):
        proportions(base, model, english[0], "encoder")


def test_the_same_seed_gives_the_same_fit():
    base = tiny_base()
    domains = {"a": sentences_of("literary-zh", "zh")[:40], "b": general_sentences(ROOT / "assets", "zh")[:40]}
    first, other = (fit_proportions(base, domains, DomainMixingConfig(words=400, ridge=0.1), seed=3) for _ in range(2))
    assert all(torch.equal(value, other.tensors()[key]) for key, value in first.tensors().items())


def test_too_little_is_refused():
    base = tiny_base()
    with pytest.raises(CorpusError, match="need two domains"):
        fit_proportions(base, {"a": ["雨停了。"] * 20})
    with pytest.raises(CorpusError, match="The domain b has 3 sentences"):
        fit_proportions(base, {"a": ["雨停了。"] * 20, "b": ["雨停了。"] * 3})


# -- small parts


def test_samples_that_cannot_be_told_apart_say_so_each_time(tmp_path):
    pair, segments = tiny_pair(), [Segment("雨停了。", domain=name) for name in ("a", "b")]
    for _ in range(2):
        with pytest.raises(CorpusError, match="at least 8"):
            explore_samples(segments, pair, tmp_path, SAMPLES.parent, samples_key="1")


def test_sources_and_targets_of_all_shapes():
    assert source_and_target("x") == (None, "x")
    assert source_and_target(("a", "b")) == ("a", "b")
    assert source_and_target(SentencePair("a", "b")) == ("a", "b")


def test_how_much_words_are_shared():
    assert shared([0.5, 0.5]) == 1.0
    assert shared([1.0, 0.0]) == 0.0
    assert shared([0.9, 0.1]) == pytest.approx(-(0.9 * math.log(0.9) + 0.1 * math.log(0.1)) / math.log(2), abs=1e-4)


def test_a_tenth_of_each_domain_is_held_out():
    owner = torch.tensor([0] * 50 + [1] * 8)
    held = held_out(owner, 1)
    assert [int(held[owner == j].sum()) for j in (0, 1)] == [5, 1]
    assert torch.equal(held, held_out(owner, 1))


def test_lists_of_words_and_histograms():
    shares = np.array([[[0.9, 0.1]], [[0.8, 0.2]], [[0.5, 0.5]], [[0.5, 0.5]], [[0.0, 1.0]]])
    result = summary("decoder", ["a", "b"], shares, np.array([0, 0, 0, 1, 1]), ["Disk", "disk", "the", "the", "once"])
    assert [row["text"] for row in result["words"]["of"]["a"]] == ["disk", "the"]
    assert result["words"]["of"]["a"][0]["proportions"] == [0.85, 0.15]
    assert result["words"]["shared"][0] == {"text": "the", "count": 2, "proportions": [0.5, 0.5], "shared": 1.0}
    assert result["histogram"]["counts"][0][0] == [1, 0, 0, 0, 0, 2, 0, 0, 1, 1]
    assert result["by_domain"]["a"]["words"] == 3


def test_plugins_without_proportions_are_refused():
    plugin = Plugin(get_method("memory_adapter"), torch.nn.Identity(), {})
    with pytest.raises(InputError, match=r"x\.zip is of the method memory_adapter, which has no domain proportions"):
        model_of(plugin, "x.zip")


def test_the_command(tmp_path, capsys):
    for name, corpus in (("computing", "it-help-en"), ("health", "patient-info-en")):
        (tmp_path / f"{name}.txt").write_text("\n".join(sentences_of(corpus, "en")[:40]), encoding="utf-8")
    common = ["--base", str(EN_ZH), "--source", "zh", "--target", "en", "--json", "--quiet"]
    fit = ["--samples", str(tmp_path / "computing.txt"), str(tmp_path / "health.txt"), "--model", str(tmp_path / "m")]
    assert main(["proportions", "Take the tablet.", *common, "--words", "300", "--ridge", "0.01", *fit]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["domains"] == ["computing", "health"]
    assert data["sentences"][0]["sentence"] == "Take the tablet."
    assert data["corpus"]["decoder"]["word_count"] > 300
    assert main(["proportions", "Take the tablet.", *common, "--model", str(tmp_path / "m")]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["sentences"] == data["sentences"]
    assert again["corpus"] == {}
    assert main(["proportions", *common]) == 2
    assert "Give --samples" in json.loads(capsys.readouterr().out)["error"]
    assert main(["proportions", *common, "--model", str(tmp_path / "m")]) == 2
    assert "Give a SENTENCE" in json.loads(capsys.readouterr().out)["error"]
