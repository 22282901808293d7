"""The state of the page Compare in its address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.core.numerals import whole_number
from studio.components.comparison_table import ORDERS


@dataclass(frozen=True)
class CompareUrl:
    """The address parameters besides the project: comparison, order, first line, and the open word as line.system.start-end."""

    comparison: int = 0
    order: str = "place"
    offset: int = 0
    word: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CompareUrl:
        """Create the state from the address or the hidden field, replacing invalid values by defaults."""

        def whole(name: str) -> int:
            return whole_number(values.get(name)) or 0

        order = str(values.get("order") or "place")
        return cls(whole("comparison"), order if order in ORDERS else "place", whole("offset"), str(values.get("word") or ""))

    @classmethod
    def read(cls, text: str) -> CompareUrl:
        """Create the state from the JSON in the hidden field."""
        try:
            values = json.loads(text or "{}")
        except (ValueError, RecursionError):
            values = {}
        return cls.of(values if isinstance(values, dict) else {})

    def text(self) -> str:
        return json.dumps(asdict(self))

    def at(self) -> tuple[int, int, int, int] | None:
        """The open word as (line, system, start, end); None if there is none or it is invalid."""
        try:
            line, system, stretch = self.word.split(".")
            start, end = stretch.split("-")
        except ValueError:
            return None
        results = [whole_number(part) for part in (line, system, start, end)]
        return None if None in results else (results[0] or 0, results[1] or 0, results[2] or 0, results[3] or 0)
