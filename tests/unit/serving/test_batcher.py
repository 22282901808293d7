"""One model for many callers: common batches, turns, errors and withdrawals that reach only whom they concern."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from engine.core.settings import load_settings
from engine.decoding.translate import translate
from engine.errors import Cancelled, InputError, MissingError, OptionError
from engine.serving.batcher import LONGEST, MOST_EACH, MOST_WAITING, MOST_WEIGHT, PART, Batcher, TranslationSpec
from engine.serving.model_cache import ModelCache
from engine.serving.turns import DeadlineError, OverloadedError, Ticket, Turns, weight
from tests.held_batcher import A, B
from tests.held_batcher import HeldBatcher as Held
from tests.waiting import until

ENGLISH = ["The rain stopped.", "He said nothing.", "", "The road is long.", "Nobody came to the door."]


@pytest.fixture(scope="module")
def mixable(request_for: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin that tunes none of the base's weights, so that it can share a batch with others."""
    from engine.workflows.customize.pipeline import customize

    folder = tmp_path_factory.mktemp("mixable")
    request = request_for(folder / "style.zip")
    options = {**request.method_options, "fine_tune": "none"}
    customize(request.replace(method_options=options), folder / "workspace")
    return folder / "style.zip"


def test_texts_are_translated_as_by_the_base_itself(tiny: Path, base: Any, bundle: Path) -> None:
    from engine.plugins import Plugin

    batcher = Batcher(ModelCache(load_settings()))
    vanilla, custom = TranslationSpec.of(str(tiny), "en", "zh"), TranslationSpec.of(str(tiny), "en", "zh", str(bundle))
    results = [batcher.submit(work, ENGLISH) for work in (vanilla, custom, TranslationSpec.of(str(tiny), "zh", "en"))]
    assert results[0].result(300) == translate(base, ENGLISH)
    plugin = Plugin.load(bundle, base)
    from engine.base.decoding_options import Decoding

    decoding = Decoding.from_mapping(plugin.card.get("decoding", {}))
    assert results[1].result(300) == translate(base, ENGLISH, plugin, decoding=decoding)
    assert len(results[2].result(300)) == len(ENGLISH)
    assert len(batcher.models._bases) == 1, "both directions are one model"


def test_those_who_come_meanwhile_share_a_batch_and_take_turns() -> None:
    batcher = Held()
    first = batcher.submit(A, ["one"])
    assert batcher.entered.acquire(timeout=120)
    long = batcher.submit(A, [f"l{i}" for i in range(3 * PART)])
    short = batcher.submit(A, ["s0", "s1"])
    other = batcher.submit(B, ["o"])
    for _ in range(8):
        batcher.go.release()
    assert first.result(300) == ["ONE"]
    assert short.result(300) == ["S0", "S1"]
    assert other.result(300) == ["O"]
    assert long.result(300) == [f"L{i}" for i in range(3 * PART)]
    assert {"l0", "s0", "s1"} <= set(batcher.seen[1][1])
    assert batcher.seen[2] == (B, ["o"]), "the long request waited for the others"
    assert all(len(texts) <= PART for _, texts in batcher.seen)


def test_an_error_reaches_those_of_its_batch_alone() -> None:
    batcher = Held()
    bad, good = batcher.submit(TranslationSpec("broken", "en", "zh"), ["x"]), batcher.submit(A, ["y"])
    batcher.go.release(2)
    with pytest.raises(MissingError, match="no base broken"):
        bad.result(300)
    assert good.result(300) == ["Y"]


def test_different_plugins_share_a_batch_where_they_can_and_no_more_than_fit_into_memory() -> None:
    works = [TranslationSpec("a", "en", "zh", plugin) for plugin in ("", "p", "q", "r")]
    alone = TranslationSpec("a", "en", "zh", "alone")
    batcher = Held(works, loaded_plugins=3)
    first = batcher.submit(alone, ["x"])
    assert batcher.entered.acquire(timeout=120)
    results = [batcher.submit(work, [f"{work.plugin}{i}" for i in range(2)]) for work in [*works, alone, works[1]]]
    batcher.go.release(9)
    assert first.result(300) == ["X"]
    assert [future.result(300) for future in results] == [
        ["0", "1"], ["P0", "P1"], ["Q0", "Q1"], ["R0", "R1"], ["ALONE0", "ALONE1"], ["P0", "P1"],
    ]  # fmt: skip
    assert [texts for _, texts in batcher.seen] == [
        ["x"], ["0", "1", "p0", "p1", "q0", "q1", "p0", "p1"], ["r0", "r1"], ["alone0", "alone1"],
    ]  # fmt: skip


def test_a_broken_plugin_in_a_common_batch_is_an_error_of_its_own_requests() -> None:
    works = [TranslationSpec("a", "en", "zh", plugin) for plugin in ("p", "broken", "q")]
    batcher = Held(works)
    first = batcher.submit(A, ["x"])
    assert batcher.entered.acquire(timeout=120)
    results = [batcher.submit(work, ["y", "z"]) for work in works]
    batcher.go.release(9)
    assert first.result(300) == ["X"]
    with pytest.raises(MissingError, match="no base broken"):
        results[1].result(300)
    assert [results[0].result(300), results[2].result(300)] == [["Y", "Z"]] * 2
    assert not batcher._backlog
    seen = len(batcher.seen)
    first = batcher.submit(A, ["x"])
    assert batcher.entered.acquire(timeout=120)
    results = [batcher.submit(work, ["y", "z"]) for work in works]
    batcher.go.release(9)
    assert results[2].result(300) == ["Y", "Z"]
    with pytest.raises(MissingError):
        results[1].result(300)
    assert first.result(300) == ["X"]
    assert len(batcher.seen) == seen + 3, "it spoils no common batch again"


def test_a_plugin_that_works_again_shares_batches_again() -> None:
    works = [TranslationSpec("a", "en", "zh", plugin) for plugin in ("p", "broken", "q")]
    batcher = Held(works)
    for broken in ("broken", "nothing any more"):
        batcher.broken = broken
        future = batcher.submit(works[1], ["y"])
        batcher.go.release()
        assert (future.exception(10) is None) == (broken != "broken")
    for _ in range(2):
        assert batcher.entered.acquire(timeout=120)
    first = batcher.submit(A, ["x"])
    assert batcher.entered.acquire(timeout=120)
    results = [batcher.submit(work, ["y"]) for work in works]
    batcher.go.release(2)
    assert [future.result(300) for future in (first, *results)] == [["X"], ["Y"], ["Y"], ["Y"]]
    assert batcher.seen[-1][1] == ["y", "y", "y"]


def test_a_batch_waits_for_no_others_plugin_and_follows_a_bundle_that_is_replaced(
    tiny: Path, base: Any, mixable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.plugins import Plugin

    files = [Path(shutil.copy(mixable, tmp_path / f"{name}.zip")) for name in "abc"]
    models = ModelCache(load_settings().replace(loaded_plugins=2))
    batcher = Batcher(models)
    works = [TranslationSpec.of(str(tiny), "en", "zh", str(file)) for file in files]
    assert [batcher._batch_key(work) for work in works] == [None] * 3, "nothing is in memory"
    for work in works[:2]:
        batcher.submit(work, ENGLISH).result(300)
    assert batcher._batch_key(works[0]) == batcher._batch_key(works[1]) is not None
    assert batcher._batch_key(works[2]) is None
    loads: list[str] = []
    real = Plugin.load.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        Plugin, "load", classmethod(lambda cls, path, *args, **named: loads.append(path) or real(cls, path, *args, **named))
    )
    loaded = models.base(str(tiny), "en", "zh")
    assert len(models.plugins([str(files[2]), "", str(files[0])], loaded)) == 3
    assert loads == [str(files[2])], "the one in memory was not pushed out by the other"
    os.utime(files[0], (1, 1))
    assert batcher._batch_key(works[0]) is None, "another file lies there now"


def test_other_work_with_the_models_takes_its_turn() -> None:
    batcher = Held()
    first = batcher.submit(A, ["x"], Ticket("third"))
    assert batcher.entered.acquire(timeout=300)  # busy: what comes now waits
    order: list[str] = []

    def call(name: str) -> str:
        order.append(name)
        return name

    greedy = [batcher.run(lambda name=name: call(name), "a sentence", Ticket("greedy")) for name in ("g1", "g2", "g3")]  # type: ignore[misc]
    modest = batcher.run(lambda: call("m"), "a sentence", Ticket("modest"))
    broken = batcher.run(lambda: 1 / 0, "a sentence", Ticket("broken"))
    gone = Ticket("gone")
    left = batcher.run(lambda: call("left"), "a sentence", gone)
    gone.leave()
    batcher.go.release()
    assert first.result(300) == ["X"]
    assert [future.result(300) for future in greedy] == [["g1"], ["g2"], ["g3"]]
    assert modest.result(300) == ["m"]
    assert order.index("m") < order.index("g2"), "a client with many requests has one turn at a time"
    with pytest.raises(ZeroDivisionError):
        broken.result(300)
    with pytest.raises(Cancelled):
        left.result(300)
    assert "left" not in order


def test_others_are_translated_while_a_plugin_is_loaded(
    tiny: Path, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.errors import BundleError
    from engine.plugins import Plugin

    batcher = Batcher(ModelCache(load_settings()))
    plain = TranslationSpec.of(str(tiny), "en", "zh")
    batcher.submit(plain, ENGLISH).result(300)
    entered, go = threading.Event(), threading.Event()
    real = Plugin.load.__func__  # type: ignore[attr-defined]

    def slow(cls: Any, *args: Any, **named: Any) -> Any:
        entered.set()
        assert go.wait(300)
        return real(cls, *args, **named)

    monkeypatch.setattr(Plugin, "load", classmethod(slow))
    broken = tmp_path / "broken.zip"
    broken.write_bytes(bundle.read_bytes()[:1000])
    works = [TranslationSpec.of(str(tiny), "en", "zh", str(file)) for file in (bundle, broken)]
    waiting = [batcher.submit(work, ENGLISH) for work in works]
    assert entered.wait(300)
    assert len(batcher.submit(plain, ["He said nothing."]).result(300)) == 1
    assert not any(future.done() for future in waiting)
    batcher.close()  # what waits is still translated
    go.set()
    assert len(waiting[0].result(300)) == len(ENGLISH)
    with pytest.raises(BundleError):
        waiting[1].result(300)
    for work in works:  # again: one is in memory, one has failed before
        assert not batcher._loader.loading(work)


def test_plugins_that_work_in_the_layers_are_mixed_with_the_base_and_each_other(
    tiny: Path, base: Any, mixable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.base.decoding_options import Decoding
    from engine.plugins import Plugin
    from engine.plugins.mixed_batch import MixedBatch

    other = Path(shutil.copy(mixable, tmp_path / "other.zip"))
    decoding = Decoding.from_mapping(Plugin.load(mixable, base).card.get("decoding", {}))
    mapping = decoding.to_mapping()
    works = [TranslationSpec.of(str(tiny), "en", "zh", plugin, decoding=mapping) for plugin in ("", str(mixable), str(other))]
    batcher = Batcher(ModelCache(load_settings()))
    alone = [batcher.submit(work, ENGLISH).result(300) for work in works]
    mixed: list[int] = []
    real = MixedBatch.arrange
    monkeypatch.setattr(MixedBatch, "arrange", lambda self, texts: mixed.append(len(self.plugins)) or real(self, texts))
    with batcher._change:  # nothing is taken out before all are there
        together = [batcher.submit(work, ENGLISH) for work in works]
    assert [future.result(300) for future in together] == alone
    assert mixed
    assert set(mixed) == {3}


def test_what_was_withdrawn_is_not_translated() -> None:
    batcher = Held()
    first = batcher.submit(A, ["x"])
    assert batcher.entered.acquire(timeout=120)
    gone, selected = batcher.submit(A, ["gone"]), batcher.submit(A, ["kept"])
    assert gone.cancel()
    batcher.go.release(2)
    assert first.result(300) == ["X"]
    assert selected.result(300) == ["KEPT"]
    assert all("gone" not in texts for _, texts in batcher.seen)
    assert not batcher._backlog


def test_too_much_at_once_is_turned_away_but_one_large_request_is_not() -> None:
    batcher = Held()
    large = batcher.submit(A, ["x" * (MOST_WAITING + 1)], Ticket("large"))
    with pytest.raises(OverloadedError, match="Try again"):
        batcher.submit(A, ["y"], Ticket("large"))
    others = [batcher.submit(A, ["y" * MOST_EACH], Ticket(str(i))) for i in range(MOST_WAITING // MOST_EACH - 1)]
    with pytest.raises(OverloadedError):
        batcher.submit(A, ["y"], Ticket("one more"))
    batcher.go.release(10_000)
    assert len(large.result(300)[0]) == MOST_WAITING + 1
    assert all(future.result(300) for future in others)
    assert batcher.submit(A, ["y"]).result(300) == ["Y"]
    assert batcher.submit(A, []).result(0) == []


def test_settings_are_checked_when_asked() -> None:
    with pytest.raises(OptionError, match="beam"):
        TranslationSpec.of("a", "en", "zh", decoding={"beam": 0})
    assert TranslationSpec.of("a", "en", "zh", "p.zip", 0.0) == TranslationSpec.of("a", "en", "zh"), "strength 0 is the base"


def test_bases_make_room(tiny: Path) -> None:
    from tests.bases import EN_ZH

    models = ModelCache(load_settings().replace(loaded_bases=1))
    first = models.base(str(tiny), "en", "zh")
    assert models.base(str(tiny), "en", "zh") is first
    models.base(str(EN_ZH), "en", "zh")
    assert list(models._bases) == [str(EN_ZH)]
    with pytest.raises(InputError, match="no longer there"):
        models.plugin("/nowhere/p.zip", first)


def test_a_setting_of_threads_holds_in_the_thread_that_translates(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr("engine.core.cores.usable_cores", lambda: 8)

    before = torch.get_num_threads()
    result = {}

    def asked(busy: bool) -> None:
        models = ModelCache(load_settings().replace(threads=3), lambda: busy)
        result[busy] = (models.take_cores(), torch.get_num_threads())

    for busy in (False, True):  # in a thread of its own: a new thread has torch's number, whatever others set
        thread = threading.Thread(target=asked, args=(busy,))
        thread.start()
        thread.join()
    assert result == {False: (3, 3), True: (1, 1)}
    assert torch.get_num_threads() == before


def test_a_translation_is_the_same_beside_a_job(tiny: Path) -> None:
    at_work = [True]
    batcher = Batcher(ModelCache(load_settings(), lambda: at_work[0]))
    work = TranslationSpec.of(str(tiny), "en", "zh")
    beside = batcher.submit(work, ["The rain stopped."]).result(300)
    at_work[0] = False
    assert batcher.submit(work, ["The rain stopped."]).result(300) == beside


def held_at_work() -> tuple[Held, Any]:
    """A batcher whose first batch is at work, so that what comes now waits."""
    batcher = Held()
    first = batcher.submit(A, ["first"], Ticket("nobody"))
    assert batcher.entered.acquire(timeout=120)
    return batcher, first


def test_clients_take_turns_however_many_requests_one_of_them_sends() -> None:
    batcher, _ = held_at_work()
    many = [batcher.submit(A, [f"m{i}"], Ticket("many")) for i in range(4 * PART)]
    single = batcher.submit(A, ["one"], Ticket("one"))
    batcher.go.release(2)
    assert single.result(300) == ["ONE"]
    assert "one" in batcher.seen[1][1], "it is in the first batch after it came"
    batcher.go.release(9)
    assert [future.result(300) for future in many] == [[f"M{i}"] for i in range(4 * PART)]


def test_a_client_with_long_texts_gets_no_more_of_the_work_than_one_with_short_ones() -> None:
    batcher, _ = held_at_work()
    long = batcher.submit(B, ["w " * 20_000], Ticket("long"))
    short = [batcher.submit(A, [f"s{i} " * 20], Ticket("short")) for i in range(200)]
    batcher.go.release(10_000)
    assert [future.result(300) for future in short]
    assert long.result(300)
    work = {"a": 0, "b": 0}
    for spec, texts in batcher.seen[1:]:
        assert sum(map(weight, texts)) <= MOST_WEIGHT
        if len(work) == 2 and all(future.done() for future in short) and "s199 " in "".join(texts):
            break
        work[spec.base] += sum(map(weight, texts))
    assert abs(work["a"] - work["b"]) <= 2 * MOST_WEIGHT


def test_a_client_with_much_to_do_fills_no_batch_that_others_wait_for() -> None:
    batcher, _ = held_at_work()
    many = batcher.submit(A, [f"m{i}" for i in range(20 * PART)], Ticket("many"))
    few = [batcher.submit(A, [f"f{i}"], Ticket(f"f{i}")) for i in range(3)]
    batcher.go.release(2)
    assert all(future.result(300) for future in few)
    assert len(batcher.seen[1][1]) == 4, "one of each, though there was room for more of one"
    batcher.go.release(1000)
    assert len(many.result(300)) == 20 * PART
    sizes = [sum(map(weight, texts)) for _, texts in batcher.seen[2:]]
    assert max(sizes[:4]) <= batcher.small_weight, "the others may come again at once"
    assert max(sizes) > batcher.small_weight, "they did not"


def test_a_short_request_of_the_same_client_waits_for_little_of_a_long_one() -> None:
    batcher, _ = held_at_work()
    long = [batcher.submit(A, [f"l{k} {i}" for i in range(2 * PART)], Ticket("same")) for k in range(2)]
    short = batcher.submit(A, ["short"], Ticket("same"))
    batcher.go.release(2)
    assert short.result(300) == ["SHORT"]
    assert sorted(batcher.seen[1][1]) == ["l0 0", "l1 0", "short"]
    batcher.go.release(100)
    assert [len(future.result(300)) for future in long] == [2 * PART] * 2


def test_a_long_text_is_cut_and_put_together_again_and_spoils_no_batch_of_short_ones() -> None:
    batcher, first = held_at_work()
    sentence, rest = "The rain stopped in the evening. ", "x" * (3 * LONGEST)
    long = batcher.submit(A, [sentence * 100 + rest, "short"], Ticket("long"))
    single = batcher.submit(A, ["one"], Ticket("one"))
    batcher.go.release(100)
    assert single.result(300) == ["ONE"]
    text, short = long.result(300)
    assert "".join(text.split()) == "".join((sentence * 100 + rest).upper().split())
    assert short == "SHORT"
    assert all(weight(piece) <= LONGEST for _, texts in batcher.seen for piece in texts)
    assert first.result(300) == ["FIRST"]


def test_what_is_not_waited_for_any_more_or_took_too_long_is_not_translated() -> None:
    batcher, first = held_at_work()
    gone, late, stays = Ticket("gone"), Ticket("late", 600), Ticket("stays", 600)
    futures = [batcher.submit(A, [f"{ticket.client}{i}" for i in range(2 * PART)], ticket) for ticket in (gone, late, stays)]
    batcher.go.release()
    assert first.result(300)
    assert batcher.entered.acquire(timeout=120)  # parts of all three are in this batch
    gone.leave()
    late._end = 0.0
    batcher.go.release(20)
    with pytest.raises(Cancelled, match="has disconnected"):
        futures[0].result(300)
    with pytest.raises(DeadlineError, match="longer than 600 s"):
        futures[1].result(300)
    assert len(futures[2].result(300)) == 2 * PART
    assert not any(text.startswith(("gone", "late")) for _, texts in batcher.seen[2:] for text in texts)
    assert not batcher._backlog
    with pytest.raises(Cancelled):
        batcher.submit(A, ["more"], gone)


def test_nobody_saves_up_turns_or_is_rid_of_what_they_had() -> None:
    turns = Turns()
    for client in ("a", "b"):
        turns.give(client, 10)
    turns.next("a")
    turns.give("a", 100)
    turns.next("b")
    turns.give("b", 50)
    assert turns.had("new") == 10, "where the others are, not at the beginning"
    assert turns.had("new") < turns.had("b") < turns.had("a")
    for i in range(5000):
        turns.next(str(i))
        turns.give(str(i), 0)
    assert len(turns._had) < 2000
    assert turns.had("a") == 110


def test_copies_elsewhere_are_asked_in_the_same_turns() -> None:
    from engine.jobs.backends.ray_serve import ASKING, PIECE, ReplicaBatcher

    batcher = ReplicaBatcher(ModelCache(load_settings()))
    requests: list[list[str]] = []
    go = threading.Semaphore(0)

    def ask(work: TranslationSpec, texts: list[str]) -> list[str]:
        requests.append(texts)
        assert go.acquire(timeout=120)
        if "broken" in texts:
            raise MissingError("There is no base broken.")
        return [text.upper() for text in texts]

    batcher._ask = ask  # type: ignore[method-assign]
    many = [f"m{i}" for i in range(PIECE * (ASKING + 8))]
    long = batcher.submit(A, many, Ticket("many"))
    until(lambda: len(requests) == ASKING)
    single = batcher.submit(A, ["one"], Ticket("one"))
    bad = batcher.submit(B, ["broken"], Ticket("bad"))
    go.release(len(many))
    assert single.result(300) == ["ONE"]
    assert long.result(300) == [text.upper() for text in many]
    with pytest.raises(MissingError):
        bad.result(300)
    assert ["broken"] in requests[ASKING : ASKING + 3]
    assert any("one" in texts for texts in requests[ASKING : ASKING + 3])
    batcher.close()
