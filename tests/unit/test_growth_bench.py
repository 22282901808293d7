"""The growth table: items run in small, slopes are those of the upper sizes, and the table names what grows worse than linearly."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.bases import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from growth import ITEMS, main, shown, table
from measures.growing import Point, slope
from measures.growth_plot import plot


def points(power: float) -> list[Point]:
    return [Point("jobs", "claimed", 10**n, 1e-4 * (10**n) ** power, 2.0, 5) for n in range(1, 6)]


def test_a_slope_is_that_of_the_upper_sizes() -> None:
    assert slope([1, 10, 100, 1000, 10_000], [5.0, 5.0, 5.0, 50.0, 500.0]) == pytest.approx(1.0)
    assert slope([100, 1000], [1.0, 100.0]) == pytest.approx(2.0)
    assert slope([100], [1.0]) is None


def test_the_table_marks_what_grows_worse_than_linearly() -> None:
    text = table(points(1.0))
    assert "| what | 100 | 1,000 | 10,000 | 100,000 | MiB at the largest | slope |" in text
    assert f"| **{ITEMS['jobs'].title}** | | | | | | |" in text
    assert "| claimed | 10 ms | 100 ms | 1.0 s | 10 s | 2 | 1.00 |" in text
    assert "| **2.00** |" in table(points(2.0))


def test_seconds_are_told_in_two_or_three_digits() -> None:
    assert [shown(seconds) for seconds in (0.0001234, 0.00123, 0.0123, 0.999, 1.234, 12.34, 123.4)] == [
        "0.12 ms", "1.2 ms", "12 ms", "999 ms", "1.2 s", "12 s", "123 s",
    ]  # fmt: skip


def test_a_plot_is_an_svg_with_a_line_for_each_call() -> None:
    picture = ET.fromstring(plot("Jobs & more", [*points(1.0), Point("jobs", "listed", 10, 0.5, None, 1)]))
    tag = "{http://www.w3.org/2000/svg}"
    lines = picture.findall(f"{tag}polyline")
    assert [len((line.get("points") or "").split()) for line in lines] == [5, 1]
    words = [text.text for text in picture.iter(f"{tag}text")]
    assert {"Jobs & more", "claimed", "listed", "10", "100,000", "1 ms", "10 s"} <= set(words)


def test_an_unknown_item_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--items", "jobs,stars"]) == 2
    assert "There is no item stars." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jobs"])  # the others take half a minute each
def test_items_run_in_small(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "growth.json", tmp_path / "page.md"
    page.write_text("# Page\n\nText.\n", encoding="utf-8")
    assert main(["--items", name, "--most", str(ITEMS[name].least), "--json", str(file), "--write", str(page)]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["points"]
    assert rows
    assert all(row["item"] == name and row["seconds"] > 0 and row["size"] == ITEMS[name].least for row in rows)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Page\n\nText.\n")
    assert f"(images/growth/{name}.svg)" in text
    assert (tmp_path / "images" / "growth" / f"{name}.svg").exists()
    assert ITEMS[name].title in capsys.readouterr().out
