"""Phrases without a parser: units, association, trees, and how much of the real constituents comes out."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.errors import Cancelled
from engine.phrases import Association, PhraseOptions, Tree, extract_phrases, parse_tree
from engine.phrases.token_spans import is_punctuation
from engine.phrases.tokenize import clauses_of
from tests.bases import EN_ZH

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "mtsc"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"no samples in {SAMPLES}")
ONLY = PhraseOptions(parser="statistical")
TEXT = st.text(st.sampled_from(list("ab the king國王说的。，.,!“”'- １\n🙂é")), max_size=40)


def units(sentence: str, language: str, pieces=None) -> list[list[str]]:
    return [[sentence[a:b] for a, b in clause] for clause in clauses_of(sentence, language, pieces)]


@pytest.mark.parametrize(
    ("sentence", "language", "wanted"),
    [
        ("I don't know, sir.", "en", [["I", "don't", "know"], ["sir"]]),
        ("A well-known  U.S. man -- 1,000 years: “Go!”", "en", [["A", "well-known", "U.S"], ["man"], ["1,000", "years"], ["Go"]]),
        ("L’amour, c'est 3.5 % ...", "fr", [["L’amour"], ["c'est", "3.5", "%"]]),
        ("这是我做的么。我想。", "zh", [["这", "是", "我", "做", "的", "么"], ["我", "想"]]),
        ("他说：“OK, 2024年”", "zh", [["他", "说"], ["OK"], ["2024", "年"]]),
        ("がぎ、カ", "ja", [["が", "ぎ"], ["カ"]]),
        ("ที่นี่", "th", [["ที่", "นี่"]]),
        ("नमस्ते दुनिया।", "hi", [["नमस्ते", "दुनिया"]]),
        ("", "en", []),
        ("?!…", "zh", []),
    ],
)
def test_units_and_clauses(sentence: str, language: str, wanted: list[list[str]]) -> None:
    assert units(sentence, language) == wanted


def test_pieces_are_laid_over_the_text_as_written() -> None:
    given_pieces = ["▁国王", ",", "2", "说了。", "你", "▁好"]
    assert units("国王，２说了。你 好", "zh", lambda _: given_pieces) == [["国王"], ["２", "说了"], ["你", "好"]]
    assert units("国王说", "zh", lambda _: ["▁something", "else"]) == [["国", "王", "说"]]  # another text: characters
    assert units("the king", "en", lambda _: ["▁the", "▁ki", "ng"]) == [["the", "king"]]  # spaces say it better
    # one character that the tokenizer spreads over two pieces stays one
    assert units("㌔国", "zh", lambda _: ["▁キ", "ロ国"]) == [["㌔", "国"]]


@given(st.lists(TEXT, max_size=6), st.sampled_from(["en", "zh", "ja"]), st.integers(1, 6))
def test_every_phrase_stands_in_its_sentence_and_crosses_no_punctuation(texts: list[str], language: str, longest: int) -> None:
    result = extract_phrases(texts, language, ONLY.replace(l_max=longest))
    for phrase in result:
        assert phrase.text in texts[phrase.example]
        assert 1 <= phrase.length <= longest
        assert phrase.text.strip() == phrase.text != ""
        assert not any(is_punctuation(part) for part in phrase.text.split())
        assert sum(len(clause) for clause in clauses_of(phrase.text, language)) == phrase.length
    assert result == extract_phrases(texts, language, ONLY.replace(l_max=longest))
    order = [(phrase.length, -phrase.count, phrase.text) for phrase in result]
    assert order == sorted(order)


@given(TEXT.filter(str.strip), st.sampled_from(["en", "zh"]))
def test_a_tree_holds_its_sentence(sentence: str, language: str) -> None:
    tree = parse_tree(sentence, language, ONLY)
    assert "".join(leaf.text for leaf in tree.leaves() if leaf is not tree) == "".join(sentence.split())
    for node in tree.walk():
        assert node.text in sentence
        assert node.label != "statistical" or len(node.children) == 2


def test_what_belongs_together_stays_together() -> None:
    rng = random.Random(1)
    names = ["John Gaunt", "Mark Antony", "Queen Mab"]
    texts = [f"{rng.choice(['we saw', 'they know', 'you left'])} {rng.choice(names)}." for _ in range(60)]
    result = {phrase.text: phrase for phrase in extract_phrases(texts, "en", ONLY)}
    assert set(names) <= set(result)
    assert result["Mark Antony"].count == sum("Mark Antony" in text for text in texts)
    assert "saw Mark" not in result
    assert "know Queen" not in result
    tree = parse_tree("They know Mark Antony.", "en", ONLY, sentences=texts)
    clause, stop = tree.children
    assert stop == Tree("punctuation", ".")
    assert [half.text for half in clause.children] == ["They know", "Mark Antony"]
    association = Association("en")
    association.count(texts)
    assert parse_tree("They know Mark Antony.", "en", ONLY, association=association) == tree


def test_repeated_sentences_count_but_are_no_second_place() -> None:
    result = {phrase.text: phrase.count for phrase in extract_phrases(["so be it"] * 3 + ["be it so"], "en", ONLY)}
    assert result["so be it"] == 3
    assert result["it"] == 4


def test_min_length_and_min_count() -> None:
    texts = ["the king saw the queen.", "the king saw the ship.", "the king fell."]
    assert extract_phrases(texts, "en", ONLY.replace(min_length=2, min_count=3)).by_length() == {2: 1}


def test_what_it_says_of_itself() -> None:
    text = extract_phrases(["国王"], "zh", parser_dirs=[Path("/nowhere")]).parser
    assert text.startswith("Statistical: phrases are cut where neighbouring characters belong together least")
    assert "since no parser for Chinese is installed" in text
    assert "/nowhere" in text
    assert "as the settings say" in extract_phrases(["the king"], "en", ONLY).parser
    assert "no sentences" in extract_phrases([], "en").parser


def test_cancel() -> None:
    class Stop(Progress):
        def check(self) -> None:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        extract_phrases(["the king"], "en", ONLY, progress=Stop())


def lines(name: str) -> list[str]:
    return (SAMPLES / name).read_text(encoding="utf-8").split("\n")[:-1]


@needs_samples
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "language", "wanted"), [("train.luxun.random.zh", "zh", "鲁迅先生"), ("train.shake.all.en", "en", "my good lord")]
)
def test_the_phrases_of_a_whole_style_corpus(name: str, language: str, wanted: str) -> None:
    texts = lines(name)
    result = extract_phrases(texts, language, ONLY)
    assert wanted in {phrase.text for phrase in result}
    sizes = result.by_length()
    assert list(sizes) == list(range(1, ONLY.longest(language) + 1))
    assert min(sizes.values()) > 1000
    assert all(phrase.text in texts[phrase.example] for phrase in result)
    assert len({phrase.text.casefold() for phrase in result}) == len(result)
    for phrase in random.Random(1).sample([p for p in result if p.length >= 4], 30):
        assert phrase.count <= sum(text.casefold().count(phrase.text.casefold()) for text in texts)


@needs_samples
@pytest.mark.slow
def test_pieces_of_a_real_vocabulary() -> None:
    import sentencepiece

    vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(EN_ZH / "target.spm"))
    texts = lines("dev.luxun.random.zh")
    fallen_back = 0

    def pieces(text: str) -> list[str]:
        return list(vocabulary.encode(text, out_type=str))

    for text in texts:
        results = [unit for clause in units(text, "zh", pieces) for unit in clause]
        plain = [unit for clause in units(text, "zh") for unit in clause]
        assert "".join(results) == "".join(plain)
        fallen_back += results == plain
    assert fallen_back < 0.2 * len(texts)
    assert "pieces of words" in extract_phrases(texts, "zh", ONLY, pieces=pieces).parser


def gum() -> Iterator[tuple[str, set[tuple[int, int]]]]:
    from stanza.models.constituency.tree_reader import read_trees

    from engine.phrases.constituency import constituency_spans
    from engine.phrases.parsed_sentence import Parsed
    from engine.phrases.token_spans import align, clean_spans

    with gzip.open(SAMPLES.parent / "treebanks" / "en" / "gum-const.ptb.gz", "rt", encoding="utf-8") as file:
        trees = read_trees(file.read())
    for tree in trees:
        words = tuple(tree.leaf_labels())
        text = " ".join(words)
        offsets = tuple(align(words, text) or ())
        none = ("",) * len(words)
        parsed = Parsed(words, none, (), none, tree, words, offsets, tuple(range(len(words))))
        spans = clean_spans(constituency_spans(parsed), words, shortest=2, longest=200)
        yield text, {(offsets[a][0], offsets[b - 1][1]) for a, b, _ in spans}


@needs_samples
@pytest.mark.slow
def test_far_more_constituents_than_by_chance() -> None:
    """The share of nodes that are constituents, against trees of the same clauses cut at random places."""
    corpus = list(gum())
    texts = [text for text, _ in corpus]
    nodes = [row for row in Association("en").count(texts, longest=8) if row.length > 1]
    right = sum((row.start, row.end) in corpus[row.sentence][1] for row in nodes) / len(nodes)
    selected = [row for row in nodes if row.sound]
    right_kept = sum((row.start, row.end) in corpus[row.sentence][1] for row in selected) / len(selected)
    rng = random.Random(1)
    hits = tries = 0
    for text, gold in corpus:
        for clause in clauses_of(text, "en"):
            waiting = [clause]
            while waiting:
                node = waiting.pop()
                if len(node) < 2:
                    continue
                cut = rng.randrange(1, len(node))
                waiting += [node[:cut], node[cut:]]
                if len(node) <= 8:
                    tries += 1
                    hits += (node[0][0], node[-1][1]) in gold
    assert right > 1.4 * hits / tries
    assert right_kept > 1.15 * right
