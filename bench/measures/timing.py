"""Taking turns: several systems do the same work in every round, and what counts is their ratio within a round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Clock", "Times", "interleaved"]


@dataclass
class Times:
    """Seconds of each counted round, by the clock and of this process's processor time."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def to_mapping(self) -> dict[str, float]:
        return {"wall": statistics.median(self.wall), "cpu": statistics.median(self.cpu), "rounds": len(self.cpu)}


@dataclass
class Clock:
    """The times of all systems of a row."""

    systems: dict[str, Times]
    results: dict[str, Any]

    def ratio(self, name: str, to: str, kind: str = "cpu") -> float:
        """The median over rounds of one system's time by another's in the same round."""
        pairs = zip(getattr(self.systems[name], kind), getattr(self.systems[to], kind), strict=True)
        return statistics.median(a / max(b, 1e-9) for a, b in pairs)

    def to_mapping(self) -> dict[str, dict[str, float]]:
        return {name: times.to_mapping() for name, times in self.systems.items()}


def interleaved(systems: Mapping[str, Callable[[], Any]], rounds: int, warm: bool = True) -> Clock:
    """Each system in turn, `rounds` times; with `warm` a round before them is not counted."""
    times = {name: Times() for name in systems}
    results: dict[str, Any] = {}
    for number in range(-1 if warm else 0, rounds):
        for name, run in systems.items():
            wall, cpu = time.perf_counter(), time.process_time()
            results[name] = run()
            if number >= 0:
                times[name].wall.append(time.perf_counter() - wall)
                times[name].cpu.append(time.process_time() - cpu)
    return Clock(times, results)
