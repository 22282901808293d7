"""Treebanks: whole sentences come through as they are, broken ones are counted with their line, and splits never leak."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders.parsers.brackets import leaves_text, read_brackets, write_brackets
from engine.builders.parsers.conllu import ConlluSentence, Token, Word, read_conllu, write_conllu
from engine.builders.parsers.contractions import open_contractions
from engine.builders.parsers.prepare import character_labels
from engine.builders.parsers.treebanks import kind_of, own_part, read_treebanks
from engine.errors import InputError

GERMAN = """# sent_id = 1
# text = Er geht zum Haus.
1\tEr\ter\tPRON\tPPER\t_\t2\tnsubj\t_\t_
2\tgeht\tgehen\tVERB\tVVFIN\t_\t0\troot\t_\t_
3-4\tzum\t_\t_\t_\t_\t_\t_\t_\t_
3\tzu\tzu\tADP\tAPPR\t_\t5\tcase\t_\t_
4\tdem\tder\tDET\tART\t_\t5\tdet\t_\t_
5\tHaus\tHaus\tNOUN\tNN\t_\t2\tobl\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t$.\t_\t2\tpunct\t_\t_

"""
FORMS = st.text(st.characters(categories=("L", "N", "P"), exclude_characters="\u2028\u2029"), min_size=1, max_size=6)


@st.composite
def sentences(draw: st.DrawFn) -> ConlluSentence:
    """Any tree over any words, some of them in tokens of several words."""
    count = draw(st.integers(1, 8))
    order = draw(st.permutations(range(1, count + 1)))
    heads = {order[0]: 0}
    for index, word in enumerate(order[1:], 1):
        heads[word] = draw(st.sampled_from(order[:index]))
    words = [
        Word(draw(FORMS), draw(st.sampled_from(["NOUN", "VERB", "ADP"])), "_", heads[number], "dep")
        for number in range(1, count + 1)
    ]
    tokens, index = [], 0
    while index < count:
        size = draw(st.integers(1, min(3, count - index)))
        group = tuple(words[index : index + size])
        index += size
        form = group[0].form if size == 1 else draw(FORMS)
        tokens.append(Token(form, group, draw(st.booleans())))
    return ConlluSentence(tuple(tokens))


@given(st.lists(sentences(), min_size=1, max_size=4))
def test_sentences_survive_writing_and_reading(given_sentences: list[ConlluSentence]) -> None:
    result = list(read_conllu(write_conllu(given_sentences).splitlines(keepends=True)))
    assert len(result) == len(given_sentences)
    for before, after in zip(given_sentences, result, strict=True):
        assert isinstance(after, ConlluSentence)
        assert after.words == before.words
        assert [token.form for token in after.tokens] == [token.form for token in before.tokens]
        assert after.text == before.text


@given(sentences())
def test_each_character_has_a_label_and_each_token_an_end(sentence: ConlluSentence) -> None:
    text, labels = character_labels(sentence)
    assert text == sentence.text
    assert len(text) == len(labels)
    assert len(labels.replace("0", "")) == len(sentence.tokens)
    assert labels[-1] in "24"


@given(st.text(max_size=300), st.integers(0, 400))
def test_no_damage_stops_the_reading_of_what_comes_after(noise: str, position: int) -> None:
    """Whatever stands before an empty line, the sentence after it is read."""
    damaged = GERMAN[: position % len(GERMAN)] + noise.replace("\x00", "")
    result = list(read_conllu((damaged + "\n\n" + GERMAN).split("\n")))
    last = result[-1]
    assert isinstance(last, ConlluSentence)
    assert last.text == "Er geht zum Haus."
    assert all(isinstance(item, ConlluSentence) or (item[0] > 0 and item[1]) for item in result)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("2\tgeht\tgehen\tVERB\tVVFIN\t_\t0\troot\t_\t_", "2\tgeht\tgehen\tVERB", "a line without 10 columns"),
        ("\t0\troot", "\t6\troot", "not exactly one root"),
        ("\t5\tcase", "\t9\tcase", "a head that is not there"),
        ("\t5\tcase", "\t_\tcase", "a word without a head"),
        ("\t2\tobl", "\t4\tobl", "words that hang on each other in a circle"),
        ("\tVERB\t", "\t_\t", "a word without a part of speech"),
        ("\tobl\t", "\t_\t", "a word without a relation"),
        ("3-4\tzum", "3-9\tzum", "numbers out of order"),
        ("5\tHaus", "7\tHaus", "numbers out of order"),
    ],
)
def test_a_broken_sentence_is_counted_with_its_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    file = tmp_path / "small.conllu"
    broken = GERMAN.replace(old, new)
    assert broken != GERMAN
    file.write_text(GERMAN + broken + GERMAN, encoding="utf-8")
    (report,) = read_treebanks([file]).files
    assert report.kept == 2
    assert dict(report.skipped) == {reason: 1}
    assert all(10 < line < 20 for line in report.lines[reason])
    assert reason in str(report)


def test_words_that_are_not_written_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "dos.conllu"
    extra = "2.1\tgeht\tgehen\tVERB\t_\t_\t_\t_\t2:conj\t_\n3-4\tzum"
    file.write_bytes(b"\xef\xbb\xbf" + GERMAN.replace("3-4\tzum", extra).replace("\n", "\r\n").encode())
    (report,) = read_treebanks([file]).files
    assert (report.kept, report.skipped.total()) == (1, 0)


def tree_texts() -> st.SearchStrategy[str]:
    leaf = st.tuples(st.sampled_from(["NN", "VB", "-LRB-"]), FORMS.filter(lambda t: not set(t) & set("()"))).map(
        lambda pair: f"({pair[0]} {pair[1]})"
    )
    return st.recursive(
        leaf,
        lambda inner: st.tuples(st.sampled_from(["NP", "VP-SBJ", "S"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda pair: f"({pair[0]} {' '.join(pair[1])})"
        ),
        max_leaves=6,
    )


@given(st.lists(tree_texts().map(lambda body: f"(ROOT (S {body}))"), min_size=1, max_size=3), st.booleans())
def test_trees_survive_writing_and_reading(texts: list[str], spread: bool) -> None:
    given_text = "\n".join(text.replace(" (", "\n  (") if spread else text for text in texts)
    result = list(read_brackets(given_text.split("\n")))
    assert len(result) == len(texts)
    again = list(read_brackets(write_brackets([tree for _, tree in result]).split("\n")))
    assert [str(tree) for _, tree in again] == [str(tree) for _, tree in result]
    assert not any("-SBJ" in str(tree) for _, tree in result)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("(ROOT (S (NP (NN cat)) (VP (VB sat))", "brackets that are not closed"),
        ("(ROOT (S (NN cat))))", "brackets that were never opened"),
        ("(ROOT (S (NN cat)) (S (NN dog)))", "more than one tree under the root"),
        ("no tree at all", "brackets or labels out of place"),
    ],
)
def test_a_broken_tree_is_counted_with_its_line(tmp_path: Path, broken: str, reason: str) -> None:
    tree = "(ROOT (S (NP (DT the) (NN cat)) (VP (VBD sat))))"
    file = tmp_path / "small.ptb"
    file.write_text(f"{tree}\n\n{broken}\n{tree}\n", encoding="utf-8")
    (report,) = read_treebanks([file]).files
    assert report.kept == 2
    assert report.lines == {reason: [3]}


def test_brackets_in_words_are_those_of_the_text() -> None:
    ((line, tree),) = read_brackets(["( (NP (-LRB- -LRB-) (NN cat) (-RRB- -RRB-)) )"])
    assert (line, leaves_text(tree)) == (1, "(cat)")


def test_own_dev_and_test_files_are_never_trained_on(tmp_path: Path) -> None:
    texts = [GERMAN.replace("Haus", f"Haus{number}") for number in range(60)]
    (tmp_path / "gsd-dev.conllu").write_text("".join(texts[:5]), encoding="utf-8")
    (tmp_path / "gsd-test.conllu").write_text("".join(texts[5:10]), encoding="utf-8")
    with gzip.open(tmp_path / "pud.conllu.gz", "wt", encoding="utf-8") as file:
        file.write("".join(texts))  # holds the sentences of dev and test too
    parts = read_treebanks(sorted(tmp_path.iterdir())).sentences
    assert (len(parts.train), len(parts.dev), len(parts.test)) == (50, 5, 5)
    held_out = {sentence.text for sentence in parts.dev + parts.test}
    assert not held_out & {sentence.text for sentence in parts.train}


def test_the_drawn_split_is_the_same_in_every_file_and_every_time(tmp_path: Path) -> None:
    words = [f"cat{number}" for number in range(400)]
    block = "1\t{0}\t_\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "a.conllu").write_text("".join(block.format(word) for word in words), encoding="utf-8")
    (tmp_path / "a.ptb").write_text("".join(f"(ROOT (NP (NN {word})))\n" for word in words), encoding="utf-8")
    banks = read_treebanks([tmp_path / "a.conllu", tmp_path / "a.ptb"], held_out=0.1)
    for part in ("train", "dev", "test"):
        trees = {leaves_text(tree) for tree in getattr(banks.trees, part)}
        assert trees == {sentence.text for sentence in getattr(banks.sentences, part)}
        assert trees
    assert 15 < len(banks.trees.test) < 75
    again = read_treebanks([tmp_path / "a.ptb", tmp_path / "a.conllu"], held_out=0.1)
    assert [str(tree) for tree in again.trees.test] == [str(tree) for tree in banks.trees.test]
    assert set(banks.texts) == {leaves_text(tree) for tree in banks.trees.test}


def test_names_say_what_a_file_is() -> None:
    assert kind_of(Path("de_gsd-ud-dev.conllu.gz")) == "dependency"
    assert kind_of(Path("wsj_0001.MRG")) == "constituency"
    assert own_part(Path("/test/de_gsd-ud-dev.conllu.gz")) == "dev"
    assert own_part(Path("en_ewt-ud-train.conllu")) == ""
    assert own_part(Path("latest.conllu")) == ""
    with pytest.raises(InputError, match=r"known by its name.*\.conllu"):
        kind_of(Path("trees.xml"))


def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "none.conllu"
    with pytest.raises(InputError, match=r"none\.conllu was not found"):
        read_treebanks([missing])
    (tmp_path / "bad.conllu.gz").write_bytes(b"\x1f\x8b not gzip")
    with pytest.raises(InputError, match="no whole gzip file"):
        read_treebanks([tmp_path / "bad.conllu.gz"])
    (tmp_path / "latin.conllu").write_bytes(b"# caf\xe9\n")
    with pytest.raises(InputError, match=r"not UTF-8 \(line 1\)"):
        read_treebanks([tmp_path / "latin.conllu"])
    (tmp_path / "prose.conllu").write_text("This is no treebank.\n\nNor is this.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"2 with a line without 10 columns \(line 1, 3\).*No sentence"):
        read_treebanks([tmp_path / "prose.conllu"])


def test_closed_contractions_are_opened_as_the_others_are(tmp_path: Path) -> None:
    closed = (
        "1\tSie\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tläuft\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
        "3\tzum\t_\tADP\t_\t_\t4\tcase\t_\t_\n4\tBaum\t_\tNOUN\t_\t_\t2\tobl\t_\t_\n\n"
    )
    file = tmp_path / "mixed.conllu"
    file.write_text("".join(GERMAN.replace("Haus", f"Haus{n}") for n in range(9)) + closed, encoding="utf-8")
    banks = read_treebanks([file], held_out=0.01)
    before = [sentence.text for sentence in banks.sentences.train]
    opened, count = open_contractions(banks)
    assert count == 1
    assert [sentence.text for sentence in opened.sentences.train] == before
    (mended,) = (s for s in opened.sentences.train if "Baum" in s.text)
    assert [(word.form, word.head) for word in mended.words] == [("Sie", 2), ("läuft", 0), ("zu", 5), ("dem", 5), ("Baum", 2)]
