"""Phrases from constituency and dependency trees: on trees written here, and on whole treebanks where they are at hand."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from engine.phrases import Tree
from engine.phrases.constituency import constituency_spans, constituency_tree
from engine.phrases.dependency import dependency_spans, dependency_tree
from engine.phrases.parsed_sentence import Parsed, read_stanza
from engine.phrases.token_spans import align, clean_spans, is_punctuation

TREEBANKS = Path(__file__).resolve().parents[4] / "shared" / "data" / "treebanks"
needs_treebanks = pytest.mark.skipif(not TREEBANKS.is_dir(), reason=f"no treebanks in {TREEBANKS}")


def from_brackets(brackets: str, text: str) -> Parsed:
    from stanza.models.constituency.tree_reader import read_trees

    (tree,) = read_trees(brackets)
    return from_tree(tree, text)


def from_tree(tree: Any, text: str) -> Parsed:
    words = tree.leaf_labels()
    offsets = align(words, text)
    assert offsets is not None
    count = len(words)
    surfaces = tuple(text[a:b] for a, b in offsets)
    return Parsed(surfaces, ("",) * count, (), ("",) * count, tree, surfaces, tuple(offsets), tuple(range(count)))


def phrases(spans: list[tuple[int, int, str]], parsed: Parsed, text: str, longest: int = 10) -> dict[str, str]:
    selected = clean_spans(spans, parsed.tokens, shortest=1, longest=longest)
    return {text[parsed.offsets[a][0] : parsed.offsets[b - 1][1]]: label for a, b, label in selected}


def from_conllu(block: str) -> tuple[Parsed, str]:
    from stanza.utils.conll import CoNLL

    rows = ["\t".join(line.split()) if not line.startswith("#") else line for line in block.strip().splitlines()]
    document = CoNLL.conll2doc(input_str="\n".join(rows) + "\n\n")
    sentence = document.sentences[0]
    parsed = read_stanza(sentence, sentence.text)
    assert parsed is not None
    return parsed, sentence.text


def test_constituents_with_labels_and_exact_text() -> None:
    text = "The old king, weary of war, didn't speak (much)."
    parsed = from_brackets(
        """(ROOT (S (NP (NP (DT The) (JJ old) (NN king)) (, ,) (ADJP (JJ weary) (PP (IN of) (NP (NN war)))) (, ,))
        (VP (VBD did) (RB n't) (VP (VB speak) (ADVP (-LRB- -LRB-) (RB much) (-RRB- -RRB-)))) (. .)))""",
        text,
    )
    result = phrases(constituency_spans(parsed), parsed, text)
    assert result["The old king"] == "NP"
    assert result["The old king, weary of war"] == "NP"  # the comma inside stays, the one at the edge goes
    assert result["weary of war"] == "ADJP"
    assert result["war"] == "NP"  # NP over NN: the topmost label
    assert result["did"] == "VBD"
    assert result["n't"] == "RB"
    assert result["didn't speak (much)"] == "VP"
    assert result["much"] == "ADVP"
    assert not {",", ".", "(", ")"} & set(result)
    assert phrases(constituency_spans(parsed), parsed, text, longest=30)[text[:-1]] == "S"


def test_chinese_constituents_have_no_spaces() -> None:
    text = "这是我做的么。"
    parsed = from_brackets("(ROOT (IP (NP (PN 这)) (VP (VC 是) (IP (NP (PN 我)) (VP (VV 做)) (DEC 的))) (SP 么) (PU 。)))", text)
    assert phrases(constituency_spans(parsed), parsed, text) == {
        "这是我做的么": "IP",
        "这": "NP",
        "是我做的": "VP",
        "是": "VC",
        "我做的": "IP",
        "我": "NP",
        "做": "VP",
        "的": "DEC",
        "么": "SP",
    }


def test_vague_labels_give_way_and_functions_are_cut_off() -> None:
    parsed = from_brackets("(ROOT (FRAG (NP-SBJ=2 (NN war))))", "war")
    assert constituency_spans(parsed) == [(0, 1, "NP")]


def test_the_root_itself_is_no_phrase() -> None:
    parsed = from_brackets("(ROOT (NP (NN war)) (CC and) (NP (NN peace)))", "war and peace")
    assert "war and peace" not in phrases(constituency_spans(parsed), parsed, "war and peace")


def test_a_tree_of_another_sentence_gives_nothing() -> None:
    parsed = from_brackets("(ROOT (NP (NN war)))", "war")
    other = Parsed(**{**parsed.__dict__, "words": ("war", "peace")})
    assert constituency_spans(other) == []
    assert constituency_tree(other, "war peace") is None


def test_drawing_a_constituency_tree() -> None:
    text = "We  (the king) fell."
    parsed = from_brackets(
        "(ROOT (S (NP (PRP We) (PRN (-LRB- -LRB-) (DT the) (NN king) (-RRB- -RRB-))) (VP (VBD fell)) (. .)))", text
    )
    tree = constituency_tree(parsed, text)
    assert tree is not None
    assert (tree.label, tree.text) == ("ROOT", text)
    assert [leaf.text for leaf in tree.leaves()] == ["We", "(", "the", "king", ")", "fell", "."]
    assert tree.children[0].children[0].children[1].text == "(the king)"
    assert tree.children[0].children[1] == Tree("VP", "fell", (Tree("VBD", "fell"),))


GERMAN = """
# text = Er ging, müde, zum alten Bahnhof.
1 Er er PRON _ _ 2 nsubj _ _
2 ging gehen VERB _ _ 0 root _ SpaceAfter=No
3 , , PUNCT _ _ 4 punct _ _
4 müde müde ADJ _ _ 2 advcl _ SpaceAfter=No
5 , , PUNCT _ _ 4 punct _ _
6-7 zum _ _ _ _ _ _ _ _
6 zu zu ADP _ _ 9 case _ _
7 dem der DET _ _ 9 det _ _
8 alten alt ADJ _ _ 9 amod _ _
9 Bahnhof Bahnhof NOUN _ _ 2 obl _ SpaceAfter=No
10 . . PUNCT _ _ 2 punct _ _
"""


CHINESE = """
# text = 他住在城里，后来走了。
1 他 他 PRON _ _ 2 nsubj _ SpaceAfter=No
2 住 住 VERB _ _ 0 root _ SpaceAfter=No
3 在 在 ADP _ _ 4 case _ SpaceAfter=No
4 城里 城里 NOUN _ _ 2 obl _ SpaceAfter=No
5 ， ， PUNCT _ _ 7 punct _ SpaceAfter=No
6 后来 后来 ADV _ _ 7 advmod _ SpaceAfter=No
7 走 走 VERB _ _ 2 conj _ SpaceAfter=No
8 了 了 PART _ _ 7 aux _ SpaceAfter=No
9 。 。 PUNCT _ _ 2 punct _ SpaceAfter=No
"""


def test_a_clause_without_its_conjuncts_and_a_predicate_without_its_subject() -> None:
    """What a constituency tree would call S and VP."""
    parsed, text = from_conllu(CHINESE)
    result = phrases(dependency_spans(parsed), parsed, text)
    assert {key: label for key, label in result.items() if len(key) > 2} == {
        "他住在城里，后来走了": "root",
        "他住在城里": "root",
        "住在城里，后来走了": "predicate",
        "住在城里": "predicate",
        "后来走了": "conj",
        "在城里": "obl",
    }


def test_subtrees_with_tokens_of_two_words() -> None:
    parsed, text = from_conllu(GERMAN)
    assert phrases(dependency_spans(parsed), parsed, text) == {
        "Er ging, müde, zum alten Bahnhof": "root",
        "ging, müde, zum alten Bahnhof": "predicate",
        "zum alten Bahnhof": "obl",
        "müde": "advcl",
        "Er": "nsubj",
        "ging": "root",
        "zum": "case",
        "alten": "amod",
        "Bahnhof": "obl",
    }


CROSSING = """
# text = A hearing is scheduled today, on the issue.
1 A a DET _ _ 2 det _ _
2 hearing hearing NOUN _ _ 4 nsubj _ _
3 is be AUX _ _ 4 aux _ _
4 scheduled schedule VERB _ _ 0 root _ _
5 today today NOUN _ _ 4 obl _ SpaceAfter=No
6 , , PUNCT _ _ 4 punct _ _
7 on on ADP _ _ 9 case _ _
8 the the DET _ _ 9 det _ _
9 issue issue NOUN _ _ 2 nmod _ SpaceAfter=No
10 . . PUNCT _ _ 4 punct _ _
"""


def test_words_apart_are_no_phrase() -> None:
    parsed, text = from_conllu(CROSSING)
    result = phrases(dependency_spans(parsed), parsed, text)
    assert result["on the issue"] == "nmod"
    assert "hearing" in result
    assert not any("hearing" in phrase and " " in phrase and "scheduled" not in phrase for phrase in result)
    tree = dependency_tree(parsed, text)
    assert tree is not None
    assert "A hearing … on the issue" in {node.text for node in tree.walk()}
    assert sorted(leaf.text for leaf in tree.leaves()) == sorted(parsed.words)


def test_punctuation_that_hangs_elsewhere_does_not_break_a_phrase() -> None:
    parsed, text = from_conllu(
        """# text = old, weary men
1 old old ADJ _ _ 4 amod _ SpaceAfter=No
2 , , PUNCT _ _ 0 root _ _
3 weary weary ADJ _ _ 4 amod _ _
4 men man NOUN _ _ 2 nsubj _ _"""
    )
    assert phrases(dependency_spans(parsed), parsed, text)["old, weary men"] == "root"


def test_no_parse_no_phrases() -> None:
    parsed, text = from_conllu(GERMAN)
    bare = Parsed(**{**parsed.__dict__, "heads": ()})
    assert dependency_spans(bare) == []
    assert dependency_tree(bare, text) is None
    circle = Parsed(**{**parsed.__dict__, "heads": (1, 0, *parsed.heads[2:])})
    assert dependency_tree(circle, text) is None
    dependency_spans(circle)  # ends


@needs_treebanks
@pytest.mark.slow
def test_every_constituent_of_gum_is_text_of_its_sentence() -> None:
    from stanza.models.constituency.tree_reader import read_trees

    with gzip.open(TREEBANKS / "en" / "gum-const.ptb.gz", "rt", encoding="utf-8") as file:
        trees = read_trees(file.read())
    assert len(trees) > 7000
    total = covered = 0
    for tree in trees:
        words = [{"-LRB-": "(", "-RRB-": ")"}.get(word, word) for word in tree.leaf_labels()]
        text = " ".join(words).replace(" ,", ",").replace(" n't", "n't")
        parsed = from_tree(tree, text)
        result = phrases(constituency_spans(parsed), parsed, text, longest=8)
        total += len(result)
        covered += bool(result) or all(is_punctuation(word) for word in words)
        for phrase in result:
            assert phrase in text
            assert phrase == phrase.strip()
            assert not is_punctuation(phrase)
        drawn = constituency_tree(parsed, text)
        assert drawn is not None
        assert [leaf.text for leaf in drawn.leaves()] == list(parsed.words)
        assert all(node.text in text for node in drawn.walk())
    assert covered == len(trees)
    assert total > 100_000


@needs_treebanks
@pytest.mark.parametrize(
    ("name", "share"), [("zh-hans/pud", 0.5), ("zh-hans/gsdsimp-test", 0.5), ("de/pud", 0.4), ("de/gsd-test", 0.4)]
)
def test_every_subtree_of_a_treebank_is_text_of_its_sentence(name: str, share: float, tmp_path: Path) -> None:
    from stanza.utils.conll import CoNLL

    plain = tmp_path / "treebank.conllu"
    plain.write_bytes(gzip.decompress((TREEBANKS / f"{name}.conllu.gz").read_bytes()))
    document = CoNLL.conll2doc(str(plain))
    read = longer = tokens = 0
    for sentence in document.sentences:
        parsed = read_stanza(sentence, sentence.text)
        if parsed is None:
            continue  # the treebank's own text differs from its tokens
        read += 1
        result = phrases(dependency_spans(parsed), parsed, sentence.text, longest=10)
        for phrase in result:
            assert phrase in sentence.text
            assert name.startswith("de") or phrase.isascii() or " " not in phrase or " " in sentence.text
        longer += sum(len(phrase) > 1 and " " in phrase for phrase in result) if name.startswith("de") else len(result)
        tokens += len(parsed.tokens)
        drawn = dependency_tree(parsed, sentence.text)
        assert drawn is not None
        assert sorted(leaf.text for leaf in drawn.leaves()) == sorted(parsed.words)
    assert read >= 0.99 * len(document.sentences)
    assert longer > share * tokens / 2
