"""The speed table: its rows run in small, its ratios are of the same round, and its file is made by the command alone."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from tests.bases import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from measures.report import write_results
from measures.row import Row, machine, table
from measures.rows import ROWS
from measures.timing import interleaved


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_systems_take_turns_and_a_ratio_is_of_processor_time() -> None:
    order: list[str] = []

    def system(name: str, seconds: float) -> None:
        order.append(name)
        spin(seconds)

    clock = interleaved({"a": lambda: system("a", 0.01), "b": lambda: system("b", 0.03)}, rounds=3)
    assert order == ["a", "b"] * 4, "one round before the counted ones"
    assert 2 < clock.ratio("b", "a") < 4.5
    assert clock.to_mapping()["a"]["rounds"] == 3


def test_a_row_knows_whether_its_limit_is_met() -> None:
    assert Row("x", "x", 1.1, 1.05).met is False
    assert Row("x", "x", 12.0, 10.0, at_least=True).met is True
    assert Row("x", "x", 12.0).met is None
    text = table([Row("x", "how long", 1.1, 1.05), Row("x", "how much", 770, 2821, unit="MiB")])
    assert "| how long | ≤ 1.05x | **1.10x** |" in text
    assert "| how much | ≤ 2821 MiB | **770 MiB** |" in text


def test_results_replace_their_own_part_of_the_file_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "RESULTS.md"
    write_results(file, [machine(3)], [Row("x", "first", 1.0)])
    file.write_text(file.read_text(encoding="utf-8") + "\n## Another table\n", encoding="utf-8")
    write_results(file, [machine(3)], [Row("x", "second", 1.0)])
    text = file.read_text(encoding="utf-8")
    assert "second" in text
    assert "first" not in text
    assert "## Another table" in text


@pytest.mark.parametrize("name", ["memory_vs_residual", "training_step"])
@pytest.mark.slow
def test_rows_run_in_small(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from speed import main

    file = tmp_path / "speed.json"
    assert main(["--small", "--rows", name, "--json", str(file)]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert rows
    assert all(row["name"] == name and row["value"] > 0 for row in rows)
    if name == "training_step":
        assert all((row["figures"]["encoder_runs"], row["figures"]["frozen_gradients"]) == (1, 0) for row in rows)
    else:
        assert all("outputs the same" in row["note"] for row in rows)
    assert "| measure |" in capsys.readouterr().out


def test_an_unknown_row_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    from speed import main

    assert main(["--rows", "memory_vs_nothing"]) == 2
    assert "There is no row memory_vs_nothing." in capsys.readouterr().err
    assert "memory_vs_residual" in ROWS
