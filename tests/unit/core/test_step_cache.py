"""Stamps of a folder that several runs share: each way of doing a step has a place, and changed samples make room."""

from __future__ import annotations

from pathlib import Path

from engine.core.step_cache import SHARED, StepCache


def done(cache: StepCache, step: str, key: str) -> Path:
    variant = cache.variant(step, key)
    (variant.folder / f"{step}.jsonl").write_text(key, encoding="utf-8")
    variant.mark_done(step, key)
    return variant.folder


def test_the_first_way_lies_in_the_folder_and_another_one_apart(tmp_path: Path) -> None:
    cache = StepCache(tmp_path, shared=True)
    cache.mark_done("samples", "s1")
    assert done(cache, "pairs", "a") == tmp_path
    other = done(cache, "pairs", "b")
    assert other.parent == tmp_path / SHARED
    assert (tmp_path / "pairs.jsonl").read_text(encoding="utf-8") == "a"
    again = StepCache(tmp_path, shared=True)  # as a later process finds them
    assert again.variant("pairs", "a").is_fresh("pairs", "a", tmp_path / "pairs.jsonl")
    assert again.variant("pairs", "b").is_fresh("pairs", "b", other / "pairs.jsonl")
    assert again.used == {"pairs": "b"}
    assert again.made == set()
    assert cache.made == {"samples", "pairs"}


def test_what_is_of_samples_that_changed_is_made_anew_in_its_place(tmp_path: Path) -> None:
    cache = StepCache(tmp_path, shared=True)
    cache.mark_done("samples", "s1")
    done(cache, "pairs", "a")
    old = done(cache, "pairs", "b")
    cache.invalidate("samples")
    cache.mark_done("samples", "s2")
    assert done(cache, "pairs", "a of s2") == tmp_path
    assert done(cache, "pairs", "b of s2") != old
    assert not old.exists()


def test_a_folder_of_one_run_keeps_everything_in_it(tmp_path: Path) -> None:
    cache = StepCache(tmp_path)
    cache.mark_done("samples", "s1")
    assert done(cache, "pairs", "a") == done(cache, "pairs", "b") == tmp_path
