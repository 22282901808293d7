"""One model for many callers: common batches, turns, errors and withdrawals that reach only whom they concern."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from engine.errors import InputError, MissingError, OptionError
from engine.serving import MOST_WAITING, PART, Batcher, Busy, Models, Work
from engine.settings import load_settings

ENGLISH = ["The rain stopped.", "He said nothing.", "", "The road is long.", "Nobody came to the door."]


class Held(Batcher):
    """Its batches wait until they are let go, so that a test decides who comes meanwhile; texts come back in capitals."""

    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.go = threading.Semaphore(0)
        self.seen: list[tuple[Work, list[str]]] = []
        self.entered = threading.Semaphore(0)

    def _translate(self, work: Work, texts: list[str]) -> list[str]:
        self.entered.release()
        assert self.go.acquire(timeout=10)
        self.seen.append((work, texts))
        if work.base == "broken":
            raise MissingError("There is no base broken.")
        return [text.upper() for text in texts]


A, B = Work("a", "en", "zh"), Work("b", "en", "zh")


def test_texts_are_translated_as_by_the_base_itself(tiny: Path, base: Any, bundle: Path) -> None:
    from engine.plugins import Plugin

    batcher = Batcher(Models(load_settings()))
    vanilla, custom = Work.of(str(tiny), "en", "zh"), Work.of(str(tiny), "en", "zh", str(bundle))
    found = [batcher.submit(work, ENGLISH) for work in (vanilla, custom, Work.of(str(tiny), "zh", "en"))]
    assert found[0].result(60) == base.translate(ENGLISH)
    plugin = Plugin.load(bundle, base)
    from engine.decoding.options import Decoding

    decoding = Decoding.from_mapping(plugin.card.get("decoding", {}))
    assert found[1].result(60) == base.translate(ENGLISH, plugin, decoding=decoding)
    assert len(found[2].result(60)) == len(ENGLISH)
    assert len(batcher.models._bases) == 1, "both directions are one model"


def test_those_who_come_meanwhile_share_a_batch_and_take_turns() -> None:
    batcher = Held()
    first = batcher.submit(A, ["one"])
    assert batcher.entered.acquire(timeout=10)
    long = batcher.submit(A, [f"l{i}" for i in range(3 * PART)])
    short = batcher.submit(A, ["s0", "s1"])
    other = batcher.submit(B, ["o"])
    for _ in range(8):
        batcher.go.release()
    assert first.result(10) == ["ONE"]
    assert short.result(10) == ["S0", "S1"]
    assert other.result(10) == ["O"]
    assert long.result(10) == [f"L{i}" for i in range(3 * PART)]
    assert {"l0", "s0", "s1"} <= set(batcher.seen[1][1])
    assert batcher.seen[2] == (B, ["o"]), "the long request waited for the others"
    assert all(len(texts) <= PART for _, texts in batcher.seen)


def test_an_error_reaches_those_of_its_batch_alone() -> None:
    batcher = Held()
    bad, good = batcher.submit(Work("broken", "en", "zh"), ["x"]), batcher.submit(A, ["y"])
    batcher.go.release(2)
    with pytest.raises(MissingError, match="no base broken"):
        bad.result(10)
    assert good.result(10) == ["Y"]


def test_what_was_withdrawn_is_not_translated() -> None:
    batcher = Held()
    first = batcher.submit(A, ["x"])
    assert batcher.entered.acquire(timeout=10)
    gone, kept = batcher.submit(A, ["gone"]), batcher.submit(A, ["kept"])
    assert gone.cancel()
    batcher.go.release(2)
    assert first.result(10) == ["X"]
    assert kept.result(10) == ["KEPT"]
    assert all("gone" not in texts for _, texts in batcher.seen)
    assert batcher._characters == 0


def test_too_much_at_once_is_turned_away_but_one_large_request_is_not() -> None:
    batcher = Held()
    large = batcher.submit(A, ["x" * (MOST_WAITING + 1)])
    with pytest.raises(Busy, match="Try again"):
        batcher.submit(A, ["y"])
    batcher.go.release(2)
    assert len(large.result(10)[0]) == MOST_WAITING + 1
    assert batcher.submit(A, ["y"]).result(10) == ["Y"]
    assert batcher.submit(A, []).result(0) == []


def test_settings_are_checked_when_asked() -> None:
    with pytest.raises(OptionError, match="beam"):
        Work.of("a", "en", "zh", decoding={"beam": 0})
    assert Work.of("a", "en", "zh", "p.zip", 0.0) == Work.of("a", "en", "zh"), "strength 0 is the base"


def test_bases_make_room(tiny: Path) -> None:
    from tests.bases import EN_ZH

    models = Models(load_settings().replace(loaded_bases=1))
    first = models.base(str(tiny), "en", "zh")
    assert models.base(str(tiny), "en", "zh") is first
    models.base(str(EN_ZH), "en", "zh")
    assert list(models._bases) == [str(EN_ZH)]
    with pytest.raises(InputError, match="no longer there"):
        models.plugin("/nowhere/p.zip", first)
