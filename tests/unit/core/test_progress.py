"""What a user is told about how long something will take."""

from __future__ import annotations

import pytest

from engine.core.progress import Progress


class Shown(Progress):
    """Keeps the seconds left that were shown last."""

    eta: float | None = None

    def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
        self.eta = eta


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("engine.core.progress.time.monotonic", lambda: now[0])
    return now


def test_seconds_left_follow_the_pace(clock: list[float]) -> None:
    progress = Shown()
    progress.begin("Work")
    progress.advance(0, 10)
    assert progress.eta is None
    clock[0] += 30
    progress.advance(1, 10)
    assert progress.eta == pytest.approx(270)


def test_what_an_earlier_run_did_is_not_counted(clock: list[float]) -> None:
    progress = Shown()
    progress.begin("Training")
    clock[0] += 5
    progress.advance(900, 1000)
    assert progress.eta is None, "900 units in 5 s would promise the end at once"
    clock[0] += 60
    progress.advance(910, 1000)
    assert progress.eta == pytest.approx(540)


def test_seconds_left_end_at_the_time_limit(clock: list[float]) -> None:
    progress = Shown()
    progress.begin("Training")
    progress.ends_within(180)
    progress.advance(0, 200)
    clock[0] += 60
    progress.advance(10, 200)
    assert progress.eta == pytest.approx(120), "not 19 minutes"
    progress.begin("Training")
    progress.advance(0, 200)
    clock[0] += 60
    progress.advance(10, 200)
    assert progress.eta == pytest.approx(1140), "the next step has its own time"
