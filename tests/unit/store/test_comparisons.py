"""Comparisons line by line: paged, sorted, filled, turned; and those of older homes."""

from __future__ import annotations

import dataclasses

import pytest

from engine.errors import InputError
from engine.store import Store
from engine.store.comparisons import ComparisonLineRow, ComparisonTables

SYSTEMS = [
    {"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0},
    {"name": "Lu Xun", "plugin_id": 3, "method": "memory_adapter", "strength": 0.8},
    {"name": "kNN", "plugin_id": 4, "method": "knn", "strength": 1.0},
]
LINES = [("The rain stopped.", "雨停了。"), ("He came.", None), ("Nobody knew.", "没有人知道。")]


@pytest.fixture
def project(store: Store) -> int:
    return store.projects.create("Essays", "en", "zh", "/base").id


def filled(line: ComparisonLineRow, texts: list[str | None], difference: float, change: float | None = None) -> ComparisonLineRow:
    return dataclasses.replace(line, texts=texts, difference=difference, change=change)


def test_a_sheet_is_filled_line_by_line_and_sorted(store: Store, project: int) -> None:
    sheet = store.sheets.create(project, "rain", LINES, SYSTEMS, file="rain.tsv")
    number = sheet.comparison_id
    assert (sheet.lines, sheet.references, sheet.file, sheet.title) == (3, 2, "rain.tsv", "rain")
    assert [line.place for line in store.sheets.pending(number, 2)] == [0, 1]
    lines = store.sheets.pending(number, 10)
    done = [
        filled(lines[0], ["雨停了。", "雨住了。", "雨停了。"], 0.25, -4.0),
        filled(lines[1], ["他来了。", "他来了。", "他来了。"], 0.0),
        filled(lines[2], ["没人知道。", "谁也不知道。", None], 0.5, 9.0),
    ]
    assert store.sheets.fill(number, sheet.revision, done)
    assert [line.place for line in store.sheets.pending(number, 10)] == [2]
    assert store.sheets.count(number) == (2, 1)
    for order, places in (
        ("place", [0, 1, 2]), ("difference", [2, 0, 1]), ("better", [2, 0, 1]), ("worse", [0, 2, 1]), ("nonsense", [0, 1, 2]),
    ):  # fmt: skip
        assert [line.place for line in store.sheets.page(number, order)] == places
    assert [line.place for line in store.sheets.page(number, offset=1, limit=1)] == [1]
    assert store.sheets.line(number, 0).texts[1] == "雨住了。"
    with pytest.raises(InputError, match="no sentence 8"):
        store.sheets.line(number, 7)


def test_another_strength_makes_old_work_void(store: Store, project: int) -> None:
    sheet = store.sheets.create(project, "x", [("a", None)], SYSTEMS[:2], texts={0: ["甲"], 1: ["乙"]})
    assert store.sheets.pending(sheet.comparison_id, 5) == []
    store.sheets.update(sheet.comparison_id, figures={"text": {}}, title="  named ")
    turned = store.sheets.set_strength(sheet.comparison_id, 1, 0.25)
    assert turned.systems[1]["strength"] == 0.25
    assert turned.figures == {}
    assert turned.title == "named"
    (line,) = store.sheets.pending(sheet.comparison_id, 5)
    assert line.texts == ["甲", None]
    late = [filled(line, ["甲", "old"], 1.0)]
    assert not store.sheets.fill(sheet.comparison_id, sheet.revision, late)
    assert store.sheets.fill(sheet.comparison_id, turned.revision, late)


def test_what_other_readers_see_of_a_sheet(store: Store, project: int) -> None:
    texts = {0: ["甲"], 1: ["乙"], 2: ["丙"]}
    sheet = store.sheets.create(project, "x", [("a", "r")], SYSTEMS, texts=texts)
    store.sheets.mirror(sheet.comparison_id)
    (row,) = store.comparisons.get(sheet.comparison_id).rows
    assert row["source"] == "a"
    assert row["reference"] == "r"
    assert (row["vanilla"], row["customized"], row["plugin"], row["strength"]) == ("甲", "乙", "Lu Xun", 0.8)
    assert row["others"][0]["customized"] == "丙"


def test_a_comparison_of_old_opens_as_a_sheet(store: Store, project: int, store_url: str) -> None:
    common = {"plugin_id": 1, "plugin": "Mine", "method": "knn", "strength": 0.5}
    rows = [
        {"source": "a", "vanilla": "甲", "customized": "乙", **common},
        {"source": "b", "vanilla": "丁", "customized": "丁", **common},
    ]
    comparison = store.comparisons.create(project, "old", rows)
    alone = store.comparisons.create(project, "base", [{"source": "a", "vanilla": "甲", "customized": None}])
    again = Store(store_url)
    sheet = again.sheets.get(comparison.id)
    assert [system["name"] for system in sheet.systems] == ["vanilla", "Mine"]
    assert sheet.systems[1]["strength"] == 0.5
    assert again.sheets.count(comparison.id) == (2, 1)
    assert again.sheets.get(comparison.id) == sheet
    assert len(again.sheets.get(alone.id).systems) == 1
    assert [title for _, title, _ in again.sheets.titles(project)] == ["base", "old"]
    again.comparisons.delete(comparison.id)
    with pytest.raises(InputError, match="There is no comparison"):
        again.sheets.get(comparison.id)
    assert list(again.sheets.lines(comparison.id)) == []


def test_all_lines_are_read_in_parts_in_their_order(store: Store, project: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ComparisonTables._lines.__kwdefaults__, "limit", 3)
    sheet = store.sheets.create(project, "x", [(f"line {n}", None) for n in range(8)], SYSTEMS[:1])
    assert [line.place for line in store.sheets.lines(sheet.comparison_id)] == list(range(8))
