"""Stamps of a folder that several runs share: each way of doing a step has a place, and changed samples make room."""

from __future__ import annotations

from pathlib import Path

from engine.core.step_cache import SHARED, StepCache


def done(stamps: StepCache, step: str, stamp: str) -> Path:
    home = stamps.home(step, stamp)
    (home.folder / f"{step}.jsonl").write_text(stamp, encoding="utf-8")
    home.set(step, stamp)
    return home.folder


def test_the_first_way_lies_in_the_folder_and_another_one_apart(tmp_path: Path) -> None:
    stamps = StepCache(tmp_path, shared=True)
    stamps.set("samples", "s1")
    assert done(stamps, "pairs", "a") == tmp_path
    other = done(stamps, "pairs", "b")
    assert other.parent == tmp_path / SHARED
    assert (tmp_path / "pairs.jsonl").read_text(encoding="utf-8") == "a"
    again = StepCache(tmp_path, shared=True)  # as a later process finds them
    assert again.home("pairs", "a").holds("pairs", "a", tmp_path / "pairs.jsonl")
    assert again.home("pairs", "b").holds("pairs", "b", other / "pairs.jsonl")
    assert again.used == {"pairs": "b"}
    assert again.made == set()
    assert stamps.made == {"samples", "pairs"}


def test_what_is_of_samples_that_changed_is_made_anew_in_its_place(tmp_path: Path) -> None:
    stamps = StepCache(tmp_path, shared=True)
    stamps.set("samples", "s1")
    done(stamps, "pairs", "a")
    old = done(stamps, "pairs", "b")
    stamps.begin("samples")
    stamps.set("samples", "s2")
    assert done(stamps, "pairs", "a of s2") == tmp_path
    assert done(stamps, "pairs", "b of s2") != old
    assert not old.exists()


def test_a_folder_of_one_run_keeps_everything_in_it(tmp_path: Path) -> None:
    stamps = StepCache(tmp_path)
    stamps.set("samples", "s1")
    assert done(stamps, "pairs", "a") == done(stamps, "pairs", "b") == tmp_path
