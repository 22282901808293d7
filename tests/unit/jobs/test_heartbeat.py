"""Whoever works is never given up because a clock jumps or the database was away; whoever is dead is, whatever a clock says."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from engine.jobs.heartbeat import CONFIRM_SECONDS, GAP_SECONDS, STALE_SECONDS, HeartbeatMonitor, recent

BEAT = 2.0  # seconds between two heartbeats
LOOK = 5.0  # and between two looks


class Clock:
    """A steady clock, and a wall clock beside it that may be set."""

    def __init__(self) -> None:
        self.steady = 1000.0
        self.off = datetime.timedelta()

    def __call__(self) -> float:
        return self.steady

    @property
    def wall(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC) + self.off


def watched(clock: Clock, pulses: HeartbeatMonitor, seconds: float, beat: datetime.datetime | None) -> bool:
    """Whether it is still taken for alive after so many seconds in which its heartbeat did not change."""
    end = clock.steady + seconds
    alive = pulses.beating("w", beat)
    while clock.steady < end:
        clock.steady += LOOK
        alive = pulses.beating("w", beat)
    return alive


@given(st.lists(st.sampled_from([0, 0, 3600, -3600, 86_400, -86_400, 30, -30]), max_size=40))
def test_a_living_worker_is_never_given_up_however_the_clock_jumps(jumps: list[int]) -> None:
    clock = Clock()
    pulses = HeartbeatMonitor(clock)
    for jump in jumps:
        clock.off += datetime.timedelta(seconds=jump)
        clock.steady += LOOK
        assert pulses.beating("w", clock.wall)


@given(st.sampled_from([0, 3600, -3600, 86_400, -86_400]))
def test_a_dead_worker_is_given_up_whatever_the_clock_said_when_it_died(off: int) -> None:
    clock = Clock()
    pulses = HeartbeatMonitor(clock)
    beat = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=off)
    assert watched(clock, pulses, CONFIRM_SECONDS - LOOK, beat)
    assert not watched(clock, pulses, STALE_SECONDS + LOOK, beat)


def test_one_that_looks_old_is_given_up_sooner_but_not_at_once() -> None:
    clock = Clock()
    pulses = HeartbeatMonitor(clock)
    old = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)
    assert pulses.beating("w", old)
    assert not watched(clock, pulses, CONFIRM_SECONDS, old)


def test_nobody_is_given_up_for_the_time_in_which_the_database_was_away() -> None:
    clock = Clock()
    pulses = HeartbeatMonitor(clock)
    beat = datetime.datetime.now(datetime.UTC)
    assert pulses.beating("w", beat)
    clock.steady += GAP_SECONDS + 60
    assert pulses.beating("w", beat), "the first look after it starts the watch anew"
    clock.steady += LOOK
    assert pulses.beating("w", beat + datetime.timedelta(seconds=BEAT))


def test_what_is_no_longer_there_is_forgotten() -> None:
    clock = Clock()
    pulses = HeartbeatMonitor(clock)
    pulses.beating("a", None)
    pulses.beating("b", None)
    pulses.forget(exclude={"b"})
    assert set(pulses._watched) == {"b"}


def test_a_heartbeat_from_the_future_is_not_of_now() -> None:
    now = datetime.datetime.now(datetime.UTC)
    assert recent(now)
    assert not recent(now + datetime.timedelta(hours=1))
    assert not recent(now - datetime.timedelta(hours=1))
    assert not recent(None)
