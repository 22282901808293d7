"""Rating rounds: blind, the same after a restart, and read as they were given."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from engine.errors import InputError
from engine.evaluation.rater_agreement import QUESTIONS
from engine.store import Store
from engine.store.ratings import RaterRow, RoundRow
from engine.workflows.human_rating import (
    SIDES,
    RoundPlan,
    Texts,
    as_csv,
    as_mapping,
    ask_again,
    choose,
    new_round,
    pick_items,
    rater_order,
    sides,
    skip,
    summary,
    task,
    texts_of,
    undo,
)

SOURCES = [f"Sentence {n}: the rain had not stopped." for n in range(12)]
ROWS = [
    {
        "source": source,
        "vanilla": f"第{n}句：雨还没有停。",
        "customized": f"第{n}句：雨竟还不曾停歇。" if n != 5 else "第5句：雨还没有停。 ",
        "plugin": "Lu Xun",
        "plugin_id": 1,
    }
    for n, source in enumerate(SOURCES)
]


@pytest.fixture
def url(store_url: str) -> str:
    return store_url


@pytest.fixture
def store(url: str) -> Store:
    return Store(url)


def saved(store: Store, rows: Sequence[dict[str, Any]] = ROWS) -> Texts:
    """What a saved comparison of these rows holds."""
    project = store.projects.create("Essays", "en", "zh", "base")
    return texts_of(store, store.comparisons.create(project.id, "Rain", list(rows)).id)


@pytest.fixture
def round_(store: Store) -> RoundRow:
    texts = saved(store)
    project = store.projects.list()[0]
    return new_round(store, project.id, texts, RoundPlan("Lu Xun", "vanilla", raters=("Mei", "Jan", "Ute"), seed=7))


def prefer(store: Store, rater: RaterRow, liked: str, times: int = 100) -> None:
    """Rate as somebody does who sees the two texts and likes those with `liked` in them."""
    for _ in range(times):
        now = task(store, rater)
        if now.item is None:
            return
        side = "a" if liked in now.a else "b"
        for question in QUESTIONS:
            choose(store, rater, now.item, question, side)


def test_a_comparison_has_two_systems_and_same_sentences_are_left_out(store: Store) -> None:
    texts = saved(store, [*ROWS, {"source": "not translated", "vanilla": "没有", "customized": None, "plugin": "Lu Xun"}])
    assert list(texts.systems) == ["vanilla", "Lu Xun"]
    assert texts.sources == SOURCES
    items, same = pick_items(texts, "Lu Xun", "vanilla")
    assert (len(items), same) == (11, 1)
    assert items[0] == {"source": SOURCES[0], "one": ROWS[0]["customized"], "two": ROWS[0]["vanilla"]}
    drawn, _ = pick_items(texts, "vanilla", "Lu Xun", sentences=4, seed=3)
    assert len(drawn) == 4
    assert [item["source"] for item in drawn] == sorted((item["source"] for item in drawn), key=SOURCES.index)
    assert drawn == pick_items(texts, "vanilla", "Lu Xun", sentences=4, seed=3)[0]


def test_any_two_of_several_plugins_can_be_rated(store: Store) -> None:
    systems = [{"name": name, "plugin_id": None, "method": "", "strength": 1.0} for name in ("vanilla", "A", "B")]
    project = store.projects.create("Essays", "en", "zh", "base")
    sheet = store.sheets.create(
        project.id, "Three", [("One.", None), ("Two.", "二。")], systems,
        texts={0: ["一。", "二。"], 1: ["壹。", "二。"], 2: ["壹。", "贰。"]},
    )  # fmt: skip
    texts = texts_of(store, sheet.comparison_id)
    assert list(texts.systems) == ["vanilla", "A", "B"]
    assert pick_items(texts, "B", "A") == ([{"source": "Two.", "one": "贰。", "two": "二。"}], 1)
    store.sheets.set_strength(sheet.comparison_id, 1, 0.5)
    with pytest.raises(InputError, match="nothing to rate"):
        pick_items(texts_of(store, sheet.comparison_id), "B", "A")  # its sentences are being made again


def test_what_cannot_be_rated_is_said(store: Store) -> None:
    texts = saved(store)
    with pytest.raises(InputError, match="base alone"):
        pick_items(saved(store, [{"source": "a", "vanilla": "b", "customized": None}]), "vanilla", "x")
    with pytest.raises(InputError, match=r"no system kNN\. It has vanilla, Lu Xun"):
        pick_items(texts, "kNN", "vanilla")
    with pytest.raises(InputError, match="two different systems"):
        pick_items(texts, "vanilla", "vanilla")
    with pytest.raises(InputError, match="produced the same translation of every sentence"):
        pick_items(saved(store, ROWS[5:6]), "vanilla", "Lu Xun")


def test_sides_are_even_and_orders_differ_and_both_stay(store: Store, url: str, round_: RoundRow) -> None:
    assert sum(sides(round_)) == 6, "eleven items: six one way, five the other"
    raters = store.ratings.raters(round_.id)
    orders = [rater_order(round_, rater) for rater in raters]
    assert all(sorted(order) == list(range(11)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    again = Store(url).ratings.get(round_.id)
    assert sides(again) == sides(round_)
    assert [rater_order(again, rater) for rater in raters] == orders
    # What was drawn before must be drawn by every later version: a stored round hangs on it.
    assert sides(round_) == [True, True, True, True, False, True, False, True, False, False, False]


def test_nothing_that_a_rater_gets_tells_the_systems_apart(store: Store, round_: RoundRow) -> None:
    for rater in store.ratings.raters(round_.id):
        text = json.dumps(task(store, rater).to_mapping(), ensure_ascii=False)
        for word in ("Lu Xun", "vanilla", "one", "two", "win", "seed", rater.name):
            assert f'"{word}"' not in text


def test_a_preference_comes_out_whatever_the_sides(store: Store, round_: RoundRow) -> None:
    mei, jan, ute = store.ratings.raters(round_.id)
    prefer(store, mei, "不曾")
    prefer(store, jan, "不曾")
    prefer(store, ute, "没有")
    table = summary(store, round_)
    assert table["style"].raters["Mei"].percent == (100.0, 0.0, 0.0)
    assert table["style"].raters["Ute"].percent == (0.0, 0.0, 100.0)
    assert [round(share, 1) for share in table["style"].average] == [66.7, 0.0, 33.3]
    assert table["style"].items_for == 11
    assert (table["style"].p or 1) < 0.001
    assert task(store, mei).item is None


def test_undo_skip_and_asking_again(store: Store, url: str, round_: RoundRow) -> None:
    mei = store.ratings.raters(round_.id)[0]
    first = task(store, mei)
    assert first.item is not None
    for question in QUESTIONS:
        choose(store, mei, first.item, question, "a")
    second = task(store, mei)
    assert second.done == 1
    assert second.item != first.item
    undo(store, mei)
    back = task(Store(url), mei)  # after a restart
    assert back.item == first.item
    assert back.answers == {"content": "a", "fluency": "a"}
    choose(store, mei, first.item, "content", "same")
    assert (task(store, mei).answers or {})["content"] == "same", "a decision can be changed"
    choose(store, mei, first.item, "style", "b")
    skip(store, mei, int(second.item or 0))
    now = task(store, mei)
    assert (now.done, now.skipped) == (2, 1)
    assert store.ratings.progress(round_.project_id) == (2, 33)
    ask_again(store, mei)
    assert task(store, mei).item == second.item
    undo(store, mei)
    assert (task(store, mei).item, set(task(store, mei).answers or {})) == (first.item, {"content", "fluency"})
    for _ in range(5):
        undo(store, mei)  # more than there is
    assert task(store, mei).done == 0


def test_a_closed_round_and_odd_answers_take_nothing(store: Store, round_: RoundRow) -> None:
    mei = store.ratings.raters(round_.id)[0]
    for item, question, side in ((99, "style", "a"), (-1, "style", "a"), (0, "beauty", "a"), (0, "style", "win")):
        with pytest.raises(InputError):
            choose(store, mei, item, question, side)
    store.ratings.update(round_.id, closed=round_.created)
    assert task(store, mei).closed
    assert task(store, mei).item is None
    for act in (lambda: choose(store, mei, 0, "style", "a"), lambda: skip(store, mei, 0), lambda: undo(store, mei)):
        with pytest.raises(InputError, match="closed"):
            act()
    assert store.ratings.answers(round_.id) == []


def test_links_cannot_be_guessed_and_names_are_one_a_rater(store: Store, round_: RoundRow) -> None:
    raters = store.ratings.raters(round_.id)
    assert all(len(rater.token) == 32 for rater in raters)
    assert store.ratings.rater(raters[0].token) == raters[0]
    assert store.ratings.rater(raters[0].token[:-1]) is None
    assert store.ratings.rater("") is None
    with pytest.raises(InputError, match="already has a rater named Mei"):
        store.ratings.add_rater(round_.id, " Mei ")
    with pytest.raises(InputError, match="same name"):
        new_round(store, round_.project_id, saved(store), RoundPlan("Lu Xun", "vanilla", raters=("A", " A")))
    prefer(store, raters[0], "不曾", 2)
    store.ratings.remove_rater(raters[0].id)
    assert store.ratings.rater(raters[0].token) is None
    assert store.ratings.answers(round_.id) == []
    store.projects.delete(round_.project_id)
    assert store.ratings.list(round_.project_id) == []


def test_exports_hold_what_was_chosen_and_no_link(store: Store, round_: RoundRow) -> None:
    mei, jan, _ = store.ratings.raters(round_.id)
    prefer(store, mei, "不曾", 3)
    skip(store, jan, rater_order(round_, jan)[0])
    lines = list(csv.DictReader(io.StringIO(as_csv(store, round_))))
    assert len(lines) == 4
    rated = [line for line in lines if line["rater"] == "Mei"]
    assert {line["style"] for line in rated} == {"win"}
    for line in rated:
        position = int(line["item"]) - 1
        assert line["one_text"] == round_.items[position]["one"]
        assert line["side_a"] == ("Lu Xun" if sides(round_)[position] else "vanilla")
    assert [line["skipped"] for line in lines if line["rater"] == "Jan"] == ["yes"]
    data = json.loads(json.dumps(as_mapping(store, round_), ensure_ascii=False))
    assert data["summary"]["style"]["raters"]["Mei"]["win"] == 3
    assert data["about"] == {"same": 1, "sentences": 12}
    for rater in (mei, jan):
        assert rater.token not in json.dumps(data) + as_csv(store, round_)
    assert set(SIDES) == {"a", "same", "b"}
