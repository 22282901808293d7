"""`tailormt bench methods`: one table over small texts of our own, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.errors import Cancelled, InputError, OptionError
from engine.workflows.benchmark.methods import MethodBench, bench_methods, choice, default_systems, table_text
from engine.workflows.benchmark.tasks import load_task
from tests.bases import SENTENCES


@pytest.mark.usefixtures("benches_in_this_process")
def test_a_table_of_all_that_was_asked(data: Path, tiny: Path, home: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = dict(base=str(tiny), tasks=["luxun"], systems=["extreme"], sentences=40, lines=4)
    rows = bench_methods(MethodBench(data, tmp_path / "out", **options))
    assert [row["system"] for row in rows] == ["vanilla", "extreme"]
    assert all("error" not in row for row in rows), rows
    assert all({"test", "general", "test_seconds"} <= set(row) for row in rows)
    assert rows[1]["parameters"] > 0
    assert rows[1]["bytes"] > 0
    table = table_text(rows)
    assert table.count("\n| Lu Xun |") == 2
    assert "| vanilla |  |" in table
    assert "| extreme | quick |" in table
    again = bench_methods(MethodBench(data, tmp_path / "out", **options))
    assert again == json.loads(json.dumps(rows)), "finished cells are kept"
    first, second = (tmp_path / "out" / "luxun" / f"{system}.workspace" for system in ("extreme", "lhuc"))
    selected = first / "pairs.jsonl"
    selected.write_text(selected.read_text(encoding="utf-8").replace('"source": "', '"source": "Kept. ', 1), encoding="utf-8")
    more = bench_methods(MethodBench(data, tmp_path / "out", **{**options, "systems": ["extreme", "lhuc"]}))
    assert (second / "pairs.jsonl").read_bytes() == selected.read_bytes(), "what extreme made of the samples is handed down"
    times = json.loads((second / "summary.json").read_text(encoding="utf-8"))["seconds"]
    assert more[2]["seconds"] <= times["total"]


def test_a_system_that_fails_is_a_row_with_its_sentence(data: Path, tiny: Path, home: Path, tmp_path: Path) -> None:
    bench = MethodBench(data, tmp_path / "out", base=str(tiny), tasks=["luxun"], systems=["extreme"], sentences=5, lines=2)
    rows = bench_methods(bench)
    assert "at least" in rows[1]["error"]
    assert rows[1]["error"] in table_text(rows)


@pytest.mark.usefixtures("benches_in_this_process")
def test_samples_without_sources_are_refused_where_sources_are_asked_for(
    data: Path, tiny: Path, home: Path, tmp_path: Path
) -> None:
    rows = bench_methods(
        MethodBench(data, tmp_path, base=str(tiny), tasks=["luxun"], systems=["knn"], sentences=5, lines=2, pairs=True)
    )
    assert rows[1]["error"] == "The samples of Lu Xun have no sources."


def test_a_stop_leaves_no_row(data: Path, tiny: Path, home: Path, tmp_path: Path) -> None:
    class Stop(Progress):
        def check(self) -> None:
            raise Cancelled("Stopped.")

        def advance(self, done: float, total: float | None, note: str = "") -> None:
            """The stop comes while a command is at work, not between two."""

    with pytest.raises(Cancelled):
        bench_methods(MethodBench(data, tmp_path / "out", base=str(tiny), tasks=["luxun"], systems=["extreme"]), Stop())
    assert not list((tmp_path / "out").rglob("*.json"))


def test_the_samples_are_the_target_side_and_drawn_by_the_seed(data: Path, tmp_path: Path) -> None:
    _, files = load_task("luxun", data, tmp_path / "a", sentences=10, lines=3, seed=1)
    _, others = load_task("luxun", data, tmp_path / "b", sentences=10, lines=3, seed=2)
    first, second = (f["samples"].read_text(encoding="utf-8") for f in (files, others))
    assert len(first.splitlines()) == 10
    assert first != second
    assert files["test.source"].read_text(encoding="utf-8").splitlines() == [a for a, _ in SENTENCES[:3]]
    assert files["general.target"].read_text(encoding="utf-8").splitlines() == [b for _, b in SENTENCES[:3]]


def test_what_is_not_known_is_a_sentence(data: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no task poetry"):
        bench_methods(MethodBench(data, tmp_path, tasks=["poetry"]))
    with pytest.raises(OptionError, match="no method magic"):
        bench_methods(MethodBench(data, tmp_path, systems=["magic"]))
    with pytest.raises(InputError, match=r"is not there\. Give the folder"):
        load_task("shake", data, tmp_path, sentences=1, lines=1, seed=1)
    assert default_systems()[0] == "vanilla"


def test_a_row_of_auto_names_what_was_chosen() -> None:
    trial = {"method": "lhuc", "knn": False, "bleu": 1.0, "chrf": 1.0, "general_bleu": None, "seconds": 1.0, "chosen": False}
    assert choice([trial, {**trial, "knn": True, "chosen": True}]) == ": lhuc + knn"
    assert choice([]) == ""


def test_the_command(tailormt: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    ran = tailormt("bench", "methods", "--data", data, "-o", tmp_path / "out", "--tasks", "poetry")
    assert ran.code == 2
    assert "no task poetry" in ran.err
