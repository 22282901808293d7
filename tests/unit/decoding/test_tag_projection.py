"""Tags come into a translation where their words went: none lost, none doubled, nested as they were."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of
from engine.corpora.words import word_spans
from engine.decoding.tag_projection import project
from engine.decoding.word_alignment import Alignment, even_alignment, piece_spans


def parts_of(text: str) -> TaggedText:
    """`a [1 b c ]1 d <2>` as parts: a pair with number 1 around `b c`, a lone tag 2 at the end."""
    results: TaggedText = []
    words = text.split(" ")
    for k, word in enumerate(words):
        if word.startswith("["):
            results.append(Tag("open", int(word[1:])))
        elif word.startswith("]"):
            results.append(Tag("close", int(word[1:])))
        elif word.startswith("<"):
            results.append(Tag("alone", int(word[1:-1])))
        else:
            results.append(word)
        if k + 1 < len(words) and isinstance(results[-1], str) and any(w[0] not in "[]<" for w in words[k + 1 :]):
            results.append(" ")
    return results


def shown(parts: TaggedText) -> str:
    return "".join(
        part if isinstance(part, str) else {"open": "[", "close": "]", "alone": "<"}[part.kind] + str(part.id) for part in parts
    )


def links(source: str, target: str, *pairs: tuple[int, int]) -> Alignment:
    """An alignment of (source word, target word) links."""
    rows: list[dict[int, float]] = [{} for _ in word_spans(target)]
    for i, j in pairs:
        rows[j][i] = 1.0
    return Alignment(word_spans(source), word_spans(target), [{i: w / len(r) for i, w in r.items()} for r in rows])


def test_a_pair_follows_its_words() -> None:
    parts = parts_of("the [1 red house ]1 stands")
    source = text_of(parts)
    assert source == "the red house stands"
    alignment = links(source, "steht das rote Haus", (0, 1), (1, 2), (2, 3), (3, 0))
    assert shown(project(parts, "steht das rote Haus", alignment)) == "steht das [1rote Haus]1"


def test_one_stray_link_does_not_tear_a_pair_apart() -> None:
    parts = parts_of("[1 one two three ]1 four five six")
    target = "eins zwei drei vier fünf sechs"
    alignment = links(text_of(parts), target, (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (1, 5))
    assert shown(project(parts, target, alignment)) == "[1eins zwei drei]1 vier fünf sechs"


def test_nested_pairs_and_a_lone_tag() -> None:
    parts = parts_of("see [1 the [2 big ]2 map ]1 <3> now")
    target = "jetzt die große Karte sehen"
    alignment = links(text_of(parts), target, (0, 4), (1, 1), (2, 2), (3, 3), (4, 0))
    # The lone tag touches "now", and goes where that went.
    assert shown(project(parts, target, alignment)) == "<3jetzt [1die [2große]2 Karte]1 sehen"


def test_a_lone_tag_between_spaces_stays_between_spaces() -> None:
    parts: TaggedText = ["press ", Tag("alone", 1), " to go"]
    target = "drück um zu gehen"
    alignment = links(text_of(parts), target, (0, 0), (1, 2), (2, 3))
    assert shown(project(parts, target, alignment)) == "drück <1 um zu gehen"
    assert shown(project(parts, "按即可走", even_alignment(text_of(parts), "按即可走"), spaced=False)).count("<1") == 1


def test_a_note_stays_with_the_stop_that_it_followed() -> None:
    parts: TaggedText = ["He came.", Tag("alone", 1)]
    alignment = even_alignment("He came.", "他来了。")
    assert shown(project(parts, "他来了。", alignment, spaced=False)) == "他来了。<1"


def test_a_note_before_the_stop_stays_before_it() -> None:
    parts: TaggedText = ["The pump is waterproof", Tag("alone", 1), "."]
    target = "泵是防水的。"
    alignment = links(text_of(parts), target, (1, 0), (2, 1), (3, 2), (3, 3), (2, 4), (4, 5))
    assert shown(project(parts, target, alignment, spaced=False)) == "泵是防水的<1。"
    bare = links(text_of(parts), target[:-1], (1, 0), (2, 1), (3, 2), (3, 3), (2, 4))
    assert shown(project(parts, target[:-1], bare, spaced=False)) == "泵是防水<1的", "where there is no stop"
    german = links(text_of(parts), "Wasserdicht ist sie.", (3, 0), (2, 1), (1, 2), (4, 3))
    assert shown(project(parts, "Wasserdicht ist sie.", german)) == "Wasserdicht ist sie<1."


def test_a_lone_tag_goes_behind_all_that_its_word_became() -> None:
    parts: TaggedText = ["the helmet", Tag("alone", 1), " is red, ", Tag("alone", 2), "temperature too"]
    target = "头盔是红色的，温度也是"
    source = text_of(parts)
    rows = [(1, 0), (1, 1), (2, 2), (3, 3), (3, 4), (2, 5), (4, 6), (5, 7), (5, 8), (6, 9), (6, 10)]
    assert shown(project(parts, target, links(source, target, *rows), spaced=False)) == "头盔<1是红色的，<2温度也是"


def test_a_lone_tag_goes_into_no_piece_of_the_vocabulary() -> None:
    parts: TaggedText = ["start engine", Tag("alone", 1), " now"]
    # Both characters of 引擎 are one piece, which comes from "start" more than from "engine".
    piece = {0: 0.6, 1: 0.4}
    alignment = Alignment(word_spans("start engine now"), word_spans("引擎开"), [dict(piece), dict(piece), {2: 1.0}])
    assert shown(project(parts, "引擎开", alignment, spaced=False)) == "引擎<1开"


@pytest.mark.parametrize(
    ("marked", "expected", "pairs"),
    [
        ("it is H[12]1O", "es ist H[12]1O", ((0, 0), (1, 1), (2, 2))),
        ("x[1i]1[22]2 rose", "gestiegen ist x[1i]1[22]2", ((1, 0), (1, 1), (0, 2))),
        ("micro[1soft]1 does", "macht Micro[1soft]1", ((1, 0), (0, 1))),
        ("a foot<1note", "foot<1note", ((1, 0),)),
        ("an [1inter]1national law", "[1Inter]1nationales Recht", ((1, 0), (2, 1))),
        ("an over[1load]1", "ein Work[1load]1", ((0, 0), (1, 1))),
        ("an [1un]1likely end", "ein [1unwahrscheinliches]1 Ende", ((0, 0), (1, 1), (2, 2))),
        ("the 19[1th]1 century", "das [119]1. Jahrhundert", ((0, 0), (1, 1), (2, 3))),
        ("a USB[1-C]1 cable", "USB[1-C]1 电缆", ((1, 0), (2, 1), (2, 2))),
    ],
)
def test_a_tag_inside_a_word_goes_inside_its_translation_where_that_has_the_same_part(
    marked: str, expected: str, pairs: tuple[tuple[int, int], ...]
) -> None:
    kinds: dict[str, Any] = {"[": "open", "]": "close", "<": "alone"}
    pieces = [piece for piece in re.split(r"([\[\]<]\d)", marked) if piece]
    parts = [Tag(kinds[piece[0]], int(piece[1])) if piece[0] in kinds else piece for piece in pieces]
    target = re.sub(r"[\[\]<]\d", "", expected)
    assert shown(project(parts, target, links(text_of(parts), target, *pairs))) == expected


def test_tags_without_their_other_half_are_lone_ones() -> None:
    parts: TaggedText = [Tag("close", 1), "a ", Tag("open", 2), "b"]
    assert shown(project(parts, "a b", even_alignment("a b", "a b"))) == "]1a [2b"


TEXTS = st.lists(st.sampled_from(["house", "red", "7", ",", "雨", "停", "."]), max_size=8).map(" ".join)


@st.composite
def tagged(draw: st.DrawFn) -> TaggedText:
    """Any text with pairs in pairs and lone tags."""
    count = 0

    def block(depth: int) -> TaggedText:
        nonlocal count
        results: TaggedText = []
        for _ in range(draw(st.integers(0, 3))):
            sort = draw(st.integers(0, 3 if depth else 1))
            if sort == 0:
                results.append(draw(st.sampled_from([" {} ", "{}"])).format(draw(TEXTS)))
            elif sort == 1:
                count += 1
                results.append(Tag("alone", count))
            else:
                count += 1
                number = count
                results += [Tag("open", number), *block(depth - 1), Tag("close", number)]
        return results

    return block(3)


def tree(parts: TaggedText) -> dict[int, int]:
    """{tag: the pair it is in}, failing where pairs cross."""
    owner: dict[int, int] = {}
    stack = [0]
    for part in parts:
        if isinstance(part, str):
            continue
        if part.kind == "close":
            assert stack.pop() == part.id
        else:
            assert part.id not in owner, "a tag came twice"
            owner[part.id] = stack[-1]
            if part.kind == "open":
                stack.append(part.id)
    assert stack == [0]
    return owner


@given(tagged(), TEXTS, st.data())
def test_no_tag_is_lost_or_doubled_and_the_text_is_untouched(parts: TaggedText, target: str, data: st.DataObject) -> None:
    source = text_of(parts)
    a, b = word_spans(source), word_spans(target)
    weight = st.floats(0, 1, allow_nan=False)
    rows = [{i: data.draw(weight) for i in range(len(a))} for _ in b]
    placed = project(parts, target, Alignment(a, b, rows))
    assert text_of(placed).replace(" ", "") == target.replace(" ", "")
    assert tree(placed) == tree(parts)


@given(tagged())
def test_the_same_text_gets_its_tags_back(parts: TaggedText) -> None:
    source = text_of(parts)
    spans = word_spans(source)
    placed = project(parts, source, Alignment(spans, spans, [{i: 1.0} for i in range(len(spans))]))

    def around(tagged: TaggedText) -> dict[int, str]:
        """What each pair is around, without spaces, which may move across a tag."""
        result: dict[int, str] = {}
        stack: list[int] = []
        for part in tagged:
            if isinstance(part, str):
                for number in stack:
                    result[number] += part.replace(" ", "")
            elif part.kind == "open":
                stack.append(part.id)
                result[part.id] = ""
            elif part.kind == "close":
                stack.pop()
        return result

    full = {number for number, text in around(parts).items() if text}
    assert {number: around(placed)[number] for number in full} == {number: around(parts)[number] for number in full}


# -- words and pieces


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop: 3.5 km!", ["Don't", "stop", ":", "3.5", "km", "!"]),
        ("他说Linux好。", ["他", "说", "Linux", "好", "。"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("well-known e-mails", ["well-known", "e-mails"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert [text[a:b] for a, b in word_spans(text)] == words


@given(st.text(max_size=40))
def test_every_character_but_spaces_is_in_one_word(text: str) -> None:
    assert "".join(text[a:b] for a, b in word_spans(text)) == "".join(text.split())


def test_pieces_are_found_in_the_text_that_they_spell() -> None:
    text = "Größe: ５ km，ok"
    spans = piece_spans(text, ["▁Grö", "ße", ":", "▁5", "▁", "km", ",", None])
    assert spans is not None
    assert [text[a:b] for a, b in spans] == ["Grö", "ße", ":", "５", "", "km", "，", "ok"]
    assert piece_spans("abc", ["▁x"]) is None
    assert piece_spans("a🙂b", ["▁a", None, "b"]) == [(0, 1), (1, 2), (2, 3)]
